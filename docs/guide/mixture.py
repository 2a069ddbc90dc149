"""A Gaussian mixture for each class, as a method that ``skellipsoid-bench`` compares."""

import numpy as np
from sklearn.mixture import GaussianMixture

from skellipsoid import ScoreOpenSetClassifier


class Mixture(ScoreOpenSetClassifier):
    """Open-set classifier by the largest class density."""

    def __init__(self, n_components=1, *, smoothing=0.1, threshold="auto", random_state=None):
        self.n_components = n_components
        self.smoothing = smoothing
        self.threshold = threshold
        self.random_state = random_state

    def fit_scores(self, X, classes, sample_weight):
        """Fit one mixture to the samples of each class."""
        self.mixtures_ = []
        for label in range(classes.max() + 1):
            rows = X[classes == label]
            mixture = GaussianMixture(
                min(self.n_components, len(rows)),
                covariance_type="diag",
                reg_covar=self.smoothing * X.var(),
                random_state=self.random_state,
            )
            # A mixture needs two samples; a copy does not change the mean.
            self.mixtures_.append(mixture.fit(np.repeat(rows, 2, axis=0)))

    def class_scores(self, X):
        """Log-density of each class."""
        return np.column_stack([each.score_samples(X) for each in self.mixtures_])
