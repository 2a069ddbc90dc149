"""The operating point: the offset below which samples are rejected, from given samples or by cross-validation."""

from ._set import set_operating_point
from ._tuned import TunedOperatingPointCV

__all__ = ["TunedOperatingPointCV", "set_operating_point"]
