"""Opens a checked ONNX graph as a session of onnxruntime."""

from ._graph import check_graph
from ._onnxruntime import onnxruntime


def open_graph(graph: bytes, n_threads: int) -> onnxruntime.InferenceSession:
    """Open a graph, of the very bytes that were checked."""
    check_graph(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    # It would keep these bytes, a second copy of the weights, only for a change of providers.
    session._model_bytes = None
    return session
