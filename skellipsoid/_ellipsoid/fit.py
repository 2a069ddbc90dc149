"""The two fits to training samples: in closed form, or by the training of the paper.

``method_of`` is the one place that chooses between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.validation import enumerated
from .._core.warn import warn
from .._held_out.table import FEWEST_OF_CLASS
from .._samples.duplicates import equal_rows, find_duplicates
from .._samples.made_up import made_up_classes
from .._torch.devices import resolve_device, resolve_seed
from .kept_samples import KeptSamples
from .math.boundaries import Boundaries, Fitted
from .math.closed_form import fit_closed_form
from .paper.fit import Fixed, as_fitted, hold_out, hold_out_open, train_ellipsoids

Rows = NDArray[np.float32]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Method:
    """Parameters of a classifier that a fit reads."""

    alpha: float
    beta: float
    trainer: Any
    random_state: Any
    duplicates: str
    device: torch.device


class ClosedForm(Method):
    """Ellipsoids from covariances."""

    rescales = True

    def memory(self, n_classes: int, n_rows: int, n_features: int) -> str:
        """Say what takes the most memory."""
        return f"the axes of {n_classes} classes, {n_rows} × {n_features} numbers in double precision"

    def with_validation(self, kept: KeptSamples, rows: Rows, codes: Codes, n_classes: int) -> KeptSamples:
        """Append validation samples, but for duplicates of training samples: they do not show how far out new ones lie.

        A code of ``n_classes`` is that of open samples.
        """
        known = codes < n_classes
        opened, rows, codes = rows[~known], rows[known], codes[known]
        features, labels = np.concatenate([kept.rows, rows]), np.concatenate([kept.classes, codes])
        units = (equal_rows if self.duplicates == "off" else find_duplicates)(features, labels)
        is_copy = np.isin(units[len(kept) :], units[: len(kept)])
        if is_copy.any():
            warn(
                f"{is_copy.sum()} of {len(rows)} known samples of X_val are duplicates of training samples, which do "
                "not show how far out new samples lie; they are dropped. Pass samples that are not in X."
            )
        rows, codes, units = rows[~is_copy], codes[~is_copy], units[len(kept) :][~is_copy]
        weights = 1 / np.bincount(units)[units] if self.duplicates == "once" else np.ones(len(rows))
        return kept.with_validation(rows, codes, weights, units, opened)

    def fit(
        self, kept: KeptSamples, classes: NDArray[Any], earlier: Boundaries | None, same: Mapping[int, int]
    ) -> tuple[Fitted, KeptSamples]:
        """Fit to samples; after an earlier fit, with what that one chose."""
        samples = kept.samples(len(classes), self.device)
        opened = torch.from_numpy(kept.open_rows).to(self.device)
        given = None if earlier is None else earlier.chosen
        seed = 0 if given else resolve_seed(self.random_state)  # with all given, nothing is drawn
        fresh, trains = None, kept.held != 1
        if not trains.all():
            validates = torch.from_numpy(~trains).to(self.device)
            samples, fresh = samples.where(~validates), samples.where(validates)
        fitted = fit_closed_form(samples, opened, self.alpha, self.beta, seed, given, fresh)
        warn_of_few(classes, kept.classes[trains], kept.groups[trains], fitted.degenerate)
        return fitted, kept


class Training(Method):
    """The paper's training of matrices."""

    @property
    def rescales(self) -> bool:
        """Whether features are divided by their scale."""
        return bool(self.trainer.rescale)

    def memory(self, n_classes: int, n_rows: int, n_features: int) -> str:
        """Say what takes the most memory."""
        return f"{n_classes} classes × {n_features} × {n_features} matrices with Adam's two moments"

    def with_validation(self, kept: KeptSamples, rows: Rows, codes: Codes, n_classes: int) -> KeptSamples:
        """Append validation samples, which decide when to stop. A code of ``n_classes`` is that of open samples."""
        known = codes < n_classes
        rows, codes, opened = rows[known], codes[known], rows[~known]
        return kept.with_validation(rows, codes, np.ones(len(rows)), np.arange(len(rows)), opened)

    def fit(
        self, kept: KeptSamples, classes: NDArray[Any], earlier: Boundaries | None, same: Mapping[int, int]
    ) -> tuple[Fitted, KeptSamples]:
        """Train matrices; ``same`` classes, by their new and their old numbers, keep those of an ``earlier`` training.

        What is kept then says which samples were validation samples.
        """
        settings = self.trainer._settings(self.alpha, self.beta, len(classes))
        samples = kept.samples(len(classes), self.device)
        opened, seed = torch.from_numpy(kept.open_rows).to(self.device), resolve_seed(self.random_state)
        held = hold_out(samples, kept.held, settings.validation_fraction, seed)
        open_held = hold_out_open(kept.open_held, settings.validation_fraction, seed)
        validates, opens = (torch.from_numpy(mask).to(self.device) for mask in (held, open_held))
        training, validation = (samples.where(~validates), opened[~opens]), (samples.where(validates), opened[opens])
        fixed = None if earlier is None else self._fixed(earlier, same)
        fitted = as_fitted(train_ellipsoids(*training, settings, seed, validation, fixed))
        return fitted, replace(kept, held=held.astype(np.int8), open_held=open_held.astype(np.int8))

    def _fixed(self, earlier: Boundaries, same: Mapping[int, int]) -> Fixed | None:
        """Give the trained matrices of some classes, under their new numbers; ``None`` after a closed form."""
        axes, n_features = earlier.shapes.factors.axes, len(earlier.mean)
        if earlier.shapes.metric.axes is not None or not len(axes):
            return None
        components = torch.from_numpy(axes).view(-1, n_features, n_features)[list(same.values())]
        numbers = torch.tensor(list(same), dtype=torch.int64, device=self.device)
        return Fixed(numbers, components.to(self.device))


