"""A text model in 8-bit integers, and the size of the boundaries for what it computes."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._encoders.torch.backbone import TextBackbone, in_pieces
from .._torch.devices import PROCESS_STATE
from .._torch.progress import quiet_libraries

Floats = NDArray[np.floating]


@contextmanager
def quiet_onnx() -> Iterator[None]:
    """Silence what the exporter and the quantiser say about themselves, and keep them from setting up logging."""
    root = logging.getLogger()
    loggers = {logger: logger.level for logger in map(logging.getLogger, ("torch.onnx", "onnxscript", "onnx_ir"))}
    handler = logging.NullHandler()
    with PROCESS_STATE, quiet_libraries(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            root.addHandler(handler)
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            root.removeHandler(handler)
            for logger, level in loggers.items():
                logger.setLevel(level)


def quantized(content: bytes, scope: str) -> bytes:
    """Give a graph whose matrix products in a module, by constant weights, are of 8-bit integers.

    Weights have a scale for each column, and vectors one for each product, found as they come.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load_from_string(content)
    model.metadata_props.add(
        key="onnx.quant.pre_process", value="onnxruntime.quant"
    )  # it is: the exporter folds constants
    weights = {tensor.name for tensor in model.graph.initializer}
    names = []
    for node in model.graph.node:
        scopes = {entry.key: entry.value for entry in node.metadata_props}.get("pkg.torch.onnx.name_scopes", "")
        if node.op_type == "MatMul" and scope in scopes and node.input[1] in weights:
            names.append(node.name)
    with quiet_onnx(), TemporaryDirectory() as folder:
        path = Path(folder) / "quantized.onnx"
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_quantize=names,
        )
        return path.read_bytes()


def answers_of(content: bytes, backbone: TextBackbone, texts: list[str]) -> tuple[Floats, Floats]:
    """Scores (n_texts,) and features (n_texts, n_features) that a graph gives for texts."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        inputs = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        return torch.from_numpy(np.column_stack(session.run(["score", "features"], inputs)))

    found = in_pieces(backbone.table(backbone.tokenize(texts)), np.arange(len(texts)), forward).numpy()
    return found[:, 0], found[:, 1:]


def growth_of(before: Floats, after: Floats) -> float:
    """By how much squared relative distances grow, from the margins of the same texts: noise adds to them."""
    change = np.square(1 - after.astype(np.float64)) - np.square(1 - before.astype(np.float64))
    return max(float(np.median(change)), -0.5)


def grown(margins: Floats, growth: float) -> NDArray[np.float64]:
    """Margins after the squared distances, and the squared radii, have grown."""
    return np.asarray(1 - np.sqrt(np.maximum(np.square(1 - margins) + growth, 0) / (1 + growth)))


def with_affine(content: bytes, outputs: list[str], factor: float, shift: float) -> bytes:
    """Multiply outputs of a graph by a number and add another; what is compared with a limit is the new number."""
    import onnx

    model: Any = onnx.load_from_string(content)
    graph = model.graph
    for name, value in (("factor", factor), ("shift", shift)):
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, dtype=np.float32), f"quantized_{name}"))
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "Less":  # or a score that is taken from the margins would change twice
            for place, name in enumerate(node.input):
                node.input[place] = f"{name}_before" if name in outputs else name
        for place, name in enumerate(node.output):
            if name in outputs:
                node.output[place] = f"{name}_before"
                scaled = f"{name}_scaled"
                nodes.append(onnx.helper.make_node("Mul", [node.output[place], "quantized_factor"], [scaled]))
                nodes.append(onnx.helper.make_node("Add", [scaled, "quantized_shift"], [name]))
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())
