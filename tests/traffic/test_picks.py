"""Promise: share, limits and figures stay right when labels come from questions alone."""

import numpy as np
import pytest
from asking_helpers import drawn, fitted
from sklearn.utils import Bunch

from skellipsoid import learn_from_traffic, predict_set, set_operating_point
from skellipsoid.metrics import asking_report, open_set_f1_score


@pytest.fixture(scope="module", params=[0.1, 0.4])
def picked(request):
    """A classifier, a log and its truth, what users picked, what was learned, and messages of the next day."""
    X, y, X_new, truth = drawn(10, 30, 11)
    clf = fitted(X, y)
    rng = np.random.default_rng(0)
    known, opened = (rng.permutation(np.flatnonzero((truth != -1) == part)) for part in (True, False))
    n_open = round(600 * request.param)
    rows = rng.permutation(np.append(known[: 600 - n_open], opened[:n_open]))
    later = np.append(known[600 - n_open : 1200 - 2 * n_open], opened[n_open : 2 * n_open])
    set_operating_point(clf, ask_costs={"wrong": 10, "person": 4})
    found = predict_set(clf, X_new[rows])
    is_offered = (found.classes == truth[rows][:, np.newaxis]).any(axis=1) & (truth[rows] != -1)
    given = np.where(is_offered, truth[rows], -1).astype(object)
    given[found.action != "ask"] = None
    log, learned = X_new[rows], learn_from_traffic(clf, X_new[rows], given, picked=True)
    fresh = {"fresh": X_new[later], "fresh_truth": truth[later]}
    return Bunch(clf=clf, log=log, truth=truth[rows], given=given, learned=learned, **fresh)


def test_the_share_stays_right(picked):
    traffic, share = picked.learned.traffic_, np.mean(picked.truth == -1)
    assert traffic["low"] - 0.03 < share < traffic["high"] + 0.03
    assert abs(traffic["open_share"] - share) < 0.12


def test_the_limit_stays_near_the_best_one(picked):
    scores, answers = picked.learned.score_samples(picked.fresh), picked.learned.predict_known(picked.fresh)

    def f1(offset):
        return open_set_f1_score(picked.fresh_truth, np.where(scores < offset, -1, answers), labels=range(10))

    assert f1(picked.learned.offset_) > max(f1(offset) for offset in np.quantile(scores, np.linspace(0, 1, 41))) - 0.03


def test_the_figures_of_the_limit_stay_right(picked):
    is_known, rejected = picked.truth != -1, picked.learned.predict(picked.log) == -1
    change = picked.learned.changes_[-1]
    assert abs(np.mean(rejected[is_known]) - change["after"]["rejected"][0]) < 0.12
    assert abs(np.mean(rejected[~is_known]) - change["after"]["noticed"][0]) < 0.2
    assert change["rejected"] is None  # of what was asked about that says nothing


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_proportion_that_is_asked_is_forecast_with_its_error(picked, when):
    model = {"before": picked.clf, "after": picked.learned}[when]
    found, told = asking_report(picked.truth, predict_set(model, picked.log)), picked.learned.changes_[-1][when]
    for name, most in (("asked", 0.05), ("open_asked", 0.12)):  # who is asked is counted, who is open is forecast
        mean, error = told[name]
        assert 0 < error < 0.25
        assert abs(found[name] - mean) < max(2 * error, most)


def test_weights_beside_are_refused(picked):
    with pytest.raises(ValueError, match=r"^picked says how messages came to their labels"):
        learn_from_traffic(picked.clf, picked.log, picked.given, picked=True, sample_weight=np.ones(len(picked.log)))
