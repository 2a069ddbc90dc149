"""A fit to data that no memory holds: exact moments, and samples that are drawn for the validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array

from .._ellipsoid import EllipsoidOpenSetClassifier
from .._engine.boundary.boundaries import Boundaries
from .._engine.boundary.closed_form import fit_closed_form
from .._engine.boundary.held_out import FEWEST_OF_CLASS, REAL
from .._engine.boundary.settings import BoundarySettings
from .._engine.common.devices import resolve_device, resolve_seed
from .._engine.common.duplicates import in_order
from .._engine.common.moments import ClassMoments
from .._engine.common.samples import Gathered, Samples, usable_scale
from .._kept_samples import KeptSamples
from .._labels import as_labels, cast_open_label, check_same_kind
from .._norms import usual_norms
from .._validation import check_squares, is_missing, name_rows, naming_rows, read_features
from ._draw import Draw, Keys, group_keys, priorities
from ._parts import Kind, column_names, delayed_parts, kind_of, naming_partition, require_dask, samples_of

Integers = NDArray[np.int64]

#: Results of partitions that one task merges.
_MERGED_AT_ONCE = 4


def fit(
    classifier: EllipsoidOpenSetClassifier, X: Any, y: Any, groups: Any = None, *, samples_per_class: int = 256
) -> EllipsoidOpenSetClassifier:
    """Fit ellipsoids to a Dask collection, in three passes over its partitions.

    The counts, means and scatters of the classes are exact: each partition computes its own, and they are merged in a
    tree. So means, covariances, and the shapes for given shares are those of all samples. What the closed form chooses
    with left-out samples (the shares a, b and ρ, the radius scale and e) it chooses with samples that are drawn, at
    least ``samples_per_class`` of each class where it has as many. They are left out of the exact moments. If a class
    was drawn in part, its drawn samples weigh more, so that the classes count as in all data.

    The result is that of ``classifier.fit`` on all data, up to rounding, if ``samples_per_class`` is at least the size
    of the largest class; else it is that of the same choice by fewer samples. It does not depend on the partitions.

    Read more in the :ref:`User Guide <large_data>`.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier
        Its parameters count; it is unchanged. It must have ``trainer=None``, ``duplicates="off"``, ``outliers="keep"``
        and ``keep_samples=False``, since no partition sees the duplicates in another one.
    X : dask.array.Array, dask.dataframe.DataFrame or dask.dataframe.Series
        Features: an array of shape (n_samples, n_features), numeric columns, or a column of vectors.
    y : dask.array.Array or dask.dataframe.Series
        Labels, in the same partitions. Samples labelled ``open_label`` are real open samples; at least
        ``samples_per_class`` of them are drawn, where there are as many.
    groups : dask.array.Array or dask.dataframe.Series, default=None
        Group of each sample. Groups are drawn whole and left out whole, also if they lie in several partitions.
    samples_per_class : int, default=256
        Number of samples that are drawn of each class; with groups it is exceeded by a part of the last group, and by
        those samples of the drawn groups that lie in other classes.

    Returns
    -------
    classifier : EllipsoidOpenSetClassifier
        A new classifier. Its ``groups_`` are those of the drawn samples. Its held-out scores are those of drawn samples
        that are a random sample of all data, so that ``known_p_value`` keeps its guarantee for unlike classes.

    Raises
    ------
    TypeError
        If ``X``, ``y`` or ``groups`` is no Dask collection.
    ValueError
        If a parameter is not as above, if there are fewer samples than features, if the partitions do not fit, or if
        one, which the error names, has missing values, missing labels or another number of features.

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
    >>> clf = EllipsoidOpenSetClassifier(duplicates="off", outliers="keep", random_state=0)
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
    from dask.delayed import delayed

    _check_parameters(classifier, samples_per_class)
    parts = _Parts.of(X, y, groups)
    fitted: EllipsoidOpenSetClassifier = clone(classifier)
    if parts.names is not None:
        fitted.feature_names_in_ = parts.names
    seed = resolve_seed(fitted.random_state)
    # First pass: labels.
    numbers = range(len(parts.y))
    found = _computed([delayed(_labels)(part, number) for number, part in zip(numbers, parts.y, strict=True)])
    labels, counts = _joined_labels(found)
    fitted.open_label_ = cast_open_label(fitted.open_label, labels)
    is_open = labels == fitted.open_label_
    fitted.classes_ = labels[~is_open]
    fitted._check_classes(int(counts.sum()), int(counts[is_open].sum()))
    # Second pass: the draw. Class K are the open samples.
    starts = np.cumsum([0, *(part.n_rows for part in found)])
    code = delayed(_Coder(fitted.classes_, fitted.open_label_), traverse=False)
    keyed = [
        delayed(_keyed)(code, *rows, number, start)
        for rows, number, start in zip(
            zip(parts.y, parts.groups or [None] * len(parts.y), strict=True), numbers, starts[:-1].tolist(), strict=True
        )
    ]
    draws = [delayed(_drawn)(part, samples_per_class, seed) for part in keyed]
    draw = cast(Draw, _merged(draws, _merge_draws, samples_per_class, seed))
    of_class = np.append(counts[~is_open], counts[is_open].sum()).astype(np.int64)
    limits = draw.limits(of_class, seed)
    # Third pass: moments, and the samples that are drawn.
    chosen = delayed(_Chosen(limits, seed, None if parts.groups is None else np.unique(draw.keys)), traverse=False)
    reduced = [
        delayed(_reduced)(*part, chosen, number)
        for part, number in zip(zip(parts.X, keyed, strict=True), numbers, strict=True)
    ]
    result = cast(_Reduced, _merged(reduced, _merge_reduced))
    _fit_drawn(fitted, result, limits, seed)
    return fitted


