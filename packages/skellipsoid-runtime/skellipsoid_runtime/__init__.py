"""Answers of a model that ``skellipsoid.export_onnx`` wrote, without torch: NumPy, onnxruntime and tokenizers alone."""

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._pipeline import OnnxPipeline

__all__ = ["OnnxPipeline", "__version__"]


def __getattr__(name: str) -> Any:
    """Import onnxruntime only where it is used: the server's command answers to signals before."""
    if name != "OnnxPipeline":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._pipeline import OnnxPipeline

    return OnnxPipeline
