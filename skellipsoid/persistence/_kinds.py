"""The classes that can be saved, and the rules for their fitted state.

Classes of this package declare their fitted state in ``_state`` and ``_check_state``; that of scikit-learn's classes is
here. Another package registers classes by entry points of the group ``skellipsoid.estimators``. A saved model cannot
name any other class.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from numbers import Real
from typing import Any, NamedTuple

from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import Normalizer, StandardScaler

from skellipsoid_runtime._install import how_to_install

from .. import baselines
from .._core.state_rules import (
    COUNT,
    N_FEATURES,
    TEXT,
    Record,
    Rule,
    Sizes,
    check_open_label,
    is_array,
    is_number,
    measured,
    optional,
    or_none,
)
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._ellipsoid.elidecide import EliDecide
from .._encoders.supcon import SupConTextEncoder
from .._held_out.state import check_held_out
from .._traffic.monitor import OpenShareMonitor
from .._traffic.operating_point import TunedOperatingPointCV
from ..model_selection import KnownClassSplit, OpenSetKFold, OpenSetShuffleSplit, RealOpenKFold


class SavedClass(NamedTuple):
    """A class that can be saved."""

    cls: type
    state: Mapping[str, Rule | Record]
    check: Callable[[Any, Sizes], None] | None = None


def _is_output_config(value: Any) -> bool:
    # Stored by set_output; scikit-learn checks it only in transform.
    return isinstance(value, dict) and value.get("transform") in ("default", "pandas", "polars") and len(value) == 1


#: Attributes that an estimator may have besides those of its class.
_SHARED = {
    "feature_names_in_": optional(Rule("an array of strings", is_array("OUT"), ("n_features",))),
    "_sklearn_output_config": optional(Rule("'default', 'pandas' or 'polars' for 'transform'", _is_output_config)),
}


def _check_frozen(frozen: FrozenEstimator, sizes: Sizes) -> None:
    if vars(frozen).keys() != {"estimator"}:
        raise ValueError(f"it holds {sorted(vars(frozen).keys() - {'estimator'})}")


def _check_scaler(scaler: StandardScaler, sizes: Sizes) -> None:
    for parameter, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(scaler, parameter) and getattr(scaler, name) is None:
            raise ValueError(f"{name} is null, but must be an array with {parameter}=True")


_SVD = {
    "n_features_in_": N_FEATURES,
    "components_": measured("n_components", "n_features"),
    **dict.fromkeys(("singular_values_", "explained_variance_", "explained_variance_ratio_"), measured("n_components")),
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
    **dict.fromkeys(("mean_", "var_", "scale_"), or_none(measured("n_features"))),
    "n_samples_seen_": Rule("a number or an array", lambda value: is_number(value) or is_array("iuf")(value)),
}


def _own(cls: Any) -> SavedClass:
    return SavedClass(cls, cls._state, getattr(cls, "_check_state", None))


_OWN: list[Any] = [
    *(EllipsoidOpenSetClassifier, SupConTextEncoder, TunedOperatingPointCV, OpenShareMonitor),
    *(getattr(baselines, name) for name in baselines.__all__),
]
#: Estimators whose parameter is a fitted estimator.
HOLD_FITTED = (FrozenEstimator, OpenShareMonitor)
#: Only these and registered classes are created from a saved model. The state of scikit-learn's classes was compared
#: with versions 1.6.0 and 1.9.1.
KINDS: dict[str, SavedClass] = {
    kind.cls.__name__: kind
    for kind in (
        SavedClass(EliDecide, {}),
        SavedClass(StandardScaler, _SCALER, _check_scaler),
        SavedClass(Normalizer, {"n_features_in_": optional(N_FEATURES)}),
        SavedClass(PCA, _PCA),
        SavedClass(TruncatedSVD, _SVD),
        SavedClass(FrozenEstimator, {}, _check_frozen),
        *map(_own, _OWN),
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


#: Group of the entry points by which other packages register classes, each under its own name.
_GROUP = "skellipsoid.estimators"
#: Classes of the package skellipsoid-bench.
_OF_BENCH = {
    *("ADBClassifier", "CLABClassifier", "CLABTextEncoder", "CrossEntropyTextEncoder", "DAADBTextEncoder"),
    *("DEClassifier", "DOCClassifier", "KNNCLTextEncoder", "MOGBClassifier", "MOGBTextEncoder", "OpenMaxClassifier"),
}


class NotInstalledError(ImportError):
    """A saved estimator belongs to a package that is not installed."""


def kind_of(name: str) -> SavedClass:
    """Look up a class that can be saved.

    Raises
    ------
    KeyError
        If there is no such class.
    NotInstalledError
        If it belongs to a package that is not installed.
    """
    found = KINDS if name in KINDS else _registered()
    if name not in found and name in _OF_BENCH:
        raise NotInstalledError(
            f"{name} is a class of the package skellipsoid-bench, which is not installed; install it "
            f"({how_to_install('skellipsoid-bench')})."
        )
    return found[name]


@cache
def _registered() -> dict[str, SavedClass]:
    """Classes that installed packages register."""
    classes: list[Any] = [entry.load() for entry in entry_points(group=_GROUP)]
    return {cls.__name__: _own(cls) for cls in classes}


def rules_of(estimator: Any) -> dict[str, Rule | Record]:
    """Rules of all fitted attributes that an estimator may have."""
    return {**kind_of(type(estimator).__name__).state, **_SHARED}


def check_state(estimator: Any) -> None:
    """Raise an error if a fitted attribute is missing or invalid for scoring."""
    kind = kind_of(type(estimator).__name__)
    name = f"of the {type(estimator).__name__}"
    sizes: Sizes = {}
    rules = rules_of(estimator)
    for attribute, rule in rules.items():
        if hasattr(estimator, attribute):
            rule.check(f"{attribute} {name}", getattr(estimator, attribute), sizes)
            if attribute == "classes_":
                sizes["n_classes + 1"] = sizes["n_classes"] + 1
        elif rule.required:
            raise ValueError(f"{attribute} {name} is missing")
    try:
        if "open_label_" in rules:
            check_open_label(estimator)
            check_held_out(estimator, sizes)
        if kind.check is not None:
            kind.check(estimator, sizes)
    except ValueError as error:
        raise ValueError(f"{error} ({type(estimator).__name__})") from error
