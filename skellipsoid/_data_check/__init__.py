"""Checks of training data for possible errors; nothing is changed.

In come texts or features with their labels. Out goes a table of findings.
"""

from .features import check_training_features
from .texts import check_training_texts

__all__ = ["check_training_features", "check_training_texts"]
