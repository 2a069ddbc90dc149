"""The displays: their numbers against brute force, what they draw, and what they leave alone."""

import os
import re
from itertools import pairwise

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, plotting, set_operating_point
from skellipsoid._pipelines import split_estimator
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import (
    coverage_rejection,
    known_f1_score,
    open_f1_score,
    open_set_f1_score,
    oscr_curve,
    oscr_score,
)
from skellipsoid.plotting import (
    CoverageDisplay,
    EllipsoidDisplay,
    OpenSetConfusionMatrixDisplay,
    OSCRDisplay,
    ScoreHistogramDisplay,
)

SCORE_DISPLAYS = [ScoreHistogramDisplay, OSCRDisplay, CoverageDisplay]
DISPLAYS = [*SCORE_DISPLAYS, OpenSetConfusionMatrixDisplay]
SECTIONS = ["contributing", "longest", (0, -1), (2, 1)]
#: As long as the names of real intents, many of them alike at the beginning.
LONG_NAMES = np.array(
    [f"{'balance_not_updated_after_' if k % 3 else 'card_'}transfer_number_{k:02d}" for k in range(77)]
)


@pytest.fixture(autouse=True)
def closed_figures():
    """No picture changes the style of the next, and none stays open after its test."""
    style = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == style


def fit_blobs(n_features, n_known, **settings):
    X, y = make_open_blobs(60 * n_known + 80, n_features, n_known=n_known, random_state=3)
    known = np.flatnonzero(y != -1)[::2]
    defaults = {"learning_rate": 0.02, "max_iter": 6, "n_iter_no_change": 6, "random_state": 0}
    clf = EllipsoidOpenSetClassifier(**defaults | settings).fit(X[known], y[known])
    return clf, np.delete(X, known, axis=0), np.delete(y, known)


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
    set_operating_point(clf, X)


def margins_on_outline(display, clf, k):
    return clf.class_margins(display.origin + display.outlines[k] @ display.directions)[:, k]


# Ellipsoids


def test_outlines_of_two_features_have_margin_zero(flat):
    clf, X, y = flat
    display = EllipsoidDisplay.from_estimator(clf, X, y)
    assert display.outlines.shape == (3, 201, 2)
    for k in range(3):
        np.testing.assert_allclose(margins_on_outline(display, clf, k), 0, atol=1e-6)
    np.testing.assert_allclose(display.points, X)
    np.testing.assert_array_equal(display.y_true, y)
    np.testing.assert_array_equal(display.y_pred, clf.predict(X))
    np.testing.assert_allclose(display.centroids, clf.centroids_)


def test_outlines_follow_the_operating_point(shifted):
    clf, X, y = shifted
    assert clf.offset_ != 0
    display = EllipsoidDisplay.from_estimator(clf, X, y)
    for k in range(3):
        np.testing.assert_allclose(margins_on_outline(display, clf, k), clf.offset_, atol=1e-6)


@pytest.mark.parametrize("offset", [np.inf, -np.inf, 1.0])
def test_without_a_boundary_there_is_no_outline(flat, offset):
    clf, X, y = flat
    clf.offset_ = offset
    try:
        display = EllipsoidDisplay.from_estimator(clf, X, y)
    finally:
        clf.offset_ = 0.0
    assert np.isnan(display.outlines).all()
    assert display.outlines_ == []
    assert display.is_open.all() == (offset > 0)


def test_open_space_is_where_predict_is_open(flat):
    clf, X, y = flat
    display = EllipsoidDisplay.from_estimator(clf, X, y, grid_resolution=30)
    (left, bottom), (right, top) = display.limits
    cells = [
        [clf.predict([[left + (i + 0.5) / 30 * (right - left), bottom + (j + 0.5) / 30 * (top - bottom)]])[0] == -1]
        for j in range(30)
        for i in range(30)
    ]
    np.testing.assert_array_equal(display.is_open.ravel(), np.ravel(cells))
    np.testing.assert_array_equal(np.ma.filled(display.open_space_.get_array(), False), display.is_open)
    assert display.open_space_.get_extent() == [left, right, bottom, top]
    assert 0 < display.is_open.mean() < 1


def test_rows_are_drawn_by_truth_and_answer(flat):
    clf, X, y = flat
    display = EllipsoidDisplay.from_estimator(clf, X, y)
    accepted = clf.predict(X) != -1
    wanted = {
        "known accepted": X[(y != -1) & accepted],
        "known rejected": X[(y != -1) & ~accepted],
        "open accepted": X[(y == -1) & accepted],
        "open rejected": X[(y == -1) & ~accepted],
    }
    assert list(display.rows_) == list(wanted)
    for group, rows in wanted.items():
        drawn = np.concatenate([np.asarray(part.get_offsets()) for part in display.rows_[group]])
        assert len(rows) > 0
        np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], rows[np.lexsort(rows.T)])
    hollow = [part.get_facecolors() for part in display.rows_["known rejected"]]
    assert all(len(colours) == 0 for colours in hollow)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert {"0", "1", "2", "centroid", "open space"} <= set(texts)
    assert {f"{group} ({len(rows)})" for group, rows in wanted.items()} <= set(texts)
    assert len(display.outlines_) == 3
    assert len({line.get_color() for line in display.outlines_}) == 3


