"""Answers of a model that ``skellipsoid.export_onnx`` wrote, without torch: NumPy, onnxruntime and tokenizers alone."""

from ._pipeline import OnnxPipeline
from ._version import __version__

__all__ = ["OnnxPipeline", "__version__"]
