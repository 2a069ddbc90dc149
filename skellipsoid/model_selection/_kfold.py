"""K-fold splitters: every sample is tested once, and some classes or the labelled open samples are open."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ._labels import OPEN, Indices, Labels, Mask, RandomState, resolve_random_state
from ._splitter import OpenSetSplitter, check_count


class _PartitionSplitter(OpenSetSplitter):
    """Base of the splitters whose test parts are those of scikit-learn's stratified splitters."""

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: RandomState = None, open_label: Any = -1
    ) -> None:
        check_count("n_splits", n_splits, 2)
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle={shuffle!r} must be True or False.")
        if random_state is not None and not shuffle:
            raise ValueError(
                f"random_state={random_state!r} has no effect while shuffle=False: set shuffle=True or leave it None."
            )
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.open_label = open_label

    def _partition(self, labels: Labels, groups: Indices | None, rng: np.random.RandomState | None) -> Indices:
        """Fold of each sample, of shape (n_samples,), stratified over the classes and the open samples."""
        _check_class_sizes(labels, self.n_splits)
        splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        if groups is not None and groups.max() + 1 < self.n_splits:
            raise ValueError(
                f"groups holds {groups.max() + 1} groups, fewer than n_splits={self.n_splits}: each fold tests whole "
                "groups, so use fewer splits or finer groups."
            )
        folds = np.empty(len(labels.codes), dtype=np.intp)
        parts = splitter(self.n_splits, shuffle=self.shuffle, random_state=rng)
        with warnings.catch_warnings():
            # Classes are large enough here, so the warning is about open samples, which need not be in every fold.
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            for fold, (_, test) in enumerate(parts.split(labels.codes, labels.codes, groups)):
                folds[test] = fold
        return folds


class OpenSetKFold(_PartitionSplitter):
    r"""Stratified K-fold in which every fold leaves whole classes out of training.

    The samples are divided into ``n_splits`` stratified test parts, as in ordinary cross-validation. The classes are
    divided into ``n_splits`` balanced groups. Split *i* tests the samples of part *i*, and trains on the other samples,
    without the classes of group *i*. So these classes are unknown to the estimator, and their samples in the test part
    are open. Every class is open in exactly one split.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits, at least 2 and at most the number of classes. A split holds out one ``n_splits``-th of the
        classes (rounded up or down) and must keep at least two classes.
    shuffle : bool, default=False
        Whether to draw the samples of each part and the classes of each group at random. With ``False``, samples keep
        their order as in :class:`~sklearn.model_selection.StratifiedKFold`, and the groups of classes are balanced in
        samples.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw, for ``shuffle=True`` only. ``None`` draws one from NumPy's global generator at each call.
    open_label : int or str, default=-1
        Label of samples that are already known to be open, cast to the kind of ``y`` (-1 for numbers, ``"-1"`` for
        strings). They are in no training part, and in one test part each.

    See Also
    --------
    OpenSetShuffleSplit : Repeated random splits with any known-class ratio.
    RealOpenKFold : Only the samples already labelled open are open, no class is held out.
    KnownClassSplit : One split by the protocol of the literature.

    Notes
    -----
    With :math:`F_i` the samples of part *i* and :math:`C_i` the classes of group *i*,

    .. math:: \mathrm{test}_i = F_i, \qquad \mathrm{train}_i = \{ j \notin F_i : y_j \notin C_i, y_j \ne \text{open} \}.

    Samples of :math:`C_i` outside :math:`F_i` are in neither part of split *i*. The test parts are a partition of the
    samples, so :func:`~sklearn.model_selection.cross_val_predict` works. For the same ``random_state`` they are the
    test parts of ``StratifiedKFold`` on the same ``y`` (with ``groups``, of ``StratifiedGroupKFold``). So results of
    both splitters can be compared on the same samples.

    The numbers of classes in two groups of classes differ by at most one, and their numbers of samples by at most the
    size of the largest class. With ``groups``, a class can be open only in a part where it has samples, so the balance
    is as good as the groups allow. A class that is entirely in one group is open in the part of that group.

    About :math:`1 / n` of the classes is open in each of :math:`n` splits. For another known-class ratio, use
    :class:`OpenSetShuffleSplit`. Use a scorer that reads a label outside ``classes_`` as open, such as those of
    :mod:`skellipsoid.metrics`.

    References
    ----------
    .. [1] W. J. Scheirer, A. de Rezende Rocha, A. Sapkota, T. E. Boult, "Toward Open Set Recognition", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 35 (7), 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.model_selection import OpenSetKFold
    >>> y = np.repeat(["card", "loan", "rate", "transfer"], 4)
    >>> for train, test in OpenSetKFold(n_splits=2).split(y, y):
    ...     print("known", np.unique(y[train]).tolist(), "open", np.setdiff1d(y[test], y[train]).tolist())
    known ['loan', 'transfer'] open ['card', 'rate']
    known ['card', 'rate'] open ['loan', 'transfer']
    >>> OpenSetKFold(n_splits=2)
    OpenSetKFold(n_splits=2, open_label=-1, random_state=None, shuffle=False)
    """

    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        _check_class_number(labels, self.n_splits)
        rng = resolve_random_state(self.random_state) if self.shuffle else None
        folds = self._partition(labels, groups, rng)
        open_in = _assign_open_folds(_count_rows(labels, folds, self.n_splits), rng)
        _check_proportions(open_in, self.n_splits)
        is_class = labels.codes != OPEN
        for fold in range(self.n_splits):
            test = folds == fold
            yield ~test & is_class & (open_in[labels.codes] != fold), test