def _check_parameters(classifier: Any, samples_per_class: Any) -> None:
    if not isinstance(classifier, EllipsoidOpenSetClassifier):
        msg = (
            f"classifier is a {type(classifier).__name__}, but must be an EllipsoidOpenSetClassifier; features of a "
            "Pipeline's encoder come from skellipsoid.dask.transform."
        )
        raise TypeError(msg)
    classifier._validate_params()
    needed = {"trainer": None, "duplicates": "off", "outliers": "keep", "keep_samples": False}
    for name, value in needed.items():
        if getattr(classifier, name) != value:
            msg = (
                f"{name}={getattr(classifier, name)!r} needs all samples in one memory; set {name}={value!r} (drop "
                "copies and outliers before, for instance with drop_duplicates), or fit the classifier itself to a "
                "part of the data."
            )
            raise ValueError(msg)
    if not isinstance(samples_per_class, Integral) or samples_per_class < FEWEST_OF_CLASS:
        msg = (
            f"samples_per_class={samples_per_class!r}, but must be a whole number of at least {FEWEST_OF_CLASS}, "
            "or left-out samples say too little."
        )
        raise ValueError(msg)


@dataclass(frozen=True)
class _Parts:
    """The partitions of the data."""

    X: list[Any]
    y: list[Any]
    groups: list[Any] | None
    names: NDArray[np.object_] | None  # of the features

    @classmethod
    def of(cls, X: Any, y: Any, groups: Any) -> "_Parts":
        """Divide collections alike.

        Raises
        ------
        ValueError
            If they are not divided alike.
        """
        named = {"X": X, "y": y} | ({} if groups is None else {"groups": groups})
        parts = {}
        for name, collection in named.items():
            kind = kind_of(collection, name, "the classifier's fit(X, y)")
            if kind is Kind.BAG or (kind is Kind.FRAME and name != "X"):
                msg = f"{name} is a Dask {kind.value}, but must be an array or a series" + ", or a dataframe." * (
                    name == "X"
                )
                raise TypeError(msg)
            if kind is Kind.ARRAY and hasattr(X, "chunks") and not np.isnan(sum(X.chunks[0] + collection.chunks[0])):
                if len(collection) != len(X):
                    msg = f"{name} has {len(collection)} rows, but X has {len(X)}; pass one for each row."
                    raise ValueError(msg)
                collection = collection.rechunk({0: X.chunks[0]})
            parts[name] = delayed_parts(collection)
            if len(parts[name]) != len(parts["X"]):
                msg = (
                    f"{name} has {len(parts[name])} partitions, but X has {len(parts['X'])}; take both from the same "
                    "collection, or repartition one of them."
                )
                raise ValueError(msg)
        is_frame = kind_of(X, "X", "") is Kind.FRAME
        return cls(parts["X"], parts["y"], parts.get("groups"), column_names(X) if is_frame else None)


class _Labels(NamedTuple):
    """Different labels of a partition, and how many samples have each."""

    labels: NDArray[Any]
    counts: Integers
    n_rows: int


def _labels(y: Any, number: int) -> _Labels:
    if not len(y):
        return _Labels(np.empty(0), np.empty(0, dtype=np.int64), 0)
    with naming_partition(number):
        labels, counts = np.unique(as_labels(y), return_counts=True)
    return _Labels(labels, counts, len(y))


