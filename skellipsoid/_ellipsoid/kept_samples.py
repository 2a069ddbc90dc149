"""The training samples of a classifier, which it keeps: a change of its classes is a fit to them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._samples.samples import Gathered, Samples, gather, normalized

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeptSamples:
    """Distinct training samples of known classes, and open samples, in the features of the fit."""

    mean: NDArray[np.float64]  # (n_features,) subtracted from X; then all is divided by the scale
    rows: NDArray[np.float32]  # (n_kept, n_features)
    classes: Integers  # (n_kept,)
    weights: NDArray[np.float64]  # (n_kept,)
    copies: Integers  # (n_kept,) number of given samples that are equal to it
    units: Integers  # (n_kept,)
    groups: Integers  # (n_kept,)
    held: NDArray[np.int8]  # (n_kept,) of a trainer: 1 for validation samples, 0 for the others, −1 if undecided
    open_rows: NDArray[np.float32]  # (n_open, n_features)
    open_held: NDArray[np.int8]  # (n_open,)

    @classmethod
    def of(
        cls,
        mean: NDArray[np.float64],
        rows: NDArray[np.float32],
        classes: Integers,
        gathered: Gathered,
        open_rows: NDArray[np.float32],
    ) -> "KeptSamples":
        """Keep the samples of a fit; ``gathered`` are the known ones."""
        given = gathered.weights, gathered.copies, gathered.units, gathered.groups
        return cls(mean, rows, classes, *given, _undecided(rows), open_rows, _undecided(open_rows))

    def __len__(self) -> int:
        """Return the number of known samples."""
        return len(self.rows)

    def where(self, chosen: NDArray[np.bool_]) -> "KeptSamples":
        """Select known samples; all open ones stay."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def with_places(self, places: Integers) -> "KeptSamples":
        """Give classes new numbers."""
        return replace(self, classes=places[self.classes])

    def with_open(self, rows: NDArray[np.float32]) -> "KeptSamples":
        """Append open samples."""
        return self.appended({"open_rows": rows, "open_held": _undecided(rows)})

    def with_validation(
        self,
        rows: NDArray[np.float32],
        classes: Integers,
        weights: NDArray[np.float64],
        units: Integers,
        open_rows: NDArray[np.float32],
    ) -> "KeptSamples":
        """Append validation samples, known and open ones; all others are then training samples."""
        own = 1 + max(int(self.units.max(initial=-1)), int(self.groups.max(initial=-1))) + units
        ones = np.ones(len(rows), dtype=np.int64)
        columns: dict[str, NDArray[Any]] = {
            "rows": rows,
            "classes": classes,
            "weights": weights,
            "copies": ones,
            "units": own,
            "groups": own,
        }
        columns |= {"held": ones, "open_rows": open_rows, "open_held": np.ones(len(open_rows))}
        training = replace(self, held=np.zeros_like(self.held), open_held=np.zeros_like(self.open_held))
        return training.appended(columns)

    def appended(self, columns: Mapping[str, NDArray[Any]]) -> "KeptSamples":
        """Append to columns."""
        old = {name: getattr(self, name) for name in columns}
        return replace(
            self, **{name: np.append(old[name], more.astype(old[name].dtype), axis=0) for name, more in columns.items()}
        )

    def normalized(self) -> "KeptSamples":
        """Scale the weights so that the mean weight of a unit is 1."""
        return replace(self, weights=normalized(self.weights, self.units))

    def samples(self, n_classes: int, device: torch.device) -> Samples:
        """Give the known samples as tensors."""
        rows, classes = torch.from_numpy(self.rows).to(device), torch.from_numpy(self.classes).to(device)
        return Samples.of(rows, classes, n_classes, self.weights, self.units, self.groups)

    def centred(self, scale: float) -> "KeptSamples":
        """Make constant features 0, as in a fit."""
        constant = np.ptp(self.rows, axis=0) == 0
        moved = np.where(constant, self.rows[0], np.float32(0))
        if not moved.any():
            return self
        return replace(self, mean=self.mean + scale * moved, rows=self.rows - moved, open_rows=self.open_rows - moved)

    def with_samples(
        self,
        rows: NDArray[np.float32],
        classes: Integers,
        groups: Integers | None,
        duplicates: str,
        altered: NDArray[np.bool_] | None = None,
        weight: float = 1.0,
    ) -> "KeptSamples":
        """Add samples of some classes.

        Duplicates are searched anew among all samples of these classes, or among those that are ``altered``. A new
        sample has ``weight`` times the mean weight of the old ones.
        """
        altered = np.isin(self.classes, classes) if altered is None else altered
        rest, old = self.where(~altered), self.where(altered)
        has_groups = groups is not None or not np.array_equal(self.groups, self.units)
        first = 1 + max(int(self.groups.max(initial=-1)), int(self.units.max(initial=-1)))
        own = first + (np.arange(len(rows)) if groups is None else groups)
        copies = np.concatenate([old.copies, np.ones(len(rows), dtype=np.int64)])
        typical = weight * self._totals(duplicates).sum() / max(int(self.copies.sum()), 1)
        each = np.concatenate([old._totals(duplicates) / old.copies, np.full(len(rows), typical)])
        rows, classes = np.concatenate([old.rows, rows]), np.concatenate([old.classes, classes])
        groups = np.concatenate([old.groups, own]) if has_groups else None
        found = gather(rows, classes, each, groups, duplicates, copies)
        units = first + len(copies) + found.units
        new: dict[str, NDArray[Any]] = {
            "rows": rows[found.rows],
            "classes": classes[found.rows],
            "weights": found.weights,
            "copies": found.copies,
            "units": units,
            "groups": units if groups is None else groups[found.rows],
            "held": np.append(old.held, _undecided(rows[len(old) :]))[found.rows],
        }
        return rest.appended(new).normalized()

    def _totals(self, duplicates: str) -> NDArray[np.float64]:
        """Sum of the weights that were given for each sample and its copies, on the scale of ``weights``."""
        if duplicates != "once" or not len(self):
            return self.weights
        return np.asarray(self.weights * np.bincount(self.units, self.copies)[self.units])


#: Columns with one entry for each known sample.
_COLUMNS = ("rows", "classes", "weights", "copies", "units", "groups", "held")


def _undecided(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    return np.full(len(rows), -1, dtype=np.int8)
