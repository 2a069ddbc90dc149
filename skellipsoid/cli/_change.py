"""The commands that change the classes of a saved model: ``add``, ``remove`` and ``merge``."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .._changes import add_classes, merge_classes, remove_classes, update_classes
from .._pipelines import split_estimator
from .._texts import printable
from ..persistence import save
from ..persistence._folder import read_manifest
from ._train import check_folder
from ._use import load_model, read_labelled


def add(options: argparse.Namespace) -> None:
    """Add the labelled texts of a file: new classes, and more texts of known ones."""
    _check_target(options)
    model = load_model(options.model, verbose=int(not options.quiet))
    classifier = split_estimator(model)[1]
    texts, labels = read_labelled(options, classifier)
    if not len(texts):
        msg = f"{str(options.data)!r} has no row with both a text and a label; fill in the labels of the texts to add."
        raise ValueError(msg)
    is_known, is_open = np.isin(labels, classifier.classes_), labels == classifier.open_label_
    is_new = ~is_known & ~is_open
    parts = []
    for chosen, change, what in (
        (is_new | (is_open & is_new.any()), add_classes, "new"),
        (is_known | (is_open & ~is_new.any()), update_classes, "known"),
    ):
        of_classes = chosen & ~is_open
        if chosen.any():
            model = change(model, texts[chosen], labels[chosen], refresh=options.refresh)
        if of_classes.any():
            n_classes = len(np.unique(labels[of_classes]))
            noun = "class" if n_classes == 1 else "classes"
            parts.append(f"{int(of_classes.sum())} texts of {n_classes} {what} {noun}")
    if is_open.any():
        parts.append(f"{int(is_open.sum())} open texts")
    _keep(model, options, f"Added {', '.join(parts)}")


def remove(options: argparse.Namespace) -> None:
    """Remove classes."""
    _check_target(options)
    model = remove_classes(load_model(options.model, verbose=0), np.array(options.labels), refresh=options.refresh)
    _keep(model, options, f"Removed {_named(options.labels)}")


def merge(options: argparse.Namespace) -> None:
    """Merge classes into one, or rename a class."""
    _check_target(options)
    model = merge_classes(load_model(options.model, verbose=0), {options.into: options.labels}, refresh=options.refresh)
    _keep(model, options, f"Merged {_named(options.labels)} into {printable(options.into)}")


def _check_target(options: argparse.Namespace) -> None:
    """Refuse a folder that cannot be written to, before the model is loaded."""
    if options.save is not None:
        check_folder(options.save, overwrite=False)


def _keep(model: Any, options: argparse.Namespace, what: str) -> None:
    """Save the changed model: in place of the old one, all at once, or in another folder."""
    folder: Path = options.save or options.model
    provenance = read_manifest(options.model)[0]["provenance"]
    save(model, folder, overwrite=options.save is None, provenance=provenance)
    n_classes = len(split_estimator(model)[1].classes_)
    print(f"{what}. The model in {folder} knows {n_classes} classes.")


def _named(labels: list[str]) -> str:
    return ", ".join(map(printable, labels))
