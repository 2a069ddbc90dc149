"""Published methods that the paper compares with: text encoders, their boundaries, and DE.

They serve the comparison. Boundaries on given features that are of use besides are in :mod:`skellipsoid.baselines`.
"""

from ._adb import ADBClassifier
from ._clab import CLABClassifier
from ._clab_encoder import CLABTextEncoder
from ._cross_entropy_encoder import CrossEntropyTextEncoder
from ._da_adb_encoder import DAADBTextEncoder
from ._de import DEClassifier
from ._doc import DOCClassifier
from ._knncl_encoder import KNNCLTextEncoder
from ._mogb import MOGBClassifier
from ._mogb_encoder import MOGBTextEncoder
from ._openmax import OpenMaxClassifier

__all__ = [
    "ADBClassifier",
    "CLABClassifier",
    "CLABTextEncoder",
    "CrossEntropyTextEncoder",
    "DAADBTextEncoder",
    "DEClassifier",
    "DOCClassifier",
    "KNNCLTextEncoder",
    "MOGBClassifier",
    "MOGBTextEncoder",
    "OpenMaxClassifier",
]
