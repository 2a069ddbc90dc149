"""Random splits by the protocol of the literature: known classes are drawn, all other classes are open."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import is_number
from ._labels import OPEN, Indices, Labels, Mask, RandomState, read_labels, resolve_random_state
from ._splitter import OpenSetSplitter, check_count


class OpenSetShuffleSplit(OpenSetSplitter):
    r"""Repeated random splits: draw known classes, train on their samples, test on held-out samples of all classes.

    Parameters
    ----------
    n_splits : int, default=10
        Number of independent splits.
    test_size : float or int, default=0.2
        Proportion of the samples, or their number, that is held out. Each class gives samples in proportion, at least
        one and never all.
    known_ratio : float, default=0.75
        Share of the classes that stay known, above 0 and at most 1; use 1 only with samples labelled open.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. ``None`` draws one from NumPy's global generator at each call.
    open_label : int or str, default=-1
        Label of samples that are already known to be open, cast to the kind of ``y`` (-1 for numbers, ``"-1"`` for
        strings). They are in no training part; the same proportion of them as of a class is in the test part.

    See Also
    --------
    OpenSetKFold : Each class is open in exactly one split, each sample tested in exactly one.
    KnownClassSplit : The single split of the literature's protocol for a given seed.

    Notes
    -----
    Let :math:`\rho` be ``known_ratio``, and :math:`t` the number of test samples. Of :math:`K` classes,
    :math:`\mathrm{round}(\rho K)` are known in a split (halves are rounded to the even number). Of a class with
    :math:`n_k` of :math:`n` samples, :math:`\lfloor t n_k / n \rfloor` or one more are tested, but at least one and at
    most :math:`n_k - 1`. The classes with the largest remainders get one more. So the test part has the class
    proportions of the data. Every test sample whose class was not drawn is open. Samples of such classes outside the
    test part are in neither part.

    With ``groups``, whole groups are added to the test part in random order until it has enough samples. A group is
    added only if it brings the proportions of the classes closer to ``test_size`` and leaves samples of each known
    class for training.

    References
    ----------
    .. [1] L. Shu, H. Xu, B. Liu, "DOC: Deep Open Classification of Text Documents", EMNLP 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.model_selection import OpenSetShuffleSplit
    >>> y = np.repeat(["card", "loan", "rate", "transfer"], 5)
    >>> for train, test in OpenSetShuffleSplit(n_splits=2, known_ratio=0.5, random_state=0).split(y, y):
    ...     print("known", np.unique(y[train]).tolist(), "test", y[test].tolist())
    known ['rate', 'transfer'] test ['card', 'loan', 'rate', 'transfer']
    known ['loan', 'rate'] test ['card', 'loan', 'rate', 'transfer']
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float = 0.2,
        known_ratio: float = 0.75,
        random_state: RandomState = None,
        open_label: Any = -1,
    ) -> None:
        check_count("n_splits", n_splits, 1)
        _check_test_size(test_size)
        _check_known_ratio(known_ratio)
        self.n_splits = n_splits
        self.test_size = test_size
        self.known_ratio = known_ratio
        self.random_state = random_state
        self.open_label = open_label

    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        rng = resolve_random_state(self.random_state)
        for _ in range(self.n_splits):
            known = _draw_known(labels, self.known_ratio, rng)
            test = _draw_test_rows(labels, groups, known, self.test_size, rng)
            yield _part_rows(labels, groups, known, test)