def _joined_labels(parts: Sequence[_Labels]) -> tuple[NDArray[Any], Integers]:
    """Different labels of all partitions, and how many samples have each."""
    filled = [(number, part) for number, part in enumerate(parts) if part.n_rows]
    if not filled:
        msg = "X has no rows in any of its partitions; pass at least one sample."
        raise ValueError(msg)
    first, start = filled[0]
    for number, part in filled:
        check_same_kind(part.labels, start.labels, f"Partition {number} of y", f"partition {first}")
    labels, codes = np.unique(np.concatenate([part.labels for _, part in filled]), return_inverse=True)
    counts = np.bincount(codes.ravel(), np.concatenate([part.counts for _, part in filled]))
    return labels, counts.astype(np.int64)


@dataclass(frozen=True)
class _Coder:
    """Numbers of the classes; that of the open label is the number of classes."""

    classes: NDArray[Any]
    open_label: Any

    def codes(self, y: Any) -> Integers:
        labels = as_labels(y)
        found = np.searchsorted(self.classes, labels).astype(np.int64)
        found[labels == self.open_label] = len(self.classes)
        return found


class _Keyed(NamedTuple):
    """Class and group of each sample of a partition."""

    codes: Integers
    keys: Keys


def _keyed(coder: _Coder, y: Any, groups: Any, number: int, start: int) -> _Keyed:
    """Give each sample of a partition its class and its key: its group, or else its number in all data."""
    if not len(y):
        return _Keyed(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64))
    if groups is None:
        return _Keyed(coder.codes(y), np.arange(start, start + len(y), dtype=np.uint64))
    with naming_partition(number):
        _check_rows("groups", len(groups), len(y))
        missing = np.flatnonzero([is_missing(group) for group in np.asarray(groups).tolist()])
        if len(missing):
            msg = (
                f"groups has missing values in {name_rows(missing)}; give each row that belongs to no group a value of "
                "its own."
            )
            raise ValueError(msg)
    return _Keyed(coder.codes(y), group_keys(groups))


def _check_rows(name: str, n_rows: int, n_labels: int) -> None:
    if n_rows != n_labels:
        msg = f"{name} has {n_rows} rows, but y has {n_labels}; pass one for each label."
        raise ValueError(msg)


def _drawn(part: _Keyed, most: int, seed: int) -> Draw:
    return Draw.of(part.codes, part.keys, most, seed)


def _merge_draws(parts: list[Draw], most: int, seed: int) -> Draw:
    return Draw.merged(parts, most, seed)


@dataclass(frozen=True)
class _Chosen:
    """Which samples are drawn."""

    limits: Keys  # (n_classes + 1,) see Draw.limits; the last one is that of open samples
    seed: int
    groups: Keys | None  # ascending keys; None if each sample is a group of its own

    def among(self, part: _Keyed) -> NDArray[np.bool_]:
        if self.groups is None:
            return np.asarray(priorities(part.keys, self.seed) <= self.limits[part.codes])
        places = np.searchsorted(self.groups, part.keys).clip(max=len(self.groups) - 1)
        return np.asarray(self.groups[places] == part.keys)


class _Reduced(NamedTuple):
    """What a fit needs of a partition, or of several."""

    moments: ClassMoments | None  # of known classes; None if the partition has none
    rows: NDArray[np.floating]  # (n_drawn, n_features)
    codes: Integers  # (n_drawn,)
    keys: Keys  # (n_drawn,)
    number: int  # of the first partition with samples; -1 without


def _reduced(X: Any, keyed: _Keyed, chosen: _Chosen, number: int) -> _Reduced:
    with naming_partition(number):
        _check_rows("X", len(X), len(keyed.codes))
        if not len(X):
            return _Reduced(None, np.empty((0, 0)), keyed.codes, keyed.keys, -1)
        rows = read_features(samples_of(X))
        with naming_rows(rows):
            rows = np.asarray(check_array(rows, dtype=(np.float64, np.float32), input_name="X"))
        check_squares(rows)
    drawn = chosen.among(keyed)
    known = keyed.codes < len(chosen.limits) - 1
    of_known = (rows, keyed.codes) if known.all() else (rows[known], keyed.codes[known])
    moments = ClassMoments.of(*of_known) if known.any() else None
    return _Reduced(moments, rows[drawn], keyed.codes[drawn], keyed.keys[drawn], number)


