"""Checks an ONNX graph: it may hold operators alone, without loops, functions and files beside it.

Read off the bytes of ``model.onnx``, whose format is that of protocol buffers: fields, each with its number and its
kind. The numbers are those of ``onnx.proto``.
"""

from collections.abc import Iterator

_GRAPH, _NODE, _INITIALIZER, _OP_TYPE, _ATTRIBUTE, _DOMAIN, _TENSOR, _DATA_LOCATION = 7, 1, 5, 4, 5, 7, 5, 14
#: Fields that each message may have; others hold functions, training, graphs in graphs, sparse or external tensors.
_MODEL_FIELDS = {1, 2, 3, 4, 5, 6, _GRAPH, 8, 14}
_GRAPH_FIELDS = {_NODE, 2, _INITIALIZER, 10, 11, 12, 13, 14, 16}
_NODE_FIELDS = {1, 2, 3, _OP_TYPE, _ATTRIBUTE, 6, _DOMAIN, 8, 9}
_ATTRIBUTE_FIELDS = {1, 2, 3, 4, _TENSOR, 7, 8, 9, 13, 20}
_TENSOR_FIELDS = {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, _DATA_LOCATION, 16}
#: Operators of other domains are not those of ONNX.
_DOMAINS = {b"", b"ai.onnx"}


def check_graph(content: bytes) -> None:
    """Raise an error over a graph that could run for ever, call code, or read other files.

    Raises
    ------
    ValueError
        If it holds control flow, functions, operators of another domain, or tensors in other files, or is damaged.
    """
    for number, part in _fields(memoryview(content), _MODEL_FIELDS, "a model"):
        if number == _GRAPH:
            _check_graph(part)


def _check_graph(graph: memoryview) -> None:
    for number, part in _fields(graph, _GRAPH_FIELDS, "a graph"):
        if number == _NODE:
            _check_node(part)
        elif number == _INITIALIZER:
            _check_tensor(part)


def _check_node(node: memoryview) -> None:
    parts = list(_fields(node, _NODE_FIELDS, "an operator"))
    name = next((bytes(part).decode(errors="replace") for number, part in parts if number == _OP_TYPE), "")
    if any(number == _DOMAIN and bytes(part) not in _DOMAINS for number, part in parts):
        raise ValueError(f"the graph has the operator {name[:80]!r} of another domain, which export_onnx never writes")
    for number, part in parts:
        for inner, value in _fields(part, _ATTRIBUTE_FIELDS, f"{name[:80]!r}") if number == _ATTRIBUTE else ():
            if inner == _TENSOR:
                _check_tensor(value)


def _check_tensor(tensor: memoryview) -> None:
    for number, part in _fields(tensor, _TENSOR_FIELDS, "a tensor"):
        if number == _DATA_LOCATION and bytes(part) != b"\0":
            raise ValueError("the graph has weights in another file, which export_onnx never writes")


def _fields(message: memoryview, allowed: set[int], what: str) -> Iterator[tuple[int, memoryview]]:
    """Give the number and the content of each field of a message, of which others than those allowed are refused."""
    place = 0
    while place < len(message):
        key, place = _number(message, place)
        kind, start = key & 7, place
        if key >> 3 not in allowed:
            raise ValueError(f"{what} has the field {key >> 3} of onnx.proto, which export_onnx never writes")
        if kind == 0:
            _, place = _number(message, place)
        elif kind == 2:
            length, start = _number(message, place)
            place = start + length
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            raise ValueError("the graph is no ONNX")
        if place > len(message):
            raise ValueError("the graph is cut off")
        yield key >> 3, message[start:place]


def _number(message: memoryview, place: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, and the place after it."""
    found = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        found |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return found, place
    raise ValueError("the graph is cut off")
