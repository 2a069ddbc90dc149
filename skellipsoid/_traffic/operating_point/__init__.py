"""The threshold: the offset below which samples are rejected, from given samples or by cross-validation."""

from .set import set_operating_point
from .tuned import TunedOperatingPointCV

__all__ = ["TunedOperatingPointCV", "set_operating_point"]
