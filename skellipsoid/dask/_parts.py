"""Partitions of a Dask collection, and errors that name the partition."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numpy as np

from skellipsoid_runtime._install import how_to_install

#: Kinds of collections.
Kind = Literal["array", "dataframe", "series", "bag"]


def require_dask(caller: str) -> None:
    """Raise an error if Dask is not installed."""
    try:
        import_module("dask.array")
        import_module("dask.dataframe")
    except ImportError as error:
        how = how_to_install("skellipsoid[dask]")
        raise ImportError(f"{caller} needs Dask ({error}); install it with {how}.") from error


def kind_of(collection: Any, name: str, instead: str) -> Kind:
    """Tell the kind of a Dask collection.

    Raises
    ------
    TypeError
        If it is not a Dask collection.
    """
    from dask.array import Array
    from dask.bag import Bag
    from dask.dataframe import DataFrame, Series

    kinds: dict[Any, Kind] = {Array: "array", DataFrame: "dataframe", Series: "series", Bag: "bag"}
    for of_kind, kind in kinds.items():
        if isinstance(collection, of_kind):
            return kind
    raise TypeError(
        f"{name} is a {type(collection).__name__}, but must be a Dask array, dataframe, series or bag; for data in "
        f"memory use {instead}."
    )


@contextmanager
def naming_partition(number: int) -> Iterator[None]:
    """Add the number of the partition to errors; their row numbers count from its first row."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"Partition {number}: {error}") from error


def delayed_parts(collection: Any) -> list[Any]:
    """List the partitions as delayed objects; an array is divided by rows alone."""
    import dask

    if hasattr(collection, "chunks"):
        whole = dict.fromkeys(range(1, collection.ndim), -1)
        collection = collection.rechunk(whole) if whole else collection
    # Without this, Dask would merge small partitions of a file when only one column is read.
    with dask.config.set({"optimization.tune.active": False}):
        parts = collection.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