class KnownClassSplit(OpenSetSplitter):
    r"""The literature's protocol: known classes are drawn by seed, every other class is open in the test part.

    Open-intent papers report means over known-class ratios of 25, 50 and 75 % and over several seeds. This class draws
    the known classes of one ratio and seed (see Notes). As a splitter it generates one split: training samples of the
    known classes, test samples of all classes.

    Parameters
    ----------
    known_ratio : float
        Share of the classes that stay known, above 0 and at most 1; use 1 only with samples labelled open.
    random_state : int
        Seed of the draw. ``None`` is an error, because ``known_classes`` and ``split`` must draw the same classes.
    test_size : float or int, default=0.2
        Proportion of the samples, or their number, that is held out as in :class:`OpenSetShuffleSplit`. Not used when
        ``test_rows`` is given.
    test_rows : array-like of bool of shape (n_samples,) or of int of shape (n_test,), default=None
        The test part, as a mask or as row numbers: the official test split of a data set whose parts were joined.
    open_label : int or str, default=-1
        Label of samples that are already known to be open, cast to the kind of ``y`` (-1 for numbers, ``"-1"`` for
        strings); ``"oos"`` for CLINC150. It is never drawn, and its samples are in no training part.

    See Also
    --------
    OpenSetShuffleSplit : Many random splits, with new known classes in each.
    OpenSetKFold : For choosing hyper-parameters on the training samples of such a split.

    Notes
    -----
    The known classes are ``numpy.random.RandomState(seed).choice(sorted(labels), round(n_labels * ratio),
    replace=False)``. Python's ``round`` takes halves to the even number: 38 of 77 classes at a ratio of 0.5.

    With ``groups``, a drawn test part has whole groups. With ``test_rows``, training samples that share a group with a
    test sample are left out.

    A single split is no partition of the samples. So this class works with ``cross_val_score`` and ``GridSearchCV``,
    but not with ``cross_val_predict``.

    References
    ----------
    .. [1] L. Shu, H. Xu, B. Liu, "DOC: Deep Open Classification of Text Documents", EMNLP 2017.
    .. [2] H. Zhang, H. Xu, T.-E. Lin, "Deep Open Intent Classification with Adaptive Decision Boundary", AAAI 2021.

    Examples
    --------
    Separate files: keep the training samples of the known classes, and read every other class as open in the test file.

    >>> import numpy as np
    >>> from skellipsoid.model_selection import KnownClassSplit
    >>> y_train = np.repeat(["card", "loan", "rate", "transfer"], 3)
    >>> protocol = KnownClassSplit(known_ratio=0.5, random_state=0)
    >>> known = protocol.known_classes(y_train)
    >>> known.tolist()
    ['rate', 'transfer']
    >>> y_train[np.isin(y_train, known)].tolist()
    ['rate', 'rate', 'rate', 'transfer', 'transfer', 'transfer']

    Parts that were joined: name the samples of the test part.

    >>> y_test = np.array(["transfer", "loan", "card"])
    >>> y = np.concatenate([y_train, y_test])
    >>> protocol = KnownClassSplit(known_ratio=0.5, random_state=0, test_rows=np.arange(12, 15))
    >>> train, test = next(protocol.split(y, y))
    >>> train.tolist(), test.tolist()
    ([6, 7, 8, 9, 10, 11], [12, 13, 14])
    """

    n_splits = 1

    def __init__(
        self,
        known_ratio: float,
        random_state: int,
        *,
        test_size: float = 0.2,
        test_rows: ArrayLike | None = None,
        open_label: Any = -1,
    ) -> None:
        _check_known_ratio(known_ratio)
        check_count("random_state", random_state, 0)
        _check_test_size(test_size)
        self.known_ratio = known_ratio
        self.random_state = random_state
        self.test_size = test_size
        self.test_rows = test_rows
        self.open_label = open_label

    def known_classes(self, y: ArrayLike) -> NDArray[Any]:
        """Draw the known classes among the labels that occur.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels in which every class occurs at least once, of training or of all samples, or simply the class names.

        Returns
        -------
        known : ndarray of shape (n_known,)
            In the order of the draw; ``numpy.sort`` gives the order of a classifier's ``classes_``.

        Raises
        ------
        ValueError
            If ``y`` or a label in it is missing, if labels are continuous or mix numbers and strings, or if fewer
            than two classes would be known.
        """
        labels = read_labels(None, y, self.open_label, "KnownClassSplit")
        return labels.classes[_draw_known(labels, self.known_ratio, np.random.RandomState(self.random_state))]

    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        rng = np.random.RandomState(self.random_state)
        known = _draw_known(labels, self.known_ratio, rng)
        if self.test_rows is None:
            test = _draw_test_rows(labels, groups, known, self.test_size, rng)
        else:
            test = _read_test_rows(self.test_rows, len(labels.codes))
        yield _part_rows(labels, groups, known, test)


def _check_known_ratio(known_ratio: Any) -> None:
    if not is_number(known_ratio) or not 0 < float(known_ratio) <= 1:
        raise ValueError(f"known_ratio={known_ratio!r} must be a number above 0 and at most 1.")


def _check_test_size(test_size: Any) -> None:
    is_number = not isinstance(test_size, bool) and isinstance(test_size, numbers.Integral) and int(test_size) >= 1
    is_proportion = isinstance(test_size, numbers.Real) and 0 < float(test_size) < 1
    if not (is_number or is_proportion):
        raise ValueError(
            f"test_size={test_size!r} must be a proportion between 0 and 1, or a number of samples of at least 1."
        )


def _draw_known(labels: Labels, known_ratio: float, rng: np.random.RandomState) -> Indices:
    """Draw the indices of the known classes, in the order of the draw."""
    n_classes = len(labels.classes)
    n_known = round(n_classes * float(known_ratio))
    if n_known < 2:
        raise ValueError(
            f"known_ratio={known_ratio} of {n_classes} classes keeps {n_known} known, but at least 2 are needed: use a "
            "larger ratio or more classes."
        )
    return rng.choice(n_classes, n_known, replace=False)


