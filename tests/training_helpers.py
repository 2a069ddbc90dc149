"""What the tests of short trainings of features share: settings, and rows to train on."""

import numpy as np
import torch

#: Settings that no objective reads, of a training of some epochs.
SHORT = {
    "learning_rate": 1e-2,
    "weight_decay": 0.01,
    "batch_size": 16,
    "max_iter": 5,
    "early_stopping": False,
    "validation_fraction": 0.25,
    "n_iter_no_change": 5,
    "tol": 0.0,
    "cross_fit": False,
    "verbose": 0,
}


def overlapping_rows():
    """40 rows of 4 classes that overlap, in 8 dimensions, and their classes."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 10)
    centres = rng.normal(size=(4, 8))
    return torch.from_numpy((centres[classes] + rng.normal(size=(40, 8))).astype(np.float32)), classes
