"""Other methods of open-set classification, with the interface of ``EllipsoidOpenSetClassifier``."""

from ._balls import ADBClassifier, BallClassifier

__all__ = ["ADBClassifier", "BallClassifier"]
