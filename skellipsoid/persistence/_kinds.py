"""Classes that can be saved, and the fitted state that each needs."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import Normalizer, StandardScaler

from .._ellipsoid import EllipsoidOpenSetClassifier
from .._encoder import SupConTextEncoder
from .._engine.text import TextBackbone
from .._operating_point import TunedOperatingPointCV
from ..model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold

Sizes = dict[str, int]


@dataclass(frozen=True)
class Rule:
    """Requirement of one fitted attribute."""

    what: str  # for the error
    accepts: Callable[[Any], bool]
    shape: tuple[str | int, ...] | None = None  # of an array; names stand for sizes that must agree within an estimator
    size: str | None = None  # the size that this number is
    nullable: bool = False
    required: bool = True

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Raise an error if a value does not meet the requirement; new sizes are recorded."""
        if value is None and self.nullable:
            return
        if not self.accepts(value):
            found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
            msg = f"{name} is {found[:80]}, but must be {self.what}"
            raise ValueError(msg)
        if self.size is not None:
            sizes[self.size] = value
        if self.shape is not None:
            wanted = [sizes.get(side, side) if isinstance(side, str) else side for side in self.shape]
            fits = len(value.shape) == len(wanted) and all(
                isinstance(side, str) or side == found for side, found in zip(wanted, value.shape, strict=True)
            )
            if not fits:
                msg = f"{name} has the shape {value.shape}, but must have ({', '.join(map(str, wanted))})"
                raise ValueError(msg)
            sizes.update({side: n for side, n in zip(wanted, value.shape, strict=True) if isinstance(side, str)})


def _is_array(kinds: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds


def _is_finite(value: Any) -> bool:
    return _is_array("f")(value) and bool(np.isfinite(value).all())


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == value if isinstance(value, float) else abs(value) < 2**63


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 1


def _is_classes(value: Any) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "biufUTO" or not len(value):
        return False
    ordered = value.tolist()
    return all(first < second for first, second in itertools.pairwise(ordered))


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Real) for item in value)


def _is_output_config(value: Any) -> bool:
    # What set_output notes; scikit-learn itself only looks at it when it transforms.
    return isinstance(value, dict) and value.get("transform") in ("default", "pandas", "polars") and len(value) == 1


def _floats(*shape: str | int) -> Rule:
    return Rule("an array of finite numbers", _is_finite, shape)


def _measured(*shape: str | int) -> Rule:
    # What other packages fit may be infinite or missing, where a feature is constant for instance.
    return Rule("an array of numbers", _is_array("f"), shape)


def _integers(*shape: str | int) -> Rule:
    return Rule("an array of integers", _is_array("iu"), shape)


def _optional(rule: Rule) -> Rule:
    return replace(rule, required=False)


def _or_none(rule: Rule) -> Rule:
    return replace(rule, nullable=True, what=f"{rule.what}, or null")


_NUMBER = Rule("a number", _is_number)
_COUNT = Rule("a positive integer", _is_count)
_N_FEATURES = replace(_COUNT, size="n_features")
_CLASSES = Rule("an array of different labels in ascending order", _is_classes, ("n_classes",))
_LABEL = Rule("a number or a string", lambda value: isinstance(value, str | bool) or _is_number(value))
_NUMBERS = Rule("a list of numbers", _is_numbers)
_TEXT = Rule("a string", lambda value: isinstance(value, str))
#: What an estimator may hold beside what its class needs.
_SHARED = {
    "feature_names_in_": _optional(Rule("an array of strings", _is_array("OUT"), ("n_features",))),
    "_sklearn_output_config": _optional(Rule("'default', 'pandas' or 'polars' for 'transform'", _is_output_config)),
}


