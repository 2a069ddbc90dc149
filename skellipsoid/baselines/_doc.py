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

    Deep Open Classification [1]_: K logistic regressions of one class against the rest give the probabilities
    :math:`p_k = 1 / (1 + e^{-f_k})`. A sample is assigned to the class with the largest probability. A Gaussian with
    mean 1 is fitted to the probabilities p of the class's own training samples and their mirror images 2 − p. Its
    standard deviation gives the threshold:

    .. math:: \sigma_k^2 = \mathrm{mean}_{i \in S_k} (1 - p_k(x_i))^2, \qquad t_k = \max(0.5, 1 - \alpha \sigma_k).

    The score is the probability minus the threshold of the assigned class.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        Source of the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their log-odds are the logits). It is cloned and fitted, with ``sample_weight`` if its ``fit`` takes it. A
        fitted classifier in a :class:`~sklearn.frozen.FrozenEstimator` is not fitted again; its classes must be those
        of ``y``. ``None``: a linear head with one sigmoid for each class is trained.

    alpha : float, default=3.0
        α, how many standard deviations below 1 a probability may be (the setting of both papers). Only with
        ``threshold="paper"``.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is t_k for each class. The others are one threshold on the probability for all classes.
        ``"quantile"`` rejects 5 % of the held-out known samples (five folds; groups are never divided). ``"auto"`` also
        holds out a fifth of the classes in each fold, and their samples are open. It chooses the threshold by the
        expected F1, as the size of the ellipsoids is chosen (:ref:`thresholds`). With fewer than three classes and no
        samples of ``open_label`` it is ``"quantile"``. A frozen estimator cannot be fitted without a fold. So pass
        samples that it was not fitted on, and for ``"auto"`` also samples of ``open_label``.

    learning_rate : float, default=0.002
        Step size of the Adam optimiser of the head, for features scaled to unit variance. Only with ``estimator=None``.
        (The 2e-5 of the EliDecide paper is for a whole text model.)

    max_iter : int, default=200
        Largest number of epochs of the head. Training stops earlier if the loss of held-out samples, a fifth of each
        class, does not improve for ten epochs. Only with ``estimator=None``.

    duplicates : {"once", "each", "off"}, default="once"
        Weight of exact and near duplicates of a sample within its class. ``"once"``: together they have the weight of
        one sample. ``"each"``: each has its own weight. ``"off"``: duplicates are not searched. Read more in the
        :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The label of open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Samples with
        this label in ``y`` are used by ``threshold="auto"`` only.

    device : str, default="auto"
        Device on which torch trains the head: ``"auto"`` is CUDA if it is available, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Determines the held-out samples and the batches of the head. Only with ``estimator=None``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    logit_estimator_ : classifier or None
        The fitted source of the logits; ``None`` with ``estimator=None``.

    coef_ : ndarray of shape (n_classes, n_features) or None
        Weights of the head, in the units of X; ``None`` with an ``estimator``.

    intercept_ : ndarray of shape (n_classes,) or None
        Logits of the head at the mean of the training samples; ``None`` with an ``estimator``.

    thresholds_ : ndarray of shape (n_classes,)
        t_k; zeros with any other ``threshold`` than ``"paper"``.

    threshold_ : float
        Samples with a lower probability are open. 0 with ``threshold="paper"``, which uses ``thresholds_`` instead.

    offset_ : float
        ``predict`` answers open if ``score_samples`` is below it. 0 after ``fit``, which is the threshold.

    class_offsets_ : ndarray of shape (n_classes,)
        Added to ``offset_`` for each class. Zeros after ``fit``.

    groups_ : ndarray of shape (n_samples,)
        Samples with the same number were held out together: the ``groups`` given to ``fit``, else the duplicates found.
        −1 for samples of weight 0 and outliers.

    n_iter_ : int
        Number of epochs of the head; 0 with an ``estimator``.

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
    The publication probably rejects a sample if p_k is below t_k for every class (its text was not available to the
    authors of this package). The public codes and this class use the threshold of the most probable class only. A
    sample with exactly this probability is known. So a class whose probabilities are all 1, with t_k = 1, accepts its
    samples.

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
