"""DOC: one sigmoid for each class, and a threshold for each from a Gaussian about its probabilities."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from ._logit_classifier import LogitClassifier
from ._threshold import Floats, Integers, Scored

#: No class accepts a probability below this.
_FLOOR = 0.5


class DOCClassifier(LogitClassifier):
    r"""Open-set classifier by one sigmoid for each class (DOC).

    Deep Open Classification [1]_: :math:`p_k = 1 / (1 + e^{-f_k})` by K logistic regressions of one class against the
    rest. A sample is assigned to the class with the largest probability. The probabilities of a class's own training
    samples and their mirror images 2 − p are taken for a Gaussian with mean 1, whose deviation gives the threshold:

    .. math:: \sigma_k^2 = \mathrm{mean}_{i \in S_k} (1 - p_k(x_i))^2, \qquad t_k = \max(0.5, 1 - \alpha \sigma_k).

    The score is the probability less the threshold of the assigned class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        What gives the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their log-odds are the logits). It is cloned and fitted, with ``sample_weight`` if it takes that; in a
        :class:`~sklearn.frozen.FrozenEstimator` a fitted one is used as it is, and must know the classes of ``y``.
        ``None`` trains a linear head here of sigmoids.

    alpha : float, default=3.0
        α, how many deviations below 1 a probability may be (the setting of both papers). Only with
        ``threshold="paper"``.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is t_k for each class. The others are one threshold on the probability for all classes.
        ``"quantile"`` rejects 5 % of the known samples, each scored by a fit without its fold (five folds,
        which cut no group). ``"auto"`` leaves a fifth of the classes out of each fold, too, whose samples are open
        there, and takes the threshold with the best expected F1, as the ellipsoids' size is chosen; with fewer than
        three classes and no samples of ``open_label`` it is ``"quantile"``. Of a frozen estimator the given samples are
        scored as they are: give samples that it was not fitted on; ``"auto"`` then needs samples of ``open_label``.

    learning_rate : float, default=0.002
        Step size of the Adam optimiser of the head, in features of unit variance. Only with ``estimator=None``. (The
        EliDecide paper's 2e-5 is for tuning a text model as a whole.)

    max_iter : int, default=200
        Most epochs of the head; training ends earlier when the loss of held-out samples, a fifth of each class, does
        not improve for ten epochs. Only with ``estimator=None``.

    duplicates : {"once", "each", "off"}, default="once"
        What exact and near duplicates of a sample within its class weigh: together as much as one sample, each its own
        weight, or they are not looked for. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The answer for open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Samples with
        this label in ``y`` serve ``threshold="auto"`` alone.

    device : str, default="auto"
        Where torch trains the head: ``"auto"`` is CUDA where there is one, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the held-out samples and the batches of the head. Only with ``estimator=None``.

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
        Logits of the head at the mean of the training samples; ``None`` with an ``estimator``.

    thresholds_ : ndarray of shape (n_classes,)
        t_k; zeros where ``threshold`` is another than ``"paper"``.

    threshold_ : float
        The probability below which samples are open; 0 with ``threshold="paper"``, where ``thresholds_`` say it.

    offset_ : float
        ``predict`` answers open where ``score_samples`` is below it. 0 after ``fit``: the threshold itself.

    class_offsets_ : ndarray of shape (n_classes,)
        How much stricter than ``offset_`` each class is. Zeros after ``fit``.

    groups_ : ndarray of shape (n_samples,)
        Samples with the same number were left out together: the ``groups`` given to ``fit``, else the duplicates that
        were found. −1 for samples of weight 0 and outlying samples.

    n_iter_ : int
        Number of epochs that the head trained; 0 with an ``estimator``.

    loss_curve_ : list of float
        Mean loss per sample of the head in each epoch; empty with an ``estimator``.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SoftmaxOpenSetClassifier : Probabilities that sum to 1.

    Notes
    -----
    The publication, as far as known (its text was not at hand), rejects a sample where p_k is below t_k for every
    class. The public codes, and this class, ask the threshold of the most probable class alone. A sample on the
    threshold is known, so that a class whose probabilities all are 1, with t_k = 1, accepts them.

    References
    ----------
    .. [1] Shu, L., Xu, H., Liu, B. "DOC: Deep Open Classification of Text Documents." EMNLP 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid.baselines import DOCClassifier
    >>> angles = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    >>> X, y = 9 * np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([0, 1, 2], 50)
    >>> clf = DOCClassifier(random_state=0).fit(X, y)
    >>> clf.predict([[4.5, 8.0], [-9.0, 0.0], [4.5, -8.0], [0.0, 0.0]]).tolist()
    [0, 1, 2, -1]
    """

    _loss = "sigmoid"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LogitClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "threshold": [Real, StrOptions({"paper", "quantile", "auto"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        alpha: float = 3.0,
        threshold: str | float = "paper",
        learning_rate: float = 0.002,
        max_iter: int = 200,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            estimator,
            threshold=threshold,
            learning_rate=learning_rate,
            max_iter=max_iter,
            duplicates=duplicates,
            open_label=open_label,
            device=device,
            random_state=random_state,
        )
        self.alpha = alpha

    def _fixed_threshold(self) -> float:
        return 0.0

    def _after_logits(self, logits: Floats, classes: Integers, weights: Floats) -> None:
        self.thresholds_ = np.zeros(len(self.classes_))
        if self.threshold == "paper":
            own = expit(logits[np.arange(len(logits)), classes])
            self.thresholds_ = doc_thresholds(own, classes, weights, len(self.classes_), self.alpha)

    def _from_logits(self, logits: Floats) -> Scored:
        assigned = logits.argmax(axis=1)
        by_class = expit(logits)
        chosen = by_class[np.arange(len(logits)), assigned]
        return Scored(assigned, chosen - self.thresholds_[assigned], by_class)


def doc_thresholds(own: Floats, classes: Integers, weights: Floats, n_classes: int, alpha: float) -> Floats:
    """t_k of each class from the probabilities of its own rows, (n_classes,)."""
    totals = np.bincount(classes, weights, minlength=n_classes)
    deviations = np.sqrt(np.bincount(classes, weights * np.square(1 - own), minlength=n_classes) / totals)
    return np.maximum(_FLOOR, 1 - alpha * deviations)
