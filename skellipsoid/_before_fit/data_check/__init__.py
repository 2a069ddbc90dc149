"""Checks of training data for possible errors; nothing is changed."""

from .features import check_training_features
from .texts import check_training_texts

__all__ = ["check_training_features", "check_training_texts"]
