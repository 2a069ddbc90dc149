"""The operating point of a fitted classifier: by a rate and samples, by the share of open samples, or as fitted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..._core.base import BaseOpenSetClassifier
from ..._core.pipelines import read_estimator, split_estimator
from ..._core.warn import warn
from ..traffic.held import HeldOutScores
from ..traffic.share import MEMBERS, open_share_of, score
from .of_share import check_share_options, line_of_share, offset_of_cost
from .offsets import check_rates, offset_of_rate


def set_operating_point(
    estimator: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    rejection_rate: float | None = None,
    open_acceptance_rate: float | None = None,
    open_share: float | None = None,
    cost_open: float | None = None,
    cost_reject: float | None = None,
) -> Any:
    """Set the rejection rate of a fitted classifier.

    Sets ``offset_``, the score below which ``predict`` answers open, and ``class_offsets_`` to 0. For balls and
    ellipsoids, an offset of o multiplies the radius by 1 − o. Nothing else changes. Use samples that were not used in
    training.

    There are four ways to call it:

    - with a rate, and samples that it refers to;
    - with unlabelled traffic alone, ``set_operating_point(clf, X)``: the open share is estimated;
    - with the open share alone, ``set_operating_point(clf, open_share=0.2)``;
    - with nothing else, ``set_operating_point(clf)``: back to the fitted boundary.

    Parameters
    ----------
    estimator : open-set classifier or Pipeline that ends in one
        Fitted. It is changed in place; a later ``fit`` resets it.
    X : array-like, default=None
        Features, or texts for a text Pipeline.
    y : array-like of shape (n_samples,), default=None
        Labels of the samples, for a rate; those outside ``classes_`` are open. ``None``: every sample is known for
        ``rejection_rate``, every sample is open for ``open_acceptance_rate``.
    rejection_rate : float in [0, 1], default=None
        Take the offset that rejects at most this share of *new* known samples, on average over draws of the n given
        known samples [1]_. The offset is the score of rank (n + 1) · rate, rounded down, counted from the lowest: with
        99 samples and 0.05, the fifth lowest score. If this rank is 0, the offset is the lowest score. A rate of 0
        rejects none of the given known samples.
    open_acceptance_rate : float in [0, 1], default=None
        Take the smallest offset that accepts at most this share of *new* open samples, on average over draws of the m
        given open samples: of these it accepts ⌊(m + 1) · rate⌋ − 1. If this number is negative, it accepts none of
        them. A rate of 0 accepts none of the given open samples.
    open_share : float in [0, 1], default=None
        Share of open samples in the traffic to come. The offset is the one with the best expected F1 at this share, on
        samples that the fit held out, and on samples of held-out and synthetic classes. Where it is not expected to
        gain more than the standard error of the gain, the fitted boundary stays, and a warning says so. ``None``, with
        ``X`` and without ``y`` and a rate: the share is estimated from ``X`` (:func:`estimate_open_share`). With fewer
        than 50 different samples the offsets stay as they are, and a warning says so.
    cost_open, cost_reject : float, default=None
        Cost of an open sample that is accepted, and of a known sample that is rejected. If one of them is given, the
        offset has the lowest expected cost in place of the best F1; the other is 1 by default.

    Returns
    -------
    estimator : object
        The same estimator. Without ``X``, a rate and a share, its offsets are 0 again, which is the fitted boundary.

    Raises
    ------
    ValueError
        If both rates are given, if a rate is outside [0, 1], or if no sample of the wanted kind is there. If options of
        the share and of a rate are mixed, or a cost is not positive. If nothing was held out of the fit that a share
        needs.
    TypeError
        If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one. If a share is
        used and the classifier has no ``held_out_``.

    Warns
    -----
    UserWarning
        If there are fewer samples than a rate needs: 1 / rate − 1. The warning says which rates so few can keep. If
        ``X`` is too small for its open share to be known, if the share is doubtful, or if the fitted boundary stays.

    Notes
    -----
    Let r of n given samples be beyond the offset, and let the offset be the score of the next one. The share of new
    samples beyond the offset has the distribution Beta(r + 1, n − r), whatever the distribution of the scores. Its mean
    is (r + 1) / (n + 1). With five open samples, all of them rejected, one sixth of new open samples is accepted on
    average, and at most 45 % with a confidence of 0.95 [2]_. All this is about samples that are drawn alike: it says
    nothing about open samples of another kind.

    References
    ----------
    .. [1] Vovk, V., Gammerman, A., Shafer, G. "Algorithmic Learning in a Random World." Springer, 2005.
    .. [2] Wilks, S. S. "Determination of Sample Sizes for Setting Tolerance Limits." Annals of Mathematical Statistics
       12, 1941.

    Examples
    --------
    >>> import numpy as np, skellipsoid
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(400, 2)) + np.repeat([[0], [9]], 200, axis=0), np.repeat([0, 1], 200)
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X[::2], y[::2])
    >>> clf = skellipsoid.set_operating_point(clf, X[1::2], rejection_rate=0.05)
    >>> bool((clf.predict(X[1::2]) == -1).mean() <= 0.05)  # the tenth lowest score of 200 is the offset
    True
    >>> clf = skellipsoid.set_operating_point(clf, open_share=0.1)
    >>> clf.offset_ < 0  # little is open: fewer known samples are rejected
    True
    """
    classifier = open_set_classifier(estimator)
    check_is_fitted(classifier)
    check_rates(rejection_rate, open_acceptance_rate)
    has_rate = rejection_rate is not None or open_acceptance_rate is not None
    check_share_options(open_share, cost_open, cost_reject, has_X=X is not None, has_y=y is not None, has_rate=has_rate)
    offset = 0.0
    if has_rate:
        offset = offset_of_rate(estimator, X, y, rejection_rate, open_acceptance_rate)
    elif X is not None or open_share is not None:
        held = HeldOutScores.of(classifier, "set_operating_point")
        if X is None:
            share = float(open_share)  # type: ignore[arg-type]
        else:
            features = read_estimator(estimator, X, MEMBERS, "set_operating_point")[1]
            found = open_share_of(held, *score(classifier, features), len(classifier.classes_))
            if found.reason is not None:
                warn(f"The operating point stays at {classifier.offset_:.3g}. {found.reason}")
                return estimator
            if found.note is not None:
                warn(found.note)
            share = found.share
        if cost_open is not None or cost_reject is not None:
            offset = offset_of_cost(held, share, cost_open, cost_reject)
        else:
            line = line_of_share(held, share, len(classifier.classes_))
            if stays := line.describe(share):
                warn(stays)
            offset = 0.0 if stays else line.offset
    classifier.offset_, classifier.class_offsets_ = offset, np.zeros(len(classifier.classes_))
    return estimator


def open_set_classifier(estimator: Any) -> BaseOpenSetClassifier:
    """Return the last step of an estimator; an error unless it has an operating point."""
    classifier = split_estimator(estimator)[1]
    if not isinstance(classifier, BaseOpenSetClassifier):
        raise TypeError(
            f"{type(classifier).__name__} has no operating point to set; pass an open-set classifier of this package "
            "or a Pipeline that ends in one."
        )
    return classifier
