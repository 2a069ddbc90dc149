"""The commands that change the classes of a saved model: ``add``, ``remove`` and ``merge``."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.files import members_path, unguarded
from .._core.messages import cut, named, numbered
from .._core.pipelines import split_estimator
from .._core.spelling import nearly_equal, refuse_other_spellings, says_none
from .._ellipsoid.changes.classes import add_classes, merge_classes, refresh, remove_classes
from .._text_files.columns import check_single
from .._text_files.read import accepted_labels, read_file, read_labels
from .._text_files.text_table import Table
from .._text_files.workbooks.package import first_sheet, is_workbook
from .._text_files.workbooks.write_workbook import MEMBERS_SHEET, chosen_label
from .._traffic.discovery.result import MEMBER_COLUMNS
from ..persistence._save import save_changed
from ._beside import warn_of_stale_export
from ._evaluate import read_labelled
from ._use import load_model


def add(options: argparse.Namespace) -> None:
    """Add the labelled texts of a file, or of groups: new classes, and more texts of known ones."""
    model, manifest = load_model(options.model)
    classifier = split_estimator(model)[1]
    texts, labels = _read_groups(options, classifier) or read_labelled(options, classifier)
    if not len(texts):
        raise ValueError(
            f"{str(options.data)!r} has no row with both a text and a label; fill in the labels of the texts to add."
        )
    check_names(classifier, labels, asks=not options.yes)
    is_known, is_open = np.isin(labels, classifier.classes_), labels == classifier.open_label_
    parts = []
    for chosen, what in ((~is_known & ~is_open, "new"), (is_known, "known")):
        if chosen.any():
            n_classes = len(np.unique(labels[chosen]))
            noun = "class" if n_classes == 1 else "classes"
            parts.append(f"{numbered(int(chosen.sum()), 'text')} of {n_classes} {what} {noun}")
    model = add_classes(model, texts, labels)
    if is_open.any():
        parts.append(numbered(int(is_open.sum()), "open text"))
    _keep(model, manifest, options, f"Added {', '.join(parts)}")


def _read_groups(options: argparse.Namespace, classifier: Any) -> tuple[NDArray[np.object_], NDArray[Any]] | None:
    """Read texts and labels of the groups that ``traffic --save`` has written; ``None`` if the file is another one.

    The label of a group counts for all its texts, unless a text has its own.
    """
    if options.text_column is not None or options.label_column is not None:
        return None
    kept = {str(label) for label in [*classifier.classes_, classifier.open_label_]}
    how = {"encoding": options.encoding, "sheets": options.sheet or first_sheet(options.data), "familiar": kept}
    groups = read_file(options.data, "group", "label", **how, bots=True, language=options.language)
    opened = classifier.open_label_
    if not groups.note and "group" in groups.names:
        check_single(groups, options.data, *MEMBER_COLUMNS, "members")
    if set(MEMBER_COLUMNS) <= set(groups.names):
        members, of_group = groups, {}
    elif {"group", "label", "example_1"} <= set(groups.names) and groups.rows:
        members = _read_members(options.data, groups, options.encoding)
        of_group = _labels_of_groups(options.data, groups, kept, set(members.named_cells("group")))
        of_group = {group: chosen_label(label, opened) for group, label in of_group.items()}
    else:
        return None
    numbers, texts = members.named_cells("group"), members.named_cells("text")
    if members.delimiter:  # cells of workbooks and of pages are not guarded
        texts = list(map(unguarded, texts))
    own = accepted_labels(members, options.data, members.names.index("text"), members.names.index("label"), kept)
    own = [chosen_label(label, opened) for label in own]
    labels = [label or of_group.get(group, "") for group, label in zip(numbers, own, strict=True)]
    is_labelled = np.array([bool(label) for label in labels], dtype=bool)
    meant = {group for group, label in zip(numbers, labels, strict=True) if label}
    n_labelled, n_meant, n_groups = int(is_labelled.sum()), sum(group in meant for group in numbers), len(meant)
    labelled = f"{n_labelled} of the {numbered(n_meant, 'text')} of {numbered(n_groups, 'group')}"
    if n_labelled < n_meant and not options.yes:
        raise ValueError(
            f"{str(options.data)!r} gives a label to {labelled} alone; label whole groups in the file of groups of "
            "traffic --save, or pass --yes to add these texts alone."
        )
    rest = f"{numbered(len(set(numbers)) - n_groups, 'group')} of {numbered(len(numbers) - n_meant, 'text')}"
    print(f"A label is given to {labelled}; without one: {rest}")
    return np.array(texts, dtype=object)[is_labelled], np.array(labels, dtype=str)[is_labelled]


def _labels_of_groups(path: Path, groups: Table, kept: set[str], present: set[str]) -> dict[str, str]:
    """Give the label of each group; a group with a label must have texts."""
    found: dict[str, str] = {}
    for group, label in zip(groups.named_cells("group"), read_labels(groups.named_cells("label"), kept), strict=True):
        other = found.setdefault(group, label)
        if label and other and label != other:
            both = printable(f"{other!r} and {label!r}")
            raise ValueError(
                f"In {str(path)!r} group {printable(group)} has the labels {both}; give each group one label."
            )
        if label and group not in present:
            raise ValueError(
                f"In {str(path)!r} group {printable(group)} is labelled, but has no text in the file of members; write "
                "the numbers of the column group as traffic --save did."
            )
        found[group] = other or label
    return found


def _read_members(path: Path, groups: Table, encoding: str | None) -> Table:
    """Read the members of the groups of a file, from the file beside it."""
    missing = [name for name in ("members", "run") if name not in groups.names]
    if missing:
        raise ValueError(
            f"{str(path)!r} lacks the {named('column', missing)}, which tells where the texts of the groups are; copy "
            "the labels into the file of traffic --save as it was."
        )
    names, runs = set(groups.named_cells("members")), set(groups.named_cells("run"))
    if is_workbook(path):
        return _of_same_run(read_file(path, "group", "text", sheets=[MEMBERS_SHEET]), runs, path, path)
    other = path.with_name(Path(min(names)).name or members_path(path).name)
    if not other.exists():
        raise FileNotFoundError(
            f"The texts of the groups in {str(path)!r} are in {other.name!r}, which is not beside it; copy it there, "
            "or group the log again with traffic --save."
        )
    return _of_same_run(read_file(other, "group", "text", encoding=encoding), runs, path, other)


def _of_same_run(members: Table, runs: set[str], path: Path, other: Path) -> Table:
    """Check that the members are of the same run as the groups."""
    if not set(MEMBER_COLUMNS) <= set(members.names) or set(members.named_cells("run")) != runs:
        raise ValueError(
            f"{str(other)!r} holds other groups than {str(path)!r}: both must be of one run of traffic --save; group "
            "the log again, and label these groups."
        )
    check_single(members, other, *MEMBER_COLUMNS)
    return members


def check_names(classifier: Any, labels: NDArray[Any], *, asks: bool) -> None:
    """Refuse labels that are a known class or the open label in another spelling, and names that are probably wrong.

    With ``asks`` these are new names that nearly equal those of other classes, or that say that there is no class.
    """
    opened = str(classifier.open_label_)
    refuse_other_spellings(labels, classifier.classes_, opened, among_new=True)
    if not asks:
        return
    known = set(map(str, classifier.classes_.tolist()))
    new = set(map(str, labels.tolist())) - known - {opened}
    pairs = [
        f"{printable(repr(cut(first)))} beside {'the class ' if is_known else ''}{printable(repr(cut(second)))}"
        for first, second, is_known in nearly_equal(new, known)
    ]
    if pairs:
        raise ValueError(
            f"Nearly equal names: {named('label', pairs)}; write them alike, or pass --yes if they are different "
            "classes."
        )
    for label in sorted(filter(says_none, new)):
        raise ValueError(
            f"The label {printable(repr(cut(label)))} seems to say that a message is of no class; write "
            f"{printable(repr(opened))} for it, or pass --yes if it is a class."
        )


def remove(options: argparse.Namespace) -> None:
    """Remove classes."""
    model, manifest = load_model(options.model)
    model = remove_classes(model, np.array(options.labels))
    _keep(model, manifest, options, f"Removed {_named(options.labels)}")


def merge(options: argparse.Namespace) -> None:
    """Merge classes into one, or rename a class."""
    model, manifest = load_model(options.model)
    model = merge_classes(model, {options.into: options.labels})
    _keep(model, manifest, options, f"Merged {_named(options.labels)} into {printable(options.into)}")


def _keep(model: Any, manifest: dict[str, Any], options: argparse.Namespace, what: str) -> None:
    """Save the changed model, and print what changed."""
    model = refresh(model) if options.refresh else model
    folder = save_where_asked(model, manifest, options)
    n_classes = len(split_estimator(model)[1].classes_)
    print(f"{what}. The model in {folder} knows {n_classes} classes.")


def save_where_asked(model: Any, manifest: dict[str, Any], options: argparse.Namespace) -> Path:
    """Save a changed model in place of the one that was loaded, all at once, or in another folder; give the folder."""
    folder: Path = options.save or options.model
    replaced = manifest["manifest_sha256"] if options.save is None else None
    save_changed(model, folder, replaced, manifest["provenance"])
    warn_of_stale_export(folder)
    return folder


def _named(labels: list[str]) -> str:
    return ", ".join(map(printable, labels))
