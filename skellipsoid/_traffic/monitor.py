"""Detect a rise of the open rate since a reference stretch of the traffic: a conformal martingale."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._core.fitted_state import at_once
from .._core.pipelines import fingerprint, less_class_offsets, read_estimator, split_estimator
from .._core.sklearn import take_rows
from .._core.state_rules import CLASSES, COUNT, NUMBER, TEXT, Rule, Sizes, floats, integers, measured
from .._core.validation import is_number
from .._core.warn import warn
from .._ellipsoid.changes.learned import find_learned, learned_of

#: Alternatives that are bet on: the proportion of new traffic, and the level that its p-values lie below.
_RATES = (0.05, 0.1, 0.2, 0.4)
_LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35)
SUSPICIONS = np.array(list(product(_RATES, _LEVELS)))
_RATE, _LEVEL = SUSPICIONS.T
_LOG_GAIN = np.log(_RATE / _LEVEL + 1 - _RATE)  # of a p-value at or below the level
_LOG_LOSS = np.log(1 - _RATE)  # of one above it
#: The idle capital lasts: after t bets the part 1 / (2 (t + _DELAY)) of it is staked, so that late changes count too.
_DELAY = 100
_SMALL_REFERENCE = 50


class OpenShareMonitor(BaseEstimator):
    """Watch traffic: alarm when more of it looks new than in a reference stretch.

    A conformal martingale [1]_ bets against "the new samples are drawn as the reference was". It may be read after
    every sample: however long it runs, an unchanged stream raises a false alarm with a chance of at most
    ``false_alarm_rate``. One test watches all samples, and one for each known class watches those that are assigned to
    it, for what is new may hide in one class.

    Parameters
    ----------
    estimator : open-set classifier, or Pipeline or search that ends in one
        Fitted; the monitor calls it, and does not fit it.
    false_alarm_rate : float in (0, 1), default=0.05
        Bound on the chance of any false alarm, over the whole stream and all classes together.
    random_state : int, default=0
        Breaks ties between equal scores: the same stream gives the same evidence, in whatever batches it comes.

    Attributes
    ----------
    alarm_at_ : int or None
        Number of samples seen when the evidence was first enough; ``None`` while there is no alarm.
    class_alarm_at_ : dict of class to int
        The same for the evidence of single classes: those with an alarm, in the order of ``classes_``.
    log10_evidence_ : float
        Logarithm of the present evidence. An alarm is raised when it reaches −log10(``false_alarm_rate``). It falls
        again when the traffic does.
    n_seen_ : int
        Number of samples of all updates.
    open_share_, reference_open_share_ : float
        Rate at which ``predict`` rejects, in all updates (NaN before the first) and in the reference.
    classes_ : ndarray of shape (n_classes,)
        The known classes.
    history_ : ndarray of shape (n_updates, 3)
        After each update: samples seen, how many of them were rejected, ``log10_evidence_``.

    See Also
    --------
    estimate_open_share : Proportion of open samples in traffic; ``open_share_`` is the rejection rate.
    skellipsoid.plotting.MonitorDisplay : Draws the evidence.
    EllipsoidOpenSetClassifier.known_p_value : How usual a single sample is, against the training data.

    Notes
    -----
    The reference is real traffic, for instance the first weeks after the release. So its own rate of open samples,
    and whatever else distinguishes traffic from training data, is no reason for an alarm. The more samples it has, the
    sooner a change is detected; several hundred are few.

    The p-value of a sample is the proportion of lower scores among the samples up to it and the reference, with ties in
    random order. Without a change the p-values are independent and uniform [1]_. Each bet assumes that a proportion
    e of the traffic is new, with p-values below q: it multiplies its stake by 1 − e + e/q if p ≤ q and by 1 − e
    otherwise. Stakes on 24 pairs of e and q run side by side. They are paid out of an idle capital over time, so that a
    change after thousands of samples is detected as well. The capital of all samples, or the mean capital of the
    classes, raises an alarm at 2 / ``false_alarm_rate`` (inequality of Ville).

    Messages that the estimator has learned (:func:`learn_from_traffic`) are left out of everything: they look more
    known than others.

    The monitor keeps the score of every sample, twelve bytes, and an update sorts them: 10 ms after 100,000 samples. A
    sample that is new at first and then frequent becomes usual: after an alarm, find out what came, and ``fit`` again.
    Also ``fit`` again, with a newer reference, when the estimator was fitted again: its scores are others.

    References
    ----------
    .. [1] Vovk, V., Gammerman, A., Shafer, G. "Algorithmic Learning in a Random World." 2nd edition, Springer, 2022,
       chapter 8.

    Examples
    --------
    >>> from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor
    >>> from skellipsoid.datasets import make_open_blobs
    >>> X, y = make_open_blobs(3000, 8, n_known=6, open_share=0.2, random_state=0)
    >>> known, new = X[y != -1], X[y == -1]
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(known[:600], y[y != -1][:600])
    >>> monitor = OpenShareMonitor(clf).fit(known[600:1400])
    >>> monitor.update(known[1400:2000]).alarm_
    False
    >>> monitor.update(new[:60]).alarm_
    True
    """

    classes_: NDArray[Any]
    history_: NDArray[np.float64]

    #: Fitted attributes, and what each must be to be loaded.
    _state: ClassVar[dict[str, Rule]] = {
        "classes_": CLASSES,
        "n_reference_": COUNT,
        "reference_open_share_": NUMBER,
        "alarm_at_": replace(COUNT, nullable=True),
        "_class_alarm_at": integers("n_classes"),  # −1 where there is no alarm
        "history_": floats("n_updates", 3),
        "_scores": floats("n_scored"),
        "_codes": integers("n_scored"),
        "_idle": floats("n_tests"),
        "_stakes": measured("n_tests", "n_suspicions"),
        "_n_bets": integers("n_tests"),
        "_fingerprint": TEXT,
    }

    def __init__(self, estimator: Any, *, false_alarm_rate: float = 0.05, random_state: int = 0) -> None:
        self.estimator = estimator
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted monitor of the same fitted estimator, as of one that is frozen."""
        return type(self)(self.estimator, false_alarm_rate=self.false_alarm_rate, random_state=self.random_state)

    @partial(at_once, anew=True)
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Take samples as the reference, and forget all updates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or n_samples texts
            What the estimator predicts on: features, or texts for a text Pipeline. A stretch of real traffic, with the
            open samples that it has.
        y : None
            Ignored.

        Returns
        -------
        self : OpenShareMonitor

        Raises
        ------
        ValueError
            If ``false_alarm_rate`` is not between 0 and 1, ``random_state`` is not an integer of at least 0, or the
            estimator refuses the samples.
        TypeError
            If the estimator is not an open-set classifier of this package, or a Pipeline that ends in one.

        Warns
        -----
        UserWarning
            If the reference has fewer than 50 samples: a change will be detected late.
        """
        _check_settings(self.false_alarm_rate, self.random_state)
        classes, scores, codes, is_open = self._read(X)
        self._fingerprint = fingerprint(self.estimator)
        if not len(scores):
            raise ValueError("All samples of the reference were learned before; pass others.")
        if len(scores) < _SMALL_REFERENCE:
            warn(
                f"The reference has {len(scores)} samples, so that it will detect a change late: pass several hundred "
                "samples of traffic."
            )
        self.classes_ = classes
        self.reference_open_share_ = float(is_open.mean())
        self.n_reference_ = len(scores)
        self._scores, self._codes = scores, codes
        n_tests = len(classes) + 1  # the last one is that of all samples
        self._idle = np.zeros(n_tests)
        self._stakes = np.full((n_tests, len(_LEVEL)), -np.inf)
        self._n_bets = np.zeros(n_tests, dtype=np.int64)
        self.alarm_at_: int | None = None
        self._class_alarm_at = np.full(len(classes), -1, dtype=np.int64)
        self.history_ = np.zeros((0, 3))
        return self

    @at_once
    def update(self, X: ArrayLike) -> Self:
        """Take the next samples of the stream, in the order in which they came.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or n_samples texts
            One or more samples. Many at once are faster and give the same evidence.

        Returns
        -------
        self : OpenShareMonitor

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If the estimator refuses the samples, or was fitted again; the state then stays as it was.
        """
        check_is_fitted(self)
        _, scores, codes, is_open = self._read(X)
        if fingerprint(self.estimator) != self._fingerprint:
            raise ValueError(
                "The estimator was fitted again since the reference was scored, so that new scores cannot be compared "
                "with it: call fit with a new reference."
            )
        if not len(scores):
            return self
        n_seen, last = self.n_seen_, len(self.classes_)
        capital = _Capital(self._idle.copy(), self._stakes.copy(), self._n_bets.copy())
        uniform = np.random.Generator(np.random.PCG64(self.random_state).advance(n_seen)).random(len(scores))
        log_class_capital = np.tile(capital.log_total()[:last], (len(scores), 1))
        for code in np.unique(codes):
            numbers = np.flatnonzero(codes == code)
            p_values = _p_values(self._scores[self._codes == code], scores[numbers], uniform[numbers])
            steps = np.searchsorted(numbers, np.arange(len(scores)), side="right")
            log_class_capital[:, code] = np.append(log_class_capital[0, code], capital.bet(code, p_values))[steps]
        log_capital = capital.bet(last, _p_values(self._scores, scores, uniform))
        log_mean = logsumexp(log_class_capital, axis=1) - np.log(last)
        evidence = (np.maximum(log_capital, log_mean) - np.log(2)) / np.log(10)
        self._idle, self._stakes, self._n_bets = capital
        self._note_alarms(evidence, (log_class_capital - np.log(2 * last)) / np.log(10))
        self._scores, self._codes = np.append(self._scores, scores), np.append(self._codes, codes)
        n_open = (self.history_[-1, 1] if len(self.history_) else 0) + is_open.sum()
        self.history_ = np.vstack([self.history_, [n_seen + len(scores), n_open, evidence[-1]]])
        return self

    @property
    def alarm_(self) -> bool:
        """Whether the evidence has been enough, then or now."""
        check_is_fitted(self)
        return self.alarm_at_ is not None

    @property
    def class_alarm_at_(self) -> dict[Any, int]:
        """Number of samples seen at the alarm of each class that has one."""
        check_is_fitted(self)
        named = zip(self.classes_.tolist(), self._class_alarm_at.tolist(), strict=True)
        return {label: n_seen for label, n_seen in named if n_seen >= 0}

    @property
    def n_seen_(self) -> int:
        """Number of samples of all updates."""
        return len(self._scores) - self.n_reference_

    @property
    def log10_evidence_(self) -> float:
        """Logarithm of the present evidence."""
        return float(self.history_[-1, 2]) if len(self.history_) else -float(np.log10(2))

    @property
    def open_share_(self) -> float:
        """Rate at which ``predict`` rejects, in all updates."""
        return float(self.history_[-1, 1] / self.history_[-1, 0]) if len(self.history_) else float("nan")

    def _read(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int32], NDArray[np.bool_]]:
        """Read the classes, and of each sample its score, its nearest class's code, and whether it is rejected."""
        members = ("score_samples", "predict_known", "offset_", "class_offsets_")
        classifier, features = read_estimator(self.estimator, X, members, type(self).__name__)
        if learned_of(classifier) is not None:  # what was learned looks more known than other messages
            is_learned = find_learned(classifier, features) >= 0
            if len(is_learned) and is_learned.all():
                none = np.zeros(0)
                return classifier.classes_, none, none.astype(np.int32), none.astype(bool)
            features = take_rows(features, np.flatnonzero(~is_learned))
        scores, nearest = np.asarray(classifier.score_samples(features)), classifier.predict_known(features)
        is_open = less_class_offsets(classifier, scores, nearest) < classifier.offset_
        codes = np.searchsorted(classifier.classes_, nearest).astype(np.int32)
        return classifier.classes_, scores.astype(np.float64), codes, is_open

    def _note_alarms(self, evidence: NDArray[np.float64], class_evidence: NDArray[np.float64]) -> None:
        enough = -np.log10(self.false_alarm_rate)
        if self.alarm_at_ is None and (evidence >= enough).any():
            self.alarm_at_ = self.n_seen_ + int(np.argmax(evidence >= enough)) + 1
        first = (class_evidence >= enough).argmax(axis=0) + 1 + self.n_seen_
        is_new = (class_evidence >= enough).any(axis=0) & (self._class_alarm_at < 0)
        self._class_alarm_at = np.where(is_new, first, self._class_alarm_at)

    def _check_state(self, sizes: Sizes) -> None:
        """Raise an error for what no rule of ``_state`` says."""
        n_classes, n_reference = sizes["n_classes"], self.n_reference_
        seen = self.history_[-1, 0] if len(self.history_) else 0
        problems = {
            "_idle": sizes["n_tests"] != n_classes + 1 or (self._idle > 0).any(),
            "_stakes": sizes["n_suspicions"] != len(SUSPICIONS) or np.isnan(self._stakes).any(),
            "_codes": ((self._codes < 0) | (self._codes >= n_classes)).any(),
            "_n_bets": (self._n_bets < 0).any() or self._n_bets[-1] != seen,
            "history_": sizes["n_scored"] != n_reference + seen or (np.diff(self.history_[:, 0], prepend=0) <= 0).any(),
            "estimator": list(getattr(split_estimator(self.estimator)[1], "classes_", [])) != list(self.classes_),
        }
        for name, is_wrong in problems.items():
            if is_wrong:
                raise ValueError(f"{name} does not fit the samples that it has seen")


