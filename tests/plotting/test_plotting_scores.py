"""The pictures of the scores, histogram, OSCR curve, F1 and trade-off, against loops and the metrics."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import UndefinedMetricWarning

from skellipsoid.metrics import known_f1_score, open_f1_score, open_set_f1_score, trade_off_curve
from skellipsoid.plotting import ScoreHistogramDisplay, TradeOffDisplay

# Histograms


def test_histogram_counts_are_those_of_a_loop(shifted):
    clf, X, y = shifted
    score = clf.score_samples(X)
    display = ScoreHistogramDisplay.from_estimator(clf, X, y, share=False)
    edges = display.bin_edges_
    assert clf.offset_ in edges
    assert len(edges) in (41, 42)
    np.testing.assert_allclose(np.diff(edges), np.ptp(score) / 40)
    for rows, heights in ((score[y != -1], display.known_heights_), (score[y == -1], display.open_heights_)):
        counts = [sum(low <= s < high for s in rows) for low, high in pairwise(edges)]
        np.testing.assert_array_equal(heights, counts)
        assert heights.sum() == len(rows)
    np.testing.assert_array_equal(display.known_bars_.get_data().values, display.known_heights_)
    np.testing.assert_array_equal(display.open_bars_.get_data().edges, edges)
    assert display.line_.get_xdata()[0] == clf.offset_
    # No bar lies on both sides of the offset.
    coverage, rejection = np.mean(score[y != -1] >= clf.offset_), np.mean(score[y == -1] < clf.offset_)
    right = edges[:-1] >= clf.offset_
    assert display.known_heights_[right].sum() == pytest.approx(coverage * np.sum(y != -1))
    assert display.open_heights_[~right].sum() == pytest.approx(rejection * np.sum(y == -1))
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0].endswith(f"{coverage:.1%} accepted")
    assert texts[1].endswith(f"{rejection:.1%} rejected")


# OSCR


def test_several_models_come_on_one_axes_and_differ(flat):
    clf, X, y = flat
    first = TradeOffDisplay.from_estimator(clf, X, y, kind="oscr")
    rows = y, clf.predict_known(X), -clf.score_samples(X)
    second = TradeOffDisplay.from_predictions(*rows, kind="oscr", name="b", ax=first.ax_)
    third = TradeOffDisplay.from_predictions(*rows, kind="oscr", ax=first.ax_, line_kw={"lw": 5, "label": "c"})
    assert first.ax_ is second.ax_ is third.ax_
    assert len(plt.get_fignums()) == 1
    lines = [display.lines_[0] for display in (first, second, third)]
    assert len({line.get_color() for line in lines}) == len({line.get_linestyle() for line in lines}) == 3
    assert lines[2].get_linewidth() == 5
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts[0].startswith("EllipsoidOpenSetClassifier (area ")
    assert texts[1].startswith("b (area ")
    assert texts[2] == "c"
    assert len(first.ax_.lines) == 4  # of the marks of an offset, there is the first model's alone


# Class offsets


def test_pictures_follow_the_class_offsets(shifted):
    clf, X, y = shifted
    clf.class_offsets_[1:3] = -0.1, 0.2
    accepted, known = clf.predict(X) != -1, y != -1
    histogram = ScoreHistogramDisplay.from_estimator(clf, X, y)
    assert np.mean(histogram.known_score >= clf.offset_) == accepted[known].mean()
    assert np.mean(histogram.open_score >= clf.offset_) == accepted[~known].mean()
    trade_off = TradeOffDisplay.from_estimator(clf, X, y)
    present = trade_off.offsets == clf.offset_
    assert trade_off.known_rejected[present].item() == pytest.approx(1 - accepted[known].mean())
    assert trade_off.open_noticed[present].item() == pytest.approx(1 - accepted[~known].mean())
    assert trade_off.open_set_f1[present].item() == pytest.approx(open_set_f1_score(y, clf.predict(X)))


# F1


def test_f1_is_that_of_the_metrics(shifted):
    clf, X, y = shifted
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    answers, score = clf.predict_known(X), clf.score_samples(X)
    options = {"labels": clf.classes_, "sample_weight": weight}
    display = TradeOffDisplay.from_predictions(y, answers, score, offset=clf.offset_, kind="f1", **options)
    for k in [*range(0, len(display.offsets), 7), len(display.offsets) - 1]:
        predicted = np.where(score >= display.offsets[k], answers, -1)
        assert display.open_set_f1[k] == pytest.approx(open_set_f1_score(y, predicted, **options))
        assert display.known_f1[k] == pytest.approx(known_f1_score(y, predicted, **options))
        assert display.open_f1[k] == pytest.approx(open_f1_score(y, predicted, **options))
    present = np.flatnonzero(display.offsets == clf.offset_).item()
    assert display.offset_line_.get_xdata()[0] == display.known_rejected[present]
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), display.open_set_f1)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[2] == f"F1, open: {display.open_f1[present]:.3f}"
    display.plot(kind="f1", x="offset")
    assert display.offset_line_.get_xdata()[0] == clf.offset_
    assert display.ax_.get_ylabel() == "F1"


# Trade-off


def test_trade_off_is_the_curve_of_the_metrics_and_the_mark_is_what_predict_does(shifted):
    clf, X, y = shifted
    display = TradeOffDisplay.from_estimator(clf, X, y)
    curve = trade_off_curve(y, clf.predict_known(X), clf.score_samples(X))
    kept = np.isin(display.offsets, curve[3])
    for name, values in zip(("known_rejected", "open_noticed", "wrong_class", "offsets"), curve, strict=True):
        np.testing.assert_array_equal(getattr(display, name)[kept], values)
    present = np.flatnonzero(display.offsets == clf.offset_).item()
    predicted, known = clf.predict(X), y != -1
    assert display.known_rejected[present] == np.mean(predicted[known] == -1)
    assert display.open_noticed[present] == np.mean(predicted[~known] == -1)
    wrong = (predicted != -1) & (predicted != y)
    assert display.wrong_class[present] == pytest.approx(np.mean(wrong[known]))
    assert display.offset_line_.get_xdata()[0] == display.known_rejected[present]
    np.testing.assert_array_equal(display.lines_[0].get_data(), [display.known_rejected, display.open_noticed])
    assert len(display.lines_) == 2
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0] == f"open detected: {display.open_noticed[present]:.1%}"
    display.plot(x="offset", legend=False)
    assert len(display.lines_) == 3
    assert np.isfinite(display.lines_[2].get_xdata()).all()
    assert display.offset_line_.get_xdata()[0] == clf.offset_


def test_trade_off_without_samples_is_that_of_the_held_out_ones(shifted):
    clf = shifted[0]
    clf.class_offsets_[1] = 0.1
    display = TradeOffDisplay.from_estimator(clf)
    rows = clf.held_out_
    rejected = rows.score < clf.offset_ + clf.class_offsets_[np.searchsorted(clf.classes_, rows.nearest_class)]
    present = display.offsets == display.offset
    for values, of in ((display.known_rejected, ~rows.is_open), (display.open_noticed, rows.is_open)):
        assert values[present] == pytest.approx(np.average(rejected[of], weights=rows.weight[of]))
    wrong = ~rejected & (rows.nearest_class != rows.label)
    known = ~rows.is_open
    assert display.wrong_class[present] == pytest.approx(np.average(wrong[known], weights=rows.weight[known]))


def test_trade_off_of_half_of_the_samples_is_refused(flat):
    clf, X, y = flat
    with pytest.raises(ValueError, match="X is given without y: pass both, or neither"):
        TradeOffDisplay.from_estimator(clf, X)
    with pytest.raises(ValueError, match="y is given without X"):
        TradeOffDisplay.from_estimator(clf, y=y)


def test_a_known_class_without_rows_warns_once(flat):
    clf, X, y = flat
    rows = y != 1
    arguments = y[rows], clf.predict_known(X[rows]), clf.score_samples(X[rows])
    with pytest.warns(UndefinedMetricWarning, match="no row of 1 of the 3 known classes, such as 1") as caught:
        display = TradeOffDisplay.from_predictions(*arguments, labels=clf.classes_, offset=0, kind="f1")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    TradeOffDisplay.from_predictions(*arguments, labels=clf.classes_, offset=0)  # draws no F1
    present = np.flatnonzero(display.offsets == 0).item()
    wanted = open_set_f1_score(y[rows], clf.predict(X[rows]), labels=clf.classes_, zero_division=0)
    assert display.open_set_f1[present] == pytest.approx(wanted)
