"""The command ``monitor``: a test by betting of whether more messages look open than in a reference log."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._core.characters import printable
from .._core.files import replacing
from .._core.pipelines import fingerprint, less_class_offsets, split_estimator
from .._traffic.monitor import OpenShareMonitor
from ..persistence._folder import locked
from ..persistence._kinds import check_state
from ._given import read_by, with_content
from ._growing_log import LastLog, read_growing, texts_since
from ._use import load_model


def monitor(options: argparse.Namespace) -> bool:
    """Take a log as the reference, or compare it with the reference; returns whether there is an alarm."""
    how = read_by(options)
    texts = with_content(None if options.data is None else read_growing(options.data, **how))
    model = load_model(options.model)[0]
    folder = options.model if options.model.name else options.model.absolute()
    path: Path = options.state or folder.with_name(f"{folder.name}.monitor.json")
    log = LastLog.of(texts, options.data)
    with locked(path.absolute().parent):  # two calls at once would lose a log
        if not path.exists():
            if not texts:
                raise ValueError(
                    "There is no text to be the reference; pass a stretch of the log with several hundred."
                )
            _write(path, watching := OpenShareMonitor(model).fit(texts), log)
            print(f"These {watching.n_reference_} texts are the reference; it is in {path}.")
            return False
        watching, last = _read(path, model)
        if since := texts_since(last, texts, options.data, **how):
            _write(path, watching.update(since), log)
    print(_described(watching, path))
    return watching.alarm_


def _described(watching: OpenShareMonitor, path: Path) -> str:
    """Write the state in one line; the proportions predicted open are those of the present threshold."""
    classifier = split_estimator(watching.estimator)[1]
    scores = less_class_offsets(classifier, watching._scores, watching.classes_[watching._codes])
    is_open, n_first = scores < classifier.offset_, watching.n_reference_
    said = f"{100 * is_open[:n_first].mean():.0f} % of the reference are predicted open"
    if watching.n_seen_:
        said += f", {100 * is_open[n_first:].mean():.0f} % of the {watching.n_seen_} texts since"
    if not watching.alarm_:
        evidence, enough = 10**watching.log10_evidence_, 1 / watching.false_alarm_rate
        return f"No alarm (evidence {evidence:.2g}, an alarm from {enough:.0f} on): {said}."
    named = ", ".join(printable(str(label)) for label in watching.class_alarm_at_)
    return (
        f"Alarm since text {watching.alarm_at_}: {said}{f'; near {named}' if named else ''}. Review about 30 of "
        f"them, and remove {path} once you know what came: the next log is then the new reference."
    )


def _write(path: Path, watching: OpenShareMonitor, log: LastLog) -> None:
    """Write the state all at once."""
    state = {}
    for name in watching._state:
        value = getattr(watching, name)
        if isinstance(value, np.ndarray):
            value = {"dtype": value.dtype.str, "shape": value.shape, "values": value.ravel().tolist()}
        state[name] = value
    last = {f"last_log_{name}": value for name, value in log._asdict().items()}
    written = json.dumps({"format": "skellipsoid monitor", **last, "state": state})
    with replacing(path) as partial:
        partial.write_text(f"{written}\n", encoding="utf-8")


def _last_log(stored: dict[str, Any]) -> LastLog:
    n_texts = stored.get("last_log_n_texts")
    if n_texts is not None and (type(n_texts) is not int or n_texts < 0):
        raise ValueError("the number of texts is none")
    return LastLog(str(stored["last_log_sha256"]), n_texts, stored.get("last_log_path"))


def _read(path: Path, model: Any) -> tuple[OpenShareMonitor, LastLog]:
    """Read the state of a model, and what it says of the last log."""
    watching = OpenShareMonitor(model)
    if not path.is_file():  # a device would be read for ever
        raise ValueError(f"--state {str(path)!r} is no file; pass another --state.")
    try:
        stored = json.loads(path.read_bytes())
        state, last = stored["state"], _last_log(stored)
        is_same = state["_fingerprint"] == fingerprint(model)
        for name in OpenShareMonitor._state if is_same else ():
            value = state[name]
            if isinstance(value, dict):
                value = np.array(value["values"], dtype=value["dtype"]).reshape(value["shape"])
            setattr(watching, name, value)
        if is_same:
            check_state(watching)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{str(path)!r} is no state of monitor, or it is damaged; remove it, or pass another --state."
        ) from error
    if not is_same:
        raise ValueError(
            f"The state in {str(path)!r} is of another model, or of another fit of this one, so that scores cannot be "
            "compared; remove it to begin with a new reference, or pass another --state."
        )
    return watching, last
