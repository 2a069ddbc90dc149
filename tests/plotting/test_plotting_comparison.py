"""The picture of answers that changed."""

import numpy as np
import pytest
from plotting_helpers import LONG_NAMES, inside_figure, one_sentence

from skellipsoid import EllipsoidOpenSetClassifier, compare
from skellipsoid.plotting import ComparisonDisplay


@pytest.fixture(scope="module")
def models():
    """A model, one with a class more and a class less, and one of another draw; all with long names."""
    rng = np.random.default_rng(0)
    names = np.array(LONG_NAMES[:7], dtype=object)
    centres = rng.normal(0, 8, size=(7, 5))
    y = np.repeat(np.arange(7), 60)
    X = rng.normal(size=(len(y), 5)) + centres[y]

    def fit(rows):
        return EllipsoidOpenSetClassifier(random_state=0).fit(X[rows], names[y[rows]].astype(str))

    half = np.arange(len(y)) % 2 == 0
    return fit((y < 6) & half), fit(y > 0), fit((y < 6) & ~half), X


def test_bars_are_the_pairs_of_answers(models):
    before, after, again, X = models
    found = compare(before, after, X, repeats=[again])
    display = ComparisonDisplay.from_result(found)
    assert [bar.get_width() for bar in display.bars_] == found.pairs["count"].tolist()
    assert [text.get_text() for text in display.texts_] == [f"{count:,}" for count in found.pairs["count"]]
    display.figure_.draw_without_rendering()
    assert inside_figure(display.figure_, *display.texts_, display.ax_.get_legend(), *display.ax_.get_yticklabels())
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    kinds = zip(found.pairs.before == found.open_label, found.pairs.after == found.open_label, strict=True)
    assert [(name.startswith("open → "), name.endswith(" → open")) for name in names] == list(kinds)
    told = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    lost = sum(found.pairs["count"][found.pairs.after == found.open_label])
    assert f"no longer answered ({lost})" in told
    below = display.ax_.get_xlabel()
    assert f"({found.n_changed} of 420 predictions changed)" in below
    assert f"another seed changes {round(420 * found.repeat_shares[0])}" in below


def test_what_cannot_be_drawn(models):
    before, after, _, X = models
    with one_sentence(ValueError, "n_pairs=0 is not allowed"):
        ComparisonDisplay.from_result(compare(before, after, X), n_pairs=0)


def test_pairs_that_are_not_drawn_are_counted(models):
    before, after, _, X = models
    found = compare(before, after, X)
    display = ComparisonDisplay.from_estimators(before, after, X)
    assert len(display.bars_) == len(found.pairs["count"]) > 1
    first = ComparisonDisplay.from_result(found, n_pairs=1, legend=False)
    assert len(first.bars_) == 1
    assert first.ax_.get_legend() is None
    left = found.pairs["count"][1:]
    assert f"{len(left)} other pairs, {left.sum()} samples, are not shown" in first.ax_.get_xlabel()
