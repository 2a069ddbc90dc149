"""Open-set classification for scikit-learn: learned ellipsoids around the known classes, open everywhere else."""

from ._ellipsoid import EllipsoidOpenSetClassifier
from ._version import __version__

__all__ = ["EllipsoidOpenSetClassifier", "__version__"]
