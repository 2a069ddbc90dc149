"""Containers of samples, texts, labels and numbers, and calls that pass everything in one of them."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch


@dataclass(frozen=True)
class Kind:
    """How samples, texts, labels and numbers are given; what a kind has no container of is given as an array."""

    name: str
    X: Callable[[np.ndarray], Any] = np.array
    texts: Callable[[list[str]], Any] = np.array
    labels: Callable[[np.ndarray], Any] = np.array
    numbers: Callable[[np.ndarray], Any] = np.array

    def __str__(self):
        return self.name


def as_column(values):
    return np.array(values)[:, np.newaxis]


def objects(rows):
    """An array of objects, one for each row."""
    column = np.empty(len(rows), dtype=object)
    column[:] = list(rows)
    return column


def named(X):
    return {f"x{i}": np.ascontiguousarray(column) for i, column in enumerate(X.T)}


def lists(X):
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def in_two(array):
    return pa.chunked_array([array[:2], array[2:]])


def chunks(values):
    return in_two(pa.array(values))


def coded(values):
    return pa.array(values).dictionary_encode()


def in_frame(frame):
    """What makes a frame of one column."""
    return lambda values: frame({"t": values})


ARRAYS = Kind("arrays")
KINDS = [
    Kind("lists", np.ndarray.tolist, list, np.ndarray.tolist, np.ndarray.tolist),
    Kind("tuples", lambda X: tuple(map(tuple, X.tolist())), tuple, tuple, tuple),
    Kind("objects", lambda X: X.astype(object), objects, objects, lambda values: values.astype(object)),
    Kind("masked arrays", np.ma.array, np.ma.array, np.ma.array, np.ma.array),
    Kind("columns", lambda X: objects(X)[:, np.newaxis], as_column, as_column),
    Kind("columns of objects", lambda X: objects(X.tolist()), lambda texts: objects(texts)[:, np.newaxis]),
    Kind(
        "NumPy strings",
        list,
        lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
        lambda labels: labels.astype(np.dtypes.StringDType() if labels.dtype.kind == "U" else labels.dtype),
    ),
    Kind("tensors", torch.tensor, numbers=torch.tensor),
    Kind("lists of tensors", lambda X: list(torch.tensor(X))),
    Kind("pandas", lambda X: pd.DataFrame(named(X)), pd.Series, pd.Series, pd.Series),
    Kind("pandas frames", lambda X: pd.DataFrame({"v": list(X)}), in_frame(pd.DataFrame), in_frame(pd.DataFrame)),
    Kind("pandas indices", lambda X: pd.Series(list(X), index=range(9, 9 + len(X))), pd.Index, pd.Index, pd.Index),
    Kind(
        "pandas with NA",
        lambda X: pd.DataFrame(named(X)).convert_dtypes(),
        lambda texts: pd.Series(texts, dtype="string"),
        lambda labels: pd.Series(labels).convert_dtypes(),
        lambda values: pd.Series(values, dtype="Float64"),
    ),
    Kind(
        "pandas of categories",
        lambda X: pd.DataFrame({"v": X.tolist()}),
        lambda texts: pd.DataFrame({"t": pd.Categorical(texts)}),
        pd.Categorical,
    ),
    Kind(
        "pandas by Arrow",
        lambda X: pd.DataFrame({"v": pd.arrays.ArrowExtensionArray(lists(X))}),
        lambda texts: pd.DataFrame({"t": pd.array(texts, dtype="string[pyarrow]")}),
        lambda labels: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(labels))),
        lambda values: pd.Series(values, dtype="double[pyarrow]"),
    ),
    Kind("polars", lambda X: pl.DataFrame(named(X)), pl.Series, pl.Series, pl.Series),
    Kind("polars frames", lambda X: pl.DataFrame({"v": X.tolist()}), in_frame(pl.DataFrame), in_frame(pl.DataFrame)),
    Kind(
        "polars of categories",
        lambda X: pl.Series(X, dtype=pl.Array(pl.Float64, X.shape[1])),
        lambda texts: pl.Series(texts, dtype=pl.Categorical),
        lambda labels: pl.Series(labels, dtype=pl.Categorical if labels.dtype.kind == "U" else None),
    ),
    Kind(
        "polars of lists",
        lambda X: pl.Series(X.tolist()),
        lambda texts: pl.DataFrame({"t": pl.Series(texts, dtype=pl.Categorical)}),
        lambda labels: pl.Series(labels, dtype=pl.Enum(np.unique(labels)) if labels.dtype.kind == "U" else None),
    ),
    Kind("arrow", lambda X: pa.table(named(X)), pa.array, pa.array, pa.array),
    Kind("arrow batches", lambda X: pa.record_batch(named(X)), in_frame(pa.record_batch), in_frame(pa.table)),
    Kind("arrow in chunks", lambda X: in_two(lists(X)), chunks, chunks, chunks),
    Kind("arrow dictionaries", lists, coded, coded),
    Kind("arrow lists", lambda X: pa.array(X.tolist()), lambda texts: pa.array(texts, pa.large_string())),
    Kind("arrow tables", lambda X: pa.table({"v": lists(X)}), in_frame(pa.table)),
]


#: Parameters that take data, and which container of a kind holds them: ``X`` is for samples, texts too.
PARAMETERS = {
    **dict.fromkeys(["X", "X_val", "reference", "scores"], "X"),
    **dict.fromkeys(["y", "y_val", "y_true", "y_pred", "y_pred_known", "labels", "groups", "stratify"], "labels"),
    **dict.fromkeys(["sample_weight", "score", "scores_a", "scores_b", "p_values"], "numbers"),
    "texts": "texts",
}
#: Methods that are called otherwise: the last two by the base class, with arrays.
_NOT_CALLED = {"fit", "fit_scores", "class_scores"}


def data_parameters(function):
    """Parameters of a function that take data."""
    return [name for name in inspect.signature(function).parameters if name in PARAMETERS]


def data_methods(owner):
    """Public methods of a class or an object that take data of users, by their names."""
    found = inspect.getmembers(owner, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    public = [(name, method) for name, method in found if name[0] != "_" and not name.endswith("_request")]
    return {name: method for name, method in public if data_parameters(method)}


class Given:
    """Data in the containers of a kind, and other arguments: ``given(function)`` calls it with all that it takes.

    Parameters
    ----------
    kind : Kind
    data : mapping
        Arrays and texts by the names of parameters: under ``"fit"``, under ``"after"``, and under the names of methods.
    container : {"X", "texts"}
        What samples are.
    **models : dict
        Arguments that are no data.
    """

    def __init__(self, kind, data, container="X", **models):
        self.kind, self.data, self.container, self.models = kind, data, container, models

    def __call__(self, function, stage="after", **more):
        values = self.data[stage] | self.data.get(getattr(function, "__name__", ""), {})
        for name in inspect.signature(function).parameters:
            if name in self.models:
                more.setdefault(name, copy.deepcopy(self.models[name]))
            elif name in PARAMETERS and name in values:
                container = PARAMETERS[name]
                more[name] = getattr(self.kind, self.container if container == "X" else container)(values[name])
        return function(**more)

    def methods(self, owner):
        """Results of all methods that take data of users, but of ``fit``."""
        return {
            name: self.shown(self(method)) for name, method in data_methods(owner).items() if name not in _NOT_CALLED
        }

    def shown(self, found):
        """What is compared of a result."""
        if inspect.isgenerator(found):
            return list(found)
        if hasattr(found, "predict"):
            return self(found.predict), self(found.score_samples)
        if hasattr(found, "__dict__") and not isinstance(found, np.ndarray | dict | tuple):
            drawn = "_" if hasattr(found, "ax_") else "no name"
            kept = {name: value for name, value in vars(found).items() if not name.endswith(drawn)}
            return {name: value for name, value in kept.items() if isinstance(value, np.ndarray | float | dict)}
        return found


def assert_same(found, wanted, where="result"):
    """Compare results of any depth: numbers up to rounding, the rest exactly."""
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys(), where
        for name, value in wanted.items():
            assert_same(found[name], value, f"{where}[{name!r}]")
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), where
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(wanted, float | np.floating) or getattr(getattr(wanted, "dtype", None), "kind", "") == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9, err_msg=where)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=where)
