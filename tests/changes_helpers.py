"""What the tests of changing classes have in common."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from skellipsoid import EllipsoidOpenSetClassifier


def classifier(**parameters):
    """Keep the samples of a fit."""
    return EllipsoidOpenSetClassifier(random_state=0, **parameters)


def kept_of(clf):
    """What a classifier keeps of its samples, in the units of X: rows, classes, copies, and which ones validate."""
    kept = clf._kept
    rows, classes = kept.features * clf.scale_ + clf._boundaries.mean, clf.classes_[kept.classes]
    return Bunch(rows=rows, classes=classes, copies=kept.copies, validates=kept.validates)


def digits():
    """600 images of 64 pixels."""
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float64), y[:600]


def wide(n_classes=8, n_samples=12, n_features=200):
    """More features than samples."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(n_classes, n_features)) * 0.6
    y = np.repeat(np.arange(n_classes), n_samples)
    return means[y] + rng.normal(size=(len(y), n_features)), y


def texts_like():
    """Unit-length features with a degenerate class and copies."""
    X, y = wide(10, 20, 40)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[y == 9] = X[y == 9][0]
    copies = np.flatnonzero(y < 4)[::3]
    return np.concatenate([X, X[copies]]), np.append(y, y[copies])
