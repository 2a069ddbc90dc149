"""Settings of the boundaries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundarySettings:
    """Parameters of ``EllipsoidOpenSetClassifier``, by the same names."""

    alpha: float
    beta: float
    n_mix: int
    shape: str
    negative_loss: str
    learning_rate: float
    batch_size: int
    max_iter: int
    early_stopping: bool
    recalibrate: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    verbose: int | bool
