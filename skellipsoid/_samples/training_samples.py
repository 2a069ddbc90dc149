"""The samples of a fit, as arrays: made once from what the user passed, standardized, and kept for later changes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from .duplicates import FEWEST_FEATURES, find_duplicates
from .equal import equal_samples, in_order
from .samples import Samples, find_scale

if TYPE_CHECKING:  # most baselines need no torch
    import torch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Samples are equal to a training sample within these fractions of the usual distance from the middle, of all samples
#: and of the class: an embedding model rounds otherwise in another batch.
_SAME, _SAME_OF_CLASS = 1e-4, 1e-3
#: Number of directions along which they are first compared, and number of samples in a part.
_N_DIRECTIONS, _PART = 8, 4096


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """Distinct training samples of known classes, and real open samples."""

    mean: Floats  # (n_features,) subtracted from the features; 0 before they are standardized
    features: NDArray[Any]  # (n_samples, n_features)
    classes: Integers  # (n_samples,)
    weights: Floats  # (n_samples,)
    copies: Integers  # (n_samples,) number of given samples that are equal to it
    units: Integers  # (n_samples,)
    groups: Integers  # (n_samples,)
    validates: NDArray[np.int8]  # (n_samples,) 1 for validation samples, 0 for the others, −1 if undecided
    open_features: NDArray[Any]  # (n_open, n_features)
    open_validates: NDArray[np.int8]  # (n_open,)

    def __repr__(self) -> str:
        """Give no sample: joblib shows its arguments where it cannot read a cache."""
        return f"TrainingSamples({len(self.features)} samples of {self.features.shape[1]} features)"

    def __len__(self) -> int:
        """Return the number of known samples."""
        return len(self.features)

    def where(self, chosen: NDArray[np.bool_]) -> "TrainingSamples":
        """Select known samples; all open ones stay."""
        if chosen.all():
            return self
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def with_places(self, places: Integers) -> "TrainingSamples":
        """Renumber classes."""
        return replace(self, classes=places[self.classes])

    def with_open(self, features: NDArray[Any]) -> "TrainingSamples":
        """Append open samples."""
        return self.appended({"open_features": features, "open_validates": _undecided(features)})

    def with_open_apart(self, n_classes: int) -> "TrainingSamples":
        """Take samples with the number ``n_classes``, which are open, out of the known ones."""
        is_known = self.classes < n_classes
        opened = {"open_features": self.features[~is_known], "open_validates": self.validates[~is_known]}
        return replace(self.where(is_known), **opened)

    def standardized(self, *, rescales: bool) -> tuple["TrainingSamples", float]:
        """Subtract the mean of the known samples and divide by their scale, which is 1 unless the method ``rescales``.

        Statistics are in double precision: a large shift costs nothing.
        """
        X, weights = self.features, self.weights / self.weights.sum()
        mean = weights @ X.astype(np.float64, copy=False)
        # Adam amplifies the rounding of a mean: a constant feature must become exactly 0.
        constant = np.ptp(X, axis=0) == 0
        mean[constant] = X[0, constant]
        scale = find_scale(X, mean, weights) if rescales else 1.0
        features, opened = (((part - mean) / scale).astype(np.float32) for part in (X, self.open_features))
        return replace(self, mean=mean, features=features, open_features=opened), scale

    def with_validation(
        self,
        features: NDArray[Any],
        classes: Integers,
        weights: Floats,
        units: Integers,
        open_features: NDArray[Any],
    ) -> "TrainingSamples":
        """Append validation samples, known and open ones; all others are then not validation samples."""
        own = 1 + max(int(self.units.max(initial=-1)), int(self.groups.max(initial=-1))) + units
        ones = np.ones(len(features), dtype=np.int64)
        columns: dict[str, NDArray[Any]] = {
            "features": features,
            "classes": classes,
            "weights": weights,
            "copies": ones,
            "units": own,
            "groups": own,
        }
        columns |= {"validates": ones, "open_features": open_features, "open_validates": np.ones(len(open_features))}
        others = np.zeros_like(self.validates), np.zeros_like(self.open_validates)
        return replace(self, validates=others[0], open_validates=others[1]).appended(columns)

    def appended(self, columns: Mapping[str, NDArray[Any]]) -> "TrainingSamples":
        """Append to columns."""
        old = {name: getattr(self, name) for name in columns}
        return replace(
            self, **{name: np.append(old[name], more.astype(old[name].dtype), axis=0) for name, more in columns.items()}
        )

    def normalized(self) -> "TrainingSamples":
        """Scale the weights so that the mean weight of a unit is 1: results do not depend on their scale."""
        weights: Floats = self.weights * (len(np.unique(self.units)) / max(self.weights.sum(), 1e-300))
        if len(weights) and np.allclose(weights, weights[:1], rtol=1e-12):
            weights = np.full(len(weights), round(float(weights[0]), 12))
        return replace(self, weights=weights)

    def as_tensors(self, n_classes: int, device: "torch.device") -> tuple[Samples, "torch.Tensor"]:
        """Return the known samples, and the features of the open ones, as tensors: the one step from NumPy to torch."""
        import torch

        features, classes = torch.from_numpy(self.features).to(device), torch.from_numpy(self.classes).to(device)
        known = Samples.of(features, classes, n_classes, self.weights, self.units, self.groups)
        return known, torch.from_numpy(self.open_features).to(device)

    def groups_of_rows(self) -> Integers:
        """Group of each given row, copies included; then of the open ones, each of which is alone."""
        groups = np.repeat(self.groups, self.copies)
        return np.append(groups, 1 + groups.max(initial=-1) + np.arange(len(self.open_features)))

    def constants(self) -> NDArray[Any]:
        """Values of constant features, 0 for the others, (n_features,): in a fit, a constant feature is 0."""
        return np.where(np.ptp(self.features, axis=0) == 0, self.features[0], np.float32(0))

    def moved(self, by: NDArray[Any], scale: float) -> "TrainingSamples":
        """Move the mean."""
        if not by.any():
            return self
        features, open_features = self.features - by, self.open_features - by
        return replace(self, mean=self.mean + scale * by, features=features, open_features=open_features)

    def decided_by(self, fitted: "TrainingSamples") -> "TrainingSamples":
        """Take over which samples are validation samples, from a fit to these samples and to others."""
        decided = {
            (row.tobytes(), code): validates
            for row, code, validates in zip(fitted.features, fitted.classes, fitted.validates, strict=True)
        }
        rows = zip(self.features, self.classes, strict=True)
        validates = np.array([decided[row.tobytes(), code] for row, code in rows], dtype=np.int8)
        return replace(self, validates=validates, open_validates=fitted.open_validates[: len(self.open_features)])

    def with_samples(
        self,
        features: NDArray[Any],
        classes: Integers,
        groups: Integers | None,
        duplicates: str,
        altered: NDArray[np.bool_] | None = None,
        weight: float = 1.0,
    ) -> "TrainingSamples":
        """Add samples of some classes.

        Duplicates are searched anew among all samples of these classes, or among those that are ``altered``. A new
        sample has ``weight`` times the mean weight of the old ones.
        """
        is_merged = altered is not None
        altered = np.isin(self.classes, classes) if altered is None else altered
        rest, old = self.where(~altered), self.where(altered)
        # Each of two classes that are merged is dense beside the other: alone, half of the samples would be duplicates.
        n_others = len(rest) if is_merged else 0
        has_groups = groups is not None or not np.array_equal(self.groups, self.units)
        first = 1 + max(int(self.groups.max(initial=-1)), int(self.units.max(initial=-1)))
        own = first + (np.arange(len(features)) if groups is None else groups)
        copies = np.concatenate([old.copies, np.ones(len(features), dtype=np.int64)])
        typical = weight * self._totals(duplicates).sum() / max(int(self.copies.sum()), 1)
        each = np.concatenate([old._totals(duplicates) / old.copies, np.full(len(features), typical)])
        validates = np.append(old.validates, _undecided(features))
        features, classes = np.concatenate([old.features, features]), np.concatenate([old.classes, classes])
        groups = np.concatenate([old.groups, own]) if has_groups else None
        numbers, new, _ = gather(features, classes, each, groups, duplicates, copies, n_others)
        units = first + len(copies) + new.units
        own = units if groups is None else groups[numbers]
        new = replace(new, units=units, groups=own, validates=validates[numbers])
        return rest.appended({name: getattr(new, name) for name in _COLUMNS}).normalized()

    def labels_of(self, features: NDArray[Any], n_classes: int) -> Integers:
        """Return the class of the training sample that each sample is equal to up to rounding, (n_samples,).

        It is ``n_classes`` of an open one, and −1 without one. Validation samples are none: boundaries are computed
        without them. If training samples of one class are equal by chance, as in few columns of whole numbers, no
        sample that is equal to one of them is a copy of it.
        """
        if not self._tells_copies():
            return np.full(len(features), -1, dtype=np.int64)
        trained = self.where(self.validates != 1)
        opened = self.open_features[self.open_validates != 1]
        rows = np.concatenate([trained.features, opened])
        codes = np.append(trained.classes, np.full(len(opened), n_classes))
        if not len(rows):
            return np.full(len(features), -1, dtype=np.int64)
        directions = np.random.default_rng(0).normal(size=(rows.shape[1], min(_N_DIRECTIONS, rows.shape[1])))
        directions = np.linalg.qr(directions)[0]  # nothing lies farther apart along these than it does

        def along(features: NDArray[Any]) -> Floats:
            parts = np.array_split(features, -(-len(features) // _PART) or 1)
            return np.concatenate([part.astype(np.float64) @ directions for part in parts])

        within = trained.rounding(n_classes)
        nearest = KDTree(along(rows)).query(along(features), distance_upper_bound=1.01 * within.max())[1]
        found = np.flatnonzero(nearest < len(rows))
        for part in np.array_split(found, -(-len(found) // _PART) or 1):
            apart = np.linalg.norm(features[part].astype(np.float64) - rows[nearest[part]], axis=1)
            nearest[part[apart > within[codes[nearest[part]]]]] = len(rows)
        labels: Integers = np.append(codes, -1)[nearest]
        return labels

    def _tells_copies(self) -> bool:
        """Whether equal samples are copies: of those of one class, no two are equal by chance."""
        if (np.ptp(self.features, axis=0) > 0).sum() < FEWEST_FEATURES:
            return False
        first = equal_samples(np.ascontiguousarray(self.features[:, :_N_DIRECTIONS]), self.classes)
        alike = self.where(np.bincount(first)[first] > 1)
        equal = equal_samples(alike.features, alike.classes)
        return len(np.unique(equal)) == len(np.unique(np.stack([equal, alike.units]), axis=1)[0])

    def rounding(self, n_classes: int) -> Floats:
        """How far equal samples may lie from each other, by their class, (n_classes + 1,); the last are open."""
        order = np.argsort(self.classes, kind="stable")
        numbers, first = np.unique(self.classes[order], return_index=True)
        spreads = np.full(n_classes + 1, np.inf)
        for number, members in zip(numbers, np.split(order, first[1:]), strict=True):
            part = self.features[members].astype(np.float64)
            spread = float(np.sqrt(np.square(part - part.mean(axis=0)).sum(axis=1).mean()))
            spreads[number] = spread or np.inf
        lengths = np.linalg.norm(self.features, axis=1)
        most = np.minimum(_SAME * float(np.median(lengths)), _SAME_OF_CLASS * spreads)
        # Rounding of single precision is never smaller.
        return np.maximum(most, 4 * np.finfo(np.float32).eps * float(np.median(lengths)))

    def _totals(self, duplicates: str) -> Floats:
        """Sum of the weights that were given for each sample and its copies, on the scale of ``weights``."""
        if duplicates != "once" or not len(self):
            return self.weights
        return np.asarray(self.weights * np.bincount(self.units, self.copies)[self.units])


#: Columns with one entry for each known sample.
_COLUMNS = ("features", "classes", "weights", "copies", "units", "groups", "validates")


def gather(
    features: NDArray[Any],
    classes: Integers,
    weights: Floats,
    groups: Integers | None,
    duplicates: str,
    copies: Integers | None = None,
    n_others: int = 0,
) -> tuple[Integers, TrainingSamples, Integers]:
    """Find duplicates, merge equal samples, and weight the samples.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    classes : ndarray of shape (n_samples,)
        Real open samples have a number of their own.
    weights : ndarray of shape (n_samples,)
        Positive.
    groups : ndarray of shape (n_samples,) or None
        Numbered groups; ``None``: the duplicates.
    duplicates : {"once", "each", "off"}
        Whether duplicates together have the mean of their weights, or each its own, or are not searched.
    copies : ndarray of shape (n_samples,) or None
        Number of equal samples that each one stands for, of its weight and in its group; ``None``: 1. Where they are
        equal by chance, each becomes a sample of its own.
    n_others : int, default=0
        Number of samples that are not searched, as ``find_duplicates`` takes it.

    Returns
    -------
    numbers : ndarray of shape (n_distinct,)
        Of the given samples: the first of the equal ones.
    samples : TrainingSamples
        The distinct samples, those that are open among the known ones. The weight is the sum of the equal ones.
    found : ndarray
        Group of each given sample, and of each copy that became a sample.
    """
    given = np.arange(len(features))
    copies = np.ones_like(given) if copies is None else copies
    units = (
        np.where(copies > 1, -1, given) if duplicates == "off" else find_duplicates(features, classes, copies, n_others)
    )
    given = np.repeat(given, np.where(units < 0, copies, 1))
    copies, units = np.where(units < 0, 1, copies)[given], units[given]
    units = in_order(np.where(units < 0, len(features) + np.arange(len(given)), units))
    found = units if groups is None else in_order(groups[given])
    weights = weights[given]
    if duplicates == "once":
        weights = weights / np.bincount(units, copies)[units]
    same = np.arange(len(given))
    if len(np.unique(units)) < len(given):
        # Equal samples are one sample, unless they are independent of each other.
        keys = np.stack([units, found, equal_samples(features, classes)[given]])
        same = in_order(np.unique(keys, axis=1, return_inverse=True)[1].ravel())
    firsts = np.unique(same, return_index=True)[1]
    numbers = given[firsts]
    distinct = features if np.array_equal(numbers, np.arange(len(features))) else features[numbers]
    samples = TrainingSamples(
        mean=np.zeros(features.shape[1]),
        features=distinct,
        classes=classes[numbers],
        weights=np.bincount(same, copies * weights).astype(np.float64),
        copies=np.bincount(same, copies).astype(np.int64),
        units=units[firsts],
        groups=found[firsts],
        validates=np.full(len(numbers), -1, dtype=np.int8),
        open_features=distinct[:0],
        open_validates=np.empty(0, dtype=np.int8),
    )
    return numbers, samples, found


def _undecided(features: NDArray[Any]) -> NDArray[np.int8]:
    return np.full(len(features), -1, dtype=np.int8)
