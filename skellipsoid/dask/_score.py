"""Predictions, scores and features of a fitted estimator, lazily for each partition of a Dask collection."""

import pickle
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skellipsoid_runtime._containers import stack_vectors

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.pipelines import read_estimator, split_estimator
from .._core.sklearn import count_rows
from .._encoders.text_features import TextFeatures
from ..persistence._load import load_with_manifest
from ._parts import delayed_parts, kind_of, naming_partition, require_dask


def predict(model: Any, X: Any) -> Any:
    """Label each sample with a known class or the open label, lazily.

    Parameters
    ----------
    model : estimator, str or Path
        A fitted classifier, a Pipeline that ends in one, or a folder that :func:`skellipsoid.save` wrote and that each
        worker can read. The model is sent to each worker once.
    X : dask.array.Array, dask.dataframe.DataFrame, dask.dataframe.Series or dask.bag.Bag
        Array of shape (n_samples, n_features); dataframe of numeric columns; series or bag of texts, for a Pipeline
        that begins with a text encoder, or of vectors, such as a column of embeddings.

    Returns
    -------
    labels : dask.array.Array, dask.dataframe.Series or dask.bag.Bag
        Of shape (n_samples,), in the partitions of ``X``, a series with its index.

    Raises
    ------
    TypeError
        If ``X`` is no Dask collection.
    ValueError
        During the computation: if a partition, which the error names, has missing values or another number of features.
    ImportError
        Without Dask: the extra ``[dask]`` installs it.

    Examples
    --------
    >>> import dask.array as da
    >>> import skellipsoid.dask
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(200, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> labels = skellipsoid.dask.predict(clf, da.from_array(X, chunks=(50, -1)))
    >>> labels.chunks
    ((50, 50, 50, 50),)
    >>> bool((labels.compute() == clf.predict(X)).all())
    True
    """
    return _by_sample("predict", model, X)


def score_samples(model: Any, X: Any) -> Any:
    """Knownness of each sample, lazily, in double precision; otherwise as :func:`predict`.

    Parameters
    ----------
    model : estimator, str or Path
        As in :func:`predict`.
    X : Dask array, dataframe, series or bag
        As in :func:`predict`.

    Returns
    -------
    scores : dask.array.Array, dask.dataframe.Series or dask.bag.Bag
        Of shape (n_samples,). Higher is more known.

    Examples
    --------
    >>> import dask.array as da
    >>> import skellipsoid.dask
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(200, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> scores = skellipsoid.dask.score_samples(clf, da.from_array(X, chunks=(50, -1)))
    >>> bool((scores < 0).mean().compute() < 0.2)
    True
    """
    return _by_sample("score_samples", model, X)


def known_p_value(model: Any, X: Any) -> Any:
    """Conformal p-value of each sample being known, lazily; otherwise as :func:`predict`.

    Parameters
    ----------
    model : estimator, str or Path
        As in :func:`predict`; the classifier must have ``known_p_value``.
    X : Dask array, dataframe, series or bag
        As in :func:`predict`.

    Returns
    -------
    p_values : dask.array.Array, dask.dataframe.Series or dask.bag.Bag
        Of shape (n_samples,).

    Examples
    --------
    >>> import dask.array as da
    >>> import skellipsoid.dask
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(200, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> p_values = skellipsoid.dask.known_p_value(clf, da.from_array(X, chunks=(50, -1)))
    >>> bool(p_values.min().compute() > 0)
    True
    """
    return _by_sample("known_p_value", model, X)


def transform(model: Any, X: Any) -> Any:
    """Features of each sample, lazily.

    Parameters
    ----------
    model : transformer, str or Path
        A fitted encoder, such as :class:`skellipsoid.SupConTextEncoder`, another transformer, or a Pipeline of
        transformers; or a folder, as in :func:`predict`.
    X : Dask array, dataframe, series or bag
        What the transformer takes: a series or a bag of texts for a text encoder.

    Returns
    -------
    features : dask.array.Array of shape (n_samples, n_components)
        In single precision from a text encoder or if ``X`` is an array in single precision, else in double precision.

    Examples
    --------
    Save the encoder to a folder, so that each worker loads it from there:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dask.bag as db
    >>> import skellipsoid.dask
    >>> from skellipsoid import SupConTextEncoder, save
    >>> encoder = SupConTextEncoder(finetune="none").fit(["a text to begin with"])
    >>> folder = Path(tempfile.mkdtemp()) / "encoder"
    >>> save(encoder, folder)
    >>> texts = db.from_sequence(["where is my parcel", "who won the match last night"], npartitions=2)
    >>> features = skellipsoid.dask.transform(folder, texts)
    >>> features.compute().shape
    (2, 384)
    """
    require_dask("skellipsoid.dask.transform")
    import dask.array as da
    from dask.delayed import delayed

    kind = kind_of(X, "X", "the model's transform(X)")
    estimator, task = _shipped(model)
    check_is_fitted(estimator)
    last = split_estimator(estimator)[1]
    is_single = isinstance(last, TextFeatures) or (kind == "array" and X.dtype == np.float32)
    width, dtype = len(last.get_feature_names_out()), np.dtype(np.float32 if is_single else np.float64)
    parts, empty = delayed_parts(X), np.empty((0, width), dtype)
    sizes = X.chunks[0] if kind == "array" else [np.nan] * len(parts)
    blocks = []
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        features = delayed(_transformed, pure=True)(part, task, number, width, dtype)
        blocks.append(da.from_delayed(features, (size, width), meta=empty))
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _shipped(model: Any) -> tuple[Any, Any]:
    """Return a fitted model, and the task that sends it to all partitions.

    A task, not scattered data: if the worker that holds the model dies, the scheduler runs the task again.
    """
    from dask.delayed import delayed

    if not isinstance(model, str | PathLike):
        return model, delayed(model, name=_task_name(pickle.dumps(model)), traverse=False)
    folder = Path(model).resolve()
    estimator, manifest = load_with_manifest(folder)
    expected = manifest["manifest_sha256"]  # it has the hashes of all files
    return estimator, delayed(_loaded)(folder, expected, dask_key_name=_task_name(expected.encode()))


