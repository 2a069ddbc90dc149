"""Settings of the boundaries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BoundarySettings:
    """Parameters of ``EllipsoidOpenSetClassifier`` that act with every kind of fit, by the same names."""

    alpha: float
    beta: float


@dataclass(frozen=True)
class TrainingSettings(BoundarySettings):
    """Parameters of ``EliDecide``, by the same names."""

    n_mix: tuple[int, int]  # smallest and largest P
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_iter: int
    n_iter_no_change: int
    shape: str
    negative_loss: str
    recalibrate: bool
    validation_fraction: float
    restore_best: bool
    verbose: int | bool
