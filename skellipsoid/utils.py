"""For those who test estimators of their own against scikit-learn's checks."""

from __future__ import annotations

from typing import Any

from . import baselines
from ._ellipsoid.classifier import EllipsoidOpenSetClassifier
from ._traffic.operating_point import TunedOperatingPointCV

__all__ = ["expected_failed_checks"]

_ANSWERED_OPEN = (
    "Training samples outside of the boundary are answered with the open label, where the check wants the "
    "class with the largest decision value."
)
_COUNTED_ONCE = (
    "By default duplicates weigh as much as one sample, so that a sample repeated is not a sample of integer weight. "
    "With duplicates='each' it is, in the same order of the samples: this check shuffles them, and synthetic classes, "
    "batches and folds depend on their order."
)
_OF_FOLDS = (
    "A few samples leave classes without a spread in the folds, with a warning; and rows that are repeated are tested "
    "as often, while samples with weights are tested once."
)
_NO_WEIGHTS = "What counts neighbours refuses weights that differ, where the check wants them to act."
_BOUNDARY = {
    "check_sample_weight_equivalence_on_dense_data": _COUNTED_ONCE,
    "check_classifiers_train": _ANSWERED_OPEN,
    "check_classifiers_classes": _ANSWERED_OPEN,
}
#: No row of that check is below the threshold.
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
    """Name the checks of scikit-learn that an estimator of this package rightly fails, and why.

    Parameters
    ----------
    estimator : estimator
        Its class counts, and the classes that it derives from.

    Returns
    -------
    checks : dict
        Reasons by the names of the checks, as ``sklearn.utils.estimator_checks.check_estimator`` and
        ``parametrize_with_checks`` take them in ``expected_failed_checks``. Use an ``open_label`` that the data of the
        checks do not have, such as -999.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.utils import expected_failed_checks
    >>> sorted(expected_failed_checks(EllipsoidOpenSetClassifier(open_label=-999)))[:2]
    ['check_classifiers_train', 'check_sample_weight_equivalence_on_dense_data']
    """
    kinds = (kind for kind in type(estimator).__mro__ if kind in _OF_CLASSES)
    return dict(_OF_CLASSES.get(next(kinds, object), {}))
