"""Scores of logits: largest softmax probability, largest logit, energy."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, logit, logsumexp
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import has_fit_parameter

from .._engine.devices import resolve_device, resolve_seed
from .._engine.heads import HeadSettings, train_head
from .._engine.samples import Gathered, Samples, find_scale
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier

#: An epoch is cut into about this many batches of 16 to 128 rows.
_STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 16, 16, 128
#: Probabilities nearer to 0 or 1 count as this near: their logits stay finite.
_SMALLEST_PROBABILITY = 1e-15


class LogitClassifier(ThresholdedClassifier):
    """Template: one logit for each class, by a linear head or a user's classifier. A member writes ``_from_logits``."""

    #: How the head is trained, and what the logits mean.
    _loss: ClassVar[str] = "softmax"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict", "decision_function"]),
            HasMethods(["fit", "predict", "predict_proba"]),
            None,
        ],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
    }

    estimator: Any
    learning_rate: float
    max_iter: int
    device: str | torch.device
    random_state: int | np.random.RandomState | None
    logit_estimator_: Any
    coef_: Any
    intercept_: Any

    @abstractmethod
    def _from_logits(self, logits: Floats) -> Scored:
        """Score rows by their logits, (n_samples, n_classes)."""

    def _after_logits(self, logits: Floats, classes: Integers, weights: Floats) -> None:
        """Fit what the score needs beside the logits of the training rows."""

    def _can_refit(self) -> bool:
        return not isinstance(self.estimator, FrozenEstimator)

    def _part_parameters(self) -> dict[str, Any]:
        return {"random_state": self._seed}

    def _fit_boundaries(self, X: NDArray[Any], classes: Integers, real_open: NDArray[Any], gathered: Gathered) -> None:
        if self.threshold == "auto" and not self._can_refit() and not len(real_open):
            msg = (
                "threshold='auto' fits without some of the classes, which a FrozenEstimator cannot; pass the estimator "
                f"itself, rows labelled {self.open_label_!r}, or another threshold."
            )
            raise ValueError(msg)
        super()._fit_boundaries(X, classes, real_open, gathered)

    def _fit_scores(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        if self.estimator is None:
            self._seed = resolve_seed(self.random_state)
            self._fit_head(X, classes, gathered)
        else:
            self._seed = 0
            self._fit_estimator(X, classes, gathered.weights)
        self._after_logits(self._logits(X), classes, gathered.weights)

    def _fit_head(self, X: Floats, classes: Integers, gathered: Gathered) -> None:
        device = resolve_device(self.device)
        weights = gathered.weights / gathered.weights.sum()
        self._mean = weights @ X
        # Features have unit variance on average, and keep their directions.
        unit = find_scale(X, self._mean, weights) / np.sqrt(X.shape[1])
        samples = Samples.of(
            torch.from_numpy(((X - self._mean) / unit).astype(np.float32)).to(device),
            torch.from_numpy(classes).to(device),
            len(self.classes_),
            gathered.weights,
            gathered.units,
            gathered.groups,
        )
        batch_size = min(max(len(X) // _STEPS_PER_EPOCH, _SMALLEST_BATCH), _LARGEST_BATCH)
        settings = HeadSettings(self._loss, self.learning_rate, batch_size, self.max_iter)
        head = train_head(samples, settings, self._seed)
        self.logit_estimator_ = None
        self.coef_ = head.weights.double().cpu().numpy() / unit
        self.intercept_ = head.bias.double().cpu().numpy()
        self.n_iter_, self.loss_curve_ = head.history.n_iter, head.history.losses

    def _fit_estimator(self, X: Floats, classes: Integers, weights: Floats) -> None:
        estimator = clone(self.estimator)
        weighted = {"sample_weight": weights} if has_fit_parameter(estimator, "sample_weight") else {}
        self.logit_estimator_ = estimator.fit(X, self.classes_[classes], **weighted)
        found = np.asarray(self.logit_estimator_.classes_)
        if found.tolist() != self.classes_.tolist():
            msg = (
                f"estimator knows the classes {found.tolist()}, but y holds {self.classes_.tolist()}: fit it on the "
                "same classes."
            )
            raise ValueError(msg)
        self.coef_ = self.intercept_ = None
        self.n_iter_, self.loss_curve_ = 0, []

    def _logits(self, X: Floats) -> Floats:
        """Logits of rows, (n_samples, n_classes)."""
        if self.logit_estimator_ is None:
            return np.asarray((X - self._mean) @ self.coef_.T + self.intercept_)
        if not hasattr(self.logit_estimator_, "decision_function"):
            shares = np.asarray(self.logit_estimator_.predict_proba(X), dtype=np.float64)
            shares = shares.clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
            return np.asarray(np.log(shares) if self._loss == "softmax" else logit(shares))
        logits = np.asarray(self.logit_estimator_.decision_function(X), dtype=np.float64)
        if logits.ndim == 1:  # two classes
            logits = np.column_stack([-logits, logits]) * (0.5 if self._loss == "softmax" else 1.0)
        if logits.shape[1] != len(self.classes_):
            msg = (
                f"decision_function of {type(self.logit_estimator_).__name__} has {logits.shape[1]} columns for "
                f"{len(self.classes_)} classes; it must have one for each (decision_function_shape='ovr')."
            )
            raise ValueError(msg)
        return logits

    def _score(self, X: Floats) -> Scored:
        return self._from_logits(self._logits(X))


def centred(logits: Floats) -> Floats:
    """Logits whose sum over the classes is 0: cross-entropy leaves a common shift of a row's logits free."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))


class SoftmaxOpenSetClassifier(LogitClassifier):
    r"""Open-set classifier by the largest softmax probability (MSP).

    With the logits :math:`f_k` of a classifier, :math:`p_k = e^{f_k} / \sum_j e^{f_j}`. A row is assigned to the class
    with the largest probability, which is its score [1]_, and is open where that is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        What gives the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if it takes that; in a
        :class:`~sklearn.frozen.FrozenEstimator` a fitted one is used as it is, and must know the classes of ``y``.
        ``None`` trains a linear head here by softmax cross-entropy.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is 0.5, the setting of the EliDecide paper, which never rejects with two classes.
        ``"quantile"`` rejects 5 % of the known rows, each scored by a fit without its fold (five folds,
        which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose rows are open there,
        and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer than three
        classes and no rows of ``open_label`` it is ``"quantile"``. Of a frozen estimator the given rows are scored as
        they are: give rows that it was not fitted on; ``"auto"`` then needs rows of ``open_label``.

    learning_rate : float, default=0.002
        Step size of the Adam optimiser of the head, in features of unit variance. Only with ``estimator=None``. (The
        EliDecide paper's 2e-5 is for tuning a text model as a whole.)

    max_iter : int, default=200
        Most epochs of the head; training ends earlier when the loss of held-out rows, a fifth of each class, does not
        improve for ten epochs. Only with ``estimator=None``.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a row within its class weigh: together as much as one row, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Rows with
        this label in ``y`` serve ``threshold="auto"`` alone.

    device : str, default="auto"
        Where torch trains the head: ``"auto"`` is CUDA where there is one, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the held-out rows and the batches of the head. Only with ``estimator=None``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    logit_estimator_ : classifier or None
        What gives the logits, fitted; ``None`` with ``estimator=None``.

    coef_ : ndarray of shape (n_classes, n_features) or None
        Weights of the head, in the units of X; ``None`` with an ``estimator``.

    intercept_ : ndarray of shape (n_classes,) or None
        Logits of the head at the mean of the training rows; ``None`` with an ``estimator``.

    threshold_ : float
        The score below which rows are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    groups_ : ndarray of shape (n_samples,)
        Rows with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for rows of weight 0 and outlying rows.

    n_iter_ : int
        Number of epochs that the head trained; 0 with an ``estimator``.

    loss_curve_ : list of float
        Mean loss per row of the head in each epoch; empty with an ``estimator``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    MaxLogitClassifier : The largest logit in place of its probability.
    EnergyClassifier : All logits together.

    References
    ----------
    .. [1] Hendrycks, D., Gimpel, K. "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
       Networks." ICLR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import SoftmaxOpenSetClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = SoftmaxOpenSetClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "threshold": [Real, StrOptions({"paper", "quantile", "auto"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: str | float = "paper",
        learning_rate: float = 0.002,
        max_iter: int = 200,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.duplicates = duplicates
        self.open_label = open_label
        self.device = device
        self.random_state = random_state

    def _fixed_threshold(self) -> float:
        return 0.5

    def _from_logits(self, logits: Floats) -> Scored:
        assigned = logits.argmax(axis=1)
        by_class = np.exp(log_softmax(logits, axis=1))
        return Scored(assigned, by_class[np.arange(len(logits)), assigned], by_class)


class MaxLogitClassifier(LogitClassifier):
    r"""Open-set classifier by the largest logit.

    With the logits :math:`f_k` of a classifier, less their mean over the classes, a row is assigned to the class with
    the largest logit, which is its score [1]_, and is open where that is below ``threshold_``. A softmax probability
    says how a class compares with the others; a logit also says how much there is of any.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        What gives the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if it takes that; in a
        :class:`~sklearn.frozen.FrozenEstimator` a fitted one is used as it is, and must know the classes of ``y``.
        ``None`` trains a linear head here by softmax cross-entropy.

    threshold : {"quantile", "auto"} or float, default="quantile"
        ``"quantile"`` rejects 5 % of the known rows, each scored by a fit without its fold (five folds,
        which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose rows are open there,
        and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer than three
        classes and no rows of ``open_label`` it is ``"quantile"``. Of a frozen estimator the given rows are scored as
        they are: give rows that it was not fitted on; ``"auto"`` then needs rows of ``open_label``.

    learning_rate : float, default=0.002
        Step size of the Adam optimiser of the head, in features of unit variance. Only with ``estimator=None``. (The
        EliDecide paper's 2e-5 is for tuning a text model as a whole.)

    max_iter : int, default=200
        Most epochs of the head; training ends earlier when the loss of held-out rows, a fifth of each class, does not
        improve for ten epochs. Only with ``estimator=None``.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a row within its class weigh: together as much as one row, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Rows with
        this label in ``y`` serve ``threshold="auto"`` alone.

    device : str, default="auto"
        Where torch trains the head: ``"auto"`` is CUDA where there is one, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the held-out rows and the batches of the head. Only with ``estimator=None``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    logit_estimator_ : classifier or None
        What gives the logits, fitted; ``None`` with ``estimator=None``.

    coef_ : ndarray of shape (n_classes, n_features) or None
        Weights of the head, in the units of X; ``None`` with an ``estimator``.

    intercept_ : ndarray of shape (n_classes,) or None
        Logits of the head at the mean of the training rows; ``None`` with an ``estimator``.

    threshold_ : float
        The score below which rows are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    groups_ : ndarray of shape (n_samples,)
        Rows with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for rows of weight 0 and outlying rows.

    n_iter_ : int
        Number of epochs that the head trained; 0 with an ``estimator``.

    loss_curve_ : list of float
        Mean loss per row of the head in each epoch; empty with an ``estimator``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SoftmaxOpenSetClassifier : The probability in place of the logit.
    EnergyClassifier : All logits together.

    Notes
    -----
    Cross-entropy does not see a common shift of a row's logits, but their maximum would: so each row's logits are
    centred. Of two classes with one logit g they are −g / 2 and g / 2.

    References
    ----------
    .. [1] Hendrycks, D., Basart, S., Mazeika, M., and others. "Scaling Out-of-Distribution Detection for Real-World
       Settings." ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import MaxLogitClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = MaxLogitClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "threshold": [Real, StrOptions({"quantile", "auto"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        threshold: str | float = "quantile",
        learning_rate: float = 0.002,
        max_iter: int = 200,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.duplicates = duplicates
        self.open_label = open_label
        self.device = device
        self.random_state = random_state

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        assigned = by_class.argmax(axis=1)
        return Scored(assigned, by_class[np.arange(len(logits)), assigned], by_class)


class EnergyClassifier(LogitClassifier):
    r"""Open-set classifier by the energy of the logits.

    With the logits :math:`f_k` of a classifier, less their mean over the classes, the score is minus the energy [1]_,
    :math:`-E = T \ln \sum_k e^{f_k / T}`. A row is assigned to the class with the largest logit, and is open where the
    score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        What gives the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if it takes that; in a
        :class:`~sklearn.frozen.FrozenEstimator` a fitted one is used as it is, and must know the classes of ``y``.
        ``None`` trains a linear head here by softmax cross-entropy.

    temperature : float, default=1.0
        T, as in the publication; a small one makes the score the largest logit.

    threshold : {"quantile", "auto"} or float, default="quantile"
        ``"quantile"`` rejects 5 % of the known rows, each scored by a fit without its fold (five folds,
        which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose rows are open there,
        and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer than three
        classes and no rows of ``open_label`` it is ``"quantile"``. Of a frozen estimator the given rows are scored as
        they are: give rows that it was not fitted on; ``"auto"`` then needs rows of ``open_label``.

    learning_rate : float, default=0.002
        Step size of the Adam optimiser of the head, in features of unit variance. Only with ``estimator=None``. (The
        EliDecide paper's 2e-5 is for tuning a text model as a whole.)

    max_iter : int, default=200
        Most epochs of the head; training ends earlier when the loss of held-out rows, a fifth of each class, does not
        improve for ten epochs. Only with ``estimator=None``.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a row within its class weigh: together as much as one row, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Rows with
        this label in ``y`` serve ``threshold="auto"`` alone.

    device : str, default="auto"
        Where torch trains the head: ``"auto"`` is CUDA where there is one, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the held-out rows and the batches of the head. Only with ``estimator=None``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    logit_estimator_ : classifier or None
        What gives the logits, fitted; ``None`` with ``estimator=None``.

    coef_ : ndarray of shape (n_classes, n_features) or None
        Weights of the head, in the units of X; ``None`` with an ``estimator``.

    intercept_ : ndarray of shape (n_classes,) or None
        Logits of the head at the mean of the training rows; ``None`` with an ``estimator``.

    threshold_ : float
        The score below which rows are open; ``score_samples`` is the score less this.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    groups_ : ndarray of shape (n_samples,)
        Rows with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for rows of weight 0 and outlying rows.

    n_iter_ : int
        Number of epochs that the head trained; 0 with an ``estimator``.

    loss_curve_ : list of float
        Mean loss per row of the head in each epoch; empty with an ``estimator``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    MaxLogitClassifier : The largest logit alone.

    Notes
    -----
    Each row's logits are centred, since cross-entropy leaves their common shift free. The publication also trains with
    open rows; that variant is not here.

    References
    ----------
    .. [1] Liu, W., Wang, X., Owens, J. D., Li, Y. "Energy-based Out-of-distribution Detection." NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skellipsoid.baselines import EnergyClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = EnergyClassifier(LogisticRegression()).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "threshold": [Real, StrOptions({"quantile", "auto"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        temperature: float = 1.0,
        threshold: str | float = "quantile",
        learning_rate: float = 0.002,
        max_iter: int = 200,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.temperature = temperature
        self.threshold = threshold
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.duplicates = duplicates
        self.open_label = open_label
        self.device = device
        self.random_state = random_state

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        energies = self.temperature * logsumexp(by_class / self.temperature, axis=1)
        return Scored(by_class.argmax(axis=1), energies, by_class)
