"""``check_training_features``: possible errors in training features and labels, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import Bunch, check_array, check_consistent_length

from .._core.labels import as_labels, cast_open_label, check_given
from .._core.messages import numbered
from .._core.norms import norms
from .._core.validation import LARGEST_VALUE, check_groups, naming_rows, read_features, with_nan
from .._held_out.table import FEWEST_OF_CLASS
from .._samples.duplicates import find_duplicates, pairwise, pieces
from .._samples.equal import equal_samples
from .column_check import check_columns
from .findings import Finding, as_bunch, grouped, listed, named_class, named_groups, named_rows

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: A norm is unlike the others if it differs from their median by the larger factor, and none by the smaller one alone.
_UNLIKE = (4.0, 10.0)
#: Largest deviation from the norm 1 by rounding, in half precision too.
_UNIT_ERROR = 1e-2
#: Rows of different classes are nearly equal within this fraction of the distance to the 8th neighbour.
_NEAR = 0.25
#: Rows of a block that are called nearly equal by chance, at most.
_BY_CHANCE = 0.05
#: The density is estimated from these neighbours.
_NEIGHBORS = (8, 16)


def check_training_features(
    X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, open_label: int | str = -1
) -> Bunch:
    """Check training features and labels for possible errors: embeddings of images or sounds, tables.

    The counterpart of :func:`check_training_texts`. Nothing is changed: each finding names in one sentence the problem,
    its rows and the remedy. It takes about as long as the search for duplicates in a fit: ten thousand embeddings take
    some seconds.

    Read more in the :ref:`User Guide <feature_check>`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features of any container that ``EllipsoidOpenSetClassifier.fit`` takes. Missing and infinite values are
        findings here, not errors.
    y : array-like of shape (n_samples,)
        Labels.
    groups : array-like of shape (n_samples,), default=None
        Groups of the samples, as they will be passed to ``fit``: recording, video, person.
    open_label : int or str, default=-1
        Label of real open samples. Cast to the kind of ``y``: −1 for numbers, ``"-1"`` for strings.

    Returns
    -------
    findings : :class:`~sklearn.utils.Bunch`
        Arrays of shape (n_findings,), so that ``pandas.DataFrame(findings)`` is a table; none without findings:

        - ``kind``: see below.
        - ``rows``: row numbers from 0, a tuple in ascending order; of columns none.
        - ``label``: the label concerned, a tuple if several, ``None`` if all.
        - ``message``: one sentence, which names at most ten rows.

        Kinds, in this order, then by label:

        - ``"missing_values"``: rows with NaN. All checks below leave these rows out, and those of the next kind.
        - ``"infinite_values"``: rows with infinite values, or with values whose squares overflow.
        - ``"zero_rows"``: rows of zeros, for instance of a file that could not be read.
        - ``"conflicting_labels"``: equal rows with several labels, one finding for each set of labels.
        - ``"near_conflicts"``: rows with different labels that lie much nearer to each other than neighbours do.
        - ``"few_samples"``: a class of fewer than ten different samples, or groups of them.
        - ``"mixed_norms"``: some rows have unit length and the others do not.
        - ``"unlike_norms"``: rows whose norm differs from the median by a factor of more than ten (only without
          ``"mixed_norms"``, and if no norm differs by a factor of four to ten).
        - ``"constant_columns"``: features with one value in all rows.
        - ``"unlike_units"``: columns whose standard deviations within classes differ by a factor of more than ten, and
          which the default fit therefore divides by these (``column_units_``).
        - ``"projected_columns"``: uncorrelated columns, which PCA or a similar transformer made of these very rows.
        - ``"exact_duplicates"``: equal rows of one label, not in one group. In a table of rounded numbers, rows that
          are probably equal by chance are no finding.
        - ``"near_duplicates"``: nearly equal rows of one label, not in one group.

    Raises
    ------
    ValueError
        If ``X`` is empty, masked, or holds dates or strings, if lengths differ, if labels are missing or mix numbers
        and strings, or if groups are missing: the errors of ``EllipsoidOpenSetClassifier.fit``.
    TypeError
        If ``X`` is sparse.

    See Also
    --------
    check_training_texts : The same for texts.
    EllipsoidOpenSetClassifier : Finds the duplicates when it is fitted: ``groups_``.

    Notes
    -----
    Duplicates of one label are found as in a fit. Frames of one video are found where the picture hardly changes. Where
    it does, they are no duplicates, but they depend on each other: pass the videos as ``groups`` to ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import check_training_features
    >>> X = np.random.default_rng(0).normal(size=(40, 8))
    >>> y = np.repeat(["cat", "dog"], 20)
    >>> X[3], X[25], X[30, 1] = 0, X[6], np.nan
    >>> findings = check_training_features(X, y)
    >>> findings.kind.tolist()
    ['missing_values', 'zero_rows', 'conflicting_labels']
    >>> print(findings.message[2])
    Equal samples have different labels ('cat' and 'dog') in rows (6, 25); keep one label for each.
    """
    check_given(y, "check_training_features")
    labels = as_labels(y)
    features = read_features(X)
    with naming_rows(features):
        checked = check_array(with_nan(features), dtype=np.float64, ensure_all_finite=False, input_name="X")
    columns = getattr(features, "column_names", getattr(features, "columns", None))  # of Arrow, pandas or polars
    names = None if columns is None else [str(name) for name in columns]
    check_consistent_length(checked, labels)
    data = _Data(checked, labels, check_groups(groups, len(checked)), cast_open_label(open_label, labels), names)
    found = [
        *_unusable(data),
        *_conflicting_labels(data),
        *_near_conflicts(data),
        *_few_samples(data),
        *(list(_mixed_norms(data)) or _unlike_norms(data)),
        *check_columns(data.X, data.classes, data.is_known, data.names),
        *_duplicates(data),
    ]
    return as_bunch(found)


class _Data:
    """The rows that can be compared, with their numbers, classes, groups and duplicates."""

    def __init__(
        self, X: Floats, labels: NDArray[Any], groups: Integers | None, open_label: Any, names: list[str] | None
    ) -> None:
        with np.errstate(invalid="ignore"):
            self.missing = np.flatnonzero(np.isnan(X).any(axis=1))
            self.too_large = np.flatnonzero((np.abs(X) > LARGEST_VALUE).any(axis=1))
        self.zero = np.flatnonzero((X == 0).all(axis=1))
        self.names, self.open_label = names, open_label
        unusable = np.concatenate([self.missing, self.too_large])
        self.numbers = np.delete(np.arange(len(X)), np.concatenate([unusable, self.zero]))
        self.X = X[self.numbers]
        names_of_classes, of_rows = np.unique(labels, return_inverse=True)
        self.labels: list[Any] = names_of_classes.tolist()
        self.classes = of_rows[self.numbers].astype(np.int64)
        self.is_known = labels[self.numbers] != open_label
        self.groups = None if groups is None else groups[self.numbers]
        self.norms = norms(self.X)
        #: Number of each row, the same for equal rows of any label.
        self.equal = equal_samples(self.X, np.zeros(len(self.X), dtype=np.int64))
        #: Number of each row, the same for duplicates of one label.
        self.units = find_duplicates(self.X, self.classes) if len(self.X) else np.empty(0, dtype=np.int64)

    def rows(self, which: list[int] | NDArray[Any]) -> list[int]:
        """Numbers that rows have in the data given."""
        return [int(number) for number in self.numbers[which]]

    def together(self, numbers: Integers) -> list[list[int]]:
        """Give sets of two or more rows with the same number, in the order of their first row."""
        parts = grouped(range(len(numbers)), numbers.tolist().__getitem__)
        return [part for part in parts.values() if len(part) > 1]


def _unusable(data: _Data) -> Iterator[Finding]:
    missing = "X has missing values in {}; fill them, for instance with SimpleImputer, or drop these rows."
    too_large = (
        f"X has infinite values, or values beyond {LARGEST_VALUE:.0e}, in {{}}; correct them, or drop these rows."
    )
    zero = "All features are 0 in {}; look whether their files could be read, and drop these rows."
    for kind, numbers, text in (
        ("missing_values", data.missing, missing),
        ("infinite_values", data.too_large, too_large),
        ("zero_rows", data.zero, zero),
    ):
        if len(numbers):
            rows = numbers.tolist()
            yield Finding(kind, rows, None, text.format(named_rows(rows)))


def _conflicting_labels(data: _Data) -> Iterator[Finding]:
    parts = [part for part in data.together(data.equal) if np.ptp(data.classes[part]) > 0]
    text = "Equal samples have different labels ({}) in {}; keep one label for each."
    yield from _by_labels(data, parts, "conflicting_labels", text)


def _near_conflicts(data: _Data) -> Iterator[Finding]:
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *_near_pairs(data)])
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(data.X), len(data.X)))
    parts = data.together(connected_components(graph, directed=False)[1].astype(np.int64))
    text = (
        "Nearly equal samples have different labels ({}) in {}; look at these samples, and keep one label for each if "
        "they show the same."
    )
    yield from _by_labels(data, parts, "near_conflicts", text)


def _near_pairs(data: _Data) -> Iterator[Integers]:
    """Pairs of different rows with different labels that are much nearer to each other than neighbours are."""
    first = np.unique(data.equal, return_index=True)[1]
    distinct, classes = data.X[first], data.classes[first]
    for block in pieces(distinct, np.zeros(len(distinct), dtype=np.int64)):
        nearer, farther = _NEIGHBORS
        if len(block) <= farther:
            continue
        distances = pairwise(distinct[block])
        reach = np.partition(distances, (nearer, farther), axis=1)[:, [nearer, farther]]
        with np.errstate(divide="ignore"):
            growth = np.median(np.log(reach[:, 1] / reach[:, 0]))
        dimension = np.log(farther / nearer) / max(growth, 1e-12)
        # In this many dimensions the proportion (h / r)^dimension of the neighbours within r lies within h.
        proportion = min(_NEAR, (_BY_CHANCE / (nearer * len(block))) ** (1 / dimension))
        near = distances <= proportion * np.minimum(reach[:, :1], reach[:, 0])
        one, other = np.nonzero(np.triu(near, 1) & (classes[block][:, np.newaxis] != classes[block]))
        yield np.stack([first[block[one]], first[block[other]]], axis=1)


def _by_labels(data: _Data, parts: list[list[int]], kind: str, text: str) -> Iterator[Finding]:
    """Give one finding for each set of labels that rows which belong together have."""
    found = grouped(parts, lambda part: tuple(np.unique(data.classes[part]).tolist()))
    for codes, sets in sorted(found.items()):
        names = tuple(data.labels[code] for code in codes)
        rows = [data.rows(part) for part in sets]
        message = text.format(listed([repr(name) for name in names]), named_groups(rows))
        yield Finding(kind, sorted(chain(*rows)), names, message)


def _few_samples(data: _Data) -> Iterator[Finding]:
    for code, label in enumerate(data.labels):
        rows = np.flatnonzero(data.classes == code)
        different = np.unique((data.units if data.groups is None else data.groups)[rows])
        if label == data.open_label or len(different) >= FEWEST_OF_CLASS:
            continue
        if not len(rows):
            message = f"The class {label!r} has no row that can be used; add samples of it."
        else:
            count = numbered(len(different), "different sample" if data.groups is None else "group")
            message = (
                f"The class {label!r} has {count}, in {named_rows(data.rows(rows))}; collect at least "
                f"{FEWEST_OF_CLASS}, or many new samples will be rejected."
            )
        yield Finding("few_samples", data.rows(rows), label, message)


def _mixed_norms(data: _Data) -> Iterator[Finding]:
    deviation = np.abs(data.norms - 1)
    # Rows of whole numbers, such as 0 and 1, also have the norm 1.
    is_unit = (deviation <= _UNIT_ERROR) & (np.round(data.X) != data.X).any(axis=1)
    # Norms that vary freely also pass 1: then as many lie beside it.
    beside = ((deviation > _UNIT_ERROR) & (deviation <= 10 * _UNIT_ERROR)).sum()
    if is_unit.all() or is_unit.sum() <= max(1, beside):
        return
    part = np.flatnonzero(is_unit if 2 * is_unit.sum() < len(is_unit) else ~is_unit)
    rows = named_rows(data.rows(part))
    where = f"in {rows}, but not in most rows" if is_unit[part[0]] else f"in most rows, but not in {rows}"
    message = f"The norm is 1 {where}; normalise all rows or none, as in the samples to predict."
    yield Finding("mixed_norms", data.rows(part), None, message)


def _unlike_norms(data: _Data) -> Iterator[Finding]:
    median = np.median(data.norms) if len(data.norms) else 0.0
    near, far = _UNLIKE
    # Where norms also lie between, they vary much by nature.
    is_large, is_small = data.norms > far * median, data.norms < median / far
    is_large &= is_large.sum() == (data.norms > near * median).sum()
    is_small &= is_small.sum() == (data.norms < median / near).sum()
    part = np.flatnonzero(is_large | is_small)
    if len(part):
        low, high = data.norms[part].min(), data.norms[part].max()
        span = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
        message = (
            f"The norm is {span} in {named_rows(data.rows(part))}, but {median:.3g} in the median; prepare all rows "
            "alike (units, range of pixels, normalisation), or drop these."
        )
        yield Finding("unlike_norms", data.rows(part), None, message)


def _duplicates(data: _Data) -> Iterator[Finding]:
    """Find exact and near duplicates of each label that are not in one given group."""
    # Equal rows that a fit does not hold for copies, as in rounded tables, are none here either.
    copies = np.unique(np.stack([data.equal, data.units]), axis=1, return_inverse=True)[1].ravel()
    is_near = [part for part in data.together(data.units) if np.ptp(data.equal[part]) > 0]
    exact = (
        "{} has equal rows in {}; by default a fit counts each of these groups as one sample: drop the copies, or pass "
        "duplicates='each' to count all."
    )
    near = (
        "{} has nearly equal rows in {}; drop copies, and pass the recordings, videos or persons that such rows come "
        "from as groups."
    )
    for kind, parts, text in (
        ("exact_duplicates", data.together(copies), exact),
        ("near_duplicates", is_near, near),
    ):
        apart = [part for part in parts if data.groups is None or np.ptp(data.groups[part]) > 0]
        for code, own in sorted(grouped(apart, lambda part: int(data.classes[part[0]])).items()):
            label, sets = data.labels[code], [data.rows(part) for part in own]
            message = text.format(named_class(label, data.open_label), named_groups(sets))
            yield Finding(kind, sorted(chain(*sets)), label, message)