@pytest.mark.parametrize("axes", SECTIONS)
def test_sections_have_margin_zero(deep, axes):
    clf, X, y = deep
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=1, axes=axes, grid_resolution=60)
    met = ~np.isnan(display.outlines).any(axis=(1, 2))
    assert met[1]
    assert len(display.outlines_) == met.sum()
    for k in np.flatnonzero(met):
        np.testing.assert_allclose(margins_on_outline(display, clf, k), 0, atol=1e-6)
    # Of the classes missed no point of the plane is inside, far beyond the frame too.
    steps = np.linspace(-60, 60, 241)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    margins = clf.class_margins(display.origin + grid @ display.directions)
    assert (margins[:, ~met] < 0).all()
    np.testing.assert_allclose(display.points, (X - clf.centroids_[1]) @ display.directions.T)
    np.testing.assert_allclose(display.directions @ display.directions.T, np.eye(2), atol=1e-12)


def test_some_plane_misses_a_class(deep):
    # Or the test above would say nothing about classes that are missed.
    clf, X, y = deep
    n_met = [
        len(EllipsoidDisplay.from_estimator(clf, X, y, label=1, axes=axes, grid_resolution=10).outlines_)
        for axes in SECTIONS
    ]
    assert min(n_met) < 5
    assert max(n_met) > 1


@pytest.mark.parametrize("axes", ["contributing", "longest"])
def test_the_named_class_section_is_the_projection_of_its_ellipsoid(deep, axes):
    clf, X, y = deep
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=1, axes=axes, grid_resolution=10)
    sphere = np.random.default_rng(0).normal(size=(20000, 4))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    surface = clf.centroids_[1] + clf.radii_[1] * np.linalg.solve(clf.components_[1], sphere.T).T
    shadow = (surface - display.origin) @ display.directions.T
    # In units of the outline's semi-axes, its middle being the origin, the outline is the unit circle.
    semi = display.outlines[1].max(axis=0)
    np.testing.assert_allclose(np.linalg.norm(display.outlines[1] / semi, axis=1), 1, atol=1e-6)
    reach = np.linalg.norm(shadow / semi, axis=1)
    assert reach.max() <= 1 + 1e-6
    assert reach.max() > 0.999


def test_axes_are_those_that_contribute_most_or_are_longest(deep):
    clf, X, y = deep
    k = 2
    directions, lengths = clf.ellipsoid_axes(k)
    rows = X[clf.predict_known(X) == k] - clf.centroids_[k]
    shares = np.array(
        [np.mean([(row @ d / length) ** 2 for row in rows]) for d, length in zip(directions, lengths, strict=True)]
    )
    shares /= shares.sum()
    first, second = np.argsort(-shares)[:2]
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=k, grid_resolution=10)
    np.testing.assert_allclose(display.directions, directions[[first, second]])
    assert display.axis_names[0] == f"axis {first} ({shares[first]:.1%} of squared distance)"
    assert display.ax_.get_ylabel() == f"axis {second} ({shares[second]:.1%} of squared distance)"
    longest = EllipsoidDisplay.from_estimator(clf, X, y, label=k, axes="longest", grid_resolution=10)
    np.testing.assert_allclose(longest.directions, directions[:2])
    np.testing.assert_allclose(longest.outlines[k].max(axis=0), lengths[:2], rtol=1e-4)
    pair = EllipsoidDisplay.from_estimator(clf, X, y, label=k, axes=(-1, 1), grid_resolution=10)
    np.testing.assert_allclose(pair.directions, directions[[3, 1]])


def test_a_class_without_assigned_rows_can_be_drawn(deep):
    clf, X, y = deep
    others = clf.predict_known(X) != 2
    display = EllipsoidDisplay.from_estimator(clf, X[others], y[others], label=2, grid_resolution=10)
    assert not np.isnan(display.outlines[2]).any()


def test_the_frame_holds_all_known_rows_and_says_what_it_leaves_out(flat):
    clf, X, y = flat
    far = np.concatenate([X, [[1e4, 0], [0, -1e4]]])
    display = EllipsoidDisplay.from_estimator(clf, far, np.append(y, [-1, -1]), grid_resolution=10)
    low, high = display.limits
    assert ((low < X[y != -1]) & (X[y != -1] < high)).all()
    assert (high - low).max() < 2 * np.ptp(X[y != -1], axis=0).max()
    beyond = int(((far < low) | (far > high)).any(axis=1).sum())
    assert beyond >= 2
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"rows beyond the frame: {beyond}" in texts


