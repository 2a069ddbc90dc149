"""The picture of discovered groups."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from plotting_helpers import LONG_NAMES, inside_figure, one_sentence
from sklearn.linear_model import LogisticRegression

from skellipsoid import EllipsoidOpenSetClassifier, discover_classes
from skellipsoid.plotting import DiscoveryDisplay


@pytest.fixture(scope="module")
def traffic():
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 10, size=(12, 6))
    y = np.repeat(np.arange(12), 40)
    X = rng.normal(size=(480, 6)) + centres[y]
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 9], y[y < 9])
    X = np.concatenate([X[y >= 7], X[:1]])
    texts = [f"{LONG_NAMES[label]} word{i} $x$" for i, label in enumerate([*y[y >= 7], 0])]
    return clf, np.concatenate([X, X[-30:-10]]), [*texts, *texts[-30:-10]]


def test_bars_are_the_sizes_of_the_groups(traffic):
    clf, X, texts = traffic
    result = discover_classes(clf, X, texts=texts)
    display = DiscoveryDisplay.from_result(result)
    assert [bar.get_width() for bar in display.bars_] == result.sizes.tolist()
    assert [bar.get_width() for bar in display.distinct_bars_] == result.distinct_sizes.tolist()
    assert result.sizes.sum() > result.distinct_sizes.sum()
    assert len(display.texts_) == result.n_groups == 3
    display.figure_.draw_without_rendering()
    assert inside_figure(display.figure_, *display.texts_, display.ax_.get_legend(), *display.ax_.get_yticklabels())
    ax = Figure(layout="constrained").subplots()
    other = DiscoveryDisplay.from_estimator(clf, X, texts=texts, ax=ax)
    assert other.ax_ is ax
    assert [text.get_text() for text in other.texts_] == [text.get_text() for text in display.texts_]
    assert len(DiscoveryDisplay.from_result(result, n_groups=2, legend=False).texts_) == 2


def test_what_cannot_be_drawn(traffic):
    clf, X, _ = traffic
    with one_sentence(ValueError, "n_groups=0 is not allowed"):
        DiscoveryDisplay.from_result(discover_classes(clf, X), n_groups=0)
    with one_sentence(TypeError, "LogisticRegression was given"):
        DiscoveryDisplay.from_estimator(LogisticRegression().fit(X[:80], np.arange(80) % 2), X)


def test_without_groups_the_picture_says_so(traffic):
    clf, X, _ = traffic
    display = DiscoveryDisplay.from_estimator(clf, X[:1])
    assert [text.get_text() for text in display.ax_.texts] == ["no group"]
