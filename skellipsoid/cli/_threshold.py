"""The command ``set-threshold``: move the threshold of a saved model to another operating point."""

import argparse
from copy import copy
from typing import Any

import numpy as np

from .._core.messages import numbered
from .._core.pipelines import read_estimator
from .._core.warn import silenced
from .._ellipsoid.changes.learned import find_trained
from .._held_out.kept import held_out_of, held_out_rows
from .._traffic.forecast import share_known
from .._traffic.log import MEMBERS, read_log, score
from .._traffic.operating_point import set_operating_point
from .._traffic.operating_point.offsets import rejection_offset, warn_of_few
from .._traffic.operating_point.set import open_set_classifier
from .._traffic.predict_set import forecast_by_name
from .._traffic.share import said_of_trained
from ..metrics._reading import read_closed_set_rows, trade_off_at
from ._change import save_where_asked
from ._trade_off import before_and_after, too_few
from ._use import load_model, log_of_file, weights_of

#: Thresholds beyond are those of the rates 0 and 1.
_ALL = 1e30


def set_threshold(options: argparse.Namespace) -> None:
    """Print what another threshold changes, and save the model with it."""
    model, manifest = load_model(options.model)
    classifier, log = open_set_classifier(model), None
    texts, labels, columns = log_of_file(options, classifier)
    if texts is not None:
        log = read_estimator(model, texts, MEMBERS, "set-threshold")[1]
    before, former, weights = _effect(classifier, log), copy(classifier), None
    offset, of_classes = former.offset_, former.class_offsets_
    if options.rejection_rate is not None:
        _set_rate(classifier, options.rejection_rate)
    else:
        weights = weights_of(columns, labels, options.data)
        if options.undo:
            set_operating_point(classifier)
        set_operating_point(
            classifier, log, labels, open_share=options.open_share, sample_weight=weights, miss_rate=options.miss_rate
        )  # with nothing, as fitted; with a miss rate alone, the threshold stays
    stays = classifier.offset_ == offset and np.array_equal(classifier.class_offsets_, of_classes)
    if stays and _state(classifier) == _state(former) and options.save is None:
        print(f"The threshold stays {_named(offset)}; nothing is written.")
        return
    dropped = ", and thresholds of single intents are dropped" if of_classes.any() else ""
    moves = f"The threshold moves from {_named(offset)} to {_named(classifier.offset_)}{dropped}"
    if stays:
        moves = f"The threshold stays {_named(offset)}"
    change = _change_of(before, _effect(classifier, log))
    save_where_asked(model, manifest, options)
    of_log = change if log is not None else ""  # a proportion that the user gave is no finding
    found = _learned(classifier, labels) if options.open_share is None else ""
    print(f"{moves}{of_log}.{found}{_asked(classifier, options.miss_rate)}")
    lines = [] if log is None else [said_of_trained(int((find_trained(classifier, log) >= 0).sum()), len(log))]
    lines.append(_forecast(classifier, (log, labels, weights), options.open_share, former))
    print(*filter(None, [*lines, change if log is None and not stays else None]), sep="\n")


def _state(classifier: Any) -> tuple[Any, Any]:
    """Give what was learned of the traffic, and the zones of ``predict_set``."""
    return getattr(classifier, "traffic_", None), getattr(classifier, "asking_", None)


def _asked(classifier: Any, miss_rate: float | None) -> str:
    """Say what the zones for a miss rate do."""
    if miss_rate is None:
        return ""
    asking = classifier.asking_
    return (
        f" Of known texts about {100 * asking['served']:.0f} % are right, {100 * asking['asked']:.0f} % asked about, "
        f"and {100 * asking['missed']:.0f} % get neither the right label nor a question that offers it; of open ones "
        f"{100 * asking['open_asked']:.0f} % are asked about."
    )


def _learned(classifier: Any, labels: Any) -> str:
    """Say which proportion of open messages the labels give."""
    n_labels = 0 if labels is None else sum(label is not None for label in labels)
    if not n_labels:
        return ""
    low, high = (100 * classifier.traffic_[name] for name in ("low", "high"))
    return f" Between {low:.0f} and {high:.0f} % are open, by {numbered(n_labels, 'label')} and the log."


def _forecast(classifier: Any, given: tuple[Any, Any, Any], share: Any, former: Any) -> str | None:
    """Forecast what both thresholds do, by one model of the traffic; ``None`` if the model holds nothing for it."""
    try:
        held = held_out_of(classifier, "set-threshold")
    except (TypeError, ValueError):
        return None
    with silenced():  # the labels were read before
        log = read_log(classifier, *given, "set-threshold")
    if not len(log.telling().truth) and (sentence := too_few(held)) is not None:
        return sentence
    found = log.fit(held, share_known(classifier, log, share, held))
    scores = log.scores_of_messages()
    return before_and_after(*(forecast_by_name(each, held, found, scores) for each in (former, classifier)))


def _set_rate(classifier: Any, rate: float) -> None:
    """Reject a proportion of known texts, by those that the fit held out."""
    scores = getattr(classifier, "held_out_scores_", None)
    if scores is None:
        raise ValueError(
            f"--rejection-rate {rate} is a proportion of the texts that the training held out, but this model has "
            "none; pass --data with a log, or train it with more texts of each intent."
        )
    warn_of_few("--rejection-rate", rate, len(scores))
    set_operating_point(classifier)
    classifier.offset_ = rejection_offset(scores, rate)


def _named(offset: float) -> str:
    if abs(offset) > _ALL:
        return "where every message is open" if offset > 0 else "where no message is open"
    return f"{offset:.3f}{' (as fitted)' if offset == 0 else ''}"


def _effect(classifier: Any, log: Any) -> list[float]:
    """Percent of a log that is predicted open; without a log, of known and of open texts, by held-out ones.

    Empty if no intent was held out of the fit.
    """
    if log is not None:
        scores, assigned = score(classifier, log)
        return [100 * float(np.mean(scores < classifier.offset_ + classifier.class_offsets_[assigned]))]
    try:
        rows = held_out_rows(classifier, "set-threshold")
    except (TypeError, ValueError):
        return []
    offset = np.array([rows.pop("offset")])
    rejected, detected, _ = trade_off_at(read_closed_set_rows(**rows), offset)
    return [100 * float(rejected[0]), 100 * float(detected[0])]


def _change_of(before: list[float], after: list[float]) -> str:
    """Write two effects side by side."""
    if not before:
        return ""
    if len(before) == 1:
        return f": {after[0]:.1f} % of these texts are predicted open instead of {before[0]:.1f} %"
    return (
        f"Of 100 held-out training texts {after[0]:.0f} instead of {before[0]:.0f} are handed over, of 100 of held-out "
        f"intents {after[1]:.0f} instead of {before[1]:.0f} are detected: scores of users' messages are lower."
    )