def _draw_test_rows(
    labels: Labels, groups: Indices | None, known: Indices, test_size: float, rng: np.random.RandomState
) -> Mask:
    """Draw a stratified test part over all classes and the open samples."""
    n_samples = len(labels.codes)
    n_test = int(test_size) if test_size >= 1 else int(np.ceil(n_samples * test_size))
    if n_test >= n_samples:
        raise ValueError(f"test_size={test_size} leaves no training sample among {n_samples}: use a smaller one.")
    if groups is not None:
        return _draw_test_groups(labels, groups, known, n_test, rng)
    if labels.counts.min() < 2:
        raise ValueError(
            f"Too few samples of the classes {labels.names(labels.counts < 2)}, because a class needs one for training "
            "and one for the test part: drop them or gather more samples."
        )
    return _draw_stratified(labels.codes, n_test, rng)


def _draw_stratified(codes: Indices, n_test: int, rng: np.random.RandomState) -> Mask:
    strata, members, counts = np.unique(codes, return_inverse=True, return_counts=True)
    floor, remainder = np.divmod(counts * n_test, len(codes))
    n_taken = np.maximum(floor, 1)
    # Open samples are in no training part, so all of them may be in the test part.
    n_most = np.minimum(floor + (remainder > 0), counts - (strata != OPEN))
    by_remainder = np.lexsort((rng.random_sample(len(strata)), -remainder))
    fillable = by_remainder[(n_most > n_taken)[by_remainder]]
    n_taken[fillable[: max(n_test - n_taken.sum(), 0)]] += 1

    order = rng.permutation(len(codes))
    order = order[np.argsort(members[order], kind="stable")]
    place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    test = np.zeros(len(codes), dtype=bool)
    test[order[place < np.repeat(n_taken, counts)]] = True
    return test


def _draw_test_groups(labels: Labels, groups: Indices, known: Indices, n_test: int, rng: np.random.RandomState) -> Mask:
    strata, members, counts = np.unique(labels.codes, return_inverse=True, return_counts=True)
    table = np.zeros((groups.max() + 1, len(strata)), dtype=np.intp)  # (n_groups, n_strata)
    np.add.at(table, (groups, members), 1)
    left = np.where(np.isin(strata, known), counts, np.iinfo(np.intp).max)
    distance = np.full(len(strata), n_test / len(groups))
    chosen = np.zeros(len(table), dtype=bool)
    n_taken = 0
    for group in rng.permutation(len(table)):
        if n_taken >= n_test:
            break
        closer = distance - table[group] / counts
        if closer @ closer < distance @ distance and (table[group] < left).all():
            chosen[group], distance, left = True, closer, left - table[group]
            n_taken += int(table[group].sum())
    if not chosen.any():
        raise ValueError(
            f"No group fits into a test part of {n_test} of {len(groups)} samples: use finer groups or a larger "
            "test_size."
        )
    return chosen[groups]


def _read_test_rows(test_rows: ArrayLike, n_samples: int) -> Mask:
    rows = np.asarray(test_rows)
    test = np.zeros(n_samples, dtype=bool)
    if rows.dtype == bool and rows.shape == (n_samples,):
        test |= rows
    elif rows.dtype.kind in "iu" and rows.ndim == 1 and rows.size and rows.min() >= 0 and rows.max() < n_samples:
        test[rows] = True
    else:
        raise ValueError(
            f"test_rows has the type {rows.dtype} and the shape {rows.shape}, but must be a mask over the {n_samples} "
            f"rows or row numbers from 0 to {n_samples - 1}."
        )
    return test


def _part_rows(labels: Labels, groups: Indices | None, known: Indices, test: Mask) -> tuple[Mask, Mask]:
    """Training and test mask; raise if a known class has no training sample or no test sample is open."""
    is_known = np.isin(labels.codes, known)
    train = is_known & ~test
    if groups is not None:
        train &= ~np.isin(groups, groups[test])
    untrained = known[~np.isin(known, labels.codes[train])]
    if len(untrained):
        raise ValueError(
            f"No training sample is left for the known classes {labels.names(untrained)}: give the test part fewer "
            "samples."
        )
    if not (test & ~is_known).any():
        raise ValueError(
            f"No test sample is open with {len(known)} of {len(labels.classes)} classes known: use a smaller "
            "known_ratio, a larger test part, or samples with the open label."
        )
    return train, test