def _merge_reduced(parts: list[_Reduced]) -> _Reduced:
    filled = [part for part in parts if part.number >= 0]
    if not filled:
        return parts[0]
    first = filled[0]
    for part in filled:
        if part.rows.shape[1] != first.rows.shape[1]:
            msg = (
                f"Partition {part.number}: X has {part.rows.shape[1]} features, but partition {first.number} has "
                f"{first.rows.shape[1]}; all must have the same."
            )
            raise ValueError(msg)
    moments = [part.moments for part in filled if part.moments is not None]
    return _Reduced(
        ClassMoments.merged(moments) if moments else None,
        np.concatenate([part.rows for part in filled]),
        np.concatenate([part.codes for part in filled]),
        np.concatenate([part.keys for part in filled]),
        first.number,
    )


def _computed(parts: list[Any]) -> list[Any]:
    import dask

    return list(dask.compute(*parts))


def _merged(parts: list[Any], merge: Callable[..., Any], *options: Any) -> Any:
    """Merge the results of all partitions in a tree."""
    from dask.delayed import delayed

    while len(parts) > 1:
        parts = [
            delayed(merge)(parts[start : start + _MERGED_AT_ONCE], *options)
            for start in range(0, len(parts), _MERGED_AT_ONCE)
        ]
    return _computed(parts)[0]


def _fit_drawn(fitted: EllipsoidOpenSetClassifier, found: _Reduced, limits: Keys, seed: int) -> None:
    """Fit to exact moments and drawn samples."""
    moments, n_classes = found.moments, len(fitted.classes_)
    if moments is None or moments.total < found.rows.shape[1]:
        total = 0 if moments is None else moments.total
        msg = (
            f"X has {total} samples of known classes with {found.rows.shape[1]} features, but at least as many samples "
            "as features are needed here; fit the classifier itself to data this small."
        )
        raise ValueError(msg)
    fitted.n_features_in_ = found.rows.shape[1]
    fitted.offset_, fitted.class_offsets_ = 0.0, np.zeros(n_classes)
    fitted._norm_range = usual_norms(found.rows, found.codes)
    fitted._mean = moments.mean()
    fitted.scale_ = usable_scale(moments.mean_square() ** 0.5, fitted._mean, found.rows.dtype)
    rows, known = fitted._standardize(found.rows, np.float32).numpy(), found.codes < n_classes
    codes, keys = found.codes[known], found.keys[known]
    own, groups = np.arange(len(codes)), in_order(keys)
    gathered = Gathered(own, np.ones(len(codes)), own, groups, np.ones_like(own), groups, own)
    kept = KeptSamples.of(fitted._mean, rows[known], codes, gathered, rows[~known])
    kept = kept.with_groups(fitted._check_single_groups(kept.gathered(), codes).groups)
    device = resolve_device(fitted.device)
    is_counted = priorities(keys, seed) <= limits[codes]  # the others came with groups that other classes drew
    share = moments.counts / np.bincount(codes[is_counted], minlength=n_classes)
    samples = replace(
        kept.samples(n_classes, device),
        moments=moments.standardized(fitted._mean, fitted.scale_),
        n_represented=torch.from_numpy(np.where(is_counted, share[codes], 0.0)).to(device),
    )
    opened = torch.from_numpy(kept.open_rows).to(device)
    boundaries = fit_closed_form(samples, opened, BoundarySettings(fitted.alpha, fitted.beta), seed)
    fitted._store(_of_random_samples(boundaries, samples, priorities(keys, seed) <= limits[:n_classes].min()))
    fitted._kept, fitted.changes_, fitted.groups_ = None, [], kept.groups
    degenerate = boundaries.degenerate.cpu().numpy()
    fitted._warn_of_degenerate(degenerate, stacklevel=4)
    fitted._warn_of_few(codes, kept.groups, degenerate)


def _of_random_samples(boundaries: Boundaries, samples: Samples, is_random: NDArray[np.bool_]) -> Boundaries:
    """Keep held-out scores of those samples alone that are a random sample of all data; each counts the same.

    Of rare classes a larger share was drawn. With them all, p-values would be those of other proportions.
    """
    held_out = boundaries.held_out
    if held_out is None:
        return boundaries
    of_set = np.zeros(int(samples.sets.max()) + 1, dtype=bool)
    of_set[samples.sets[is_random]] = True
    held_out = held_out.where((held_out.kinds == REAL) | of_set[held_out.sets])
    return replace(boundaries, held_out=replace(held_out, weights=np.ones(len(held_out))))
