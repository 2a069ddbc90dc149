"""Scores of held-out samples, with which traffic is compared."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._samples.samples import effective_number
from .expected import Expected

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ReferenceScores(NamedTuple):
    """What new scores are compared with: those of held-out known samples, and of samples whose class was held out."""

    known: Floats  # (n_known,)
    assigned: Integers  # (n_known,) class that scores
    classes: Integers  # (n_known,) own class
    weights: Floats  # (n_known,)
    opened: Floats  # (n_open,)
    open_weights: Floats  # (n_open,)
    ranks: Integers  # (n_known,) place of the own class, 1 to 3, or 0
    gaps: Floats  # (n_known,) between the first two classes
    open_gaps: Floats  # (n_open,)
    synthetic: Floats = np.zeros(0)  # (n_synthetic,) samples of synthetic classes
    real: Floats = np.zeros(0)  # (n_real,) training samples with the open label, without learned messages
    expected: Expected = Expected()
    # Effective numbers of independent held-out samples, and of held-out classes: a forecast is no surer than these.
    n_known: float = np.inf
    n_open: float = np.inf

    @classmethod
    def of(cls, classifier: Any, caller: str) -> "ReferenceScores":
        """Read them off a fitted classifier.

        Raises
        ------
        TypeError
            If the classifier keeps none.
        ValueError
            If its fit held out no sample.
        """
        name = type(classifier).__name__
        if not hasattr(classifier, "_scores_as_new") or not hasattr(classifier, "held_out_"):
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
        is_synthetic, scores, weights = held_out["is_synthetic"], held_out["scores"], held_out["weights"]
        known, is_real = ~held_out["is_open"], ~is_synthetic & (classes == len(classifier.classes_))
        opened = held_out["is_open"] & ~is_synthetic & ~is_real
        of_known = scores[known], nearest[known], classes[known], weights[known]
        # Learned messages stand at the end; they count as labels of a log.
        learned = getattr(classifier, "_learned", None)
        n_learned = 0 if learned is None else int((~np.isin(learned.labels, classifier.classes_)).sum())
        gaps, real = held_out["gaps"], scores[is_real]
        of_open = scores[opened], weights[opened], held_out["ranks"][known], gaps[known], gaps[opened]
        # Without sets each sample is one.
        sets = held_out.get("sets", np.arange(len(scores)))[known]
        numbers = effective_number(weights[known], sets), effective_number(weights[opened], classes[opened])
        others = scores[is_synthetic], real[: len(real) - n_learned], Expected.of(classifier)
        return cls(*of_known, *of_open, *others, numbers[0], numbers[1] if opened.any() else np.inf)
