"""A fitted classifier or Pipeline as one ONNX graph, for machines without torch."""

from .export import export_onnx

__all__ = ["export_onnx"]
