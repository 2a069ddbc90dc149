"""What a classifier expects of traffic that it has not seen: its open share, its score shift, the weight of errors."""

from typing import Any, NamedTuple

import numpy as np

Share = float | tuple[float, float]

#: Interval of the proportion of open samples in unknown traffic, with a probability of 95 %.
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
        """Return what a fitted classifier expects: by its parameters when it was fitted, whatever they are now."""
        found: Expected | None = getattr(classifier, "_expected", None)
        return cls.by(classifier) if found is None else found


#: Of a classifier that has no parameters of the traffic.
NOTHING_TOLD = Expected()


def read_share(open_share: Any) -> Share:
    """Read an open share, or the ends of its interval.

    Raises
    ------
    ValueError
        If it is neither.
    """
    limits = open_share if isinstance(open_share, tuple | list | np.ndarray) else (open_share, open_share)
    are_numbers = all(isinstance(part, int | float | np.number) and not isinstance(part, bool) for part in limits)
    if not (are_numbers and len(limits) == 2 and 0 <= limits[0] <= limits[1] <= 1):
        raise ValueError(
            f"open_share={open_share!r} is not a proportion; use a number from 0 to 1, or two for an interval, such as "
            "(0.02, 0.1)."
        )
    return (float(limits[0]), float(limits[1])) if limits[0] < limits[1] else float(limits[0])
