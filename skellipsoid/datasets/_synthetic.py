"""Synthetic features with a known optimal boundary."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.utils import check_array, check_random_state, check_scalar
from sklearn.utils import shuffle as shuffle_rows

from .._core.validation import read_features

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

_N_CANDIDATES = 30


@dataclass(frozen=True, eq=False)
class OpenBlobsRule:
    r"""The distribution that :func:`make_open_blobs` drew from, and its Bayes-optimal rule.

    No classifier can have a higher expected accuracy on this distribution than :meth:`predict`, and no score can
    separate known from open samples better than :meth:`log_density_ratio`.

    Parameters
    ----------
    centers : ndarray of shape (n_known, n_features)
        Mean of each known class.
    covariances : ndarray of shape (n_known, n_features, n_features)
        Covariance of each known class.
    open_variance : float
        Variance of the open samples along every feature; their mean is the origin. It exceeds the largest variance of
        each known class in any direction.
    open_share : float
        Prior probability of open. The known classes share the rest evenly.
    open_label : int
        The label of open samples.

    See Also
    --------
    make_open_blobs : Draws samples from this distribution.

    Notes
    -----
    With :math:`\pi` the open share, :math:`K` the number of known classes and :math:`s^2` the open variance, the log
    ratio of class :math:`k` is

    .. math::

        \ell_k(x) = \log \frac{(1 - \pi)\, \mathcal{N}(x; c_k, \Sigma_k)}{K \pi\, \mathcal{N}(x; 0, s^2 I)} .

    The answer with the highest expected accuracy is the class with the largest :math:`\ell_k` if this is not negative,
    else open. If the classes do not overlap, the region of a class is the ellipsoid :math:`\ell_k(x) \ge 0`, which
    :meth:`ellipsoid` gives.

    Examples
    --------
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y, rule = make_open_blobs(return_rule=True, random_state=0)
    >>> rule.class_log_ratios(X).shape
    (400, 3)
    >>> center, matrix = rule.ellipsoid(0)
    >>> center.shape, matrix.shape
    ((2,), (2, 2))
    """

    centers: _Floats
    covariances: _Floats
    open_variance: float
    open_share: float
    open_label: int = -1

    def class_log_ratios(self, X: ArrayLike) -> _Floats:
        """Return the log ratio of each known class's weighted density to the open one's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_ratios : ndarray of shape (n_samples, n_known)
            Zero where the class and open are equally probable, positive where the class is more probable. Infinite if
            the open share is 0.

        Raises
        ------
        ValueError
            If the number of features is not that of the distribution.
        """
        known, open_ = self._log_joint_densities(X)
        return np.asarray(known - open_[:, np.newaxis])

    def log_density_ratio(self, X: ArrayLike) -> _Floats:
        """Return the log ratio of the known samples' weighted density to the open ones'.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        log_ratio : ndarray of shape (n_samples,)
            Positive where known is more probable than open. No other score separates known from open samples better.

        Raises
        ------
        ValueError
            If the number of features is not that of the distribution.
        """
        return np.asarray(logsumexp(self.class_log_ratios(X), axis=1))

    def predict(self, X: ArrayLike) -> _Ints:
        """Return the most probable answer, a known class or open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            A known class, 0 to ``n_known`` - 1, or the open label.

        Raises
        ------
        ValueError
            If the number of features is not that of the distribution.
        """
        known, open_ = self._log_joint_densities(X)
        return np.where(known.max(axis=1) >= open_, known.argmax(axis=1), self.open_label)

    def ellipsoid(self, label: int) -> tuple[_Floats, _Floats]:
        r"""Return the ellipsoid in which a known class is at least as probable as open.

        Parameters
        ----------
        label : int
            A known class, 0 to ``n_known`` - 1.

        Returns
        -------
        center : ndarray of shape (n_features,)
            The centre m of the ellipsoid. It lies a little farther from the origin than the class mean.
        matrix : ndarray of shape (n_features, n_features)
            The matrix M of the ellipsoid :math:`(x - m)^\top M (x - m) \le 1`. Zero if the open share is 0: then it is
            the whole space.

        Raises
        ------
        ValueError
            If there is no such class, or if open is more probable everywhere.
        """
        n_known, n_features = self.centers.shape
        check_scalar(label, "label", Integral, min_val=0, max_val=n_known - 1)
        mean, covariance = self.centers[label], self.covariances[label]
        precision = np.linalg.inv(covariance)
        matrix = precision - np.eye(n_features) / self.open_variance
        center = np.linalg.solve(matrix, precision @ mean)
        peak = self.class_log_ratios(center[np.newaxis])[0, label]
        if peak <= 0:
            raise ValueError(
                f"Class {label} is nowhere more probable than open at open_share={self.open_share}: it has no "
                "ellipsoid; lower open_share."
            )
        # Twice the log ratio falls from its peak by (x - center)ᵀ matrix (x - center).
        return center, matrix / (2 * peak)

    def _log_joint_densities(self, X: ArrayLike) -> tuple[_Floats, _Floats]:
        """Return log prior times density, of each known class (n_samples, n_known) and of open (n_samples,)."""
        X = np.asarray(check_array(read_features(X), dtype=np.float64))
        n_known, n_features = self.centers.shape
        if X.shape[1] != n_features:
            raise ValueError(f"X has {X.shape[1]} features, but this distribution has {n_features}: pass as many.")
        # Both lack the factor (2π)^(-n_features/2), which cancels wherever they are compared.
        known = np.column_stack([_log_normal(X, c, s) for c, s in zip(self.centers, self.covariances, strict=True)])
        open_ = -0.5 * ((X**2).sum(axis=1) / self.open_variance + n_features * np.log(self.open_variance))
        log_open_share = np.log(self.open_share) if self.open_share else -np.inf
        return known + np.log((1 - self.open_share) / n_known), open_ + log_open_share


def make_open_blobs(
    n_samples: int = 400,
    n_features: int = 2,
    *,
    n_known: int = 3,
    open_share: float = 0.25,
    class_sep: float = 6.0,
    anisotropy: float = 4.0,
    open_scale: float = 1.5,
    open_label: int = -1,
    shuffle: bool = True,
    random_state: int | np.random.RandomState | None = None,
    return_rule: bool = False,
) -> tuple[Any, ...]:
    """Generate elongated Gaussian classes in a wide Gaussian cloud of open samples.

    Each known class is a Gaussian with its own orientation. Open samples come from one wide round Gaussian that covers
    all classes. So the optimal boundary of a class is an ellipsoid. ``return_rule=True`` returns the optimal rule.

    Parameters
    ----------
    n_samples : int, default=400
        The number of samples in all.
    n_features : int, default=2
        The number of features.
    n_known : int, default=3
        The number of known classes, which share the samples that are not open evenly.
    open_share : float in [0, 1), default=0.25
        The share of open samples.
    class_sep : float, default=6.0
        Separation of the classes: their centres are distributed over a cube with the volume
        ``class_sep ** n_features`` per class. A class's standard deviations along its axes have the geometric mean 1.
    anisotropy : float, default=4.0
        Ratio of the largest and the smallest standard deviation of a class, at least 1; those between are spaced
        geometrically. With one feature it has no effect.
    open_scale : float, default=1.5
        Scale of the open samples relative to the known ones, more than 1; see Notes.
    open_label : int, default=-1
        The label of the open samples.
    shuffle : bool, default=True
        If false, the samples come class by class, the open ones last.
    random_state : int, RandomState instance or None, default=None
        Determines the distribution and the draw. An int makes both repeatable; the distribution does not depend on
        ``n_samples``, ``open_share`` and ``shuffle``, save for the prior.
    return_rule : bool, default=False
        If true, also return the distribution and its Bayes-optimal rule.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The labels, 0 to ``n_known`` - 1, and the open label.
    rule : OpenBlobsRule
        Only if ``return_rule`` is true.

    Raises
    ------
    TypeError
        If a parameter is not a number of the right kind.
    ValueError
        If a parameter is out of its range, or if ``open_label`` is the label of a known class.

    See Also
    --------
    OpenBlobsRule : The returned rule, with formulas.
    sklearn.datasets.make_blobs : Round classes without open samples.
    load_assistant_intents : Real texts, near and far from the known classes.

    Notes
    -----
    The open samples' standard deviation along each feature is ``open_scale`` times the root of the sum of a class's
    largest variance and the mean square of the centres' coordinates. With more features known and open
    samples are easier to separate.

    Examples
    --------
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y, rule = make_open_blobs(random_state=0, return_rule=True)
    >>> X.shape, [int((y == label).sum()) for label in (0, 1, 2, -1)]
    ((400, 2), [100, 100, 100, 100])
    >>> print(f"{(rule.predict(X) == y).mean():.3f}")
    0.917
    """
    for name, count in [("n_samples", n_samples), ("n_features", n_features), ("n_known", n_known)]:
        check_scalar(count, name, Integral, min_val=1)
    check_scalar(open_share, "open_share", Real, min_val=0, max_val=1, include_boundaries="left")
    check_scalar(class_sep, "class_sep", Real, min_val=0)
    check_scalar(anisotropy, "anisotropy", Real, min_val=1)
    check_scalar(open_scale, "open_scale", Real, min_val=1, include_boundaries="neither")
    check_scalar(open_label, "open_label", Integral)
    if 0 <= open_label < n_known:
        raise ValueError(
            f"open_label={open_label} is one of the known classes 0 to {n_known - 1}: use another, such as -1."
        )
    rng = check_random_state(random_state)
    # The distribution is drawn before the samples so that it does not depend on their number.
    centers = _spread_centers(n_known, n_features, class_sep, rng)
    deviations = _axis_deviations(n_features, anisotropy)
    factors = np.stack([_random_rotation(n_features, rng) * deviations for _ in range(n_known)])
    rule = OpenBlobsRule(
        centers=centers,
        covariances=factors @ factors.transpose(0, 2, 1),
        open_variance=float(open_scale**2 * (deviations.max() ** 2 + (centers**2).mean())),
        open_share=float(open_share),
        open_label=int(open_label),
    )

    n_open = round(open_share * n_samples)
    sizes = [len(part) for part in np.array_split(np.arange(n_samples - n_open), n_known)]
    blocks = [c + rng.standard_normal((n, n_features)) @ f.T for c, f, n in zip(centers, factors, sizes, strict=True)]
    blocks.append(np.sqrt(rule.open_variance) * rng.standard_normal((n_open, n_features)))
    X = np.concatenate(blocks)
    y = np.repeat(np.array([*range(n_known), rule.open_label], dtype=np.int64), [*sizes, n_open])
    if shuffle:
        X, y = shuffle_rows(X, y, random_state=rng)
    return (X, y, rule) if return_rule else (X, y)


def _spread_centers(n_known: int, n_features: int, class_sep: float, rng: np.random.RandomState) -> _Floats:
    """Draw centres in a cube, each the candidate that lies farthest from those before it."""
    half_side = class_sep * n_known ** (1 / n_features) / 2
    candidates = rng.uniform(-half_side, half_side, size=(n_known, _N_CANDIDATES, n_features))
    centers = [candidates[0, 0]]
    for points in candidates[1:]:
        gaps = np.linalg.norm(points[:, np.newaxis] - np.array(centers), axis=2)  # (n_candidates, n_centers)
        centers.append(points[gaps.min(axis=1).argmax()])
    return np.array(centers)


def _axis_deviations(n_features: int, anisotropy: float) -> _Floats:
    """Return standard deviations along a class's axes, longest first, with the geometric mean 1."""
    return np.asarray(anisotropy ** np.linspace(0.5, -0.5, n_features)) if n_features > 1 else np.ones(1)


def _random_rotation(n_features: int, rng: np.random.RandomState) -> _Floats:
    """Draw an orthogonal matrix uniformly."""
    q, r = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    return np.asarray(q * np.sign(np.diag(r)))


def _log_normal(X: _Floats, center: _Floats, covariance: _Floats) -> _Floats:
    """Return the log density of a Gaussian without its constant -n_features/2 log 2π."""
    factor = np.linalg.cholesky(covariance)
    white = solve_triangular(factor, (X - center).T, lower=True)  # (n_features, n_samples)
    return np.asarray(-0.5 * (white**2).sum(axis=0) - np.log(np.diag(factor)).sum())
