"""Classes far apart, rows around them, and what a classifier says of rows."""

import numpy as np

from skellipsoid._base import BoundaryOpenSetClassifier

SCORING_METHODS = ("predict", "predict_known", "score_samples", "class_margins", "decision_function")


def blobs(n_classes=3, *, rows=30, n_features=4, seed=0):
    """Round classes far apart, none between two others, with the labels 0 ... n_classes - 1, their rows mixed."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), rows))
    centers = 8.0 * np.arange(n_classes)[:, np.newaxis] * np.ones(n_features)
    centers[1::2, -1] *= -1
    return centers[y] + rng.normal(size=(len(y), n_features)), y


def gaussians(n_classes=3, rows=40, n_features=3, *, distance=7.0, seed=0):
    """Round classes in a row, with their labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), rows)
    return rng.normal(size=(len(y), n_features)) + distance * y[:, np.newaxis], y


def scattered(n_features=4, *, n_samples=200, seed=1):
    """Rows in, between, beside and far from the classes of ``blobs``."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([1.0, 10.0, 1000.0], size=(n_samples, 1))
    return 8 + scale * rng.normal(size=(n_samples, n_features))


def far_rows(n_samples=5, n_features=4):
    return np.linspace(300, 900, n_samples)[:, np.newaxis] * np.array([1.0, -1.0] * (n_features // 2))


def values(classifier, rows):
    """All that a fitted classifier says of rows: margins where it has a boundary, else scores."""
    if has_boundary(classifier):
        return classifier.class_margins(rows)
    return np.column_stack([classifier.score_samples(rows), classifier.decision_function(rows)])


def has_boundary(classifier):
    return isinstance(classifier, BoundaryOpenSetClassifier)


def scoring_methods(classifier):
    return [method for method in SCORING_METHODS if hasattr(classifier, method)]
