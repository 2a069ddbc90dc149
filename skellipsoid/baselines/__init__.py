"""Other methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``.

Many share parameters, so they are dataclasses: fields are the parameters of the ``__init__`` that scikit-learn reads,
and a base class hands its own down.
"""

from ._balls import ADBClassifier, BallClassifier
from ._clab import CLABClassifier
from ._clab_encoder import CLABTextEncoder
from ._cross_entropy_encoder import CrossEntropyTextEncoder
from ._da_adb_encoder import DAADBTextEncoder
from ._de import DEClassifier
from ._doc import DOCClassifier
from ._knncl_encoder import KNNCLTextEncoder
from ._logits import EnergyClassifier, MaxLogitClassifier, SoftmaxOpenSetClassifier
from ._mahalanobis import MahalanobisClassifier
from ._mogb import MOGBClassifier
from ._mogb_encoder import MOGBTextEncoder
from ._neighbors import KNNOpenSetClassifier, LOFOpenSetClassifier
from ._openmax import OpenMaxClassifier
from ._plda import PLDAClassifier

__all__ = [
    "ADBClassifier",
    "BallClassifier",
    "CLABClassifier",
    "CLABTextEncoder",
    "CrossEntropyTextEncoder",
    "DAADBTextEncoder",
    "DEClassifier",
    "DOCClassifier",
    "EnergyClassifier",
    "KNNCLTextEncoder",
    "KNNOpenSetClassifier",
    "LOFOpenSetClassifier",
    "MOGBClassifier",
    "MOGBTextEncoder",
    "MahalanobisClassifier",
    "MaxLogitClassifier",
    "OpenMaxClassifier",
    "PLDAClassifier",
    "SoftmaxOpenSetClassifier",
]
