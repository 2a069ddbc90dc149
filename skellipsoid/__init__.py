"""Open-set classification for scikit-learn: one ellipsoid around each known class, open everywhere else."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import baselines, dask, datasets, metrics, model_selection, plotting, utils
    from ._data_check.duplicate_groups import find_duplicates
    from ._data_check.feature_check import check_training_features
    from ._data_check.text_check import check_training_texts
    from ._ellipsoid.changes.classes import add_classes, merge_classes, refresh, remove_classes
    from ._ellipsoid.classifier import EllipsoidOpenSetClassifier
    from ._ellipsoid.elidecide import EliDecide
    from ._encoders.supcon import SupConTextEncoder
    from ._onnx.export import export_onnx
    from ._traffic.compare import Comparison, compare
    from ._traffic.discovery import DiscoveredClasses, discover_classes
    from ._traffic.explain import explain
    from ._traffic.forecast import forecast_answers
    from ._traffic.learning import choose_to_label, learn_from_traffic
    from ._traffic.monitor import OpenShareMonitor
    from ._traffic.operating_point import TunedOperatingPointCV, set_operating_point
    from ._traffic.predict_set import predict_set
    from ._traffic.proba import predict_open_proba
    from ._traffic.share import estimate_open_share
    from .baselines._own_score import ScoreOpenSetClassifier
    from .persistence import load, push_to_hub, save

__all__ = [
    "Comparison",
    "DiscoveredClasses",
    "EliDecide",
    "EllipsoidOpenSetClassifier",
    "OpenShareMonitor",
    "ScoreOpenSetClassifier",
    "SupConTextEncoder",
    "TunedOperatingPointCV",
    "__version__",
    "add_classes",
    "baselines",
    "check_training_features",
    "check_training_texts",
    "choose_to_label",
    "compare",
    "dask",
    "datasets",
    "discover_classes",
    "estimate_open_share",
    "explain",
    "export_onnx",
    "find_duplicates",
    "forecast_answers",
    "learn_from_traffic",
    "load",
    "merge_classes",
    "metrics",
    "model_selection",
    "plotting",
    "predict_open_proba",
    "predict_set",
    "push_to_hub",
    "refresh",
    "remove_classes",
    "save",
    "set_operating_point",
    "utils",
]

#: Modules that a name is imported from when it is first used: torch and scikit-learn take seconds to import.
_MODULE_OF = {
    "Comparison": "_traffic.compare",
    "DiscoveredClasses": "_traffic.discovery",
    "EliDecide": "_ellipsoid.elidecide",
    "EllipsoidOpenSetClassifier": "_ellipsoid.classifier",
    "OpenShareMonitor": "_traffic.monitor",
    "ScoreOpenSetClassifier": "baselines._own_score",
    "SupConTextEncoder": "_encoders.supcon",
    "TunedOperatingPointCV": "_traffic.operating_point",
    "add_classes": "_ellipsoid.changes.classes",
    "check_training_features": "_data_check.feature_check",
    "check_training_texts": "_data_check.text_check",
    "choose_to_label": "_traffic.learning",
    "compare": "_traffic.compare",
    "discover_classes": "_traffic.discovery",
    "estimate_open_share": "_traffic.share",
    "explain": "_traffic.explain",
    "export_onnx": "_onnx.export",
    "find_duplicates": "_data_check.duplicate_groups",
    "forecast_answers": "_traffic.forecast",
    "learn_from_traffic": "_traffic.learning",
    "load": "persistence",
    "merge_classes": "_ellipsoid.changes.classes",
    "predict_open_proba": "_traffic.proba",
    "predict_set": "_traffic.predict_set",
    "push_to_hub": "persistence",
    "refresh": "_ellipsoid.changes.classes",
    "remove_classes": "_ellipsoid.changes.classes",
    "save": "persistence",
    "set_operating_point": "_traffic.operating_point",
}
_MODULES = ("baselines", "dask", "datasets", "metrics", "model_selection", "persistence", "plotting", "utils")


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULE_OF.get(name, name)}", __name__)
    if name in _MODULES:
        return module
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
