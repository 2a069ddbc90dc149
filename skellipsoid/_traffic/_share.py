"""The share of open samples in unlabelled traffic."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._pipelines import read_estimator
from ._held import Floats, HeldOutScores, Integers
from ._mixture import Mixture, fit_mixture

#: What the classifier must have.
MEMBERS = ("score_samples", "predict_known", "classes_")
#: Largest width of an interval that is reported.
WIDEST = 0.3
#: Limits of the tilt of known traffic.
MOST_OUTWARD, MOST_INWARD = 0.7, -0.45
#: Largest misfit: the 99.9 % quantile of χ² with six degrees of freedom.
LARGEST_MISFIT = 22.5
#: Above this share hardly any sample tells how known traffic scores.
LARGEST_SHARE = 0.9


def estimate_open_share(estimator: Any, X: ArrayLike) -> Bunch:
    """Estimate how much of unlabelled traffic is open, with an interval.

    The scores of the traffic are compared with the scores of held-out samples (p-values, see ``known_p_value``). Known
    samples have p-values of all sizes alike, open samples have small ones. So the number of samples with large p-values
    tells how many are known.

    Read more in the :ref:`User Guide <open_share>`.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted: :class:`EllipsoidOpenSetClassifier`, or :class:`~skellipsoid.baselines.MahalanobisClassifier` with
        ``threshold="auto"``. For others held-out scores and new ones are on unlike scales.
    X : array-like
        Unlabelled features, or texts for a text Pipeline. About 1,000 are needed for an interval of a width of 0.12.
        Repeated messages count as often as they occur, but widen the interval.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``share``: estimated share of open samples.
        - ``low``, ``high``: limits of its interval. On measured streams 98 % of the intervals held the true share, and
          91 % where nothing was open.
        - ``class_shares``: ndarray of shape (n_classes,), the share of each known class, in the order of ``classes_``.
          Their sum is 1 − ``share``.
        - ``reason``: ``None``, or one sentence that says why the share cannot be known. All numbers are then NaN.

    Raises
    ------
    TypeError
        If the classifier is another one, or has no ``held_out_``.
    ValueError
        If its fit held out no sample or no class, or if ``X`` is not valid.

    See Also
    --------
    set_operating_point : Sets the limit for this share.

    Notes
    -----
    If a share λ of known samples had p-values of at most λ, and no open sample had a larger one, then
    1 − #{p > λ} / ((1 − λ) n) would be the open share (Storey's estimator [1]_). Here all p-values are used, in eleven
    bins. Two departures are allowed for, each with a prior: known traffic may lie a little farther out or in than
    the held-out samples, and unknown classes may differ from held-out ones. Both widen the interval.

    The share cannot be known if known traffic differs much from the training samples. Such traffic is recognised only
    as long as some of it has large p-values: if no sample resembles the training data, all of it may be open.

    References
    ----------
    .. [1] Storey, J. D. "A Direct Approach to False Discovery Rates." Journal of the Royal Statistical Society B 64,
       2002.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, estimate_open_share
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(4000, 8, n_known=6, open_share=0.25, random_state=0)
    >>> train = (y != -1) & (np.arange(len(y)) < 2000)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    >>> found = estimate_open_share(clf, X[2000:])
    >>> print(f"{found.share:.2f}, between {found.low:.1f} and {found.high:.1f}")
    0.25, between 0.2 and 0.3
    """
    classifier, features = read_estimator(estimator, X, MEMBERS, "estimate_open_share")
    held = HeldOutScores.of(classifier, "estimate_open_share")
    return open_share_of(held, *score(classifier, features), len(classifier.classes_))


def score(classifier: Any, features: Any) -> tuple[Floats, Integers]:
    """Scores of samples and the classes that they are assigned to, both (n_samples,)."""
    scores = np.asarray(classifier.score_samples(features), dtype=np.float64)
    return scores, classifier._encode(classifier.predict_known(features))


def open_share_of(held: HeldOutScores, scores: Floats, assigned: Integers, n_classes: int) -> Bunch:
    """Estimate the open share of scored traffic."""
    copies = np.unique(np.stack([assigned, np.round(scores, 6)]), axis=1, return_inverse=True)[1].ravel()
    mixture = fit_mixture(held.p_values(scores), copies, held.open_shares(), len(held.known))
    reason = _reason(mixture, len(scores))
    if reason is not None:
        return Bunch(share=np.nan, low=np.nan, high=np.nan, class_shares=np.full(n_classes, np.nan), reason=reason)
    known = np.bincount(assigned, mixture.known, minlength=n_classes)
    class_shares = (1 - mixture.share) * known / max(known.sum(), 1e-12)
    return Bunch(share=mixture.share, low=mixture.low, high=mixture.high, class_shares=class_shares, reason=None)


def _reason(mixture: Mixture, n_samples: int) -> str | None:
    """Say why the share cannot be known, if it cannot."""
    if mixture.high - mixture.low > WIDEST:
        return (
            f"{n_samples} samples are too few: the open share may be anything from {mixture.low:.2f} to "
            f"{mixture.high:.2f}; pass more different ones."
        )
    if mixture.share > LARGEST_SHARE:
        return (
            "Hardly any sample resembles the training samples: either nearly all of them are open, or known ones have "
            "moved, for instance because features are made in another way."
        )
    if mixture.tilt > MOST_OUTWARD:
        return (
            "Known traffic seems to lie farther out than the training samples, so that it cannot be told from open "
            "samples; train on samples of the traffic."
        )
    if mixture.tilt < MOST_INWARD:
        return (
            "The traffic lies nearer to the class centres than held-out training samples, as training samples "
            "themselves do; pass samples that were not used in training."
        )
    if mixture.misfit > LARGEST_MISFIT:
        return (
            "The scores of the traffic are no mixture of held-out known samples and held-out classes; known traffic "
            "seems to differ from the training samples."
        )
    return None
