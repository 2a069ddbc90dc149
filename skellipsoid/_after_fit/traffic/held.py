"""Scores of held-out samples as p-values, by which traffic is compared with them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.held_out_scores import KeepsHeldOut, synthetic_rows

#: Limits of the bins of p-values. The low ones, where open samples lie, are narrow.
EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
WIDTHS = np.diff(EDGES)
#: Samples of classes that the fit has never seen lie farther out than those of held-out classes, which helped to choose
#: the features or have a class that resembles them. Their density of p-values is this power of it.
SHARPNESS = 2.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class HeldOutScores(NamedTuple):
    """Scores of known samples that were held out, and of samples whose class was held out."""

    known: Floats  # (n_known,)
    assigned: Integers  # (n_known,) class that scores
    classes: Integers  # (n_known,) own class
    weights: Floats  # (n_known,)
    opened: Floats  # (n_open,)
    open_assigned: Integers  # (n_open,)
    open_classes: Integers  # (n_open,)
    open_weights: Floats  # (n_open,)
    synthetic: Floats  # (n_synthetic,) scores of samples of synthetic classes
    synthetic_assigned: Integers  # (n_synthetic,)

    @classmethod
    def of(cls, classifier: Any, caller: str) -> "HeldOutScores":
        """Read them off a fitted classifier.

        Raises
        ------
        TypeError
            If the classifier keeps none.
        ValueError
            If its fit held out no sample, or no class.
        """
        name = type(classifier).__name__
        if not isinstance(classifier, KeepsHeldOut) or not hasattr(classifier, "held_out_"):
            raise TypeError(
                f"{caller} reads held_out_, which this {name} does not have: pass an EllipsoidOpenSetClassifier, or a "
                "MahalanobisClassifier with threshold='auto'."
            )
        if not classifier._scores_as_new:
            raise TypeError(
                f"{caller} compares new scores with held-out ones, which are on another scale for a {name}: pass an "
                "EllipsoidOpenSetClassifier, or a MahalanobisClassifier with threshold='auto'."
            )
        kept = classifier._held_out
        if kept is None or not (kept["is_open"] & ~synthetic_rows(kept)).any():
            what = "sample" if kept is None else "class"
            raise ValueError(
                f"{caller} compares with held-out samples and classes, but the fit of this {name} held out no {what}; "
                "fit with at least two classes of several different samples (with a trainer, a share of them is held "
                "out)."
            )
        nearest, classes = kept["nearest"].astype(np.int64), kept["classes"].astype(np.int64)
        is_synthetic, columns = synthetic_rows(kept), (kept["scores"], nearest, classes, kept["weights"])
        known, opened = ~kept["is_open"], kept["is_open"] & ~is_synthetic
        chosen = [column[rows] for rows in (known, opened) for column in columns]
        return cls._make([*chosen, kept["scores"][is_synthetic], nearest[is_synthetic]])

    def p_values(self, scores: NDArray[np.floating]) -> Floats:
        """Conformal p-values of scores: the share of held-out known samples that have the same or a lower score."""
        as_low = np.searchsorted(np.sort(self.known), scores, side="right")
        return np.asarray((1 + as_low) / (len(self.known) + 1))

    def open_shares(self) -> Floats:
        """Share of the samples of held-out classes in each bin of p-values; no bin is empty."""
        counts = np.bincount(bins(self.p_values(self.opened)), minlength=len(WIDTHS)) + 0.5
        return np.asarray(counts / counts.sum())

    def sharpened_weights(self) -> Floats:
        """Weights of the samples of held-out classes with which they stand for unknown classes, (n_open,)."""
        of_bin = bins(self.p_values(self.opened))
        shares = self.open_shares()
        return np.asarray(self.open_weights * (sharpened(shares, SHARPNESS) / shares)[of_bin])


def bins(p_values: Floats) -> Integers:
    """Bin of each p-value; a limit belongs to the bin below it, as p-values are never 0."""
    return np.asarray(np.searchsorted(EDGES[1:-1], p_values, side="left"))


def sharpened(shares: Floats, power: float) -> Floats:
    """Shares of the bins of the density to the ``power``."""
    raised = (shares / WIDTHS) ** power * WIDTHS
    return np.asarray(raised / raised.sum())
