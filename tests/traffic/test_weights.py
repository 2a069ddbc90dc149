"""Weights of labels say how much each counts beside the others: their unit changes nothing."""

from copy import deepcopy

import numpy as np
import pytest

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    estimate_open_share,
    learn_from_traffic,
    load,
    metrics,
    save,
    set_operating_point,
)

FACTORS = [1e-300, 0.3, 1e100]


@pytest.fixture(scope="module")
def told():
    """A classifier, a log of which some messages are labelled, and weights of these."""
    rng = np.random.default_rng(0)
    means = 6 * rng.normal(size=(5, 8))
    X, y = rng.normal(size=(160, 8)) + np.repeat(means[:4], 40, axis=0), np.repeat(np.arange(4), 40)
    log = rng.normal(size=(60, 8)) + means[np.arange(60) % 5]
    labels = np.array([None] * 60, dtype=object)
    labels[:30] = [row % 5 if row % 5 < 4 else -1 for row in range(30)]
    return EllipsoidOpenSetClassifier(random_state=0).fit(X, y), log, labels, rng.uniform(0.5, 3, size=60)


def answers(clf, log, labels, weights):
    """All numbers that weights of labels move."""
    found = estimate_open_share(clf, log, labels, sample_weight=weights)
    learned = learn_from_traffic(clf, log, labels, sample_weight=weights)
    placed = set_operating_point(deepcopy(clf), log, labels, sample_weight=weights)
    return [found.share, *found.class_shares, learned.offset_, *learned.traffic_.values(), placed.offset_]


@pytest.mark.parametrize("factor", FACTORS)
def test_weights_of_another_unit_give_the_same_answers(told, factor, tmp_path):
    clf, log, labels, weights = told
    expected, found = (answers(clf, log, labels, unit * weights) for unit in (1.0, factor))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    learned = learn_from_traffic(clf, log, labels, sample_weight=factor * weights)
    save(learned, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(log), learned.predict(log))


def test_one_weight_beside_which_others_are_nothing_is_told(told):
    clf, log, labels, weights = told
    weights = weights.copy()
    weights[3] = 1e100
    with pytest.warns(
        UserWarning, match=r"^29 of 30 positive weights are less than 1e-12 of the largest, 1e\+100, and"
    ):
        found = estimate_open_share(clf, log, labels, sample_weight=weights)
    assert np.isfinite(found.share)


@pytest.mark.parametrize("factor", FACTORS)
def test_metrics_know_no_unit_of_weights(told, factor):
    _, _, _, weights = told
    rng = np.random.default_rng(1)
    true, answered, closed = rng.integers(-1, 4, 60), rng.integers(-1, 4, 60), rng.integers(0, 4, 60)
    score = rng.normal(size=60)
    for metric, *given in (
        (metrics.open_set_f1_score, true, answered),
        (metrics.open_set_accuracy, true, answered),
        (metrics.open_set_auroc, true, score),
        (metrics.open_set_aupr, true, score),
        (metrics.fpr_at_tpr, true, score),
        (metrics.oscr_score, true, closed, score),
    ):
        found, expected = (metric(*given, sample_weight=unit * weights) for unit in (factor, 1.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=metric.__name__)
