"""The operating point: how much a boundary rejects, set by given rows or chosen by cross-validation."""

from ._set import set_operating_point
from ._tuned import TunedOperatingPointCV

__all__ = ["TunedOperatingPointCV", "set_operating_point"]
