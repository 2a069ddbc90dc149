"""scikit-learn's estimator checks that this package's estimators fail on purpose, with reasons."""

from __future__ import annotations

from typing import Any

from . import baselines
from ._ellipsoid.classifier import EllipsoidOpenSetClassifier
from ._traffic.operating_point import TunedOperatingPointCV

__all__ = ["expected_failed_checks"]

_ANSWERED_OPEN = (
    "Training samples outside of the boundary get the open label, but the check expects the class with the largest "
    "decision value."
)
_COUNTED_ONCE = (
    "By default duplicates have the weight of one sample, so that repeating a sample is not an integer weight. With "
    "duplicates='each' it is, for the same order of the samples: this check shuffles them, and synthetic classes, "
    "batches and folds depend on their order."
)
_OF_FOLDS = (
    "With few samples some classes have no spread in a fold, with a warning; and repeated rows are tested several "
    "times, weighted rows once."
)
_NO_WEIGHTS = "Methods that count neighbours refuse unequal weights, but the check expects them to have an effect."
_BOUNDARY = {
    "check_sample_weight_equivalence_on_dense_data": _COUNTED_ONCE,
    "check_classifiers_train": _ANSWERED_OPEN,
    "check_classifiers_classes": _ANSWERED_OPEN,
}
#: No row of this check is below the threshold.
_HALF = {name: reason for name, reason in _BOUNDARY.items() if name != "check_classifiers_classes"}
_NEIGHBORS = {
    "check_sample_weights_not_overwritten": _NO_WEIGHTS,
    "check_sample_weight_equivalence_on_dense_data": _NO_WEIGHTS,
    "check_classifiers_train": _ANSWERED_OPEN,
}
_BALLS = _BOUNDARY | {"check_classifiers_one_label": _ANSWERED_OPEN}
_OF_CLASSES: dict[type, dict[str, str]] = {
    EllipsoidOpenSetClassifier: _HALF,
    baselines.BallClassifier: _BALLS,
    baselines.KNNOpenSetClassifier: _NEIGHBORS,
    baselines.LOFOpenSetClassifier: _NEIGHBORS,
    baselines.MahalanobisClassifier: _BOUNDARY,
    baselines.PLDAClassifier: _BOUNDARY,
    baselines.SoftmaxOpenSetClassifier: _HALF,
    baselines.MaxLogitClassifier: _HALF,
    baselines.EnergyClassifier: _HALF,
    TunedOperatingPointCV: {
        "check_sample_weight_equivalence_on_dense_data": _OF_FOLDS,
        "check_sample_weights_shape": _OF_FOLDS,
        "check_sample_weights_not_overwritten": _OF_FOLDS,
        "check_classifiers_one_label": _ANSWERED_OPEN,  # with a wanted rate of 40 %
        "check_classifiers_train": _ANSWERED_OPEN,
        "check_classifiers_classes": _ANSWERED_OPEN,
    },
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn that an estimator of this package fails on purpose, with reasons.

    Parameters
    ----------
    estimator : estimator
        Only its class and base classes matter.

    Returns
    -------
    checks : dict
        Reasons by the names of the checks, as ``sklearn.utils.estimator_checks.check_estimator`` and
        ``parametrize_with_checks`` take them in ``expected_failed_checks``. Use an ``open_label`` that does not occur
        in the data of the checks, such as -999.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.utils import expected_failed_checks
    >>> sorted(expected_failed_checks(EllipsoidOpenSetClassifier(open_label=-999)))[:2]
    ['check_classifiers_train', 'check_sample_weight_equivalence_on_dense_data']
    """
    kinds = (kind for kind in type(estimator).__mro__ if kind in _OF_CLASSES)
    return dict(_OF_CLASSES.get(next(kinds, object), {}))
