"""Promise: what ``train`` forecasts is there in Python, without a log, and is no surer than what was held out."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skellipsoid import EllipsoidOpenSetClassifier, forecast_answers, set_operating_point
from skellipsoid._traffic_model.threshold import Figure
from skellipsoid.baselines import BallClassifier
from skellipsoid.cli._trade_off import forecasts
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def case():
    X, y = make_open_blobs(1200, 8, n_known=6, open_share=0.2, random_state=0)
    train = (y != -1) & (np.arange(len(y)) < 600)
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train]), X[600:], y[600:]


@pytest.fixture
def clf(case):
    return deepcopy(case[0])


@pytest.mark.parametrize("share", [None, 0.05, (0.1, 0.4)])
def test_it_is_of_the_limit_and_the_zones_that_would_be_set(clf, share):
    before = deepcopy(vars(clf))
    found = forecast_answers(clf, open_share=share)
    assert vars(clf).keys() == before.keys()
    assert (clf.offset_, clf.asking_, clf.traffic_) == (0.0, None, None)
    how = {"ask_costs": {}} if share is None else {"open_share": share}
    placed = set_operating_point(clf, **how)
    assert found.offset == placed.offset_
    assert found.asking == placed.asking_


def test_it_is_what_the_command_prints(clf):
    printed = {name: list(row.figures.values()) for name, row in forecasts(clf).items()}
    for name, share in (("as fitted", None), ("threshold for 20 % open", 0.2)):
        found = forecast_answers(clf, open_share=share).figures
        for column in ("mean", "low", "high"):
            assert [*found[column]] == [getattr(figure, column) for figure in printed[name]]


@given(st.floats(0, 1), st.floats(1, 1e4), st.floats(1.1, 10))
def test_intervals_widen_with_fewer_groups(share, n, factor):
    one, draws = np.ones(1), np.array([share])
    few, more, all_there_are = (Figure.of(one, draws, number) for number in (n, factor * n, np.inf))
    assert few.error > more.error > all_there_are.error
    assert few.low <= more.low <= all_there_are.low <= share <= all_there_are.high <= more.high <= few.high


def test_what_forecasts_nothing_is_one_sentence(case):
    _, X, y = case
    known = np.flatnonzero(y != -1)[:12]
    few = EllipsoidOpenSetClassifier(random_state=0)
    with pytest.warns(UserWarning, match="."):
        few.fit(X[known], np.arange(12) % 3)
    with pytest.raises(ValueError, match=r"^The fit held out 12 samples, and fewer than 20 do not tell .*\.$"):
        forecast_answers(few)
    with pytest.raises(TypeError, match=r"^forecast_answers "):
        forecast_answers(BallClassifier().fit(X[y != -1], y[y != -1]))
    with pytest.raises(ValueError, match=r"^open_share=2 is not a proportion"):
        forecast_answers(case[0], open_share=2)
