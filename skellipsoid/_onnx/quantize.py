"""INT8 quantization of an embedding model, and recalibration of the boundaries for its features."""

import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._encoders.torch.backbone import TextBackbone, in_pieces
from .._torch import machine
from .._torch.devices import PROCESS_STATE
from .._torch.progress import quiet_libraries

Floats = NDArray[np.floating]
#: Largest relative error of a matrix product in INT8. Of all-MiniLM-L6-v2 no product loses more than 0.18; of
#: all-mpnet-base-v2, five lose 0.38 or more and the others at most 0.11.
_MOST_LOSS = 0.25
#: Approximate number of training texts on which errors are measured.
_N_MEASURED = 16


@contextmanager
def quiet_onnx() -> Iterator[None]:
    """Silence the exporter and the quantiser, and keep them from configuring logging."""
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


def import_onnxruntime() -> None:
    """Import onnxruntime without its telemetry, while no other thread changes the environment."""
    with PROCESS_STATE:
        importlib.import_module("skellipsoid_runtime._onnxruntime")


def quantized(content: bytes, scope: str, backbone: TextBackbone, texts: list[str]) -> bytes:
    """Quantise a graph's matrix products by constant weights in a module to 8-bit integers.

    Weights have a scale for each column, and vectors one for each product (dynamic). Products with too large an error,
    because a few large values set the scale, are not quantised.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load_from_string(content)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    products = {}
    for node in model.graph.node:
        scopes = {entry.key: entry.value for entry in node.metadata_props}.get("pkg.torch.onnx.name_scopes", "")
        if node.op_type == "MatMul" and scope in scopes and node.input[1] in weights:
            products[node.name] = (node.input[0], onnx.numpy_helper.to_array(weights[node.input[1]]))
    losses = _losses(model, products, backbone.tokenize(texts[:: -(-len(texts) // _N_MEASURED)]))
    names = [name for name, loss in losses.items() if loss <= _MOST_LOSS]
    if not names:  # the quantiser would quantise all
        return content
    model.metadata_props.add(
        key="onnx.quant.pre_process", value="onnxruntime.quant"
    )  # it is: the exporter folds constants
    with quiet_onnx(), machine.scratch_folder() as folder:
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


def _losses(model: Any, products: dict[str, tuple[str, Floats]], tokens: list[list[int]]) -> dict[str, float]:
    """Relative error of each product if its vectors are rounded to 8 bits, the median over tokens and over texts."""
    import onnx

    inputs = list(dict.fromkeys(name for name, _ in products.values()))
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in inputs]
    n_before = len(model.graph.output)
    model.graph.output.extend(outputs)
    session = _session(model.SerializeToString())
    del model.graph.output[n_before:]
    losses: dict[str, list[float]] = {name: [] for name in products}
    for ids in tokens:
        given = np.array([ids])
        values = session.run(inputs, {"input_ids": given, "attention_mask": np.ones_like(given)})
        found = dict(zip(inputs, values, strict=True))
        for name, (vectors, weights) in products.items():
            exact = found[vectors]
            step = (max(exact.max(), 0) - min(exact.min(), 0)) / 255 or 1.0
            error = np.rint(exact / step) * step - exact
            lengths = np.linalg.norm(exact @ weights, axis=-1)
            shares = np.linalg.norm(error @ weights, axis=-1) / np.where(lengths > 0, lengths, 1)
            losses[name].append(float(np.median(shares)))
    return {name: float(np.median(own)) for name, own in losses.items()}


def _session(content: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def outputs_of(content: bytes, backbone: TextBackbone, texts: list[str]) -> tuple[Floats, Floats]:
    """Scores (n_texts,) and features (n_texts, n_features) that a graph gives for texts."""
    session = _session(content)

    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        inputs = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        return torch.from_numpy(np.column_stack(session.run(["score", "features"], inputs)))

    found = in_pieces(backbone.table(backbone.tokenize(texts)), np.arange(len(texts)), forward).numpy()
    return found[:, 0], found[:, 1:]


def growth_of(before: Floats, after: Floats) -> float:
    """Median growth of squared relative distances, from the margins of the same texts before and after."""
    change = np.square(1 - after.astype(np.float64)) - np.square(1 - before.astype(np.float64))
    return max(float(np.median(change)), -0.5)


def grown(margins: Floats, growth: float) -> NDArray[np.float64]:
    """Margins after growth of the squared distances and squared radii."""
    return np.asarray(1 - np.sqrt(np.maximum(np.square(1 - margins) + growth, 0) / (1 + growth)))


def with_affine(content: bytes, outputs: list[str], factor: float, shift: float) -> bytes:
    """Transform outputs of a graph to factor · x + shift; the threshold is compared with the result."""
    import onnx

    model: Any = onnx.load_from_string(content)
    graph = model.graph
    for name, value in (("factor", factor), ("shift", shift)):
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, dtype=np.float32), f"quantized_{name}"))
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "Less":  # else a score that is taken from the margins would change twice
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
