"""Other methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``."""

from ._balls import ADBClassifier, BallClassifier
from ._clab import CLABClassifier
from ._doc import DOCClassifier
from ._logits import EnergyClassifier, MaxLogitClassifier, SoftmaxOpenSetClassifier
from ._mahalanobis import MahalanobisClassifier
from ._mogb import MOGBClassifier
from ._neighbors import KNNOpenSetClassifier, LOFOpenSetClassifier
from ._openmax import OpenMaxClassifier
from ._plda import PLDAClassifier

__all__ = [
    "ADBClassifier",
    "BallClassifier",
    "CLABClassifier",
    "DOCClassifier",
    "EnergyClassifier",
    "KNNOpenSetClassifier",
    "LOFOpenSetClassifier",
    "MOGBClassifier",
    "MahalanobisClassifier",
    "MaxLogitClassifier",
    "OpenMaxClassifier",
    "PLDAClassifier",
    "SoftmaxOpenSetClassifier",
]
