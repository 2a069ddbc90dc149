"""Two small classifiers, and figures that are closed after each test."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

pytest.register_assert_rewrite("plotting_helpers")

from plotting_helpers import fit_blobs  # noqa: E402

from skellipsoid import set_operating_point  # noqa: E402


@pytest.fixture(autouse=True)
def closed_figures():
    """No picture changes the style of the next, and none stays open after its test."""
    style = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == style


@pytest.fixture(scope="module")
def flat():
    """Classifier of three classes in two features, and rows with open ones."""
    return fit_blobs(2, 3)


@pytest.fixture(scope="module")
def deep():
    """Classifier of five classes in four features, and rows with open ones."""
    return fit_blobs(4, 5)


@pytest.fixture
def shifted(flat):
    """The classifier of two features at another operating point."""
    clf, X, y = flat
    yield set_operating_point(clf, X, y, rejection_rate=0.3), X, y
    set_operating_point(clf)
