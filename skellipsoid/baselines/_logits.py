"""Scores of logits: largest softmax probability, largest logit, energy."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import log_softmax, logsumexp
from sklearn.utils._param_validation import Interval, StrOptions

from ._logit_classifier import LogitClassifier, centred
from ._threshold import Floats, Scored


class SoftmaxOpenSetClassifier(LogitClassifier):
    r"""Open-set classifier by the largest softmax probability (MSP).

    With the logits :math:`f_k` of a classifier, :math:`p_k = e^{f_k} / \sum_j e^{f_j}`. A sample is assigned to the
    class with the largest probability. This probability is its score [1]_. The sample is open if the score is below
    ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        Source of the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if its ``fit`` takes it. A
        fitted classifier in a :class:`~sklearn.frozen.FrozenEstimator` is not fitted again; its classes must be those
        of ``y``. ``None``: a linear head is trained with softmax cross-entropy.

    threshold : {"paper", "quantile", "auto"} or float, default="paper"
        ``"paper"`` is 0.5, the setting of the EliDecide paper, which never rejects with two classes. ``"quantile"``
        rejects 5 % of the held-out known samples (five folds; groups are never divided). ``"auto"`` also holds out a
        fifth of the classes in each fold, and their samples are open. It chooses the threshold by the expected F1, as
        the size of the ellipsoids is chosen (:ref:`thresholds`). With fewer than three classes and no samples of
        ``open_label`` it is ``"quantile"``. A frozen estimator cannot be fitted without a fold. So pass samples that it
        was not fitted on, and for ``"auto"`` also samples of ``open_label``.

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

    threshold_ : float
        Samples with a lower score are open; ``score_samples`` is the score minus ``threshold_``.

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
    MaxLogitClassifier : The largest logit instead of its probability.
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

    def _fixed_threshold(self) -> float:
        return 0.5

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = np.exp(log_softmax(logits, axis=1))
        return Scored(logits.argmax(axis=1), by_class.max(axis=1), by_class)


class MaxLogitClassifier(LogitClassifier):
    r"""Open-set classifier by the largest logit.

    The mean over the classes is subtracted from the logits :math:`f_k` of a classifier. A sample is assigned to the
    class with the largest logit. This logit is its score [1]_. The sample is open if the score is below ``threshold_``.
    A softmax probability only compares the classes; the largest logit also depends on how large the logits are.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        Source of the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if its ``fit`` takes it. A
        fitted classifier in a :class:`~sklearn.frozen.FrozenEstimator` is not fitted again; its classes must be those
        of ``y``. ``None``: a linear head is trained with softmax cross-entropy.

    threshold : {"quantile", "auto"} or float, default="quantile"
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

    threshold_ : float
        Samples with a lower score are open; ``score_samples`` is the score minus ``threshold_``.

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
    SoftmaxOpenSetClassifier : The probability instead of the logit.
    EnergyClassifier : All logits together.

    Notes
    -----
    A common shift of all logits of a sample does not change the cross-entropy, but it changes their maximum. So the
    logits of each sample are centred. For two classes, a classifier with a single logit g gives −g / 2 and g / 2.

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

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        return Scored(by_class.argmax(axis=1), by_class.max(axis=1), by_class)


class EnergyClassifier(LogitClassifier):
    r"""Open-set classifier by the energy of the logits.

    The mean over the classes is subtracted from the logits :math:`f_k` of a classifier. The score is minus the energy
    [1]_, :math:`-E = T \ln \sum_k e^{f_k / T}`. A sample is assigned to the class with the largest logit, and is open
    if the score is below ``threshold_``.

    Read more in the :ref:`User Guide <baselines>`.

    Parameters
    ----------
    estimator : classifier, default=None
        Source of the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
        (their logarithms are the logits). It is cloned and fitted, with ``sample_weight`` if its ``fit`` takes it. A
        fitted classifier in a :class:`~sklearn.frozen.FrozenEstimator` is not fitted again; its classes must be those
        of ``y``. ``None``: a linear head is trained with softmax cross-entropy.

    temperature : float, default=1.0
        T, as in the publication. With a small T the score is nearly the largest logit.

    threshold : {"quantile", "auto"} or float, default="quantile"
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

    threshold_ : float
        Samples with a lower score are open; ``score_samples`` is the score minus ``threshold_``.

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
    MaxLogitClassifier : The largest logit alone.

    Notes
    -----
    The logits of each sample are centred, because a common shift does not change the cross-entropy. The publication
    also trains with open samples; this variant is not implemented.

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
        self.temperature = temperature

    def _from_logits(self, logits: Floats) -> Scored:
        by_class = centred(logits)
        energies = self.temperature * logsumexp(by_class / self.temperature, axis=1)
        return Scored(by_class.argmax(axis=1), energies, by_class)
