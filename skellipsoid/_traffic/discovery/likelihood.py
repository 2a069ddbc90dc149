r"""The two-covariance model of groups: the likelihood ratio that samples share a class.

A class mean is drawn from N(0, B) and a sample from N(mean, T), in coordinates where T is the identity and B is
diagonal, with the variances v. A group of n samples has the mean c. Up to a constant of the samples, its
log-likelihood is

    L(n, c) = ½ Σ [ n² c² v / (1 + n v) − ln(1 + n v) ]        (a sum over the axes)

so the log-likelihood ratio of "one class" against "two classes" is L of the union less L of both. Real classes are not
Gaussian: a class has variants of its own, and many samples of one variant do not say where the others are. So n is
replaced by the effective number n / (1 + n / ``MOST_EVIDENCE``), which never exceeds ``MOST_EVIDENCE``.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Largest effective number of samples of a group.
MOST_EVIDENCE = 20.0
#: Factor of the covariance within known classes. Without it, classes are found in many parts.
INFLATION = 3.0
#: Weight of the traffic's own covariance in B, if there is much traffic; the rest is that of the known class means.
TRAFFIC_WEIGHT = 0.5
#: Weight of a sphere in the covariance of the known class means where the classifier has chosen none.
SPHERICAL_SHRINKAGE = 0.5
#: Axes with less variance between classes say nothing; of the others the widest are taken.
SMALLEST_VARIANCE, MOST_AXES = 0.01, 100
#: Variances within classes below this proportion of the largest are 0.
SMALLEST_WITHIN = 1e-9


class EmbeddedClasses(NamedTuple):
    """The known classes among the embeddings before a head, with the names that a classifier has for them."""

    classes_: NDArray[Any]
    centroids_: NDArray[Any]  # (n_classes, width)
    within: NDArray[Any]  # (width, width)
    between_share_: float = SPHERICAL_SHRINKAGE

    def within_covariance(self) -> NDArray[Any]:
        """Covariance within classes, as a classifier gives it."""
        return self.within


class Coordinates(NamedTuple):
    """Axes along which samples vary with variance 1 within classes, and class means with the variances v."""

    origin: Floats  # (n_features,)
    axes: Floats  # (n_features, n_axes)
    variances: Floats  # (n_axes,) v

    def of(self, features: NDArray[Any]) -> Floats:
        """Coordinates of samples, (n_samples, n_axes)."""
        return np.asarray((features - self.origin) @ self.axes)


def fit_coordinates(classifier: Any, features: NDArray[Any]) -> Coordinates:
    """Estimate T from the known classes, and B from the known classes and the open samples.

    Without labels the covariance of the samples is T + B. So B is a weighted mean of the known class means' covariance
    and of the samples' covariance less T. The weight of the samples grows with their number.

    Parameters
    ----------
    classifier : EllipsoidOpenSetClassifier or EmbeddedClasses
        Fitted.
    features : ndarray of shape (n_samples, n_features)
        Distinct open samples, at least two.
    """
    centroids = classifier.centroids_
    white = _whitener(classifier)
    n_axes = white.shape[1]
    known_mean, open_mean = centroids.mean(axis=0), features.mean(axis=0)
    means, found = (centroids - known_mean) @ white, (features - open_mean) @ white
    of_known = means.T @ means / max(1, len(means) - 1)
    share = classifier.between_share_
    share = SPHERICAL_SHRINKAGE if share is None else share
    of_known = (1 - share) * of_known + share * np.trace(of_known) / n_axes * np.eye(n_axes)
    of_traffic = found.T @ found / (len(found) - 1) - np.eye(n_axes)
    weight = TRAFFIC_WEIGHT * len(features) / (len(features) + n_axes)
    variances, directions = np.linalg.eigh((1 - weight) * of_known + weight * of_traffic)
    order = np.argsort(-variances, kind="stable")[:MOST_AXES]
    widest = order[variances[order] > SMALLEST_VARIANCE]
    origin = (1 - weight) * known_mean + weight * open_mean
    return Coordinates(origin, white @ directions[:, widest], variances[widest])


def _whitener(classifier: Any) -> Floats:
    """Axes in units of the standard deviation within classes, (n_features, n_axes)."""
    within = classifier.within_covariance()
    if within is None:  # the Euclidean metric
        n_features, radius = classifier.n_features_in_, float(np.median(classifier.radii_))
        variances, directions = np.full(n_features, radius**2 / n_features if radius > 0 else 1.0), np.eye(n_features)
    else:
        variances, directions = np.linalg.eigh(within)
    varies = variances > SMALLEST_WITHIN * variances.max()
    return np.asarray(directions[:, varies] / np.sqrt(INFLATION * variances[varies]))


def effective(counts: Floats) -> Floats:
    """Effective numbers of samples."""
    return np.asarray(counts / (1 + counts / MOST_EVIDENCE))


def evidence(sums: Floats, numbers: Floats, variances: Floats) -> Floats:
    """Log-likelihood L of groups, (n_groups,), from effective numbers, and means times these."""
    spread = 1 + numbers[:, np.newaxis] * variances
    return np.asarray(0.5 * (np.square(sums) * (variances / spread) - np.log(spread)).sum(axis=1))


def log_ratios(coordinates: Floats, means: Floats, counts: Floats, variances: Floats) -> Floats:
    """Log-likelihood ratio that a sample is of the class of each group.

    Parameters
    ----------
    coordinates : ndarray of shape (n_samples, n_axes)
        Single samples.
    means : ndarray of shape (n_groups, n_axes)
    counts : ndarray of shape (n_groups,)
    variances : ndarray of shape (n_axes,)

    Returns
    -------
    ratios : ndarray of shape (n_samples, n_groups)
    """
    numbers, one = effective(counts), effective(np.ones(1))[0]
    sums = means * numbers[:, np.newaxis]
    spread = 1 + (numbers + one)[:, np.newaxis] * variances
    weights = variances / spread
    own = 0.5 * ((np.square(sums) * weights).sum(axis=1) - np.log(spread).sum(axis=1)) - evidence(
        sums, numbers, variances
    )
    alone = evidence(coordinates * one, np.full(len(coordinates), one), variances)
    crossed = one * coordinates @ (sums * weights).T + 0.5 * one**2 * np.square(coordinates) @ weights.T
    return np.asarray(crossed + own - alone[:, np.newaxis])


def mean_ratios(means: Floats, counts: Floats, known: Floats, variances: Floats) -> Floats:
    """Log-likelihood ratio that a group is of a known class with many samples, (n_groups, n_classes)."""
    numbers = effective(counts)
    sums, of_known = means * numbers[:, np.newaxis], known * MOST_EVIDENCE
    many = np.full(len(known), MOST_EVIDENCE)
    alone, other = evidence(sums, numbers, variances), evidence(of_known, many, variances)
    ratios = np.empty((len(means), len(known)))
    for k, mean in enumerate(of_known):
        ratios[:, k] = evidence(sums + mean, numbers + MOST_EVIDENCE, variances) - alone - other[k]
    return ratios