class RealOpenKFold(_PartitionSplitter):
    r"""Stratified K-fold for data with real open samples, which are in no training part and in one test part each.

    Ordinary stratified cross-validation trains on samples with the open label as on one more class. Here they are
    divided over the test parts like a class, but are in no training part.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits, at least 2 and at most the number of samples of each class and of open samples.
    shuffle : bool, default=False
        Whether to draw the samples of each part at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw, for ``shuffle=True`` only. ``None`` draws one from NumPy's global generator at each call.
    open_label : int or str, default=-1
        Label of the open samples, cast to the kind of ``y`` (-1 for numbers, ``"-1"`` for strings).

    See Also
    --------
    OpenSetKFold : Leaves whole classes out of training. It needs no sample with the open label.

    Notes
    -----
    With :math:`F_i` the samples of part *i*,

    .. math:: \mathrm{test}_i = F_i, \qquad \mathrm{train}_i = \{ j \notin F_i : y_j \ne \text{open} \}.

    Each open sample is in exactly one test part, not in all of them: the test parts are a partition of the samples, so
    that :func:`~sklearn.model_selection.cross_val_predict` works and each part has the same proportion of open samples
    as the data. They are the parts of :class:`~sklearn.model_selection.StratifiedKFold` on the same ``y``.

    A search with ``refit=True`` fits its last estimator on all samples, including the open ones. The classifiers of
    this package read them as open. For another classifier, set ``refit=False`` and fit it on the known samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.model_selection import RealOpenKFold
    >>> y = np.array([0, 0, 1, 1, -1, -1, -1, -1])
    >>> for train, test in RealOpenKFold(n_splits=2).split(y, y):
    ...     print("train", y[train].tolist(), "test", y[test].tolist())
    train [0, 1] test [0, 1, -1, -1]
    train [0, 1] test [0, 1, -1, -1]
    """

    def _split_rows(self, labels: Labels, groups: Indices | None) -> Iterator[tuple[Mask, Mask]]:
        is_open = labels.codes == OPEN
        self._check_open_rows(labels, int(is_open.sum()))
        rng = resolve_random_state(self.random_state) if self.shuffle else None
        folds = self._partition(labels, groups, rng)
        self._check_groups(labels, _count_rows(labels, folds, self.n_splits), np.unique(folds[is_open]))
        for fold in range(self.n_splits):
            test = folds == fold
            yield ~test & ~is_open, test

    def _check_open_rows(self, labels: Labels, n_open: int) -> None:
        if not n_open:
            raise ValueError(
                f"No sample carries the open label (open_label={self.open_label!r}): pass the label that marks open "
                "samples, or use OpenSetKFold, which needs none."
            )
        if n_open < self.n_splits:
            raise ValueError(
                f"y holds {n_open} open samples, fewer than n_splits={self.n_splits}: each test part needs one, so use "
                "fewer splits, or use OpenSetKFold."
            )
        if len(labels.classes) < 2:
            raise ValueError(
                f"y holds {len(labels.classes)} known classes beside the open label, but at least 2 are needed: pass "
                "another open label if that label is a class."
            )

    def _check_groups(self, labels: Labels, counts: Indices, open_folds: Indices) -> None:
        """Raise an error if groups keep a class out of a training part, or open samples out of a test part."""
        confined = (counts > 0).sum(axis=1) == 1
        if confined.any():
            raise ValueError(
                f"Groups hold all samples of the classes {labels.names(confined)} in one test part, where no training "
                "sample is left for them: use finer groups or drop these classes."
            )
        if len(open_folds) < self.n_splits:
            raise ValueError(
                f"Groups leave {self.n_splits - len(open_folds)} of {self.n_splits} test parts without an open sample: "
                "use fewer splits or finer groups."
            )


