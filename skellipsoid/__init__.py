"""Open-set classification for scikit-learn: one ellipsoid around each known class, open everywhere else."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._engine.common.imports import without_collection
from ._version import __version__

if TYPE_CHECKING:
    from . import baselines, benchmark, dask, datasets, metrics, model_selection, plotting
    from ._changes import add_classes, merge_classes, remove_classes, update_classes
    from ._compare import Comparison, compare
    from ._data_check import check_training_features, check_training_texts
    from ._discovery import DiscoveredClasses, discover_classes
    from ._elidecide import EliDecide
    from ._ellipsoid import EllipsoidOpenSetClassifier
    from ._encoder import SupConTextEncoder
    from ._explain import explain
    from ._llm_encoder import LLMTextEncoder
    from ._monitor import OpenShareMonitor
    from ._onnx import export_onnx
    from ._operating_point import TunedOperatingPointCV, set_operating_point
    from ._prompt import PromptOpenSetClassifier
    from ._traffic import estimate_open_share, predict_open_proba
    from .baselines._own_score import ScoreOpenSetClassifier
    from .persistence import load, save

__all__ = [
    "Comparison",
    "DiscoveredClasses",
    "EliDecide",
    "EllipsoidOpenSetClassifier",
    "LLMTextEncoder",
    "OpenShareMonitor",
    "PromptOpenSetClassifier",
    "ScoreOpenSetClassifier",
    "SupConTextEncoder",
    "TunedOperatingPointCV",
    "__version__",
    "add_classes",
    "baselines",
    "benchmark",
    "check_training_features",
    "check_training_texts",
    "compare",
    "dask",
    "datasets",
    "discover_classes",
    "estimate_open_share",
    "explain",
    "export_onnx",
    "load",
    "merge_classes",
    "metrics",
    "model_selection",
    "plotting",
    "predict_open_proba",
    "remove_classes",
    "save",
    "set_operating_point",
    "update_classes",
]

#: Modules that a name is imported from when it is first used: torch and scikit-learn take seconds to import.
_MODULE_OF = {
    "Comparison": "_compare",
    "DiscoveredClasses": "_discovery",
    "EliDecide": "_elidecide",
    "EllipsoidOpenSetClassifier": "_ellipsoid",
    "LLMTextEncoder": "_llm_encoder",
    "OpenShareMonitor": "_monitor",
    "PromptOpenSetClassifier": "_prompt",
    "ScoreOpenSetClassifier": "baselines._own_score",
    "SupConTextEncoder": "_encoder",
    "TunedOperatingPointCV": "_operating_point",
    "add_classes": "_changes",
    "check_training_features": "_data_check",
    "check_training_texts": "_data_check",
    "compare": "_compare",
    "discover_classes": "_discovery",
    "estimate_open_share": "_traffic",
    "explain": "_explain",
    "export_onnx": "_onnx",
    "load": "persistence",
    "merge_classes": "_changes",
    "predict_open_proba": "_traffic",
    "remove_classes": "_changes",
    "save": "persistence",
    "set_operating_point": "_operating_point",
    "update_classes": "_changes",
}
_MODULES = ("baselines", "benchmark", "dask", "datasets", "metrics", "model_selection", "persistence", "plotting")


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF and name not in _MODULES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    with without_collection():
        module = import_module(f".{_MODULE_OF.get(name, name)}", __name__)
    if name in _MODULES:
        return module
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
