"""Texts, columns and vectors of any container, as lists and arrays: NumPy alone."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def in_memory(values: Any, name: str) -> Any:
    """Give a torch tensor of any device as an array, everything else as it is.

    Raises
    ------
    ValueError
        If ``values``, which messages call ``name``, are not computed yet: a lazy frame, a Dask collection.
    """
    package = type(values).__module__.partition(".")[0]
    if package == "dask" or (hasattr(values, "collect") and not hasattr(values, "__len__")):
        remedy = "compute() first, or use skellipsoid.dask" if package == "dask" else "collect() first"
        raise ValueError(f"{name} is a {package} {type(values).__name__}, but must be in memory; call its {remedy}.")
    return to_numpy(values)


def to_numpy(values: Any) -> Any:
    """Convert a torch tensor of any device and type to NumPy; return everything else unchanged.

    It imports no torch: where nobody has imported it, nothing is a tensor.
    """
    torch: Any = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())
    if not isinstance(values, tensor):
        return values
    values = values.detach().cpu()
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    return values.resolve_conj().resolve_neg().numpy()


def only_column(values: Any, name: str) -> Any:
    """Give a frame, table or array of one column as that column, (n_rows,), and everything else as it is."""
    values = in_memory(values, name)
    if not hasattr(values, "__array__"):  # of scikit-learn's and the like, or sparse
        return values
    found = np.asanyarray(values)
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def stack_vectors(X: Any) -> Any:
    """Give a column of vectors, or a list of them, as the matrix of its rows, and everything else as it is.

    Raises
    ------
    ValueError
        If the vectors have different lengths, or a row has none.
    """
    rows = X
    if not isinstance(X, list | tuple):
        if not hasattr(X, "__array__") or getattr(X, "shape", (0,))[1:] not in ((), (1,)):
            return X  # a wide table is not converted to be looked at
        rows = only_column(X, "X")
        if rows.ndim > 1:  # what NumPy makes of a polars column of arrays
            return rows
        if rows.ndim < 1 or rows.dtype.kind != "O":
            return X
    lengths = [len(row) if _is_vector(row) else None for row in rows]
    length = next(filter(None, lengths), None)
    for i, found in enumerate(lengths):
        if length not in (None, found):
            raise ValueError(
                f"X is a column of vectors, of {length} numbers in row {lengths.index(length)}, but row {i} holds "
                f"{f'{rows[i]!r:.80}' if found is None else f'one of {found}'}; pass vectors of one length, and drop "
                "rows without one."
            )
    return X if length is None else np.asarray([to_numpy(row) for row in rows])


def _is_vector(row: Any) -> bool:
    return isinstance(row, list | tuple) or (hasattr(row, "__array__") and getattr(row, "ndim", 0) > 0)


def check_texts(X: Any, name: str = "X") -> list[str]:
    """Check that ``X``, which messages call ``name``, is a non-empty sequence of strings, and give it as a list.

    A frame, table or array of one column is that column.

    Raises
    ------
    ValueError
        One sentence that names what was found and what to pass.
    """
    if isinstance(X, str | bytes):
        raise ValueError(  # noqa: TRY004 - the contract of all input errors here
            f"{name} is one {type(X).__name__}, but must be a sequence of strings; pass [text] for a single text."
        )
    X = only_column(X, name)
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(
            f"{name} has the shape {tuple(shape)}, but texts must be one-dimensional; pass one column, such as "
            f"{name}['text']."
        )
    if isinstance(X, Mapping):
        raise ValueError(  # noqa: TRY004
            f"{name} is a {type(X).__name__}, but must be a sequence of strings; of lists of texts by their label take "
            f"[text for texts in {name}.values() for text in texts] as texts, and [label for label, texts in "
            f"{name}.items() for text in texts] as labels."
        )
    if shape is None and not isinstance(X, Sequence):
        raise ValueError(
            f"{name} is a {type(X).__name__}, but must be a list, tuple, array or Series of strings; pass list({name})."
        )
    texts = list(X)
    if not texts:
        raise ValueError(f"{name} is empty, but must hold at least one text; check how the texts were selected.")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(  # noqa: TRY004
                f"{name}[{position}] is {text!r} of type {type(text).__name__}, but every text must be a str; "
                f"drop or fill missing texts and decode bytes first{of_pandas(text, 'texts')}."
            )
        if not is_unicode(text):
            raise ValueError(
                f"{name}[{position}] is {text[:80]!r}, which holds half of a character (a lone surrogate) and is no "
                'valid Unicode; decode it correctly, or replace it with text.encode("utf-8", "replace").decode().'
            )
    # Plain str: NumPy's subclass is refused by fast tokenisers.
    return [str(text) for text in texts]


def is_unicode(text: str) -> bool:
    """Whether a string has a form in bytes: it holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, masked, ``pandas.NA`` or ``pandas.NaT``."""
    try:
        return value is None or value is np.ma.masked or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array has one truth value per entry
        return False


def of_pandas(value: Any, what: str) -> str:
    """Name the remedy for what pandas reads as missing, although it is a text or a name; else nothing."""
    is_of_pandas = value is not None and value is not np.ma.masked and is_missing(value)
    remedy = f", or read the file with keep_default_na=False if pandas made it of {what} such as 'None' or 'NA'"
    return remedy if is_of_pandas else ""
