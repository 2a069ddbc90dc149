"""The picture of the ellipsoids: outlines, sections and the frame against brute force, names and legend."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from plotting_helpers import LONG_NAMES, fit_blobs, margins_on_outline, one_sentence

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
from skellipsoid.datasets import make_open_blobs
from skellipsoid.plotting import EllipsoidDisplay

SECTIONS = ["shared", "contributing", "longest", (0, -1), (2, 1)]


def test_outlines_follow_the_operating_point(shifted):
    clf, X, y = shifted
    assert clf.offset_ != 0
    for of_classes in (np.zeros(3), np.array([0.0, 0.1, -0.3])):
        clf.class_offsets_ = of_classes
        display = EllipsoidDisplay.from_estimator(clf, X, y)
        for k, least in enumerate(clf.offset_ + of_classes):
            np.testing.assert_allclose(margins_on_outline(display, clf, k), least, atol=1e-6)


@pytest.mark.parametrize("offset", [np.inf, -np.inf, 1.0])
def test_without_a_boundary_there_is_no_outline(shifted, offset):
    clf, X, y = shifted
    clf.offset_ = offset
    display = EllipsoidDisplay.from_estimator(clf, X, y)
    assert np.isnan(display.outlines).all()
    assert display.outlines_ == []
    assert display.is_open.all() == (offset > 0)


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
    np.testing.assert_allclose(display.points, (X - clf.centers_[1]) @ display.coordinates.T, atol=1e-6)
    np.testing.assert_allclose(display.directions @ display.coordinates.T, np.eye(2), atol=1e-6)
    if axes != "shared":
        np.testing.assert_array_equal(display.coordinates, display.directions)


def test_shared_axes_are_named_by_their_poles(deep):
    clf, X, y = deep
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=2, grid_resolution=10)
    directions, variances, poles = clf.shared_axes()
    assert len(directions) == 4
    for side, coordinate in zip(display.axis_names, display.coordinates, strict=True):
        low, high = poles[(directions == coordinate).all(axis=1)][0].tolist()
        assert side == f"{low}  \u2194  {high}"
        means = clf.centroids_ @ coordinate
        assert (clf.classes_[means.argmin()], clf.classes_[means.argmax()]) == (low, high)
    assert (np.diff(variances) < 0).all()


def test_axes_are_those_that_contribute_most_or_are_longest(deep):
    clf, X, y = deep
    k = 2
    directions, lengths = clf.ellipsoid_axes(k)
    rows = X[clf.predict_known(X) == k] - clf.centers_[k]
    shares = np.mean((rows @ directions.T / lengths) ** 2, axis=0)
    shares /= shares.sum()
    first, second = np.argsort(-shares)[:2]
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=k, axes="contributing", grid_resolution=10)
    np.testing.assert_allclose(display.directions, directions[[first, second]])
    assert display.axis_names[0] == f"axis {first} ({shares[first]:.1%} of squared distance)"
    assert display.ax_.get_ylabel() == f"axis {second} ({shares[second]:.1%} of squared distance)"
    longest = EllipsoidDisplay.from_estimator(clf, X, y, label=k, axes="longest", grid_resolution=10)
    np.testing.assert_allclose(longest.directions, directions[:2])
    reached = longest.outlines[k].max(axis=0) / lengths[:2]
    np.testing.assert_allclose(reached[0], reached[1], rtol=1e-3)
    assert 0.5 < reached[0] < 1
    pair = EllipsoidDisplay.from_estimator(clf, X, y, label=k, axes=(-1, 1), grid_resolution=10)
    np.testing.assert_allclose(pair.directions, directions[[3, 1]])


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
    assert f"samples beyond the frame: {beyond}" in texts


def test_names_with_signs_that_matplotlib_reads_are_shown_as_they_are(flat):
    _, X, y = flat
    names = np.array(["$a_b$ and $c", "_hidden", "two\nlines"])
    named = EllipsoidOpenSetClassifier(random_state=0).fit(X[y != -1], names[y[y != -1]])
    display = EllipsoidDisplay.from_estimator(named, X, np.append(names, "-1")[y], grid_resolution=10)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[:3] == [r"\$a_b\$ and \$c", " _hidden", "two lines"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (None, {}, "X has 4 features, but the picture has two dimensions: pass label=.* such as 0"),
        (None, {"label": 7}, "7 is not a known class"),
        (None, {"label": 1, "axes": "shortest"}, "'shortest' is not allowed: pass 'shared', 'contributing', 'longest'"),
        (None, {"label": 1, "axes": (0, 4)}, r"axes=\(0, 4\) is not allowed.* to 3"),
        (None, {"label": 1, "grid_resolution": 0}, "grid_resolution=0 is not allowed"),
        (np.zeros((3, 4)), {"label": 1}, "y_true has 2 rows and X has 3"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(deep, X, options, message):
    clf, rows, _ = deep
    X = rows[:2] if X is None else X
    with one_sentence(ValueError, message):
        EllipsoidDisplay.from_estimator(clf, X, [0, -1], **options)
    assert plt.get_fignums() == []


def test_without_shared_axes_the_class_has_its_own():
    X, y = make_open_blobs(200, 4, n_known=3, open_share=0.0, random_state=0)
    clf = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=2), random_state=0).fit(X, y)
    assert len(clf.shared_axes()[0]) == 0
    display = EllipsoidDisplay.from_estimator(clf, X, y, label=1, grid_resolution=10)
    own = EllipsoidDisplay.from_estimator(clf, X, y, label=1, axes="contributing", grid_resolution=10)
    np.testing.assert_array_equal(display.directions, own.directions)
    assert display.axis_names == own.axis_names


@pytest.mark.parametrize("n_known", [8, 77])
def test_names_of_many_classes_do_not_cover_one_another(n_known):
    clf, X, y = fit_blobs(2, n_known)
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