class _Capital(NamedTuple):
    """Logarithms of what each test has, and how many bets it has made."""

    idle: NDArray[np.float64]  # (n_tests,)
    stakes: NDArray[np.float64]  # (n_tests, n_suspicions)
    n_bets: NDArray[np.int64]  # (n_tests,)

    def log_total(self) -> NDArray[np.float64]:
        """Add up what each test has."""
        return np.asarray(np.logaddexp(self.idle, logsumexp(self.stakes, axis=1)))

    def bet(self, test: int, p_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bet on the p-values of one test, and give the logarithm of its capital after each."""
        log_factor = np.where(p_values[:, None] <= _LEVEL, _LOG_GAIN, _LOG_LOSS)
        stake = 1 / (2 * (self.n_bets[test] + np.arange(len(p_values)) + _DELAY))
        idle = self.idle[test] + np.cumsum(np.log1p(-stake))
        new = np.append(self.idle[test], idle[:-1]) + np.log(stake / len(_LEVEL))
        # A stake is multiplied by all factors since it was made: sums over the products since the first.
        log_product = np.cumsum(log_factor, axis=0)
        made = np.vstack([self.stakes[test], new[:, None] - (log_product - log_factor)])
        stakes = log_product + np.logaddexp.accumulate(made, axis=0)[1:]
        self.idle[test], self.stakes[test] = idle[-1], stakes[-1]
        self.n_bets[test] += len(p_values)
        return np.asarray(np.logaddexp(idle, logsumexp(stakes, axis=1)))


def _check_settings(false_alarm_rate: Any, random_state: Any) -> None:
    if not (is_number(false_alarm_rate) and 0 < false_alarm_rate < 1):
        raise ValueError(
            f"false_alarm_rate={false_alarm_rate!r} is not allowed: pass a number between 0 and 1, such as 0.05."
        )
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state={random_state!r} is not allowed: pass an integer of at least 0.")


def _p_values(
    seen: NDArray[np.float64], scores: NDArray[np.float64], uniform: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute randomised p-values: proportions of lower scores among the samples up to each, itself included."""
    pool = np.sort(seen).tolist()
    p_values = np.empty(len(scores))
    for number, (score, tie) in enumerate(zip(scores.tolist(), uniform.tolist(), strict=True)):
        lower, upper = bisect_left(pool, score), bisect_right(pool, score)
        pool.insert(upper, score)
        p_values[number] = (lower + tie * (upper - lower + 1)) / len(pool)
    return p_values
