"""What the boundary learners are told."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundarySettings:
    """What the learner is told; the names are those of ``EllipsoidOpenSetClassifier``."""

    init: str
    alpha: float
    beta: float
    n_mix: int
    learning_rate: float
    batch_size: int
    max_iter: int
    early_stopping: bool
    recalibrate: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    verbose: int | bool