@pytest.mark.parametrize("rows", [slice(1), "open"])
def test_a_single_row_or_open_rows_alone_can_be_drawn(flat, rows):
    clf, X, y = flat
    rows = y == -1 if rows == "open" else np.flatnonzero(y != -1)[rows]
    display = EllipsoidDisplay.from_estimator(clf, X[rows], y[rows], grid_resolution=10)
    assert ((display.limits[0] < X[rows]) & (X[rows] < display.limits[1])).all()
    assert len(display.outlines_) == 3


def test_feature_names_are_on_the_axes_and_raise_no_warning(flat):
    _, X, y = flat
    frame = pd.DataFrame(X, columns=["length", "width"])
    clf = EllipsoidOpenSetClassifier(max_iter=2, random_state=0).fit(frame[y != -1], y[y != -1])
    display = EllipsoidDisplay.from_estimator(clf, frame, y, grid_resolution=10)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")
    assert list(clf.feature_names_in_) == ["length", "width"]


@pytest.mark.parametrize("n_known", [8, 77])
def test_names_of_many_classes_do_not_cover_one_another(n_known):
    clf, X, y = fit_blobs(2, n_known, max_iter=1)
    clf.classes_ = LONG_NAMES[:n_known]
    clf.open_label_ = "-1"
    y = np.append(LONG_NAMES[:n_known], "-1")[y]
    display = EllipsoidDisplay.from_estimator(clf, X, y, grid_resolution=20)
    assert len(display.outlines_) == n_known
    boxes = [text.get_window_extent() for text in display.names_]
    assert len(boxes) >= 5
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    frame = display.ax_.get_window_extent().padded(2)
    assert all(frame.contains(*corner) for box in boxes for corner in (box.min, box.max))


def test_the_legend_and_all_names_lie_within_the_figure(deep):
    clf, X, y = deep
    for label in (0, 3):
        display = EllipsoidDisplay.from_estimator(clf, X, y, label=label, grid_resolution=10)
        display.figure_.canvas.draw()
        assert inside_figure(display.figure_, display.ax_)
        assert str(label) not in [text.get_text() for text in display.names_]


def inside_figure(figure, *artists):
    return all(
        figure.bbox.padded(1).contains(*corner)
        for a in artists
        for corner in (a.get_tightbbox().min, a.get_tightbbox().max)
    )


