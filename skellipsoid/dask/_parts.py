"""Dask collections by their partitions: which there are, and errors that name them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numpy as np

from .._core.messages import how_to_install

#: Kinds of collections.
Kind = Literal["array", "dataframe", "series", "bag"]


def require_dask(caller: str) -> None:
    """Raise one sentence if Dask is not installed."""
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
        If it is no Dask collection.
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
    """Let errors name the partition that they are about; rows are counted from its first one."""
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
    # Dask would join those partitions of a file that are small without the other columns.
    with dask.config.set({"optimization.tune.active": False}):
        parts = collection.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)
