"""Classes that can be saved, and the fitted state that each needs.

A classifier of ``skellipsoid.baselines`` declares its state itself (``_state`` and ``_check_state``); what all others
need is here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import Normalizer, StandardScaler

from .. import baselines
from .._elidecide import EliDecide
from .._ellipsoid import EllipsoidOpenSetClassifier
from .._encoder import SupConTextEncoder
from .._engine.text.backbone import TextBackbone
from .._monitor import SUSPICIONS, OpenShareMonitor
from .._operating_point import TunedOperatingPointCV
from .._pipelines import split_estimator
from .._state_rules import (
    CHANGES,
    CLASSES,
    CLASSIFIER,
    COUNT,
    ESTIMATOR,
    HELD_OUT,
    KEPT,
    LABEL,
    N_FEATURES,
    N_ITER,
    NUMBER,
    NUMBERS,
    POSITIVE,
    TEXT,
    Rule,
    Sizes,
    check_held_out,
    check_kept,
    check_open_label,
    floats,
    integers,
    is_array,
    is_number,
    measured,
    optional,
    or_none,
)
from ..model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold


class Kind(NamedTuple):
    """A class that can be saved."""

    cls: type
    state: dict[str, Rule]
    check: Callable[[Any, Sizes], None] | None = None

    @classmethod
    def of(cls, declared: Any) -> "Kind":
        """Make it of a class that declares its state itself."""
        return cls(declared, declared._state, getattr(declared, "_check_state", None))


def _is_output_config(value: Any) -> bool:
    # What set_output notes; scikit-learn itself only looks at it when it transforms.
    return isinstance(value, dict) and value.get("transform") in ("default", "pandas", "polars") and len(value) == 1


#: What an estimator may hold beside what its class needs.
_SHARED = {
    "feature_names_in_": optional(Rule("an array of strings", is_array("OUT"), ("n_features",))),
    "_sklearn_output_config": optional(Rule("'default', 'pandas' or 'polars' for 'transform'", _is_output_config)),
}


def _check_ellipsoid(clf: EllipsoidOpenSetClassifier, sizes: Sizes) -> None:
    if clf.held_out_scores_ is not None and (np.diff(clf.held_out_scores_) < 0).any():
        msg = "held_out_scores_ must be in ascending order"
        raise ValueError(msg)
    check_kept(clf._kept, sizes)
    n_coordinates = sizes["n_features"]
    if clf._metric_axes is not None:
        n_coordinates = sizes["n_metric"] + (clf._metric_products is not None)
        missing = sorted(name for name in _MOMENTS if not hasattr(clf, name))
        if missing or clf.shrinkage_ is None:
            msg = f"{(missing or ['shrinkage_'])[0]} is missing"
            raise ValueError(msg)
    if n_coordinates != sizes["n_coordinates"]:
        msg = f"_centers has {sizes['n_coordinates']} coordinates, but must have {n_coordinates}"
        raise ValueError(msg)


def _check_encoder(encoder: SupConTextEncoder, sizes: Sizes) -> None:
    if encoder.pooling == "mean" and sizes["width"] != encoder._backbone.width:
        msg = f"its width is {sizes['width']}, but that of its text model {encoder._backbone.width}"
        raise ValueError(msg)
    if encoder.pooling == "model" and not len(encoder._backbone.model.after):
        msg = "pooling is 'model', but its text model has no pooling of its own"
        raise ValueError(msg)
    is_frozen = encoder.finetune_ == "none"
    if (encoder.weight_ is None, encoder.bias_ is None) != (is_frozen, is_frozen):
        msg = f"finetune_ is {encoder.finetune_!r}, which does not fit weight_ and bias_"
        raise ValueError(msg)
    _check_kept_texts(encoder)


def _check_kept_texts(encoder: SupConTextEncoder) -> None:
    missing = [name for name in _KEPT_TEXTS if not hasattr(encoder, name)]
    if len(missing) == len(_KEPT_TEXTS):
        return
    if missing:
        msg = f"{missing[0]} is missing"
        raise ValueError(msg)
    for text in encoder.training_texts_:
        text.encode()  # half of a character cannot be printed
    if encoder.training_features_.shape[1] != encoder._n_features_out:
        msg = f"training_features_ has {encoder.training_features_.shape[1]} columns, not {encoder._n_features_out}"
        raise ValueError(msg)


def _check_tuned(tuned: TunedOperatingPointCV, sizes: Sizes) -> None:
    inner = tuned.estimator_
    if not hasattr(inner, "score_samples") or list(getattr(inner, "classes_", [])) != list(tuned.classes_):
        msg = f"estimator_ is a {type(inner).__name__}, but must be an open-set classifier of the same classes_"
        raise ValueError(msg)


def _check_frozen(frozen: FrozenEstimator, sizes: Sizes) -> None:
    if vars(frozen).keys() != {"estimator"}:
        msg = f"it holds {sorted(vars(frozen).keys() - {'estimator'})}"
        raise ValueError(msg)


def _check_scaler(scaler: StandardScaler, sizes: Sizes) -> None:
    for parameter, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(scaler, parameter) and getattr(scaler, name) is None:
            msg = f"{name} is null, but must be an array with {parameter}=True"
            raise ValueError(msg)


#: Only of the closed form.
_MOMENTS = {
    "_class_counts": optional(floats("n_classes")),
    "_class_freedoms": optional(floats("n_classes")),
    "_axis_scatters": optional(floats("n_axes")),
    "_between": optional(floats("n_metric")),
    "_stretches": optional(floats("n_metric")),
    "_off_variance": optional(NUMBER),
    "_radius_scale": optional(NUMBER),
    "_mean_error": optional(POSITIVE),
}
_ELLIPSOID = {
    **CLASSIFIER,
    "scale_": POSITIVE,
    "_mean": floats("n_features"),
    "centroids_": floats("n_classes", "n_features"),
    "centers_": floats("n_classes", "n_features"),
    "radii_": floats("n_classes", least=0),
    "_centers": floats("n_classes", "n_coordinates"),
    "_metric_axes": or_none(floats("n_features", "n_metric")),
    "_metric_products": or_none(floats("n_metric", "n_metric")),
    "_off_span": NUMBER,
    "_labels": floats("n_classes", "n_coordinates"),
    "_label_constants": floats("n_classes"),
    "_axes": floats("n_axes", "n_coordinates"),
    "_axis_weights": floats("n_axes"),
    "_axis_starts": integers("n_classes + 1", rises_to="n_axes"),
    "_residual_weights": floats("n_classes"),
    "spherical_share_": or_none(NUMBER),
    "between_share_": or_none(NUMBER),
    "shrinkage_": or_none(NUMBER),
    "held_out_scores_": or_none(floats("n_held_out")),
    "_held_out": HELD_OUT,
    "n_iter_": COUNT,
    "loss_curve_": NUMBERS,
    "validation_scores_": or_none(NUMBERS),
    "changes_": CHANGES,
    "_kept": KEPT,
    **_MOMENTS,
}
_KEPT_TEXTS = {
    "training_texts_": optional(Rule("an array of strings of type object", is_array("O"), ("n_texts",))),
    "training_labels_": optional(or_none(Rule("an array of labels", is_array("biufO"), ("n_texts",)))),
    "training_features_": optional(floats("n_texts", "n_outputs")),
}
_ENCODER = {
    "finetune_": Rule("'none', 'head' or 'full'", lambda value: str(value) in ("none", "head", "full")),
    "classes_": optional(CLASSES),
    "weight_": or_none(floats("n_components", "width")),
    "bias_": or_none(floats("n_components")),
    "_width": replace(COUNT, size="width"),
    "groups_": optional(integers("n_samples")),
    "n_iter_": N_ITER,
    "loss_curve_": NUMBERS,
    "validation_scores_": or_none(NUMBERS),
    "training_data_sha256_": optional(TEXT),
    "_backbone": Rule("a text model", lambda value: isinstance(value, TextBackbone)),
    **_KEPT_TEXTS,
}
_TUNED = {
    "estimator_": ESTIMATOR,
    "classes_": CLASSES,
    "open_label_": LABEL,
    "cv_results_": Rule("a mapping of arrays", lambda value: isinstance(value, Mapping)),
    "n_features_in_": optional(N_FEATURES),
}
_VARIANCES = {name: measured("n_components") for name in ("explained_variance_", "explained_variance_ratio_")}
_SVD = {
    "n_features_in_": N_FEATURES,
    "components_": measured("n_components", "n_features"),
    "singular_values_": measured("n_components"),
    **_VARIANCES,
}
_PCA = {
    **_SVD,
    "mean_": measured("n_features"),
    "noise_variance_": Rule("a number", lambda value: isinstance(value, Real)),
    "n_samples_": COUNT,
    "n_components_": COUNT,
    "_fit_svd_solver": TEXT,
}
_SCALER = {
    "n_features_in_": N_FEATURES,
    "mean_": or_none(measured("n_features")),
    "var_": or_none(measured("n_features")),
    "scale_": or_none(measured("n_features")),
    "n_samples_seen_": Rule("a number or an array", lambda value: is_number(value) or is_array("iuf")(value)),
}

_MONITOR = {
    "classes_": CLASSES,
    "n_reference_": COUNT,
    "reference_open_share_": NUMBER,
    "alarm_at_": replace(COUNT, nullable=True),
    "class_alarm_at_": integers("n_classes"),
    "history_": floats("n_updates", 3),
    "_scores": floats("n_scored"),
    "_codes": integers("n_scored"),
    "_idle": floats("n_tests"),
    "_stakes": measured("n_tests", "n_suspicions"),
    "_n_bets": integers("n_tests"),
}


def _check_monitor(monitor: OpenShareMonitor, sizes: Sizes) -> None:
    n_classes, n_reference = sizes["n_classes"], monitor.n_reference_
    seen = monitor.history_[-1, 0] if len(monitor.history_) else 0
    problems = {
        "_idle": sizes["n_tests"] != n_classes + 1 or (monitor._idle > 0).any(),
        "_stakes": sizes["n_suspicions"] != len(SUSPICIONS) or np.isnan(monitor._stakes).any(),
        "_codes": ((monitor._codes < 0) | (monitor._codes >= n_classes)).any(),
        "_n_bets": (monitor._n_bets < 0).any() or monitor._n_bets[-1] != seen,
        "history_": sizes["n_scored"] != n_reference + seen or (np.diff(monitor.history_[:, 0], prepend=0) <= 0).any(),
        "estimator": list(getattr(split_estimator(monitor.estimator)[1], "classes_", [])) != list(monitor.classes_),
    }
    for name, is_wrong in problems.items():
        if is_wrong:
            msg = f"{name} does not fit the samples that it has seen"
            raise ValueError(msg)


#: Estimators whose parameter is a fitted estimator.
HOLD_FITTED = (FrozenEstimator, OpenShareMonitor)
#: Nothing else is ever made from a saved model. Their fitted state was compared with scikit-learn 1.6.0 and 1.9.1.
KINDS: dict[str, Kind] = {
    kind.cls.__name__: kind
    for kind in (
        Kind(EllipsoidOpenSetClassifier, _ELLIPSOID, _check_ellipsoid),
        Kind(EliDecide, {}),
        Kind(SupConTextEncoder, _ENCODER, _check_encoder),
        Kind(TunedOperatingPointCV, _TUNED, _check_tuned),
        Kind(StandardScaler, _SCALER, _check_scaler),
        Kind(Normalizer, {"n_features_in_": optional(N_FEATURES)}),
        Kind(PCA, _PCA),
        Kind(TruncatedSVD, _SVD),
        Kind(FrozenEstimator, {}, _check_frozen),
        Kind(OpenShareMonitor, _MONITOR, _check_monitor),
        *(Kind.of(getattr(baselines, name)) for name in baselines.__all__),
    )
}
#: Splitters, which are parameters of an estimator.
SPLITTERS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        OpenSetKFold,
        RealOpenKFold,
        OpenSetShuffleSplit,
        KnownClassSplit,
        KFold,
        StratifiedKFold,
        GroupKFold,
        StratifiedGroupKFold,
    )
}


def check_state(estimator: Any) -> None:
    """Raise an error if a fitted attribute is missing or invalid for scoring."""
    kind = KINDS[type(estimator).__name__]
    name = f"of the {type(estimator).__name__}"
    sizes: Sizes = {}
    rules = {**kind.state, **_SHARED}
    if unknown := sorted(vars(estimator).keys() - rules.keys() - estimator.get_params(deep=False).keys()):
        msg = f"{unknown[0]!r} {name} is no state that save writes"
        raise ValueError(msg)
    for attribute, rule in rules.items():
        if hasattr(estimator, attribute):
            rule.check(f"{attribute} {name}", getattr(estimator, attribute), sizes)
            if attribute == "classes_":
                sizes["n_classes + 1"] = sizes["n_classes"] + 1
        elif rule.required:
            msg = f"{attribute} {name} is missing"
            raise ValueError(msg)
    try:
        if "open_label_" in rules:
            check_open_label(estimator)
            check_held_out(estimator, sizes)
        if kind.check is not None:
            kind.check(estimator, sizes)
    except ValueError as error:
        msg = f"{error} ({type(estimator).__name__})"
        raise ValueError(msg) from error
