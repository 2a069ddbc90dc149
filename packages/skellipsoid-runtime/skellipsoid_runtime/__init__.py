"""Predictions of a model that ``skellipsoid.export_onnx`` wrote, without torch: NumPy, onnxruntime and tokenizers.

What ``skellipsoid`` imports from here needs NumPy alone: checks of texts and vectors (``_containers``), p-values and
actions by scores (``_answers``), the hub (``_hub``), how to install extras (``_install``), bounds of a tokenizer
(``_rule_limits``).
"""

from typing import TYPE_CHECKING, Any

from ._install import how_to_install
from ._version import __version__

if TYPE_CHECKING:
    from ._pipeline import OnnxPipeline

__all__ = ["OnnxPipeline", "__version__"]


def __getattr__(name: str) -> Any:
    """Import onnxruntime only where it is used: the server's command answers to signals before."""
    if name != "OnnxPipeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from ._pipeline import OnnxPipeline
    except ModuleNotFoundError as error:
        if error.name not in ("onnxruntime", "tokenizers"):
            raise
        raise ImportError(
            f"{name} needs the package {error.name}, which is not installed: "
            f"{how_to_install('skellipsoid-runtime[onnx]')}."
        ) from error

    return OnnxPipeline
