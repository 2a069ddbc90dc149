"""The command ``traffic``: estimate the proportion of open messages in a log, and group them."""

import argparse
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from .._core.characters import printable
from .._core.messages import numbered
from .._core.pipelines import read_estimator, split_estimator
from .._text_files.workbooks.write_workbook import MEMBERS_SHEET, SUFFIX, Sheet, write_workbook
from .._traffic.discovery import DiscoveredClasses
from .._traffic.discovery.discover import group_open, read_traffic
from .._traffic.log import MEMBERS
from .._traffic.share import estimate_open_share
from ._ahead import check_unlabelled
from ._given import with_content
from ._pages.page import SUFFIX as PAGE
from ._pages.page import saved_by, write_page
from ._use import load_model, log_of_file, weights_of

#: Intents that are listed.
_N_INTENTS = 5


def traffic(options: argparse.Namespace) -> None:
    """Print the estimated proportion of open messages, and write their groups."""
    pipeline = load_model(options.model, options)[0]
    texts, labels, columns = log_of_file(options, split_estimator(pipeline)[1])
    if texts is None:
        texts = with_content(None)
    if not texts:
        raise ValueError("There is no text to read; pass a log with one message a line, or a file with --data.")
    if options.save is None:
        classifier, features = read_estimator(pipeline, texts, MEMBERS, "traffic")
    else:
        log = read_traffic(pipeline, texts, "traffic --save", members=MEMBERS)
        classifier, features = log.classifier, log.features
    print(f"{len(texts)} texts, {len(set(texts))} of them different")
    for line in describe(classifier, features, labels, weights_of(columns, labels, options.data)):
        print(line)
    if options.save is not None:
        groups = group_open(log)
        check_unlabelled(options.save)  # somebody may have labelled them meanwhile
        if options.save.suffix.lower() == PAGE:
            _write_page(groups, options, split_estimator(pipeline)[1])
        elif options.save.suffix.lower() == SUFFIX:
            _write_groups(groups, options.save, columns, split_estimator(pipeline)[1])
        else:
            groups.to_tsv(options.save, columns)
        print(_described_groups(groups, options.save))


def _write_groups(groups: DiscoveredClasses, path: Path, columns: dict[str, list[str]], classifier: Any) -> None:
    """Write the groups, and their members on a second sheet."""
    own, members = groups.written(MEMBERS_SHEET, columns)
    wide = [name for name in own[0] if name.startswith("example_")]
    sheets = [Sheet("groups", *own, wide), Sheet(MEMBERS_SHEET, *members, ["text"])]
    write_workbook(path, sheets, [classifier.open_label_, *classifier.classes_.tolist()])


def _write_page(groups: DiscoveredClasses, options: argparse.Namespace, classifier: Any) -> None:
    """Write the groups with all of their messages to a page."""
    rows = groups._different()
    copies = np.bincount(groups.first_rows[groups.labels >= 0], minlength=len(groups.labels))
    members: dict[int, list[dict[str, Any]]] = {group: [] for group in range(groups.n_groups)}
    for row in rows.tolist():
        text = "" if groups.texts is None else str(groups.texts[row])
        one = {"text": text, "score": f"{groups.scores[row]:.4f}", "copies": int(copies[row])}
        members[int(groups.labels[row])].append(one)
    saves = saved_by(options.save)
    data = {
        "saves": saves,
        "next": shlex.join(["skellipsoid", "add", "--model", str(options.model), "--data", saves]),
        "notice": "This page holds messages of users: give it to those alone who may read them. It sends nothing.",
        "open": str(classifier.open_label_),
        "classes": list(map(str, classifier.classes_.tolist())),
        "run": groups._run(),
        "groups": [
            {
                "group": group,
                "name": groups.names[group],
                "rows": int(groups.sizes[group]),
                "part_of": str(groups.nearest_class[group]) if groups.is_part[group] else "",
                "mixed": bool(groups.is_mixed[group]),
                "members": members[group],
            }
            for group in groups._in_order()
        ],
    }
    write_page(options.save, "groups", f"{groups.n_groups} groups of open messages", data)


def describe(classifier: Any, features: Any, labels: Any = None, weights: Any = None) -> list[str]:
    """Write the proportion of open messages, the most frequent intents, and how much the threshold rejects."""
    found = estimate_open_share(classifier, features, labels, sample_weight=weights)
    frequent = [code for code in np.argsort(-found.class_shares)[:_N_INTENTS] if found.class_shares[code] >= 0.005]
    intents = [
        f"{printable(str(classifier.classes_[code]))} {100 * found.class_shares[code]:.0f} %" for code in frequent
    ]
    return [
        f"Open: at least {100 * found.low:.0f} %, about {100 * found.share:.0f} %, at most {100 * found.high:.0f} %",
        *([found.note] if found.note else []),
        f"Most frequent intents: {', '.join(intents) or 'none'}",
        f"The threshold of this model rejects {_counted(classifier.predict(features) == classifier.open_label_)}",
    ]


def _described_groups(groups: DiscoveredClasses, path: Path) -> str:
    n_open, n_grouped = int(groups.is_open.sum()), int(groups.sizes.sum())
    if not groups.n_groups:
        return f"No group was found among the {n_open} texts that are predicted open; {path} has none"
    names = ", ".join(printable(groups.names[group]) for group in groups._in_order()[:_N_INTENTS])
    found = f"{n_grouped} of the {n_open} texts that are predicted open are in {numbered(groups.n_groups, 'group')}"
    found += f", the largest: {names}"
    if n_parts := int(groups.is_part.sum()):
        n_texts = numbered(int(groups.sizes[groups.is_part].sum()), "text")
        found += f"; {n_parts} with {n_texts} rather {'belongs' if n_parts == 1 else 'belong'} to known intents"
    if n_mixed := int(groups.is_mixed.sum()):
        found += f"; {n_mixed} {'is' if n_mixed == 1 else 'are'} mixed, of texts that have little in common"
    return f"{found}\n{_how(path)}"


def _how(path: Path) -> str:
    """Say how groups are labelled."""
    if path.suffix.lower() == PAGE:
        saved = saved_by(path)
        return f"Open {path} in a browser, name the groups, and pass the {saved} that it saves to add"
    return f"Label the groups in {path}, a line for each; add reads it"


def _counted(rejected: Any) -> str:
    return f"{int(rejected.sum())} of {len(rejected)} texts ({100 * rejected.mean():.0f} %)"