def _loaded(folder: Path, expected: str) -> Any:
    """Load a model on a worker; raise an error if the folder holds another one by now."""
    estimator, manifest = load_with_manifest(folder)
    if manifest["manifest_sha256"] != expected:
        raise ValueError(
            f"The model in {str(folder)!r} was changed meanwhile, so that partitions would have predictions of two "
            "models; call it again."
        )
    return estimator


def _task_name(content: bytes) -> str:
    return f"skellipsoid-model-{sha256(content).hexdigest()[:32]}"


def _by_sample(method: str, model: Any, X: Any) -> Any:
    """Call a method that returns one value for each sample, on each partition."""
    require_dask(f"skellipsoid.dask.{method}")
    import dask.array as da
    import dask.bag as db
    import pandas as pd

    kind = kind_of(X, "X", f"the model's {method}(X)")
    estimator, task = _shipped(model)
    classifier = split_estimator(estimator)[1]
    if not hasattr(estimator, method) and not hasattr(classifier, method):
        raise TypeError(
            f"{type(classifier).__name__} has no {method}; pass a classifier that has it, such as "
            "EllipsoidOpenSetClassifier, or a Pipeline that ends in one."
        )
    check_is_fitted(classifier)
    dtype = np.dtype(np.float64)
    if method == "predict":
        is_ours = isinstance(classifier, BaseOpenSetClassifier)
        dtype = (classifier._possible_labels() if is_ours else np.asarray(classifier.classes_)).dtype
    known = {"model": task, "method": method, "of_type": dtype}
    if kind == "bag":
        numbers = db.from_sequence(range(X.npartitions), npartitions=X.npartitions)
        return X.map_partitions(_of_list, numbers, **known)
    if kind != "array":
        meta = pd.Series(np.empty(0, dtype), index=X._meta.index[:0], name=method)
        return X.map_partitions(_of_frame, meta=meta, **known)
    if X.ndim == 2:
        X = X.rechunk({1: -1})
    return da.map_blocks(
        _of_block, X, drop_axis=list(range(1, X.ndim)), dtype=dtype, meta=np.empty(0, dtype), name=None, **known
    )


def _values(part: Any, number: int, model: Any, method: str, of_type: np.dtype[Any]) -> NDArray[Any]:
    """Values of one partition."""
    if not count_rows(part):
        return np.empty(0, of_type)
    with naming_partition(number):
        samples = stack_vectors(part)
        if not hasattr(model, method):  # a Pipeline does not pass on what scikit-learn does not know
            model, samples = read_estimator(model, samples, [method], f"skellipsoid.dask.{method}")
        return np.asarray(getattr(model, method)(samples)).astype(of_type, copy=False)


def _of_block(part: Any, block_id: tuple[int, ...] = (0,), **known: Any) -> NDArray[Any]:
    return _values(part, block_id[0], **known)


def _of_frame(part: Any, partition_info: dict[str, Any] | None = None, **known: Any) -> Any:
    import pandas as pd

    values = _values(part, -1 if partition_info is None else partition_info["number"], **known)
    return pd.Series(values, index=part.index, name=known["method"])


def _of_list(part: Any, numbers: Any, **known: Any) -> list[Any]:
    values: list[Any] = _values(list(part), next(iter(numbers)), **known).tolist()
    return values


def _transformed(part: Any, model: Any, number: int, width: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    if not count_rows(part):
        return np.empty((0, width), dtype)
    with naming_partition(number):
        return np.asarray(model.transform(stack_vectors(part))).astype(dtype, copy=False)
