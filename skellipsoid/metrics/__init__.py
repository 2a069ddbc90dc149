"""Metrics of open-set classification, for the predictions of any model.

Three families: metrics of labels (a class or *open* for each sample), metrics of scores (the knownness of each sample),
and the confidence interval of a metric.
"""

from ._asking import asking_report
from ._bootstrap import BootstrapInterval, bootstrap_interval
from ._classification import known_f1_score, open_f1_score, open_set_accuracy, open_set_f1_score
from ._oscr import oscr_curve, oscr_score
from ._ranking import fpr_at_tpr, open_set_aupr, open_set_auroc
from ._report import open_set_report
from ._scorers import (
    make_open_set_scorer,
    open_set_accuracy_scorer,
    open_set_f1_scorer,
)
from ._trade_off_curve import trade_off_curve

__all__ = [
    "BootstrapInterval",
    "asking_report",
    "bootstrap_interval",
    "fpr_at_tpr",
    "known_f1_score",
    "make_open_set_scorer",
    "open_f1_score",
    "open_set_accuracy",
    "open_set_accuracy_scorer",
    "open_set_aupr",
    "open_set_auroc",
    "open_set_f1_score",
    "open_set_f1_scorer",
    "open_set_report",
    "oscr_curve",
    "oscr_score",
    "trade_off_curve",
]
