"""Splitters for open-set problems: whole classes are held out of training and are open in the test part."""

from ._kfold import OpenSetKFold, RealOpenKFold
from ._shuffle import KnownClassSplit, OpenSetShuffleSplit

__all__ = ["KnownClassSplit", "OpenSetKFold", "OpenSetShuffleSplit", "RealOpenKFold"]
