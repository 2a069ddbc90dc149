"""Promise: a fit that takes long shows on a terminal that it goes on, if that is wanted; else it is silent."""

import io
import sys

import pytest

from skellipsoid import EllipsoidOpenSetClassifier, refresh
from skellipsoid._torch import progress
from skellipsoid.datasets import make_open_blobs


@pytest.mark.parametrize(
    ("verbose", "seconds", "is_terminal"), [(1, 0, True), (1, 1000, True), (0, 0, True), (1, 0, False)]
)
def test_a_long_fit_shows_its_parts(monkeypatch, verbose, seconds, is_terminal):
    shown = io.StringIO()
    shown.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "LONG_FIT", seconds)
    X, y = make_open_blobs(80, 4, n_known=2, open_share=0, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0, verbose=verbose).fit(X, y)
    is_shown = verbose == 1 and seconds == 0 and is_terminal
    assert ("Fitting: " in shown.getvalue()) == is_shown
    with progress.all_bars_shown():  # as in the commands
        refresh(clf.set_params(verbose=0))
    assert ("Fitting: " in shown.getvalue()) == (seconds == 0 and is_terminal)
