"""Other methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``.

Many share parameters, so they are dataclasses: fields are the parameters of the ``__init__`` that scikit-learn reads,
and a base class hands its own down.
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
