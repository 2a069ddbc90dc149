"""Settings of the paper's training."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingSettings:
    """Parameters of ``EliDecide`` by the same names, and those of the classifier that affect the training."""

    alpha: float
    beta: float
    n_mix: tuple[int, int]  # smallest and largest P
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_iter: int | str
    n_iter_no_change: int
    shape: str
    negative_loss: str
    recalibrate: bool
    validation_fraction: float
    restore_best: bool
    verbose: int | bool
