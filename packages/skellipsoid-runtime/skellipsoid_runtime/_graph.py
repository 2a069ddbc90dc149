"""What a graph may hold: operators alone, without loops, functions, and files beside it.

Read off the bytes of ``model.onnx``, whose format is that of protocol buffers: fields, each with its number and its
kind. The numbers are those of ``onnx.proto``.
"""

from collections.abc import Iterator

#: Fields of a ModelProto, a GraphProto, a NodeProto, an AttributeProto and a TensorProto.
_GRAPH, _FUNCTIONS = 7, 25
_NODE, _INITIALIZER, _SPARSE = 1, 5, 15
_OP_TYPE, _ATTRIBUTE, _DOMAIN = 4, 5, 7
_SUBGRAPH, _SUBGRAPHS, _TENSOR = 6, 11, 5
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
#: Operators of other domains are not those of ONNX.
_DOMAINS = {b"", b"ai.onnx"}


def check_graph(content: bytes) -> None:
    """Raise an error over a graph that could run for ever, call code, or read other files.

    Raises
    ------
    ValueError
        If it holds control flow, functions, operators of another domain, or tensors in other files, or is damaged.
    """
    view = memoryview(content)
    for number, part in _fields(view):
        if number == _FUNCTIONS:
            raise ValueError("the graph has functions, which export_onnx never writes")
        if number == _GRAPH:
            _check_graph(part)


def _check_graph(graph: memoryview) -> None:
    for number, part in _fields(graph):
        if number == _NODE:
            _check_node(part)
        elif number == _INITIALIZER:
            _check_tensor(part)
        elif number == _SPARSE:
            raise ValueError("the graph has sparse tensors, which export_onnx never writes")


def _check_node(node: memoryview) -> None:
    parts = list(_fields(node))
    name = next((bytes(part).decode(errors="replace") for number, part in parts if number == _OP_TYPE), "")
    if any(number == _DOMAIN and bytes(part) not in _DOMAINS for number, part in parts):
        raise ValueError(f"the graph has the operator {name[:80]!r} of another domain, which export_onnx never writes")
    for number, part in parts:
        for inner, value in _fields(part) if number == _ATTRIBUTE else ():
            if inner in (_SUBGRAPH, _SUBGRAPHS):
                raise ValueError(f"the graph has the operator {name[:80]!r}, which could run for ever")
            if inner == _TENSOR:
                _check_tensor(value)


def _check_tensor(tensor: memoryview) -> None:
    for number, part in _fields(tensor):
        if number == _EXTERNAL_DATA or (number == _DATA_LOCATION and bytes(part) != b"\0"):
            raise ValueError("the graph has weights in another file, which export_onnx never writes")


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Give the number and the content of each field of a message."""
    place = 0
    while place < len(message):
        key, place = _number(message, place)
        kind, start = key & 7, place
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
