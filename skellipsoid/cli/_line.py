"""The command ``set-line``: move the limit of a saved model."""

import argparse
from typing import Any

import numpy as np

from .._after_fit.operating_point import set_operating_point
from .._after_fit.operating_point.offsets import rejection_offset, warn_of_few
from .._after_fit.operating_point.set import open_set_classifier
from .._after_fit.traffic.share import MEMBERS, score
from .._core.answers import read_closed_set_rows, trade_off_at
from .._core.held_out_scores import held_out_rows
from .._core.pipelines import read_estimator
from ..persistence._save import save_changed
from ._use import load_model, texts_of_file, with_content


def set_line(options: argparse.Namespace) -> None:
    """Say in one sentence what another limit changes, and save the model with it."""
    texts = texts_of_file(options)
    model, manifest = load_model(options.model, verbose=0)
    classifier, log = open_set_classifier(model), None
    if texts is not None:
        log = read_estimator(model, with_content(texts), MEMBERS, "set-line")[1]
    before, offset, of_classes = _effect(classifier, log), classifier.offset_, classifier.class_offsets_
    if options.rejection_rate is not None:
        _set_rate(classifier, options.rejection_rate)
    else:
        set_operating_point(classifier, log, open_share=options.open_share)  # with neither, as fitted
    if classifier.offset_ == offset and np.array_equal(classifier.class_offsets_, of_classes):
        print(f"The limit stays {_named(offset)}; nothing is written.")
        return
    dropped = ", and limits of single intents are dropped" if of_classes.any() else ""
    moves = f"The limit moves from {_named(offset)} to {_named(classifier.offset_)}{dropped}"
    told = _told(before, _effect(classifier, log))
    save_changed(model, options.model, manifest["manifest_sha256"], manifest["provenance"])
    print(f"{moves}{told}.")


def _set_rate(classifier: Any, rate: float) -> None:
    """Reject a share of known texts, by those that the fit held out."""
    scores = getattr(classifier, "held_out_scores_", None)
    if scores is None:
        raise ValueError(
            f"--rejection-rate {rate} is a share of texts that the training held out, but this model has none; pass "
            "--data with a log, or train it with more texts of each intent."
        )
    warn_of_few("--rejection-rate", rate, len(scores))
    set_operating_point(classifier)
    classifier.offset_ = rejection_offset(scores, rate)


def _named(offset: float) -> str:
    return f"{offset:.3f}{' (as fitted)' if offset == 0 else ''}"


def _effect(classifier: Any, log: Any) -> list[float]:
    """Percent of a log that are answered open; without a log, of known and of unknown texts, by held-out ones.

    Empty if no intent was held out of the fit.
    """
    if log is not None:
        scores, assigned = score(classifier, log)
        return [100 * float(np.mean(scores < classifier.offset_ + classifier.class_offsets_[assigned]))]
    try:
        rows = held_out_rows(classifier, "set-line")
    except (TypeError, ValueError):
        return []
    offset = np.array([rows.pop("offset")])
    rejected, noticed, _ = trade_off_at(read_closed_set_rows(**rows), offset)
    return [100 * float(rejected[0]), 100 * float(noticed[0])]


def _told(before: list[float], after: list[float]) -> str:
    """Tell two effects side by side."""
    if not before:
        return ""
    if len(before) == 1:
        return f": {after[0]:.1f} % of these texts are answered open instead of {before[0]:.1f} %"
    return (
        f": of 100 known texts {after[0]:.0f} instead of {before[0]:.0f} go to a person, of 100 unknown ones "
        f"{after[1]:.0f} instead of {before[1]:.0f} are noticed (estimated with held-out texts and intents)"
    )
