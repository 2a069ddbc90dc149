"""The picture of the confusion matrix: its counts against scikit-learn and loops, its names and their order."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from plotting_helpers import LONG_NAMES, inside_figure
from sklearn.metrics import confusion_matrix

from skellipsoid.plotting import OpenSetConfusionMatrixDisplay


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


@pytest.mark.parametrize(("n_known", "own_figure"), [(2, True), (20, False), (77, True)])
def test_names_at_the_matrix_are_legible(n_known, own_figure):
    y_true, y_pred, classes = many_classes(n_known)
    ax = None if own_figure else plt.subplots(figsize=(6.4, 4.8), layout="constrained")[1]
    display = OpenSetConfusionMatrixDisplay.from_predictions(y_true, y_pred, labels=classes, ax=ax)
    display.figure_.draw_without_rendering()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        labels = axis.get_ticklabels()
        boxes = [label.get_window_extent() for label in labels]
        assert all(label.get_fontsize() >= 6 for label in labels)
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert labels[-1].get_text() == "open"
        assert axis.get_ticklocs()[-1] == n_known
        if own_figure:
            assert len(labels) == n_known + 1
            assert labels[0].get_text() == classes[0]
    assert (display.text_ is None) == (n_known > 11)
    assert inside_figure(display.figure_, display.ax_)


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
