"""Small classifiers, long names of classes, and what several displays are asked."""

import re
from contextlib import contextmanager

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.datasets import make_open_blobs

#: As long as the names of real intents, many of them alike at the beginning.
LONG_NAMES = np.array(
    [f"{'balance_not_updated_after_' if k % 3 else 'card_'}transfer_number_{k:02d}" for k in range(77)]
)


def fit_blobs(n_features, n_known, **settings):
    X, y = make_open_blobs(60 * n_known + 80, n_features, n_known=n_known, random_state=3)
    known = np.flatnonzero(y != -1)[::2]
    defaults = {"open_share": (0.25, 0.75), "known_shift": 0, "random_state": 0}  # so that some known rows are rejected
    clf = EllipsoidOpenSetClassifier(**defaults | settings).fit(X[known], y[known])
    return clf, np.delete(X, known, axis=0), np.delete(y, known)


def margins_on_outline(display, clf, k):
    return clf.class_margins(display.origin + display.outlines[k] @ display.directions)[:, k]


def inside_figure(figure, *artists):
    boxes, frame = [artist.get_tightbbox() for artist in artists], figure.bbox.padded(1)
    return all(frame.contains(*box.min) and frame.contains(*box.max) for box in boxes)


@contextmanager
def one_sentence(kind, message):
    """What is done inside raises an error of one sentence; gives what ``pytest.raises`` gives."""
    with pytest.raises(kind, match=message) as error:
        yield error
    text = str(error.value)
    assert "\n" not in text
    assert len(re.findall(r"[.!?](?=\s+[A-Z]|$)", text)) == 1
    assert text.endswith(".")