def test_names_with_signs_that_matplotlib_reads_are_shown_as_they_are(flat):
    _, X, y = flat
    names = np.array(["$a_b$ and $c", "_hidden", "two\nlines"])
    named = EllipsoidOpenSetClassifier(max_iter=1, random_state=0).fit(X[y != -1], names[y[y != -1]])
    display = EllipsoidDisplay.from_estimator(named, X, np.append(names, "-1")[y], grid_resolution=10)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[:3] == [r"\$a_b\$ and \$c", " _hidden", "two lines"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (None, {}, "X has 4 features, but the picture has two dimensions: pass label=.* such as 0"),
        (None, {"label": 7}, "7 is not a known class"),
        (None, {"label": "1"}, "'1' is not a known class"),
        (None, {"label": 1, "axes": "shortest"}, "axes='shortest' is not allowed: pass 'contributing', 'longest'"),
        (None, {"label": 1, "axes": (0, 4)}, r"axes=\(0, 4\) is not allowed.* to 3"),
        (None, {"label": 1, "axes": (3, -1)}, r"axes=\(3, -1\) is not allowed"),
        (None, {"label": 1, "axes": (0.5, 1)}, r"axes=\(0.5, 1\) is not allowed"),
        (None, {"label": 1, "grid_resolution": 0}, "grid_resolution=0 is not allowed"),
        (np.full((2, 4), np.nan), {"label": 1}, "NaN"),
        (np.zeros((3, 4)), {"label": 1}, "y_true has 2 rows and X has 3"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(deep, X, options, message):
    clf, rows, _ = deep
    X = rows[:2] if X is None else X
    with pytest.raises(ValueError, match=message) as error:
        EllipsoidDisplay.from_estimator(clf, X, [0, -1], **options)
    if "NaN" not in message:  # which scikit-learn answers, with a list of remedies
        assert_one_sentence(error)
    assert plt.get_fignums() == []


def test_one_feature_cannot_be_drawn():
    X, y = np.arange(20.0)[:, np.newaxis], np.repeat([0, 1], 10)
    clf = EllipsoidOpenSetClassifier(max_iter=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 1 feature, but the picture has two dimensions") as error:
        EllipsoidDisplay.from_estimator(clf, X, y)
    assert_one_sentence(error)


def assert_one_sentence(error):
    text = str(error.value)
    assert "\n" not in text
    assert len(re.findall(r"[.!?](?=\s+[A-Z]|$)", text)) == 1
    assert text.endswith(".")


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
    coverage, rejection = coverage_rejection(y, score, offset=clf.offset_)
    right = edges[:-1] >= clf.offset_
    assert display.known_heights_[right].sum() == pytest.approx(coverage * np.sum(y != -1))
    assert display.open_heights_[~right].sum() == pytest.approx(rejection * np.sum(y == -1))
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0].endswith(f"{coverage:.1%} accepted")
    assert texts[1].endswith(f"{rejection:.1%} rejected")


def test_histogram_shares_sum_to_one(flat):
    clf, X, y = flat
    display = ScoreHistogramDisplay.from_estimator(clf, X, y, bins=7)
    assert display.known_heights_.sum() == pytest.approx(1)
    assert display.open_heights_.sum() == pytest.approx(1)
    assert len(display.bin_edges_) in (8, 9)


@pytest.mark.parametrize(
    ("score", "offset"),
    [([1.0, 1.0, 1.0], 1.0), ([1.0, 1.0, 1.0], 5.0), ([0.1, 0.2, 0.3], np.inf), ([-1.0, 0.0, 2.0], 2.0)],
)
def test_histogram_of_odd_scores_and_offsets_loses_no_row(score, offset):
    display = ScoreHistogramDisplay.from_predictions([0, 1, -1], score, offset=offset, share=False)
    assert display.known_heights_.sum() == 2
    assert display.open_heights_.sum() == 1
    assert (display.line_ is None) == np.isinf(offset)


def test_histogram_of_known_rows_alone():
    display = ScoreHistogramDisplay.from_predictions(["a", "b"], [0.5, -0.5])
    assert display.open_heights_.sum() == 0
    assert "none rejected" in display.ax_.get_legend().get_texts()[1].get_text()


# OSCR


def test_oscr_is_the_curve_of_the_metrics(shifted):
    clf, X, y = shifted
    display = OSCRDisplay.from_estimator(clf, X, y, name="mine", plot_random=True)
    answers, score = clf.predict_known(X), clf.score_samples(X)
    fpr, ccr, _ = oscr_curve(y, answers, score)
    np.testing.assert_array_equal(display.fpr, fpr)
    np.testing.assert_array_equal(display.ccr, ccr)
    assert display.oscr == pytest.approx(oscr_score(y, answers, score))
    np.testing.assert_array_equal(display.line_.get_xydata(), np.stack([fpr, ccr], axis=1))
    predicted = clf.predict(X)
    wanted = np.mean(predicted[y == -1] != -1), np.mean(predicted[y != -1] == y[y != -1])
    assert display.operating_point == pytest.approx(wanted)
    np.testing.assert_allclose(display.point_.get_xydata()[0], wanted)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [f"mine (area {display.oscr:.3f})", "scores that know nothing"]
    np.testing.assert_allclose(display.ax_.lines[-1].get_ydata(), [0, np.mean(answers[y != -1] == y[y != -1])])


def test_several_models_come_on_one_axes_and_differ(flat):
    clf, X, y = flat
    first = OSCRDisplay.from_estimator(clf, X, y)
    second = OSCRDisplay.from_predictions(y, clf.predict_known(X), -clf.score_samples(X), name="b", ax=first.ax_)
    third = OSCRDisplay(first.fpr, first.ccr).plot(ax=first.ax_, line_kw={"lw": 5, "label": "c"})
    assert first.ax_ is second.ax_ is third.ax_
    assert len(plt.get_fignums()) == 1
    lines = [display.line_ for display in (first, second, third)]
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_linestyle() for line in lines}) == 3
    assert third.line_.get_linewidth() == 5
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts[0].startswith("EllipsoidOpenSetClassifier (area ")
    assert texts[1].startswith("b (area ")
    assert second.point_ is None


# Confusion matrices


def test_confusion_is_that_of_scikit_learn(flat):
    clf, X, y = flat
    display = OpenSetConfusionMatrixDisplay.from_estimator(clf, X, y)
    predicted = clf.predict(X)
    np.testing.assert_array_equal(display.confusion_matrix, confusion_matrix(y, predicted, labels=[0, 1, 2, -1]))
    for normalize in ("true", "pred", "all"):
        display.plot(normalize=normalize)
        wanted = confusion_matrix(y, predicted, labels=[0, 1, 2, -1], normalize=normalize)
        np.testing.assert_allclose(display.values_, wanted)
        np.testing.assert_allclose(display.im_.get_array(), wanted)
    display.plot(normalize=None)
    assert [[int(text.get_text()) for text in row] for row in display.text_] == display.confusion_matrix.tolist()
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["0", "1", "2", "open"]
    assert display.ax_.get_ylabel() == "true class"