def _count_rows(labels: Labels, folds: Indices, n_splits: int) -> Indices:
    """Count the test samples of each class in each fold: shape (n_classes, n_splits)."""
    is_class = labels.codes != OPEN
    cells = labels.codes[is_class] * n_splits + folds[is_class]
    return np.bincount(cells, minlength=len(labels.classes) * n_splits).reshape(-1, n_splits)


def _assign_open_folds(counts: Indices, rng: np.random.RandomState | None) -> Indices:
    """Choose for each class the fold in which it is open.

    Classes are dealt in rounds, largest first; in a round each fold takes one class, and only one that it can test. So
    the numbers of open classes differ by at most one, and their samples by at most the largest class, if every fold can
    test every class.

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_splits)
        Number of test samples of each class in each fold.
    rng : RandomState or None
        Draws the order among classes of one size and the fold within a round. Without it classes of one size keep
        their order, and large classes go to the folds with the fewest open samples so far.

    Returns
    -------
    open_in : ndarray of shape (n_classes,)
    """
    n_classes, n_splits = counts.shape
    sizes = counts.sum(axis=1)
    ties = np.arange(n_classes) if rng is None else rng.permutation(n_classes)
    rank = np.empty(n_classes)
    rank[np.lexsort((ties, -sizes))] = np.arange(n_classes)
    # More than any sum of ranks in a round, so that a round fills as many folds as it can.
    forbidden = float((n_classes + 1) * (n_splits + 1))
    open_in = np.full(n_classes, OPEN)
    load = np.zeros(n_splits)
    while (waiting := np.flatnonzero(open_in == OPEN)).size:
        # Preferences among folds sum to less than one in a round: they never outweigh a rank.
        preference: NDArray[np.float64]
        if rng is None:
            preference = np.outer(sizes[waiting], load) / float(sizes.sum()) ** 2
        else:
            preference = rng.random_sample((len(waiting), n_splits)) / n_splits
        cost = np.where(counts[waiting] > 0, rank[waiting, np.newaxis] + preference, forbidden)
        rows, folds = linear_sum_assignment(cost)
        possible = counts[waiting[rows], folds] > 0
        taken, folds = waiting[rows[possible]], folds[possible]
        open_in[taken] = folds
        load[folds] += sizes[taken]
    return open_in


def _check_class_number(labels: Labels, n_splits: int) -> None:
    n_classes = len(labels.classes)
    if n_classes < 3:
        raise ValueError(
            f"y holds {n_classes} known classes, but at least 3 are needed to leave one out of training and keep two: "
            "use RealOpenKFold if open samples are labelled, or more classes."
        )
    if n_classes < n_splits:
        raise ValueError(
            f"y holds {n_classes} known classes, fewer than n_splits={n_splits}: every split leaves out at least one "
            f"whole class, so use n_splits={n_classes} at most."
        )
    n_kept = n_classes - -(-n_classes // n_splits)
    if n_kept < 2:
        raise ValueError(
            f"n_splits={n_splits} leaves {n_kept} of {n_classes} classes known in a split, but at least 2 are needed: "
            f"use n_splits={n_classes}."
        )


def _check_class_sizes(labels: Labels, n_splits: int) -> None:
    counts = labels.counts
    small = counts < n_splits
    if small.any():
        raise ValueError(
            f"Too few samples of the classes {labels.names(small)} (the smallest has {counts.min()}), because each of "
            f"n_splits={n_splits} test parts needs one: use fewer splits, or drop or gather samples of these "
            "classes."
        )


def _check_proportions(open_in: Indices, n_splits: int) -> None:
    """Raise an error if groups tie classes together so that a split has no open class, or fewer than two known ones."""
    shares = np.bincount(open_in, minlength=n_splits)
    n_known = len(open_in) - int(shares.max())
    if not shares.all() or n_known < 2:
        raise ValueError(
            f"Groups hold the classes together so that the splits leave out {shares.tolist()} of {len(open_in)} "
            "classes, but each must leave out one and keep two: use fewer splits or finer groups."
        )
