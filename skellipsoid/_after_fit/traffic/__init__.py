"""What unlabelled traffic says: how much of it is open, and how probable each answer is."""

from .proba import predict_open_proba
from .share import estimate_open_share

__all__ = ["estimate_open_share", "predict_open_proba"]
