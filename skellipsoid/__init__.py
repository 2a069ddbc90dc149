"""Open-set classification for scikit-learn: learned ellipsoids around the known classes, open everywhere else."""

from . import datasets, metrics, model_selection, plotting
from ._data_check import check_training_texts
from ._ellipsoid import EllipsoidOpenSetClassifier
from ._encoder import SupConTextEncoder
from ._explain import explain
from ._operating_point import TunedOperatingPointCV, set_operating_point
from ._version import __version__
from .persistence import load, save

__all__ = [
    "EllipsoidOpenSetClassifier",
    "SupConTextEncoder",
    "TunedOperatingPointCV",
    "__version__",
    "check_training_texts",
    "datasets",
    "explain",
    "load",
    "metrics",
    "model_selection",
    "plotting",
    "save",
    "set_operating_point",
]
