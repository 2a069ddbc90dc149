"""What unlabelled traffic says: how much of it is open, and how probable each answer is."""

from ._proba import predict_open_proba
from ._share import estimate_open_share

__all__ = ["estimate_open_share", "predict_open_proba"]
