"""The share of open samples in unlabelled traffic."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from ..._core.pipelines import read_estimator
from .held import Floats, HeldOutScores, Integers
from .mixture import TILT_ERROR, fit_mixture, known_above

#: What the classifier must have.
MEMBERS = ("score_samples", "predict_known", "classes_")
#: With fewer different samples nothing is told.
FEWEST = 50
#: Hardly any open sample has a p-value above this. ``skellipsoid-bench/studies/open_share.py`` chose it.
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
        Unlabelled features, or texts for a text Pipeline; at least 50 different ones. Repeated messages count as often
        as they occur, but widen the interval. Use samples that were not used in training.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        - ``share``: estimated share of open samples.
        - ``low``: at least so many are open. On frozen features it held in 97 to 99 % of the streams of CLINC150 with
          up to 40 % open, and in 99 to 100 % of all others, for each data set and share; with a trained head in 93 %
          or more. It is too large if known traffic has moved.
        - ``high``: about so many are open at most. It held in 87 to 100 % of the streams: open samples that look known
          are not seen.
        - ``class_shares``: ndarray of shape (n_classes,), the share of each known class, in the order of ``classes_``.
          Their sum is 1 − ``share``.
        - ``note``: ``None``, or one sentence that says why the numbers are doubtful.
        - ``reason``: ``None``, or one sentence that says why nothing is known. All numbers are then NaN.

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
    1 − #{p > λ} / ((1 − λ) n) would be the open share (Storey's estimator [1]_), here with λ = 0.4. Known traffic may
    lie a little farther out or in than held-out samples, and then it errs where little is open. A mixture of known and
    open samples in eleven bins allows for that, and for unknown classes that differ from held-out ones; it errs where
    much is open. ``share`` is s t + (1 − s) s, where s is the mixture's estimate and t is Storey's.

    ``low`` is the 2.5 % quantile of Storey's estimate over 200 resamplings of the messages (copies together), of the
    known classes of the held-out samples, and of the density exp(−t p) of known p-values, t with the standard deviation
    0.4. ``high`` is made as ``share`` is, of the 97.5 % quantiles of the mixture and of Storey's estimate, corrected by
    the share of held-out classes' samples above λ.

    If known traffic differs much from the training samples, nothing without labels tells it from open samples: then
    ``low`` may be too large.

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
    0.26, between 0.2 and 0.3
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
    low = np.quantile(found.storey, 1 - CERTAINTY)
    corrected = np.quantile(found.corrected, CERTAINTY)
    # The mixture errs where much is open, Storey's estimate where little is.
    share = (1 - mixture.share) * mixture.share + mixture.share * storey
    high = (1 - mixture.share) * mixture.high + mixture.share * corrected
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
    """Storey's estimate over resamplings, and how far the traffic's large p-values are off, (n_resamplings,)."""

    storey: Floats
    corrected: Floats  # for samples of held-out classes above the level
    shifts: Floats  # mean of the p-values above the level, less that of held-out samples


def resample(held: HeldOutScores, p_values: Floats, copies: Integers) -> Resampled:
    """Resample the known classes, the messages with their copies, and the tilt of known traffic."""
    rng = np.random.default_rng(0)
    tilts = TILT_ERROR * rng.normal(size=N_RESAMPLINGS)
    known, classes = np.sort(held.p_values(held.known)), held.classes[np.argsort(held.known)]
    opened = held.p_values(held.opened)
    rows = []
    for expected in known_above(tilts, LEVEL):
        of_class = rng.standard_exponential(max(classes.max(), held.open_classes.max()) + 1)
        total, of_open = np.cumsum(of_class[classes]), of_class[held.open_classes]
        least = np.searchsorted(total, LEVEL * total[-1])
        passed = of_open[opened > known[least]].sum() / of_open.sum()
        # One message more is above the level, or none among few would be proof that there are none.
        draws = rng.standard_exponential(copies.max() + 2)
        of_message, one = draws[copies], draws[-1] * len(copies) / (len(draws) - 1)
        above, whole = np.where(p_values > known[least], of_message, 0), of_message.sum()
        corrected = (expected - above.sum() / whole) / (expected - passed) if passed < expected else 1.0
        usual = np.average(known[least:], weights=of_class[classes[least:]])
        shift = above @ p_values / max(above.sum(), 1e-12) - usual
        rows.append((1 - (above.sum() + one) / (whole + one) / expected, corrected, shift))
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