def test_coarse_confusion_is_that_of_a_loop(flat):
    clf, X, y = flat
    y = np.where(np.arange(len(y)) % 9, y, (y + 1) % 3)  # some labels are wrong, or no answer would be
    counts = np.zeros((2, 3), dtype=int)
    for true, answer in zip(y, clf.predict(X), strict=True):
        column = 2 if answer == -1 else 0 if answer == true else 1
        counts[int(true == -1), column] += 1
    display = OpenSetConfusionMatrixDisplay.from_estimator(clf, X, y, coarse=True)
    np.testing.assert_array_equal(display.coarse_matrix, counts)
    assert (counts.ravel()[[0, 1, 2, 4, 5]] > 0).all()
    texts = [[text.get_text() for text in row] for row in display.text_]
    assert texts[1][0] == "–"
    assert texts[0][1] == f"{counts[0, 1]}\n{counts[0, 1] / counts[0].sum():.1%}"
    assert texts[1][2] == f"{counts[1, 2]}\n{counts[1, 2] / counts[1].sum():.1%}"
    assert np.ma.getmaskarray(display.im_.get_array()).tolist() == [[False] * 3, [True, False, False]]
    np.testing.assert_allclose(display.values_[0], counts[0] / counts[0].sum())


def many_classes(n_known, n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    names = np.append(LONG_NAMES[:n_known], "-1")
    y_true = rng.integers(n_known + 1, size=n_rows)
    y_pred = np.where(rng.random(n_rows) < 0.8, y_true, rng.integers(n_known + 1, size=n_rows))
    return names[y_true], names[y_pred], LONG_NAMES[:n_known]


def tick_boxes(axis):
    labels = axis.get_ticklabels()
    return labels, [label.get_window_extent() for label in labels]


@pytest.mark.parametrize("n_known", [2, 20, 77])
@pytest.mark.parametrize("own_figure", [True, False])
def test_names_at_the_matrix_are_legible(n_known, own_figure):
    y_true, y_pred, classes = many_classes(n_known)
    ax = None if own_figure else plt.subplots(figsize=(6.4, 4.8), layout="constrained")[1]
    display = OpenSetConfusionMatrixDisplay.from_predictions(y_true, y_pred, labels=classes, ax=ax)
    display.figure_.canvas.draw()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        labels, boxes = tick_boxes(axis)
        assert all(label.get_fontsize() >= 6 for label in labels)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert labels[-1].get_text() == "open"
        assert axis.get_ticklocs()[-1] == n_known
        if own_figure:
            assert len(labels) == n_known + 1
            assert labels[0].get_text() == classes[0]
    assert (display.text_ is None) == (n_known > 11)
    assert inside_figure(display.figure_, display.ax_)


def test_class_without_rows_is_left_blank():
    display = OpenSetConfusionMatrixDisplay.from_predictions([0, 0, -1], [0, -1, 1], labels=[0, 1])
    assert np.isnan(display.values_[1]).all()
    assert [text.get_text() for text in display.text_[1]] == ["–"] * 3
    assert [text.get_text() for text in display.text_[0]] == ["0.50", "0", "0.50"]


def test_class_named_open_is_told_from_open():
    display = OpenSetConfusionMatrixDisplay.from_predictions(
        ["open", "shut", "x"], ["open", "shut", "-1"], labels=["open", "shut"]
    )
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["open", "shut", "open (-1)"]


def test_order_and_names_are_the_callers():
    display = OpenSetConfusionMatrixDisplay.from_predictions(
        [1, 2, 2, 5], [1, 2, 1, -1], labels=[2, 1], display_labels=["two", "one", "else"], colorbar=False
    )
    np.testing.assert_array_equal(display.confusion_matrix, [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["two", "one", "else"]
    assert len(display.figure_.axes) == 1
    plain = OpenSetConfusionMatrixDisplay(display.confusion_matrix).plot(include_values=False)
    assert [text.get_text() for text in plain.ax_.get_yticklabels()] == ["0", "1", "open"]
    assert plain.text_ is None


# Coverage


def test_coverage_figures_are_those_of_the_metrics(shifted):
    clf, X, y = shifted
    display = CoverageDisplay.from_estimator(clf, X, y, n_offsets=25)
    answers, score = clf.predict_known(X), clf.score_samples(X)
    assert 20 <= len(display.offsets) <= 28
    assert (np.diff(display.offsets) > 0).all()
    for k, offset in enumerate(display.offsets):
        predicted = np.where(score >= offset, answers, -1)
        options = {"labels": clf.classes_}
        assert display.open_set_f1[k] == pytest.approx(open_set_f1_score(y, predicted, **options))
        assert display.known_f1[k] == pytest.approx(known_f1_score(y, predicted, **options))
        assert display.open_f1[k] == pytest.approx(open_f1_score(y, predicted, **options))
        wanted = coverage_rejection(y, score, offset=offset)
        assert (display.coverage[k], display.rejection[k]) == pytest.approx(wanted)
    assert (display.coverage[0], display.coverage[-1]) == (1, 0)
    present = np.flatnonzero(display.offsets == clf.offset_).item()
    assert display.open_set_f1[present] == pytest.approx(open_set_f1_score(y, clf.predict(X)))
    assert display.offset_line_.get_xdata()[0] == clf.offset_
    np.testing.assert_array_equal(display.lines_[0].get_xydata(), np.stack([display.offsets, display.open_set_f1], 1))
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[2] == f"F1, open: {display.open_f1[present]:.3f}"
    display.plot(x="coverage")
    np.testing.assert_array_equal(display.lines_[1].get_xydata(), np.stack([display.coverage, display.known_f1], 1))
    assert display.offset_line_.get_xdata()[0] == display.coverage[present]
    assert display.ax_.get_xlabel().startswith("coverage")


@pytest.mark.parametrize("offset", [None, np.inf, -np.inf])
def test_an_offset_without_a_place_is_not_marked(offset):
    rows = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1], [0.9, 0.6, 0.6, 0.5, 0.6, 0.1]
    display = CoverageDisplay.from_predictions(*rows, offset=offset)
    assert display.offset_line_ is None
    assert np.isfinite(display.lines_[0].get_xdata()).all()


def test_infinite_scores_and_strange_answers_count_as_in_the_metrics():
    y_true, answers, score = ["a", "a", "b", "?"], ["a", "z", "b", "a"], [np.inf, 0.0, -np.inf, -1.0]
    display = CoverageDisplay.from_predictions(y_true, answers, score, offset=0.0, labels=["a", "b"])
    present = np.flatnonzero(display.offsets == 0).item()
    predicted = ["a", "z", "-1", "-1"]
    assert display.open_set_f1[present] == pytest.approx(open_set_f1_score(y_true, predicted, labels=["a", "b"]))


def test_a_known_class_without_rows_warns_once(flat):
    clf, X, y = flat
    rows = y != 1
    with pytest.warns(
        UndefinedMetricWarning, match="y_true has no row of 1 of the 3 known classes, such as 1"
    ) as caught:
        display = CoverageDisplay.from_predictions(
            y[rows], clf.predict_known(X[rows]), clf.score_samples(X[rows]), labels=clf.classes_, offset=0
        )
    assert len(caught) == 1
    assert caught[0].filename == __file__
    present = np.flatnonzero(display.offsets == 0).item()
    wanted = open_set_f1_score(y[rows], clf.predict(X[rows]), labels=clf.classes_, zero_division=0)
    assert display.open_set_f1[present] == pytest.approx(wanted)


# What all displays share


def predictions(display, clf, X):
    """What from_predictions takes for the same picture."""
    options = {"labels": clf.classes_, "open_label": clf.open_label_}
    if display is OpenSetConfusionMatrixDisplay:
        return (clf.predict(X),), options
    options["offset"] = clf.offset_
    if display is ScoreHistogramDisplay:
        return (clf.score_samples(X),), options
    return (clf.predict_known(X), clf.score_samples(X)), options


def numbers(display):
    return {name: value for name, value in vars(display).items() if not name.endswith("_") and name != "name"}


@pytest.mark.parametrize("display", DISPLAYS)
def test_from_estimator_is_from_predictions(shifted, display):
    clf, X, y = shifted
    y = np.where(y == -1, 50 + np.arange(len(y)) % 2, y)  # classes that the classifier does not know
    arguments, options = predictions(display, clf, X)
    one = display.from_estimator(clf, X, y)
    other = display.from_predictions(y, *arguments, **options)
    assert numbers(one)
    for name, value in numbers(one).items():
        np.testing.assert_array_equal(value, numbers(other)[name])


@pytest.mark.parametrize("display", [*DISPLAYS, EllipsoidDisplay])
def test_pipelines_and_searches_are_read(display):
    X, y = make_open_blobs(200, 4, n_known=2, random_state=0)
    clf = EllipsoidOpenSetClassifier(max_iter=2, random_state=0)
    inner = Pipeline([("nothing", "passthrough"), ("reduce", PCA(2)), ("clf", clf)])
    pipe = make_pipeline(StandardScaler(), FunctionTransformer(), inner)
    known = y != -1
    search = GridSearchCV(pipe, {"pipeline__clf__beta": [0.5]}, cv=2).fit(X[known], y[known])
    best = search.best_estimator_
    features = best[-1]["reduce"].transform(best[0].transform(X))
    wanted = display.from_estimator(best[-1]["clf"], features, y)
    for estimator in (best, search):
        found = display.from_estimator(estimator, X, y)
        for name, value in numbers(wanted).items():
            np.testing.assert_array_equal(value, numbers(found)[name])


def test_split_estimator_takes_pipelines_apart():
    clf, scaler, pca = LogisticRegression(), StandardScaler(), PCA()
    assert split_estimator(clf) == ([], clf)
    assert split_estimator(make_pipeline(clf)) == ([], clf)
    pipe = Pipeline([("a", scaler), ("b", None), ("c", make_pipeline(pca, "passthrough", clf))])
    assert split_estimator(pipe) == ([scaler, pca], clf)


def test_text_pipeline_is_drawn(tiny_model, texts, labels, open_texts):
    pipe = make_pipeline(
        SupConTextEncoder(tiny_model, finetune="none", random_state=0),
        EllipsoidOpenSetClassifier(max_iter=3, random_state=0),
    ).fit(texts, labels)
    rows, y = [*texts, *open_texts], np.append(labels, ["-1"] * 6)
    for display in DISPLAYS:
        assert display.from_estimator(pipe, rows, y).ax_ is not None
    picture = EllipsoidDisplay.from_estimator(pipe, rows, y, label="light", grid_resolution=10)
    k = pipe.classes_.tolist().index("light")
    np.testing.assert_allclose(margins_on_outline(picture, pipe[-1], k), 0, atol=1e-6)
    np.testing.assert_array_equal(picture.y_pred, pipe.predict(rows))
    np.testing.assert_array_equal(picture.y_true, y)


def draw_all(clf, X, y, **options):
    return [display.from_estimator(clf, X, y, **options) for display in (*DISPLAYS, EllipsoidDisplay)]


def test_given_axes_are_drawn_on_and_pyplot_is_left_alone(flat):
    clf, X, y = flat
    figure = Figure(layout="constrained", figsize=(25, 5))
    before = plt.figure()
    for ax, display in zip(figure.subplots(1, 5), (*DISPLAYS, EllipsoidDisplay), strict=True):
        found = display.from_estimator(clf, X, y, ax=ax)
        assert found.ax_ is ax
        assert found.figure_ is figure
    assert plt.get_fignums() == [before.number]
    assert plt.gcf() is before
    figure.savefig(os.devnull, format="png")


def test_axes_of_a_subfigure_are_drawn_on(flat):
    clf, X, y = flat
    figure = Figure(layout="constrained", figsize=(12, 6))
    left, right = figure.subfigures(1, 2)
    OpenSetConfusionMatrixDisplay.from_estimator(clf, X, y, ax=left.subplots())
    found = EllipsoidDisplay.from_estimator(clf, X, y, ax=right.subplots(), names=True)
    assert found.figure_ is right
    assert [text.get_text() for text in found.names_]
    figure.savefig(os.devnull, format="png")


def test_each_display_makes_one_figure_and_keeps_its_numbers(flat):
    clf, X, y = flat
    found = draw_all(clf, X, y)
    assert len(plt.get_fignums()) == 5
    for display in found:
        assert display.plot() is display
        assert display.figure_ is display.ax_.figure
    assert len(plt.get_fignums()) == 10


def test_unsigned_and_boolean_labels(flat):
    _, X, y = flat
    X, y = X[y != 2], y[y != 2]
    for kind in (np.uint8, bool):
        known = y != -1
        clf = EllipsoidOpenSetClassifier(max_iter=1, random_state=0).fit(X[known], y[known].astype(kind))
        for display in draw_all(clf, X, y):
            plt.close(display.figure_)
        assert display.y_true.tolist() == y.tolist()


@pytest.mark.parametrize("display", [*DISPLAYS, EllipsoidDisplay])
def test_other_classifiers_are_refused(flat, display):
    _, X, y = flat
    other = LogisticRegression().fit(X[y != -1], y[y != -1])
    with pytest.raises(TypeError, match="which LogisticRegression does not have: pass an open-set classifier") as error:
        display.from_estimator(other, X, y)
    assert_one_sentence(error)
    assert ("from_predictions" in str(error.value)) == (display is not EllipsoidDisplay)
    with pytest.raises(NotFittedError):
        display.from_estimator(EllipsoidOpenSetClassifier(), X, y)


@pytest.mark.parametrize("display", [OSCRDisplay, CoverageDisplay])
def test_missing_kinds_of_rows_are_said(flat, display):
    clf, X, y = flat
    with pytest.raises(ValueError, match=r"None of the .* rows of y is open.* open label -1, or pass") as error:
        display.from_estimator(clf, X[y != -1], y[y != -1])
    assert_one_sentence(error)
    with pytest.raises(ValueError, match=r"All of the .* rows of y are open") as error:
        display.from_estimator(clf, X[y == -1], y[y == -1])
    assert_one_sentence(error)
    with pytest.raises(ValueError, match="y_pred_known holds the open label -1 in 1 of 3 rows") as error:
        display.from_predictions([0, 1, -1], [0, -1, 1], [0.1, 0.2, 0.3])
    assert_one_sentence(error)


@pytest.mark.parametrize("display", SCORE_DISPLAYS)
@pytest.mark.parametrize(
    ("score", "offset", "message"),
    [
        ([0.1, np.nan, 0.3], 0.0, "score holds NaN in 1 of 3 rows"),
        ([0.1, 0.3], 0.0, "y_true has 3 rows and score has 2"),
        ([0.1, 0.2, 0.3], np.nan, "offset=nan is no operating point"),
    ],
)
def test_scores_that_cannot_be_drawn(display, score, offset, message):
    arguments = [score] if display is ScoreHistogramDisplay else [[0, 1, 1], score]
    with pytest.raises(ValueError, match=message) as error:
        display.from_predictions([0, 1, -1], *arguments, offset=offset)
    assert_one_sentence(error)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: ScoreHistogramDisplay.from_predictions([0, -1], [np.inf, 0]), "score holds inf in 1 of 2 rows"),
        (lambda: ScoreHistogramDisplay.from_predictions([0, -1], [1, 0], bins=0), "bins=0 is not allowed"),
        (lambda: CoverageDisplay.from_predictions([0, -1], [0, 0], [1, 0], x="f1"), "x='f1' is not allowed"),
        (
            lambda: OpenSetConfusionMatrixDisplay.from_predictions([0, -1], [0, 3], labels=[0, 1]),
            "y_pred holds 3 in row 1, which is neither among labels nor the open label -1",
        ),
        (
            lambda: OpenSetConfusionMatrixDisplay.from_predictions([0, -1], [0, 0], normalize="row"),
            "normalize='row' is not allowed",
        ),
        (
            lambda: OpenSetConfusionMatrixDisplay.from_predictions([0, -1], [0, 0], display_labels=["a"]),
            "display_labels has 1 names for a matrix of 2",
        ),
        (lambda: OpenSetConfusionMatrixDisplay.from_predictions([0, -1], ["0", "-1"]), "y_true holds numbers"),
        (lambda: OpenSetConfusionMatrixDisplay.from_predictions([0, -1], [0]), "y_true has 2 rows and y_pred has 1"),
    ],
)
def test_what_cannot_be_plotted_is_said_in_one_sentence(draw, message):
    with pytest.raises(ValueError, match=message) as error:
        draw()
    assert_one_sentence(error)
    assert plt.get_fignums() == []


