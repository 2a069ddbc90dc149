"""Published methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``.

They are dataclasses, because many parameters are common: the fields are the parameters of ``__init__``, and are
inherited.
"""

from ._balls import BallClassifier
from ._logits import EnergyClassifier, MaxLogitClassifier, SoftmaxOpenSetClassifier
from ._mahalanobis import MahalanobisClassifier
from ._neighbors import KNNOpenSetClassifier, LOFOpenSetClassifier
from ._plda import PLDAClassifier

__all__ = [
    "BallClassifier",
    "EnergyClassifier",
    "KNNOpenSetClassifier",
    "LOFOpenSetClassifier",
    "MahalanobisClassifier",
    "MaxLogitClassifier",
    "PLDAClassifier",
    "SoftmaxOpenSetClassifier",
]
