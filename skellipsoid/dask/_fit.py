"""A fit to data larger than memory: exact moments of all samples, and a random sample to hold out."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from .._core.fit_steps import check_classes, several_groups
from .._core.labels import cast_open_label
from .._core.norms import usual_norms, zeros_are_none
from .._core.sklearn import validate_params
from .._core.warn import warn
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._ellipsoid.math.closed_form import finish, prepare
from .._ellipsoid.methods import warn_of_few
from .._held_out.expected import Expected
from .._held_out.table import FEWEST_OF_CLASS, REAL, SYNTHETIC, HeldOutTable
from .._samples.equal import in_order
from .._samples.samples import Samples, usable_scale
from .._samples.units import column_units, in_units
from .._torch.devices import resolve_device, resolve_seed
from ._draw import Draw, Keys, priorities
from ._parts import delayed_parts, kind_of, require_dask
from ._passes import DrawRule, Reduced, count_labels, joined_labels, keyed_part, merge_reduced, reduced_part

#: Number of partitions whose results one task merges.
_MERGED_AT_ONCE = 4


def fit(
    classifier: EllipsoidOpenSetClassifier, X: Any, y: Any, *, groups: Any = None, samples_per_class: int = 256
) -> EllipsoidOpenSetClassifier:
    """Fit ellipsoids to a Dask collection, in three passes over its partitions.

    Means and covariances use all samples: each partition computes its own, and they are merged in a tree. Only a random
    sample of each class, of ``samples_per_class`` or all if there are fewer, is held out, and chooses the shrinkage (a,
    b, ρ, e) and the size of the boundaries. If a class was drawn in part, its drawn samples weigh more, so that the
    classes count as in all data.

    If ``samples_per_class`` is at least the size of the largest class, the result is that of ``classifier.fit`` on all
    data, up to rounding. It never depends on the partitions.

    Read more in the :ref:`User Guide <large_data>`.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier
        Its parameters are used; it is not changed. It must have ``trainer=None``. Duplicates are not searched, outliers
        are not dropped and samples are not kept, since no partition sees those of another one: the result has
        ``duplicates="off"``, ``outliers="keep"`` and ``keep_samples=False``, and a warning says what was switched off.
    X : dask.array.Array, dask.dataframe.DataFrame or dask.dataframe.Series
        Features: an array of shape (n_samples, n_features), numeric columns, or a column of vectors.
    y : dask.array.Array or dask.dataframe.Series
        Labels, in the same partitions. Samples labelled ``open_label`` are real open samples; ``samples_per_class`` of
        them are drawn, or all if there are fewer.
    groups : dask.array.Array or dask.dataframe.Series, default=None
        Group of each sample. Groups are drawn whole and held out whole, also if they lie in several partitions.
    samples_per_class : int, default=256
        Number of samples to draw from each class. With groups there may be more, since groups are drawn whole.

    Returns
    -------
    classifier : EllipsoidOpenSetClassifier
        A new classifier. Its ``groups_`` are those of the drawn samples. Its held-out scores are those of a random
        sample of all data, so that ``known_p_value`` stays valid if class sizes differ.

    Raises
    ------
    TypeError
        If ``X``, ``y`` or ``groups`` is not a Dask collection.
    ValueError
        If a parameter is not as above, if there are fewer samples than features, if the partitions of the collections
        differ, or if a partition, which the error names, has missing values, missing labels or another number of
        features.

    See Also
    --------
    predict : Score a Dask collection.

    Examples
    --------
    >>> import dask.array as da
    >>> import skellipsoid.dask
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(3000, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(duplicates="off", outliers="keep", keep_samples=False, random_state=0)
    >>> large = skellipsoid.dask.fit(
    ...     clf, da.from_array(X, chunks=(500, -1)), da.from_array(y, chunks=500), samples_per_class=100
    ... )
    >>> whole = clf.fit(X, y)
    >>> bool(abs(large.centroids_ - whole.centroids_).max() < 1e-6)
    True
    >>> bool((large.predict(X) == whole.predict(X)).mean() > 0.95)
    True
    """
    require_dask("skellipsoid.dask.fit")
    import dask
    from dask.delayed import delayed

    _check_parameters(classifier, samples_per_class)
    parts = _divided(X, y, groups)
    fitted: EllipsoidOpenSetClassifier = _within_partitions(clone(classifier))
    names = list(getattr(X, "columns", [None]))
    if all(isinstance(name, str) for name in names):
        fitted.feature_names_in_ = np.array(names, dtype=object)
    seed = resolve_seed(fitted.random_state)
    # First pass: labels.
    found = dask.compute(*(delayed(count_labels)(part, number) for number, part in enumerate(parts["y"])))
    labels, counts = joined_labels(found)
    fitted.open_label_ = cast_open_label(fitted.open_label, labels)
    is_open = labels == fitted.open_label_
    fitted.classes_ = labels[~is_open]
    n_samples, n_open = int(counts.sum()), int(counts[is_open].sum())
    check_classes(fitted.classes_, fitted.open_label_, fitted.open_label, n_samples, n_open)
    # Second pass: the draw. Class K are the open samples.
    starts = np.cumsum([0, *(part.counts.sum() for part in found)])
    coder = delayed(fitted, traverse=False)  # has the classes
    ungrouped = [None] * len(parts["y"])
    labelled = enumerate(zip(parts["y"], parts.get("groups", ungrouped), starts[:-1].tolist(), strict=True))
    keyed = [delayed(keyed_part)(coder, part, group, number, start) for number, (part, group, start) in labelled]
    draws = [delayed(Draw.of)(part, samples_per_class, seed) for part in keyed]
    draw: Draw = _merged(draws, Draw.merged, samples_per_class, seed)
    of_class = np.append(counts[~is_open], counts[is_open].sum()).astype(np.int64)
    limits = draw.limits(of_class, seed)
    # Third pass: moments, and the samples that are drawn.
    chosen = delayed(DrawRule(limits, seed, None if groups is None else np.unique(draw.keys)), traverse=False)
    features = enumerate(zip(parts["X"], keyed, strict=True))
    reduced = [delayed(reduced_part)(part, keys, chosen, number) for number, (part, keys) in features]
    result: Reduced = _merged(reduced, merge_reduced)
    _fit_drawn(fitted, result, limits, seed)
    return fitted


def _check_parameters(classifier: Any, samples_per_class: Any) -> None:
    if not isinstance(classifier, EllipsoidOpenSetClassifier):
        raise TypeError(
            f"classifier is a {type(classifier).__name__}, but must be an EllipsoidOpenSetClassifier; features of a "
            "Pipeline's encoder come from skellipsoid.dask.transform."
        )
    validate_params(classifier)
    if classifier.trainer is not None:
        raise ValueError(
            "trainer=EliDecide() needs all samples in one memory; set trainer=None, or fit the classifier itself to a "
            "part of the data."
        )
    if not isinstance(samples_per_class, Integral) or samples_per_class < FEWEST_OF_CLASS:
        raise ValueError(
            f"samples_per_class={samples_per_class!r}, but must be a whole number of at least {FEWEST_OF_CLASS}; fewer "
            "held-out samples cannot choose the boundaries."
        )


def _within_partitions(classifier: EllipsoidOpenSetClassifier) -> EllipsoidOpenSetClassifier:
    """Switch off what needs all samples in one process, with one warning."""
    needed = {"duplicates": "off", "outliers": "keep", "keep_samples": False}
    changed = {name: value for name, value in needed.items() if getattr(classifier, name) != value}
    if changed:
        listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        warn(
            f"Partitions do not see each other's samples, so the fit has {listed}; drop copies and outliers before, "
            "for instance with drop_duplicates, and set these parameters to have no warning."
        )
    classifier.set_params(**changed)
    return classifier


def _divided(X: Any, y: Any, groups: Any) -> dict[str, list[Any]]:
    """Align the partitions of the collections, and list them by name.

    Raises
    ------
    ValueError
        If they cannot be aligned.
    """
    parts: dict[str, list[Any]] = {}
    for name, collection in {"X": X, "y": y, "groups": groups}.items():
        if name == "groups" and groups is None:
            continue
        kind = kind_of(collection, name, "the classifier's fit(X, y)")
        if kind == "bag" or (kind == "dataframe" and name != "X"):
            ending = ", or a dataframe." if name == "X" else ""
            raise TypeError(f"{name} is a Dask {kind}, but must be an array or a series{ending}")
        if kind == "array" and hasattr(X, "chunks") and not np.isnan(sum(X.chunks[0] + collection.chunks[0])):
            if len(collection) != len(X):
                raise ValueError(f"{name} has {len(collection)} rows, but X has {len(X)}; pass one for each row.")
            collection = collection.rechunk({0: X.chunks[0]})
        parts[name] = delayed_parts(collection)
        if len(parts[name]) != len(parts["X"]):
            raise ValueError(
                f"{name} has {len(parts[name])} partitions, but X has {len(parts['X'])}; take both from the same "
                "collection, or repartition one of them."
            )
    return parts


def _merged(parts: list[Any], merge: Callable[..., Any], *options: Any) -> Any:
    """Merge the results of all partitions in a tree."""
    import dask
    from dask.delayed import delayed

    while len(parts) > 1:
        parts = [
            delayed(merge)(parts[start : start + _MERGED_AT_ONCE], *options)
            for start in range(0, len(parts), _MERGED_AT_ONCE)
        ]
    return dask.compute(*parts)[0]


def _fit_drawn(fitted: EllipsoidOpenSetClassifier, found: Reduced, limits: Keys, seed: int) -> None:
    """Fit to exact moments and drawn samples."""
    moments, n_classes = found.moments, len(fitted.classes_)
    if moments is None or moments.total < found.features.shape[1]:
        total = 0 if moments is None else moments.total
        raise ValueError(
            f"X has {total} samples of known classes with {found.features.shape[1]} features, but at least as many "
            "samples as features are needed here; fit the classifier itself to data this small."
        )
    fitted.n_features_in_ = found.features.shape[1]
    fitted.offset_, fitted.class_offsets_ = 0.0, np.zeros(n_classes)
    fitted._norm_range = usual_norms(found.features, found.codes)
    fitted._zeros_are_none = zeros_are_none(found.features[found.codes < n_classes])
    device, known, given = resolve_device(fitted.device), found.codes < n_classes, found.features
    units = column_units(given[known], found.codes[known], np.ones(int(known.sum())))
    if units is not None:
        given, moments = in_units(given, units), moments.standardized(np.zeros(len(units)), units)
    mean = moments.mean()
    scale = usable_scale(moments.mean_square() ** 0.5, mean, found.features.dtype)
    features = torch.from_numpy(((given - mean) / scale).astype(np.float32)).to(device)
    codes, keys = found.codes[known], found.keys[known]
    groups = several_groups(in_order(keys), np.arange(len(codes)), codes, fitted.classes_)
    is_counted = priorities(keys, seed) <= limits[codes]  # the others came with groups that other classes drew
    share = moments.counts / np.bincount(codes[is_counted], minlength=n_classes)
    samples = replace(
        Samples.of(features[known], torch.from_numpy(codes).to(device), n_classes, groups=groups),
        moments=moments.standardized(mean, scale),
        n_represented=torch.from_numpy(np.where(is_counted, share[codes], 0.0)).to(device),
    )
    fitted._expected = Expected.by(fitted)
    result = finish(prepare(samples, features[~known], seed), fitted.alpha, fitted._expected)
    is_random = priorities(keys, seed) <= limits[:n_classes].min()
    fitted._store(result._replace(held_out=_of_random_samples(result.held_out, samples, is_random)), mean, scale, units)
    fitted._kept, fitted._learned, fitted.changes_, fitted.groups_ = None, None, [], groups
    warn_of_few(fitted.classes_, codes, groups, result.degenerate)


def _of_random_samples(
    held_out: HeldOutTable | None, samples: Samples, is_random: NDArray[np.bool_]
) -> HeldOutTable | None:
    """Keep held-out scores of a random sample of all data, with equal weights.

    A larger proportion of rare classes was drawn. With all drawn samples, p-values would belong to other class sizes.
    """
    if held_out is None:
        return None
    of_set = np.zeros(int(samples.sets.max()) + 1, dtype=bool)
    of_set[samples.sets[is_random]] = True
    held_out = held_out.where(np.isin(held_out.kinds, (REAL, SYNTHETIC)) | of_set[held_out.sets])
    return replace(held_out, weights=np.ones(len(held_out)))
