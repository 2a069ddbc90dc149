"""What all displays share: estimators and pipelines, axes and figures, and what they refuse."""

import os

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from plotting_helpers import inside_figure, one_sentence
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.datasets import make_open_blobs
from skellipsoid.plotting import EllipsoidDisplay, OpenSetConfusionMatrixDisplay, ScoreHistogramDisplay, TradeOffDisplay

SCORE_DISPLAYS = [ScoreHistogramDisplay, TradeOffDisplay]
DISPLAYS = [*SCORE_DISPLAYS, OpenSetConfusionMatrixDisplay, EllipsoidDisplay]


def numbers(display):
    return {name: value for name, value in vars(display).items() if not name.endswith("_") and name != "name"}


def test_pipelines_and_searches_are_read():
    X, y = make_open_blobs(200, 4, n_known=2, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0)
    inner = Pipeline([("nothing", "passthrough"), ("reduce", PCA(2)), ("clf", clf)])
    pipe = make_pipeline(StandardScaler(), FunctionTransformer(), inner)
    known = y != -1
    search = GridSearchCV(pipe, {"pipeline__clf__beta": [0.5]}, cv=2).fit(X[known], y[known])
    best = search.best_estimator_
    features = best[-1]["reduce"].transform(best[0].transform(X))
    for display in DISPLAYS:
        wanted = numbers(display.from_estimator(best[-1]["clf"], features, y))
        for estimator in (best, search):
            np.testing.assert_equal(numbers(display.from_estimator(estimator, X, y)), wanted)


def test_given_axes_are_drawn_on_and_pyplot_is_left_alone(flat):
    clf, X, y = flat
    figure = Figure(layout="constrained", figsize=(16, 3))
    before = plt.figure()
    for ax, display in zip(figure.subplots(1, 4), DISPLAYS, strict=True):
        found = display.from_estimator(clf, X, y, ax=ax)
        assert (found.ax_, found.figure_) == (ax, figure)
    assert plt.get_fignums() == [before.number]
    assert plt.gcf() is before
    figure.savefig(os.devnull, format="png")


@pytest.mark.parametrize(("size", "width"), [(10, 6.4), (22, 4.8)])
def test_legends_stay_in_the_figure_in_letters_of_any_size(shifted, size, width):
    clf, X, y = shifted
    with plt.rc_context({"font.size": size, "legend.fontsize": size, "figure.figsize": (width, 4.8)}):
        of_kinds = [TradeOffDisplay.from_estimator(clf, X, y, kind=kind) for kind in ("trade_off", "f1")]
        for display in (*of_kinds, ScoreHistogramDisplay.from_estimator(clf, X, y)):
            display.figure_.draw_without_rendering()
            assert inside_figure(display.figure_, *display.ax_.get_legend().get_texts())
            assert display.ax_.get_window_extent().width > 0.6 * display.figure_.bbox.width


@pytest.mark.parametrize(
    ("display", "given", "options", "message"),
    [
        (ScoreHistogramDisplay, [[0, -1], [np.inf, 0]], {}, "score holds inf in 1 of 2 rows"),
        (ScoreHistogramDisplay, [[0, -1], [1, 0]], {"bins": 0}, "bins=0 is not allowed"),
        (
            TradeOffDisplay,
            [[0, -1], [0, 0], [1, 0]],
            {"kind": "F1"},
            "kind='F1' is not allowed: pass 'trade_off' or",
        ),
        (
            OpenSetConfusionMatrixDisplay,
            [[0, -1], [0, 3]],
            {"labels": [0, 1]},
            "y_pred holds 3 in row 1, which is",
        ),
        (
            OpenSetConfusionMatrixDisplay,
            [[0, -1], [0, 0]],
            {"display_labels": ["a"]},
            "display_labels has 1 names for",
        ),
        (OpenSetConfusionMatrixDisplay, [[0, -1], ["0", "-1"]], {}, "y_true holds numbers"),
        (OpenSetConfusionMatrixDisplay, [[0, -1], [0]], {}, "y_true has 2 rows and y_pred has 1"),
    ],
)
def test_what_cannot_be_plotted_is_said_in_one_sentence(display, given, options, message):
    with one_sentence(ValueError, message):
        display.from_predictions(*given, **options)
    assert plt.get_fignums() == []


def test_without_matplotlib_importing_works_and_calling_names_the_extra(warm_python):
    script = (
        "import sys\n"
        "from skellipsoid.plotting import *\n"
        "print('matplotlib' in sys.modules)\n"
        "sys.modules['matplotlib'] = None\n"
        "of_model = lambda: EllipsoidDisplay.from_estimator(None, None, None)\n"
        "of_scores = lambda: ScoreHistogramDisplay.from_predictions(1, score=1)\n"
        "for call in (of_model, of_scores, OpenSetConfusionMatrixDisplay([[1]]).plot):\n"
        "    try: call()\n"
        "    except ImportError as error: print(error)\n"
    )
    answer = warm_python(script)
    assert answer.stderr == ""
    was_loaded, *lines = answer.stdout.splitlines()
    assert was_loaded == "False"
    how = "matplotlib, which is not installed: pip install 'skellipsoid[plot]', or in a clone pip install '.[plot]'."
    names = ("EllipsoidDisplay.from_estimator", "ScoreHistogramDisplay.from_predictions")
    assert lines == [f"{name} draws with {how}" for name in (*names, "OpenSetConfusionMatrixDisplay.plot")]


@pytest.mark.parametrize("kind", ["trade_off", "f1", "oscr"])
def test_missing_kinds_of_rows_are_said(flat, kind):
    clf, X, y = flat
    with one_sentence(ValueError, r"None of the .* samples is open.* open label -1, or pass"):
        TradeOffDisplay.from_estimator(clf, X[y != -1], y[y != -1], kind=kind)
    with one_sentence(ValueError, r"All of the .* samples are open"):
        TradeOffDisplay.from_estimator(clf, X[y == -1], y[y == -1], kind=kind)
    with one_sentence(ValueError, "y_pred_known holds the open label -1 in 1 of 3 rows"):
        TradeOffDisplay.from_predictions([0, 1, -1], [0, -1, 1], [0.1, 0.2, 0.3], kind=kind)


@pytest.mark.parametrize("display", SCORE_DISPLAYS)
def test_scores_that_cannot_be_drawn(display):
    for score, offset, message in (
        ([0.1, np.nan, 0.3], 0.0, "score holds NaN in 1 of 3 rows"),
        ([0.1, 0.3], 0.0, "y_true has 3 rows and score has 2"),
        ([0.1, 0.2, 0.3], np.nan, "offset=nan is not a number"),
    ):
        given = [score] if display is ScoreHistogramDisplay else [[0, 1, 1], score]
        with one_sentence(ValueError, message):
            display.from_predictions([0, 1, -1], *given, offset=offset)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("display", DISPLAYS)
def test_other_classifiers_are_refused(flat, display):
    _, X, y = flat
    other = LogisticRegression().fit(X[y != -1], y[y != -1])
    with one_sentence(TypeError, "which LogisticRegression does not have: pass an open-set classifier") as error:
        display.from_estimator(other, X, y)
    assert ("from_predictions" in str(error.value)) == (display is not EllipsoidDisplay)
    with pytest.raises(NotFittedError):
        display.from_estimator(EllipsoidOpenSetClassifier(), X, y)
