"""Scores of held-out samples, with which traffic is compared."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from .._samples.samples import effective_number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Share = float | tuple[float, float]

#: Share of open samples in traffic of which nothing is told, with a probability of 95 %.
TRAFFIC = (0.08, 0.7)
#: β with which an accepted open sample counts as much as a rejected known one: the paper's value.
NEUTRAL_BETA = 0.5


class Expected(NamedTuple):
    """What is expected of traffic that nobody has seen, by the parameters of a classifier."""

    open_share: Share = TRAFFIC
    known_shift: float | None = None  # None: as messages of users lie, which the prior says
    open_weight: float = 1.0  # of an accepted open sample, against a rejected known one
    # Projection that was fitted to the training samples: then held-out classes alone say where open samples lie.
    projected: int | None = None

    @classmethod
    def by(cls, classifier: Any) -> "Expected":
        """Read the parameters; β of a classifier without one is neutral."""
        share, beta = getattr(classifier, "open_share", None), getattr(classifier, "beta", NEUTRAL_BETA)
        shift = getattr(classifier, "known_shift", None)
        known_shift = None if shift is None else float(shift)
        return cls(TRAFFIC if share is None else read_share(share), known_shift, float(beta) / NEUTRAL_BETA)

    @classmethod
    def of(cls, classifier: Any) -> "Expected":
        """Give what a fitted classifier expects: by its parameters when it was fitted, whatever they are now."""
        found: Expected | None = getattr(classifier, "_expected", None)
        return cls.by(classifier) if found is None else found


def read_share(open_share: Any) -> Share:
    """Read a share, or the limits of one.

    Raises
    ------
    ValueError
        If it is neither.
    """
    limits = open_share if isinstance(open_share, tuple | list | np.ndarray) else (open_share, open_share)
    are_numbers = all(isinstance(part, int | float | np.number) and not isinstance(part, bool) for part in limits)
    if not (are_numbers and len(limits) == 2 and 0 <= limits[0] <= limits[1] <= 1):
        raise ValueError(
            f"open_share={open_share!r} is not a share; use a number from 0 to 1, or two for an interval, such as "
            "(0.02, 0.1)."
        )
    return (float(limits[0]), float(limits[1])) if limits[0] < limits[1] else float(limits[0])


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


class NormalScores:
    """Scores in units of held-out known samples: 0 is their median, 1 a standard deviation of a normal distribution.

    Both ways, continued as a line beyond the lowest.
    """

    def __init__(self, held_out: ReferenceScores) -> None:
        known, weights = _merged(held_out.known, held_out.weights)
        levels = (np.cumsum(weights) - weights / 2) / weights.sum()
        chosen = np.linspace(levels[0], levels[-1], min(len(known), 101))
        knots, z = np.interp(chosen, levels, known), norm.ppf(chosen)
        low, middle = np.interp([0.05, 0.5], levels, known)
        unit = max(middle - low, 1e-9) / -norm.ppf(0.05)  # the scores of one standard deviation
        self._scores = np.maximum.accumulate(np.concatenate([[knots[0] - 10 * unit], knots, [knots[-1] + 10 * unit]]))
        self._z = np.concatenate([[z[0] - 10], z, [z[-1] + 10]])

    def __call__(self, scores: NDArray[np.floating]) -> Floats:
        """Give normal scores."""
        return np.asarray(np.interp(scores, self._scores, self._z))

    def inverse(self, z: Floats) -> Floats:
        """Scores of normal scores."""
        return np.asarray(np.interp(z, self._z, self._scores))


def _merged(scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Ascending scores of which no two are equal up to rounding, and the weight of each: copies count as they weigh."""
    order = np.argsort(scores, kind="stable")
    order = order[weights[order] > 0]
    scores, weights = scores[order], weights[order]
    is_first = np.append(True, np.diff(scores) > 1e-6 * max(float(scores[-1] - scores[0]), 1e-300))
    return scores[is_first], np.add.reduceat(weights, np.flatnonzero(is_first))