def method_of(classifier: Any) -> ClosedForm | Training:
    """Choose the fit that the parameters of a classifier ask for."""
    method = ClosedForm if classifier.trainer is None else Training
    given = classifier.alpha, classifier.beta, classifier.trainer, classifier.random_state, classifier.duplicates
    return method(*given, resolve_device(classifier.device))


def warn_of_made_up(classes: NDArray[Any], X: NDArray[Any], codes: Codes) -> None:
    """Warn of classes whose samples were made up between others."""
    found = made_up_classes(X, codes)
    if len(found):
        warn(
            f"Many samples of {len(found)} of {len(classes)} classes ({enumerated(classes[found])}) lie exactly "
            "between two others, as SMOTE makes them. They are nearer to their class than real samples, so that many "
            "new samples of these classes will be rejected; fit without them, since classes need not be of equal size."
        )


def warn_of_few(
    classes: NDArray[Any], codes: NDArray[np.int64], groups: NDArray[np.int64], degenerate: NDArray[np.bool_]
) -> None:
    """Warn of classes whose boundaries are judged by too few held-out groups; those of one have other warnings."""
    counts = np.bincount(np.unique(np.stack([codes, groups]), axis=1)[0], minlength=len(classes))
    few = (counts > 1) & (counts < FEWEST_OF_CLASS) & ~degenerate
    if not few.any():
        return
    if 2 * few.sum() > len(few):
        result = "new samples may be rejected, and open samples accepted, much more often than held-out ones"
    else:
        result = "many of their new samples will be rejected"
    warn(
        f"{few.sum()} of {len(few)} classes have fewer than {FEWEST_OF_CLASS} different samples, or groups of "
        f"them ({enumerated(classes[few])}; the smallest has {counts[few].min()}). Too few held-out samples "
        f"judge their boundaries, so {result}; collect at least {FEWEST_OF_CLASS} of each class, or set the "
        "operating point on new samples."
    )
