"""Displays of open-set classifiers and of their results, as in scikit-learn.

Each display keeps the numbers that it draws. They come from a fitted classifier (``from_estimator``), from plain
arrays of any model (``from_predictions``), or from the caller (the constructor). Drawing needs matplotlib, the extra
``skellipsoid[plot]``; importing this module does not.
"""

from ._comparison import ComparisonDisplay
from ._confusion import OpenSetConfusionMatrixDisplay
from ._discovery import DiscoveryDisplay
from ._ellipsoid import EllipsoidDisplay
from ._histogram import ScoreHistogramDisplay
from ._monitor_display import MonitorDisplay
from ._trade_off_display import TradeOffDisplay

__all__ = [
    "ComparisonDisplay",
    "DiscoveryDisplay",
    "EllipsoidDisplay",
    "MonitorDisplay",
    "OpenSetConfusionMatrixDisplay",
    "ScoreHistogramDisplay",
    "TradeOffDisplay",
]
