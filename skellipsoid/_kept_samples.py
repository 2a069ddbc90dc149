"""The training samples that a classifier keeps, so that its classes can change without another look at the data."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._engine.common.samples import Gathered, Samples, gather, normalized

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class KeptSamples:
    """Distinct training samples of known classes, and open samples, in the features of the fit."""

    mean: NDArray[np.float64]  # (n_features,) subtracted from X; then all is divided by ``scale_``
    rows: NDArray[np.float32]  # (n_kept, n_features)
    classes: Integers  # (n_kept,)
    weights: NDArray[np.float64]  # (n_kept,)
    copies: Integers  # (n_kept,) number of given samples that are equal to it
    units: Integers  # (n_kept,)
    groups: Integers  # (n_kept,)
    open_rows: NDArray[np.float32]  # (n_open, n_features)

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
        return cls(mean, rows, classes, gathered.weights, gathered.copies, gathered.units, gathered.groups, open_rows)

    @classmethod
    def read(cls, arrays: Mapping[str, NDArray[Any]]) -> "KeptSamples":
        """Read what ``arrays`` gave."""
        return cls(**arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give all columns by name, as fitted state."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def __len__(self) -> int:
        """Return the number of known samples."""
        return len(self.rows)

    def where(self, chosen: NDArray[np.bool_]) -> "KeptSamples":
        """Select known samples; all open ones stay."""
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def with_classes(self, classes: Integers) -> "KeptSamples":
        """Replace the numbers of the classes."""
        return replace(self, classes=classes)

    def with_groups(self, groups: Integers) -> "KeptSamples":
        """Replace the groups."""
        return replace(self, groups=groups)

    def with_open(self, rows: NDArray[np.float32]) -> "KeptSamples":
        """Append open samples."""
        return replace(self, open_rows=np.concatenate([self.open_rows, rows]))

    def joined(self, more: "KeptSamples") -> "KeptSamples":
        """Append known samples."""
        return replace(
            self, **{name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in _COLUMNS}
        ).normalized()

    def normalized(self) -> "KeptSamples":
        """Scale the weights so that the mean weight of a unit is 1."""
        return replace(self, weights=normalized(self.weights, self.units))

    def samples(self, n_classes: int, device: torch.device) -> Samples:
        """Give the known samples to the engine."""
        rows, classes = torch.from_numpy(self.rows).to(device), torch.from_numpy(self.classes).to(device)
        return Samples.of(rows, classes, n_classes, self.weights, self.units, self.groups)

    def gathered(self) -> Gathered:
        """Give units and groups as a search for duplicates finds them."""
        places = np.arange(len(self))
        return Gathered(places, self.weights, self.units, self.groups, self.copies, self.groups, places)

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
        touched: NDArray[np.bool_] | None = None,
    ) -> "KeptSamples":
        """Add samples of some classes.

        Duplicates are searched anew among all samples of these classes, or among those that are ``touched``. A new
        sample has the mean weight of the old ones.
        """
        touched = np.isin(self.classes, classes) if touched is None else touched
        rest, old = self.where(~touched), self.where(touched)
        has_groups = groups is not None or not np.array_equal(self.groups, self.units)
        first = 1 + max(int(self.groups.max(initial=-1)), int(self.units.max(initial=-1)))
        own = first + (np.arange(len(rows)) if groups is None else groups)
        totals = old._totals(duplicates)
        copies = np.concatenate([old.copies, np.ones(len(rows), dtype=np.int64)])
        typical = self._totals(duplicates).sum() / max(int(self.copies.sum()), 1)
        each = np.concatenate([totals / old.copies, np.full(len(rows), typical)])
        found = gather(
            np.repeat(np.concatenate([old.rows, rows]), copies, axis=0),
            np.repeat(np.concatenate([old.classes, classes]), copies),
            np.repeat(each, copies),
            np.repeat(np.concatenate([old.groups, own]), copies) if has_groups else None,
            duplicates,
        )
        given = np.repeat(np.arange(len(copies)), copies)[found.rows]
        weights = np.bincount(found.places, np.repeat(each, copies)).astype(np.float64)
        if duplicates == "once":
            weights /= np.bincount(found.units, found.copies)[found.units]
        units = first + len(rows) + len(copies) + found.units
        new = replace(
            self,
            rows=np.concatenate([old.rows, rows])[given],
            classes=np.concatenate([old.classes, classes])[given],
            weights=weights,
            copies=found.copies,
            units=units,
            groups=np.concatenate([old.groups, own])[given] if has_groups else units,
        )
        return rest.joined(new)

    def _totals(self, duplicates: str) -> NDArray[np.float64]:
        """Sum of the weights that were given for each sample and its copies, on the scale of ``weights``."""
        if duplicates != "once" or not len(self):
            return self.weights
        return np.asarray(self.weights * np.bincount(self.units, self.copies)[self.units])


#: Columns with one entry for each known sample.
_COLUMNS = ("rows", "classes", "weights", "copies", "units", "groups")