def _check_ellipsoid(clf: EllipsoidOpenSetClassifier, sizes: Sizes) -> None:
    if isinstance(clf.open_label_, str) != isinstance(clf.classes_.tolist()[0], str):
        msg = f"open_label_ is {clf.open_label_!r}, but must be of the kind of classes_"
        raise ValueError(msg)
    if not (clf.scale_ > 0 and (clf.radii_ >= 0).all()):
        msg = "scale_ must be positive and radii_ must not be negative"
        raise ValueError(msg)
    if clf._axis_starts[0] != 0 or clf._axis_starts[-1] != sizes["n_axes"] or (np.diff(clf._axis_starts) < 0).any():
        msg = f"_axis_starts must rise from 0 to the number of axes, {sizes['n_axes']}"
        raise ValueError(msg)
    if clf.held_out_scores_ is not None and (np.diff(clf.held_out_scores_) < 0).any():
        msg = "held_out_scores_ must be in ascending order"
        raise ValueError(msg)
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
    "_class_counts": _optional(_floats("n_classes")),
    "_class_freedoms": _optional(_floats("n_classes")),
    "_axis_scatters": _optional(_floats("n_axes")),
    "_between": _optional(_floats("n_metric")),
    "_stretches": _optional(_floats("n_metric")),
    "_off_variance": _optional(_NUMBER),
}
_ELLIPSOID = {
    "n_features_in_": _N_FEATURES,
    "classes_": _CLASSES,
    "open_label_": _LABEL,
    "offset_": _NUMBER,
    "class_offsets_": _optional(_measured("n_classes")),
    "groups_": _optional(_integers("n_samples")),
    "scale_": _NUMBER,
    "_mean": _floats("n_features"),
    "centroids_": _floats("n_classes", "n_features"),
    "centers_": _floats("n_classes", "n_features"),
    "radii_": _floats("n_classes"),
    "_centers": _floats("n_classes", "n_coordinates"),
    "_metric_axes": _or_none(_floats("n_features", "n_metric")),
    "_metric_products": _or_none(_floats("n_metric", "n_metric")),
    "_off_span": _NUMBER,
    "_labels": _floats("n_classes", "n_coordinates"),
    "_label_constants": _floats("n_classes"),
    "_axes": _floats("n_axes", "n_coordinates"),
    "_axis_weights": _floats("n_axes"),
    "_axis_starts": Rule("an array of integers", _is_array("iu"), ("n_classes + 1",)),
    "_residual_weights": _floats("n_classes"),
    "spherical_share_": _or_none(_NUMBER),
    "between_share_": _or_none(_NUMBER),
    "shrinkage_": _or_none(_NUMBER),
    "held_out_scores_": _or_none(_floats("n_held_out")),
    "n_iter_": _COUNT,
    "loss_curve_": _NUMBERS,
    "validation_scores_": _or_none(_NUMBERS),
    **_MOMENTS,
}
_ENCODER = {
    "classes_": _optional(_CLASSES),
    "weight_": _or_none(_floats("n_components", "width")),
    "bias_": _or_none(_floats("n_components")),
    "_width": replace(_COUNT, size="width"),
    "groups_": _optional(_integers("n_samples")),
    "n_iter_": Rule("an integer of at least 0", lambda value: value == 0 or _is_count(value)),
    "loss_curve_": _NUMBERS,
    "validation_scores_": _or_none(_NUMBERS),
    "training_data_sha256_": _optional(_TEXT),
    "_backbone": Rule("a text model", lambda value: isinstance(value, TextBackbone)),
}
_TUNED = {
    "estimator_": Rule("an estimator", lambda value: hasattr(value, "predict")),
    "classes_": _CLASSES,
    "open_label_": _LABEL,
    "cv_results_": Rule("a mapping of arrays", lambda value: isinstance(value, Mapping)),
    "n_features_in_": _optional(_N_FEATURES),
}
_VARIANCES = {name: _measured("n_components") for name in ("explained_variance_", "explained_variance_ratio_")}
_SVD = {
    "n_features_in_": _N_FEATURES,
    "components_": _measured("n_components", "n_features"),
    "singular_values_": _measured("n_components"),
    **_VARIANCES,
}
_PCA = {
    **_SVD,
    "mean_": _measured("n_features"),
    "noise_variance_": Rule("a number", lambda value: isinstance(value, Real)),
    "n_samples_": _COUNT,
    "n_components_": _COUNT,
    "_fit_svd_solver": _TEXT,
}
_SCALER = {
    "n_features_in_": _N_FEATURES,
    "mean_": _or_none(_measured("n_features")),
    "var_": _or_none(_measured("n_features")),
    "scale_": _or_none(_measured("n_features")),
    "n_samples_seen_": Rule("a number or an array", lambda value: _is_number(value) or _is_array("iuf")(value)),
}


class Kind(NamedTuple):
    """A class that can be saved."""

    cls: type
    state: dict[str, Rule]
    check: Callable[[Any, Sizes], None] | None = None


#: Nothing else is ever made from a saved model. Their fitted state was compared with scikit-learn 1.6.0 and 1.9.1.
KINDS: dict[str, Kind] = {
    kind.cls.__name__: kind
    for kind in (
        Kind(EllipsoidOpenSetClassifier, _ELLIPSOID, _check_ellipsoid),
        Kind(SupConTextEncoder, _ENCODER),
        Kind(TunedOperatingPointCV, _TUNED, _check_tuned),
        Kind(StandardScaler, _SCALER, _check_scaler),
        Kind(Normalizer, {"n_features_in_": _optional(_N_FEATURES)}),
        Kind(PCA, _PCA),
        Kind(TruncatedSVD, _SVD),
        Kind(FrozenEstimator, {}, _check_frozen),
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
    for attribute, rule in {**kind.state, **_SHARED}.items():
        if hasattr(estimator, attribute):
            rule.check(f"{attribute} {name}", getattr(estimator, attribute), sizes)
            if attribute == "classes_":
                sizes["n_classes + 1"] = sizes["n_classes"] + 1
        elif rule.required:
            msg = f"{attribute} {name} is missing"
            raise ValueError(msg)
    if kind.check is not None:
        try:
            kind.check(estimator, sizes)
        except ValueError as error:
            msg = f"{error} ({type(estimator).__name__})"
            raise ValueError(msg) from error
