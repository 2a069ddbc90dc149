"""Scores of held-out samples, with which traffic is compared."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kept import KeepsHeldOutMixin, are_synthetic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class HeldOutScores(NamedTuple):
    """Scores of known samples that were held out, and of samples whose class was held out."""

    known: Floats  # (n_known,)
    assigned: Integers  # (n_known,) class that scores
    classes: Integers  # (n_known,) own class
    weights: Floats  # (n_known,)
    opened: Floats  # (n_open,)
    open_weights: Floats  # (n_open,)

    @classmethod
    def of(cls, classifier: Any, caller: str) -> "HeldOutScores":
        """Read them off a fitted classifier.

        Raises
        ------
        TypeError
            If the classifier keeps none.
        ValueError
            If its fit held out no sample.
        """
        name = type(classifier).__name__
        if not isinstance(classifier, KeepsHeldOutMixin) or not hasattr(classifier, "held_out_"):
            raise TypeError(
                f"{caller} reads held_out_, which this {name} does not have: pass an EllipsoidOpenSetClassifier, or a "
                "MahalanobisClassifier with threshold='auto'."
            )
        if not classifier._scores_as_new:
            raise TypeError(
                f"{caller} compares new scores with held-out ones, which are on another scale for a {name}: pass an "
                "EllipsoidOpenSetClassifier, or a MahalanobisClassifier with threshold='auto'."
            )
        held_out = classifier._held_out
        if held_out is None or held_out["is_open"].all():
            raise ValueError(
                f"{caller} compares with held-out samples, but the fit of this {name} held out none; fit with several "
                "different samples of a class (with a trainer, a share of them is held out)."
            )
        nearest, classes = held_out["nearest"].astype(np.int64), held_out["classes"].astype(np.int64)
        known, opened = ~held_out["is_open"], held_out["is_open"] & ~are_synthetic(held_out)
        of_known = [column[known] for column in (held_out["scores"], nearest, classes, held_out["weights"])]
        return cls._make([*of_known, held_out["scores"][opened], held_out["weights"][opened]])
