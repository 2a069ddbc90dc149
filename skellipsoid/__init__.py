"""Open-set classification for scikit-learn: learned ellipsoids around the known classes, open everywhere else."""

from . import datasets, metrics, model_selection, plotting
from ._ellipsoid import EllipsoidOpenSetClassifier
from ._encoder import SupConTextEncoder
from ._operating_point import set_operating_point
from ._version import __version__
from .persistence import load, save

__all__ = [
    "EllipsoidOpenSetClassifier",
    "SupConTextEncoder",
    "__version__",
    "datasets",
    "load",
    "metrics",
    "model_selection",
    "plotting",
    "save",
    "set_operating_point",
]
