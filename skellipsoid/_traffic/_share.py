"""The share of open samples in unlabelled traffic."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._pipelines import read_estimator
from ._held import Floats, HeldOutScores, Integers
from ._mixture import TILT_ERROR, fit_mixture, known_above

#: What the classifier must have.
MEMBERS = ("score_samples", "predict_known", "classes_")
#: With fewer different samples nothing is told.
FEWEST = 50
#: Hardly any open sample has a p-value above this. ``benchmarks/open_share.py`` chose it.
LEVEL = 0.4
#: Certainty of each limit of the interval, and the number of resamplings that it is read off.
CERTAINTY, N_RESAMPLINGS = 0.975, 200
#: Known traffic differs from held-out samples if its mean large p-value differs by so many standard errors.
MOST_ERRORS = 3.0
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
    p_values = held.p_values(scores)
    copies = np.unique(np.stack([assigned, np.round(scores, 6)]), axis=1, return_inverse=True)[1].ravel()
    counts = np.bincount(copies)
    if len(counts) < FEWEST:
        different = "" if len(counts) == len(scores) else f", {len(counts)} of them different,"
        reason = f"{len(scores)} samples{different} are too few; pass at least {FEWEST} different ones."
        nothing = np.full(n_classes, np.nan)
        return Bunch(share=np.nan, low=np.nan, high=np.nan, class_shares=nothing, note=None, reason=reason)
    n_independent = 1 / ((counts**2).sum() / len(scores) ** 2 + 1 / len(held.known))
    mixture = fit_mixture(p_values, n_independent, held.open_shares(), CERTAINTY)
    storey = np.clip(1 - (p_values > LEVEL).mean() / (1 - LEVEL), 0, 1)
    found = resample(held, p_values, copies)
    low = np.quantile(found.without_open, 1 - CERTAINTY)
    corrected = np.quantile(found.corrected, CERTAINTY)
    # The more is new, the less do known samples tell how they are tilted, and the more does it matter how open ones lie.
    share, high = ((1 - mixture.share) * one + mixture.share * other for one, other in
                   ((mixture.share, storey), (mixture.high, corrected)))
    known = np.bincount(assigned, mixture.known, minlength=n_classes)
    return Bunch(
        share=float(share),
        low=float(np.clip(low, 0, share)),
        high=float(np.clip(high, share, 1)),
        class_shares=(1 - share) * known / max(known.sum(), 1e-12),
        note=_note(float(low), found.shifts),
        reason=None,
    )


class Resampled(NamedTuple):
    """Storey's estimate, without and with a correction for open samples above the level, and the shift."""

    without_open: Floats  # (n_resamplings,)
    corrected: Floats  # (n_resamplings,)
    shifts: Floats  # (n_resamplings,) mean of the p-values above the level, less that of held-out ones


def resample(held: HeldOutScores, p_values: Floats, copies: Integers) -> Resampled:
    """Resample the known classes, the messages with their copies, and the tilt of known traffic."""
    rng = np.random.default_rng(0)
    tilts = TILT_ERROR * rng.normal(size=N_RESAMPLINGS)
    known, classes = np.sort(held.p_values(held.known)), held.classes[np.argsort(held.known)]
    opened = held.p_values(held.opened)
    rows = []
    for expected in known_above(tilts, LEVEL):
        of_class = rng.standard_exponential(max(classes.max(), held.open_classes.max()) + 1)
        total = np.cumsum(of_class[classes])
        least = np.searchsorted(total, LEVEL * total[-1])
        weights = rng.standard_exponential(copies.max() + 1)[copies]
        above = np.where(p_values > known[least], weights, 0)
        seen, of_open = above.sum() / weights.sum(), of_class[held.open_classes]
        passed = of_open[opened > known[least]].sum() / of_open.sum()
        corrected = (expected - seen) / (expected - passed) if passed < expected else 1.0
        usual = np.average(known[least:], weights=of_class[classes[least:]])
        rows.append((1 - seen / expected, corrected, above @ p_values / max(above.sum(), 1e-12) - usual))
    return Resampled(*np.array(rows).T)


def _note(low: float, shifts: Floats) -> str | None:
    """Say what makes the numbers doubtful."""
    if low > LARGEST_SHARE:
        return (
            "Hardly any sample resembles the training samples: either nearly all of them are new, or known ones have "
            "moved, for instance because features are made in another way."
        )
    shift = shifts.mean() / max(shifts.std(), 1e-12)
    if shift < -MOST_ERRORS:
        return (
            "Samples that look known lie farther out than held-out training samples: known traffic differs from them, "
            "or new samples resemble them. The share may be smaller in the first case and larger in the second."
        )
    if shift > MOST_ERRORS:
        return (
            "Samples that look known lie nearer to the class centres than held-out training samples, as training "
            "samples themselves do. The share may be larger."
        )
    return None
