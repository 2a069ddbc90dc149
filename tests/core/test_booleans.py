"""A Boolean is no rate, proportion, cost or size, though Python counts it among the numbers."""

import numpy as np
import pytest

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, baselines, metrics, model_selection, set_operating_point
from skellipsoid._core.sklearn import Interval, InvalidParameterError, validate_params
from skellipsoid.datasets import make_open_blobs

X, Y = make_open_blobs(200, 3, n_known=4, open_share=0.2, random_state=0)
ESTIMATORS = [EllipsoidOpenSetClassifier(), skellipsoid.SupConTextEncoder(), baselines.KNNOpenSetClassifier()]


@pytest.fixture(scope="module")
def fitted():
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[Y != -1], Y[Y != -1])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_no_parameter_of_a_range_takes_a_boolean(estimator):
    validate_params(estimator)
    for name, allowed in estimator._parameter_constraints.items():
        named = {each for each in allowed if isinstance(each, str)}
        if not any(isinstance(each, Interval) for each in allowed) or named & {"boolean", "verbose"}:
            continue
        for value in (True, np.True_):
            other = type(estimator)(**estimator.get_params(deep=False) | {name: value})
            with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of .* must be .* Got .*True"):
                validate_params(other)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("open_share", lambda clf: skellipsoid.predict_open_proba(clf, X, open_share=True)),
        ("false_alarm_rate", lambda clf: skellipsoid.OpenShareMonitor(clf, false_alarm_rate=True).fit(X)),
        ("n_neighbors", lambda clf: skellipsoid.explain(clf, X, n_neighbors=True, reference=X)),
        ("known_ratio", lambda clf: list(model_selection.OpenSetShuffleSplit(known_ratio=True).split(X, Y))),
        ("open_share", lambda clf: make_open_blobs(open_share=True)),
        ("tpr", lambda clf: metrics.fpr_at_tpr(Y != -1, clf.score_samples(X), tpr=True)),
        ("confidence_level", lambda clf: metrics.bootstrap_interval(np.mean, Y, confidence_level=True)),
    ],
)
def test_functions_take_no_boolean_for_a_number(fitted, name, use):
    with pytest.raises((ValueError, TypeError), match=f"{name}(=| must be ).*True"):
        use(fitted)


def test_a_rate_of_samples_whose_squares_overflow_is_refused(fitted):
    before, answers = fitted.offset_, fitted.predict(X)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"^All 200 known samples are so far .*; check the units of X\.$"),
    ):
        set_operating_point(fitted, X * 1e155, rejection_rate=0.05)
    assert fitted.offset_ == before
    # One of them is beyond each offset, as any other sample that is far out.
    one = X.copy()
    one[0] *= 1e155
    with np.errstate(over="ignore"):
        set_operating_point(fitted, one, rejection_rate=0.05)
    assert np.isfinite(fitted.offset_)
    set_operating_point(fitted)
    np.testing.assert_array_equal(fitted.predict(X), answers)
    assert (fitted.predict(X * 1e155) == -1).all()