def test_without_matplotlib_importing_works_and_calling_names_the_extra(fresh_python):
    script = (
        "import sys\n"
        "import numpy as np\n"
        "from skellipsoid.plotting import *\n"
        "print('matplotlib' in sys.modules)\n"
        "sys.modules['matplotlib'] = None\n"
        "one, two = np.zeros(1), np.eye(2, dtype=int)\n"
        "displays = [ScoreHistogramDisplay, OSCRDisplay, CoverageDisplay, OpenSetConfusionMatrixDisplay]\n"
        "calls = [display.from_estimator for display in [*displays, EllipsoidDisplay]]\n"
        "calls = [lambda call=call: call(None, None, None) for call in calls]\n"
        "curve = {'y_pred_known': 1, 'score': 1}\n"
        "for display, options in zip(displays, [{'score': 1}, curve, curve, {'y_pred': 1}]):\n"
        "    calls.append(lambda call=display.from_predictions, options=options: call(1, **options))\n"
        "curves = dict.fromkeys(['offsets', 'coverage', 'rejection', 'open_set_f1', 'known_f1', 'open_f1'], one)\n"
        "calls += [ScoreHistogramDisplay(one, one).plot, OSCRDisplay(one, one).plot, CoverageDisplay(**curves).plot,\n"
        "          OpenSetConfusionMatrixDisplay(two).plot]\n"
        "for call in calls:\n"
        "    try: call()\n"
        "    except ImportError as error: print(error)\n"
    )
    answer = fresh_python(script)
    assert answer.stderr == ""
    was_loaded, *lines = answer.stdout.splitlines()
    assert was_loaded == "False"
    assert len(lines) == 13
    for line in lines:
        assert line.endswith("draws with matplotlib, which is not installed: pip install 'skellipsoid[plot]'.")
    assert lines[-1].startswith("OpenSetConfusionMatrixDisplay.plot draws")


def test_public_names_are_sorted():
    assert sorted(plotting.__all__) == list(plotting.__all__)
    assert all(hasattr(plotting, name) for name in plotting.__all__)
