"""Score metrics against brute force and scikit-learn."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import average_precision_score, roc_auc_score

from skellipsoid.metrics import fpr_at_tpr, open_set_aupr, open_set_auroc, oscr_curve, oscr_score, trade_off_curve


def plain(function):
    """Call a metric without closed-set answers the way the others are called."""

    def call(y_true, y_pred_known, score, **options):
        return function(y_true, score, **options)

    call.__name__ = function.__name__
    return call


SCORE_METRICS = [plain(open_set_auroc), plain(open_set_aupr), plain(fpr_at_tpr), oscr_score]
ALL = [*SCORE_METRICS, oscr_curve, trade_off_curve]


@st.composite
def problems(draw):
    """True labels, closed-set answers and scores with both kinds of rows, and many ties."""
    rows = draw(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2), st.integers(-4, 4)), max_size=25))
    rows += [(draw(st.integers(0, 2)), draw(st.integers(0, 2)), draw(st.integers(-4, 4)))]
    rows += [(-1, draw(st.integers(0, 2)), draw(st.integers(-4, 4)))]
    y_true, y_pred_known, score = (np.array(column) for column in zip(*rows, strict=True))
    return y_true, y_pred_known, score / 4


def pairs(y_true, score, counted):
    """Share of pairs (known, open) in which the known row counts and scores higher, ties counting one half."""
    known, opened = score[y_true != -1, np.newaxis], score[y_true == -1]
    wins = ((known > opened) + 0.5 * (known == opened)) * counted[y_true != -1, np.newaxis]
    return wins.mean()


@given(problems())
def test_auroc_and_aupr_both_ways(problem):
    y_true, _, score = problem
    assert open_set_auroc(y_true, score) == pytest.approx(roc_auc_score(y_true != -1, score))
    known, unknown = (open_set_aupr(y_true, score, positive=kind) for kind in ("known", "open"))
    assert known == pytest.approx(average_precision_score(y_true != -1, score))
    assert unknown == pytest.approx(average_precision_score(y_true == -1, -score))


@given(problems(), st.sampled_from([0.01, 0.25, 1 / 3, 0.5, 0.95, 1.0]) | st.floats(0.001, 1))
def test_fpr_at_tpr(problem, tpr):
    y_true, _, score = problem
    known, unknown = score[y_true != -1], score[y_true == -1]
    enough = [threshold for threshold in set(score) if np.mean(known >= threshold) >= tpr]
    assert fpr_at_tpr(y_true, score, tpr=tpr) == np.mean(unknown >= max(enough))


@given(problems())
def test_curves_point_by_point(problem):
    y_true, y_pred_known, score = problem
    is_known, is_right = y_true != -1, y_true == y_pred_known
    fpr, ccr, thresholds = oscr_curve(y_true, y_pred_known, score)
    assert set(score) == set(thresholds) - {np.inf}
    for x, y, threshold in zip(fpr, ccr, thresholds, strict=True):
        assert x == np.mean(score[~is_known] >= threshold)
        assert y == pytest.approx(np.mean((is_right & (score >= threshold))[is_known]))
    assert (np.diff(thresholds) < 0).all()
    assert (fpr[0], fpr[-1]) == (0, 1)
    assert np.isinf(thresholds[0]) == (score[~is_known].max() == score.max())

    known_rejected, open_noticed, wrong_class, thresholds = trade_off_curve(y_true, y_pred_known, score)
    assert thresholds.tolist() == [*sorted(set(score.tolist())), np.inf]
    for k, threshold in enumerate(thresholds):
        assert known_rejected[k] == np.mean(score[is_known] < threshold)
        assert open_noticed[k] == np.mean(score[~is_known] < threshold)
        assert wrong_class[k] == pytest.approx(np.mean((~is_right & (score >= threshold))[is_known]))


@given(problems())
def test_oscr_score(problem):
    y_true, y_pred_known, score = problem
    value = oscr_score(y_true, y_pred_known, score)
    assert value == pytest.approx(pairs(y_true, score, y_pred_known == y_true))
    assert oscr_score(y_true, np.maximum(y_true, 0), score) == pytest.approx(open_set_auroc(y_true, score))


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(("y_true", "missing"), [([0, 1, 1], "open"), ([-1, -1, -1], "known")])
def test_one_kind_of_rows_only(metric, y_true, missing):
    message = f"is undefined and set to nan, since y_true has no {missing} sample: pass samples of both kinds"
    with pytest.warns(UndefinedMetricWarning, match=message) as caught:
        result = metric(y_true, [0, 1, 0], [0.5, 0.2, -0.3])
    assert [warning.filename for warning in caught] == [__file__]
    if metric in SCORE_METRICS:
        assert isnan(result)
    else:  # of curves, what needs the kind that is missing
        of_open, of_known = result[:2] if metric is oscr_curve else (result[1], result[0])
        assert np.isnan(of_open).all() == (missing == "open")
        assert np.isnan(of_known).all() == (missing == "known")


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ([0.5, np.nan, np.nan], "score holds NaN in 2 of 3 rows, but every row needs a score"),
        ([0.5, 0.1], "y_true has 3 rows and score has 2: pass"),
        ([[0.5, 0.1]] * 3, r"score has shape \(3, 2\), but must be one-dimensional: .* as score_samples returns it"),
        (["a", "b", "-1"], "score is of type <U2, but must be numbers"),
        (np.ma.array([0.5, 0.1, 0.2], mask=[0, 1, 0]), "score has masked values in row 1; fill them"),
    ],
)
def test_bad_scores(score, message):
    for metric in ALL:
        with pytest.raises(ValueError, match=f"^{message}"):
            metric([0, 1, -1], [0, 1, 0], score)


def test_bad_labels():
    for metric in ALL:
        with pytest.raises(ValueError, match=r"^y_true mixes strings such as 'a' with numbers such as -1, but"):
            metric(["a", -1], ["a", "a"], [1, 0])
        with pytest.raises(ValueError, match=r"^labels lists the open label -1 among the known classes"):
            metric([0, -1], [0, 0], [1, 0], labels=[0, -1])


def test_bad_options():
    with pytest.raises(ValueError, match=r"^positive='unknown' is not allowed: pass 'known' or 'open'"):
        open_set_aupr([0, -1], [1, 0], positive="unknown")
    for tpr in (0, 1.01, np.nan):
        with pytest.raises(ValueError, match=r"^tpr=.* is not in \(0, 1\]: pass"):
            fpr_at_tpr([0, -1], [1, 0], tpr=tpr)
    for function in (oscr_curve, oscr_score, trade_off_curve):
        with pytest.raises(ValueError, match=r"^y_pred_known holds the open label '-1' in 2 of 3 rows: "):
            function(["a", "b", "-1"], ["a", "-1", "-1"], [1, 2, 3])
        with pytest.raises(ValueError, match=r"^y_true has 3 rows and y_pred_known has 2: pass"):
            function(["a", "b", "-1"], ["a", "b"], [1, 2, 3])
