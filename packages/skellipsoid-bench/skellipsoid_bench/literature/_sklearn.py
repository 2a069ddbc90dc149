"""What is private in scikit-learn and used here, in one place: another release may move it."""

from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions"]
