"""What the tests of questions share: overlapping classes, a quick fit, and the share that is missed."""

import warnings

import numpy as np

from skellipsoid import EllipsoidOpenSetClassifier


def drawn(n_classes, n_of_class, seed, *, n_features=4, spread=2.5):
    """Training samples and new ones, known and open, of overlapping classes."""
    rng = np.random.default_rng(seed)
    means = rng.normal(scale=spread, size=(n_classes + 3, n_features))
    y = np.repeat(np.arange(n_classes), n_of_class)
    codes = rng.integers(n_classes + 3, size=3000)
    X_new = means[codes] + rng.normal(size=(len(codes), n_features))
    return means[y] + rng.normal(size=(len(y), n_features)), y, X_new, np.where(codes < n_classes, codes, -1)


def fitted(X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few samples of a class
        return EllipsoidOpenSetClassifier(random_state=0, **params).fit(X, y)


def missed(found, truth):
    """Share of known samples with neither the right answer nor a question that offers it."""
    is_known = truth != -1
    return float(np.mean(~(found.classes == truth[:, np.newaxis]).any(axis=1)[is_known]))
