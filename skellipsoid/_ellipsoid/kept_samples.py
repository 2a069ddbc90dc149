"""The training samples that a classifier keeps, and how it is fitted to them.

A fit passes through here too: so a change of the classes is a fit to the samples that were kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.labels import as_kind_of
from .._core.validation import enumerated
from .._core.warn import warn
from .._samples.duplicates import equal_rows, find_duplicates
from .._samples.samples import Gathered, Samples, gather, normalized
from .._torch.devices import resolve_device, resolve_seed
from .._torch.threads import one_thread_each
from .math.boundaries import Boundaries, Chosen
from .math.closed_form import fit_closed_form
from .math.held_out import FEWEST_OF_CLASS
from .paper.fit import Fixed, as_boundaries, hold_out, hold_out_open, train_ellipsoids
from .stored_shapes import StoredShapes

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

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give all columns by name, as fitted state."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

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


class FitsKeptSamples(StoredShapes):
    """Base of the ellipsoid classifier: fits boundaries to samples that are kept."""

    alpha: float
    beta: float
    trainer: Any
    random_state: int | np.random.RandomState | None

    def _fit_closed_form(self, kept: KeptSamples, device: torch.device, given: Chosen | None = None) -> Boundaries:
        samples, opened = kept.samples(len(self.classes_), device), torch.from_numpy(kept.open_rows).to(device)
        seed = 0 if given else resolve_seed(self.random_state)  # with all given, nothing is drawn
        fresh = None
        if (kept.held == 1).any():
            validates = torch.from_numpy(kept.held == 1).to(device)
            samples, fresh = samples.where(~validates), samples.where(validates)
        return fit_closed_form(samples, opened, self.alpha, self.beta, seed, given, fresh)

    def _train(
        self, kept: KeptSamples, device: torch.device, fixed: Fixed | None = None
    ) -> tuple[Boundaries, KeptSamples]:
        """Train matrices; what is kept then says which samples were validation samples."""
        settings = self.trainer._settings(self.alpha, self.beta, len(self.classes_))
        samples, opened = kept.samples(len(self.classes_), device), torch.from_numpy(kept.open_rows).to(device)
        seed = resolve_seed(self.random_state)
        held = hold_out(samples, kept.held, settings.validation_fraction, seed)
        open_held = hold_out_open(kept.open_held, settings.validation_fraction, seed)
        validates, opens = torch.from_numpy(held).to(device), torch.from_numpy(open_held).to(device)
        training, validation = (samples.where(~validates), opened[~opens]), (samples.where(validates), opened[opens])
        fitted = as_boundaries(train_ellipsoids(*training, settings, seed, validation, fixed))
        return fitted, replace(kept, held=held.astype(np.int8), open_held=open_held.astype(np.int8))

    @one_thread_each()
    def _fit_kept(
        self,
        kept: KeptSamples,
        chosen_by: "FitsKeptSamples | None" = None,
        same: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Fit to samples; if an earlier fit kept them, with its shares and radius scale where it has some.

        With a trainer, ``same`` classes, by their new and their old numbers, keep their matrices.
        """
        device = resolve_device(self.device)
        if self.trainer is None:
            fitted = self._fit_closed_form(kept, device, None if chosen_by is None else chosen_by._chosen())
        else:
            fitted, kept = self._train(kept, device, None if chosen_by is None else chosen_by._fixed(same, device))
        self._store(fitted)
        if chosen_by is not None and self.trainer is not None and not fitted.losses:  # nothing was trained
            self.n_iter_, self.loss_curve_ = chosen_by.n_iter_, chosen_by.loss_curve_
            self.validation_scores_ = chosen_by.validation_scores_
        self._kept = kept.arrays()
        degenerate = fitted.degenerate.cpu().numpy()
        self._warn_of_degenerate(degenerate)
        if self.trainer is None:
            trains = kept.held != 1
            self._warn_of_few(kept.classes[trains], kept.groups[trains], degenerate)

    def _fixed(self, same: Mapping[int, int], device: torch.device) -> Fixed | None:
        """Give the trained matrices of some classes, under their new numbers; ``None`` after a closed form."""
        if self._metric_axes is not None or not len(self._axes):
            return None
        n_features = self.n_features_in_
        components = torch.from_numpy(self._axes).view(-1, n_features, n_features)[list(same.values())]
        return Fixed(torch.tensor(list(same), dtype=torch.int64, device=device), components.to(device))

    def _with_validation(self, kept: KeptSamples, validation: tuple[NDArray[Any], NDArray[Any]] | None) -> KeptSamples:
        """Append validation samples, known and open ones; all others are then training samples.

        The closed form takes no copies of training samples.
        """
        if validation is None:
            return kept
        X, y = validation
        y = as_kind_of(y, self.classes_, "y_val", "y")
        rows, classes = self._standardize(X, np.float32).numpy(), self._encode(y)
        known = classes < len(self.classes_)
        opened, rows, classes = rows[~known], rows[known], classes[known]
        units, weights = np.arange(len(rows)), np.ones(len(rows))
        if self.trainer is None:
            units, is_copy = self._find_copies(kept, rows, classes)
            rows, classes, units = rows[~is_copy], classes[~is_copy], units[~is_copy]
            weights = 1 / np.bincount(units)[units] if self.duplicates == "once" else np.ones(len(rows))
        own = 1 + max(int(kept.units.max(initial=-1)), int(kept.groups.max(initial=-1))) + units
        ones = np.ones(len(rows), dtype=np.int64)
        columns = {"rows": rows, "classes": classes, "weights": weights, "copies": ones, "units": own, "groups": own}
        columns |= {"held": ones, "open_rows": opened, "open_held": np.ones(len(opened))}
        training = replace(kept, held=np.zeros_like(kept.held), open_held=np.zeros_like(kept.open_held))
        return training.appended(columns)

    def _find_copies(
        self, kept: KeptSamples, rows: NDArray[np.float32], classes: Integers
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Find duplicates among validation samples, and those of training samples; a warning counts the latter."""
        features, labels = np.concatenate([kept.rows, rows]), np.concatenate([kept.classes, classes])
        find = equal_rows if self.duplicates == "off" else find_duplicates
        units = find(features, labels)
        is_copy = np.isin(units[len(kept) :], units[: len(kept)])
        if is_copy.any():
            warn(
                f"{is_copy.sum()} of {len(rows)} known samples of X_val are duplicates of training samples, which do "
                "not show how far out new samples lie; they are dropped. Pass samples that are not in X."
            )
        return units[len(kept) :], is_copy

    def _warn_of_few(
        self, classes: NDArray[np.int64], groups: NDArray[np.int64], degenerate: NDArray[np.bool_]
    ) -> None:
        """Warn of classes whose boundaries are judged by too few held-out groups; those of one have other warnings."""
        counts = np.bincount(np.unique(np.stack([classes, groups]), axis=1)[0], minlength=len(self.classes_))
        few = (counts > 1) & (counts < FEWEST_OF_CLASS) & ~degenerate
        if not few.any():
            return
        if 2 * few.sum() > len(few):
            result = "new samples may be rejected, and open samples accepted, much more often than held-out ones"
        else:
            result = "many of their new samples will be rejected"
        warn(
            f"{few.sum()} of {len(few)} classes have fewer than {FEWEST_OF_CLASS} different samples, or groups of "
            f"them ({enumerated(self.classes_[few])}; the smallest has {counts[few].min()}). Too few held-out samples "
            f"judge their boundaries, so {result}; collect at least {FEWEST_OF_CLASS} of each class, or set the "
            "operating point on new samples."
        )
