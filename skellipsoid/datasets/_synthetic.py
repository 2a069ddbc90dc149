"""``make_open_blobs``: Gaussian classes in a wide Gaussian cloud, with a known optimal boundary."""

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state, check_scalar
from sklearn.utils import shuffle as shuffle_rows

_Floats: TypeAlias = NDArray[np.float64]

_N_CANDIDATES = 30


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
    return_distribution: bool = False,
) -> tuple[Any, ...]:
    """Generate elongated Gaussian classes in a wide Gaussian cloud of open samples.

    Each known class is a Gaussian with its own orientation. Open samples come from one wide round Gaussian that covers
    all classes. So the optimal boundary of a class is an ellipsoid.

    Parameters
    ----------
    n_samples : int, default=400
        The number of samples in all.
    n_features : int, default=2
        The number of features.
    n_known : int, default=3
        The number of known classes, which share the other samples evenly.
    open_share : float in [0, 1), default=0.25
        The proportion of open samples.
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
        Determines the distribution and the samples. An int makes both repeatable; the distribution does not depend on
        ``n_samples``, ``open_share`` and ``shuffle``, save for the prior.
    return_distribution : bool, default=False
        If true, also return the distribution.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The labels, 0 to ``n_known`` - 1, and the open label.
    distribution : Bunch
        Only if ``return_distribution`` is true. ``centers``, (n_known, n_features), and ``covariances``, (n_known,
        n_features, n_features), of the known classes, and ``open_variance``, a float: the open samples' variance along
        each feature; their mean is the origin.

    Raises
    ------
    TypeError
        If a parameter is not a number of the right kind.
    ValueError
        If a parameter is out of its range, or if ``open_label`` is the label of a known class.

    See Also
    --------
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
    >>> X, y = make_open_blobs(random_state=0)
    >>> X.shape, [int((y == label).sum()) for label in (0, 1, 2, -1)]
    ((400, 2), [100, 100, 100, 100])
    """
    for name, count in [("n_samples", n_samples), ("n_features", n_features), ("n_known", n_known)]:
        check_scalar(count, name, Integral, min_val=1)
    for name, value in [("open_share", open_share), ("class_sep", class_sep)]:
        if isinstance(value, bool):
            raise TypeError(f"{name} must be a number, not {value}.")
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
    open_variance = float(open_scale**2 * (deviations.max() ** 2 + (centers**2).mean()))

    n_open = round(open_share * n_samples)
    sizes = [len(part) for part in np.array_split(np.arange(n_samples - n_open), n_known)]
    blocks = [c + rng.standard_normal((n, n_features)) @ f.T for c, f, n in zip(centers, factors, sizes, strict=True)]
    blocks.append(np.sqrt(open_variance) * rng.standard_normal((n_open, n_features)))
    X = np.concatenate(blocks)
    y = np.repeat(np.array([*range(n_known), open_label], dtype=np.int64), [*sizes, n_open])
    if shuffle:
        X, y = shuffle_rows(X, y, random_state=rng)
    if not return_distribution:
        return X, y
    covariances = factors @ factors.transpose(0, 2, 1)
    return X, y, Bunch(centers=centers, covariances=covariances, open_variance=open_variance)


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
