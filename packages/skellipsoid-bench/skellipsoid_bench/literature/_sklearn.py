"""Private names of scikit-learn that are used here, in one place: another release may move them."""

from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions"]
