"""The fitted state of the estimators in ``skellipsoid.baselines``."""

from typing import Any

from .. import baselines
from ._rules import (
    CLASSIFIER,
    COUNT,
    HELD_OUT,
    N_ITER,
    NUMBER,
    NUMBERS,
    Kind,
    Rule,
    Sizes,
    check_held_out,
    check_open_label,
    check_starts,
    floats,
    integers,
    measured,
    optional,
    or_none,
)


def _require(clf: Any, *names: str) -> None:
    """Raise an error if an attribute that only some parameters need is missing."""
    for name in names:
        if getattr(clf, name, None) is None:
            msg = f"{name} is missing"
            raise ValueError(msg)


def _refuse(is_wrong: Any, msg: str) -> None:
    if is_wrong:
        raise ValueError(msg)


def _check_balls(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    _refuse((clf.radii_ < 0).any(), "radii_ must not be negative")


def _check_mogb(clf: Any, sizes: Sizes) -> None:
    _check_balls(clf, sizes)
    _check_codes("ball_classes_", clf.ball_classes_, sizes)
    _refuse(not clf._smallest > 0, "_smallest must be positive")


def _check_codes(name: str, codes: Any, sizes: Sizes) -> None:
    _refuse(((codes < 0) | (codes >= sizes["n_classes"])).any(), f"{name} holds numbers of no class")


def _check_logits(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    check_held_out(clf, sizes)
    inner = clf.logit_estimator_
    if inner is None:
        _require(clf, "_mean", "coef_", "intercept_")
        return
    scores = hasattr(inner, "decision_function") or hasattr(inner, "predict_proba")
    if not scores or list(getattr(inner, "classes_", [])) != list(clf.classes_):
        msg = f"logit_estimator_ is a {type(inner).__name__}, but must be a classifier of the same classes_"
        raise ValueError(msg)
    n_features = getattr(inner, "n_features_in_", sizes["n_features"])
    _refuse(n_features != sizes["n_features"], f"logit_estimator_ takes {n_features} features")


def _check_openmax(clf: Any, sizes: Sizes) -> None:
    _check_logits(clf, sizes)
    _refuse((clf.tail_scales_ < 0).any(), "tail_scales_ must not be negative")


def _check_neighbors(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    check_held_out(clf, sizes)
    _check_codes("_row_classes", clf._row_classes, sizes)
    _refuse(clf.n_neighbors_ > sizes["n_rows"], f"n_neighbors_ must be at most the number of rows, {sizes['n_rows']}")


def _check_lof(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    n_parts = 1 if clf.scope == "all" else sizes["n_classes"]
    _refuse(len(clf._starts) != n_parts + 1, f"_starts must hold {n_parts + 1} numbers")
    check_starts("_starts", clf._starts, sizes["n_rows"], smallest=1)
    _refuse(not clf._unit > 0, "_unit must be positive")


def _check_mahalanobis(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    check_held_out(clf, sizes)
    if clf.covariance == "relative":
        _require(clf, "_mean", "_all_whitener")
    if clf.covariance == "class":
        _require(clf, "_axes", "_axis_variances", "_axis_starts")
        check_starts("_axis_starts", clf._axis_starts, sizes["n_axes"])
        _refuse((clf._axis_variances <= 0).any(), "_axis_variances must be positive")


def _check_plda(clf: Any, sizes: Sizes) -> None:
    check_open_label(clf)
    check_held_out(clf, sizes)
    _refuse((clf.between_variances_ < 0).any(), "between_variances_ must not be negative")
    _refuse((clf._counts <= 0).any(), "_counts must be positive")


_THRESHOLDED = {**CLASSIFIER, "threshold_": NUMBER, "_held_out": optional(HELD_OUT)}
_TRAINED = {"n_iter_": N_ITER, "loss_curve_": NUMBERS}
_BALLS = {
    **CLASSIFIER,
    "scale_": NUMBER,
    "centroids_": floats("n_classes", "n_features"),
    "radii_": floats("n_classes"),
}
_MOGB = {
    **CLASSIFIER,
    "_smallest": NUMBER,
    "_means": floats("n_classes", "n_features"),
    "ball_classes_": integers("n_balls"),
    "centers_": floats("n_balls", "n_features"),
    "radii_": floats("n_balls"),
}
_LOGITS = {
    **_THRESHOLDED,
    **_TRAINED,
    "_seed": Rule("an integer", lambda value: type(value) is int),
    "logit_estimator_": or_none(Rule("an estimator", lambda value: hasattr(value, "predict"))),
    "coef_": or_none(floats("n_classes", "n_features")),
    "intercept_": or_none(floats("n_classes")),
    "_mean": optional(floats("n_features")),  # of the head
}
_OPENMAX = {
    **_LOGITS,
    "mean_logits_": floats("n_classes", "n_classes"),
    "tail_locations_": measured("n_classes"),
    "tail_scales_": floats("n_classes"),
}
_NEIGHBORS = {
    **_THRESHOLDED,
    "_rows": floats("n_rows", "n_features"),
    "_row_classes": integers("n_rows"),
    "n_neighbors_": COUNT,
}
_LOF = {
    **CLASSIFIER,
    "centroids_": floats("n_classes", "n_features"),
    "_rows": floats("n_rows", "n_features"),
    "_starts": integers("n_starts"),
    "_reaches": floats("n_rows"),
    "_densities": floats("n_rows"),
    "thresholds_": floats("n_classes"),
    "_unit": NUMBER,
}
_MAHALANOBIS = {
    **_THRESHOLDED,
    "centroids_": floats("n_classes", "n_features"),
    "shrinkage_": NUMBER,
    "_whitener": floats("n_features", "n_features"),
    "_log_det": NUMBER,
    # Only with covariance="relative".
    "_mean": optional(floats("n_features")),
    "_all_whitener": optional(floats("n_features", "n_features")),
    # Only with covariance="class".
    "_axes": optional(floats("n_axes", "n_features")),
    "_axis_variances": optional(floats("n_axes")),
    "_axis_starts": optional(integers("n_classes + 1")),
}
_PLDA = {
    **_THRESHOLDED,
    "centroids_": floats("n_classes", "n_features"),
    "shrinkage_": NUMBER,
    "_mean": floats("n_features"),
    "between_variances_": floats("n_axes"),
    "_axes": floats("n_features", "n_axes"),
    "_counts": floats("n_classes"),
}
BASELINES = (
    Kind(baselines.ADBClassifier, {**_BALLS, **_TRAINED}, _check_balls),
    Kind(baselines.BallClassifier, _BALLS, _check_balls),
    Kind(baselines.CLABClassifier, {**_BALLS, **_TRAINED}, _check_balls),
    Kind(baselines.DOCClassifier, {**_LOGITS, "thresholds_": floats("n_classes")}, _check_logits),
    Kind(baselines.EnergyClassifier, _LOGITS, _check_logits),
    Kind(baselines.KNNOpenSetClassifier, _NEIGHBORS, _check_neighbors),
    Kind(baselines.LOFOpenSetClassifier, _LOF, _check_lof),
    Kind(baselines.MOGBClassifier, _MOGB, _check_mogb),
    Kind(baselines.MahalanobisClassifier, _MAHALANOBIS, _check_mahalanobis),
    Kind(baselines.MaxLogitClassifier, _LOGITS, _check_logits),
    Kind(baselines.OpenMaxClassifier, _OPENMAX, _check_openmax),
    Kind(baselines.PLDAClassifier, _PLDA, _check_plda),
    Kind(baselines.SoftmaxOpenSetClassifier, _LOGITS, _check_logits),
)
