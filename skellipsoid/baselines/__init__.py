"""Other methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``."""

from ._balls import ADBClassifier, BallClassifier
from ._gaussian import MahalanobisClassifier, PLDAClassifier
from ._neighbors import KNNOpenSetClassifier, LOFOpenSetClassifier

__all__ = [
    "ADBClassifier",
    "BallClassifier",
    "KNNOpenSetClassifier",
    "LOFOpenSetClassifier",
    "MahalanobisClassifier",
    "PLDAClassifier",
]
