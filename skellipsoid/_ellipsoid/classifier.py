"""The classifier with one ellipsoid { z : ‖A_k (z − m_k)‖₂ ≤ Δ_k } per known class."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from skellipsoid_runtime._answers import p_values

from .._core.fit_steps import encode, gather_used, read_training, warn_of_degenerate, without_outliers
from .._core.fitted_state import fit_context, of_one_fit
from .._core.norms import FEWEST_FEATURES, usual_norms, zeros_are_none
from .._core.open_set_classifier import BoundaryOpenSetClassifier, Predictions
from .._core.sklearn import HasMethods, Interval, StrOptions, validate_params
from .._core.state_rules import Record, Rule
from .._core.validation import select_rows
from .._held_out.expected import Expected
from .._held_out.kept import KeepsHeldOutMixin
from .._samples.projections import Projection, allows_for, find_projection
from .._samples.training_samples import TrainingSamples
from .._samples.units import in_units
from .._torch.devices import resolve_device
from .._torch.threads import one_thread_each
from . import scoring, state
from .attributes import BoundaryAttributesMixin
from .changes.learned import Learned
from .elidecide import EliDecide
from .expectation import warn_of_expectation
from .math.boundaries import Fitted
from .methods import method_of, read_validation

_NO_LENGTH = 1e-6  # of a mean of zeros, in units of the features' scale: rounding


class EllipsoidOpenSetClassifier(BoundaryAttributesMixin, KeepsHeldOutMixin, BoundaryOpenSetClassifier):
    """Open-set classifier with one ellipsoid around each known class.

    A sample gets the likeliest of the three classes with the nearest means, and is open if it lies outside the
    ellipsoid of this class. By default the ellipsoids come from covariances, in closed form, and their size maximises
    the macro F1 that is expected on traffic of users; the expectation comes from held-out samples and held-out classes.
    ``trainer=EliDecide()`` is the method of the paper [1]_, which trains the matrices by gradient descent. Read more in
    the :ref:`User Guide <method>`.

    Parameters
    ----------
    alpha : float, default=0.6
        Where synthetic open samples lie between two classes: below 1 close to one of them, with large values half-way.
        In closed form they have a weight of one quarter in the estimate of where open samples lie. α of eq. 14.
    beta : float, default=0.5
        A larger value rejects more: the boundaries are smaller. In closed form an accepted open sample counts 2β times
        as much as a rejected known one in the F1 that is maximised. β of eq. 15.
    open_share : float in [0, 1] or pair of floats, default=None
        Expected proportion of open samples, or an interval that holds it with a probability of 95 %. ``None`` is
        traffic of users, (0.08, 0.7). The protocol of the literature is (0.25, 0.75). Without effect on the fit of a
        trainer.
    known_shift : float, default=None
        How much farther out than held-out samples known ones are expected, in their standard deviations. ``None``: as
        far as messages of users lie, 0 to 1.5. 0: new samples come as the training samples did. Without effect on the
        fit of a trainer.
    trainer : EliDecide or None, default=None
        ``None``: the closed form. An :class:`EliDecide` object: the training of the paper, which takes much longer.
    duplicates : {"once", "each", "off"}, default="once"
        Exact and near duplicates within a class are held out together. ``"once"``: together they weigh as much as one
        sample. ``"each"``: each has its own weight. ``"off"``: they are not searched. See :ref:`repeated`.
    outliers : {"drop", "keep"}, default="drop"
        ``"drop"`` drops samples more than 20 times as far from the middle of their class as a typical one.
    keep_samples : bool, default=True
        Whether training samples are kept, so that :ref:`classes can be added and removed <changing_classes>`.
    open_label : int or str, default=-1
        Label of open samples, cast to the kind of the classes. Samples with it in ``y`` are real open samples.
    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU.
    random_state : int, RandomState instance or None, default=None
        Determines what is drawn: synthetic classes, and the samples that choose the shapes or validate the training.
    memory : str or joblib.Memory, default=None
        Where a search keeps what does not depend on ``alpha`` and ``beta``: a folder. A fit to the same samples with
        other values, and the same ``random_state``, then takes a fraction of the time. It holds training samples, and
        pickles, which execute code when they are read: nobody else may write to or read this folder. Not for a trainer.
    verbose : int, default=0
        Above 0, a fit of more than ten seconds shows on a terminal or in a notebook that it goes on. A trainer has its
        own ``verbose``. It is not saved.

    Attributes
    ----------
    classes_, open_label_ : ndarray of shape (n_classes,), int, float or str
        The known classes, and the open label in their kind: −1 for integers and booleans, where ``names[-1]`` is the
        last class and −1 counts as true.
    centroids_, centers_ : ndarray of shape (n_classes, n_features)
        Class means, and centres of the ellipsoids, in the units of X: c_k and m_k of the guide.
    radii_ : ndarray of shape (n_classes,)
        Sizes of the ellipsoids, in the units of X: Δ_k of { z : ‖A_k (z − m_k)‖₂ ≤ Δ_k }.
    spherical_share_, between_share_, shared_share_ : float or None
        Shrinkage of the covariances: a, b and ρ of the guide; ``None`` with a trainer, or if no class has a spread. b
        is also ``None`` with fewer than four classes or equal means.
    scale_ : float
        Divisor of the features: the root mean squared distance of the known samples to their mean.
    column_units_ : ndarray of shape (n_features,) or None
        Divisors of the columns before ``scale_``: their standard deviations within classes, divided by the geometric
        mean of these. ``None``: the columns share a unit, and are taken as given (:ref:`units`); always with a trainer.
    offset_, class_offsets_ : float, ndarray of shape (n_classes,)
        ``predict`` rejects below their sum, the threshold. 0 after ``fit``; :func:`set_operating_point` changes them.
    asking_ : mapping of str to float, or None
        Where :func:`predict_set` asks (``low``, ``high``, ``gap``), and what is expected of it: of known messages the
        proportions ``served``, ``wrong``, ``asked`` and ``missed``, of open ones ``open_asked`` and ``open_answered``.
        ``None``: as the fit expects the traffic. See :func:`set_operating_point`.
    traffic_ : mapping of str to float, or None
        What was learned of the traffic: ``open_share`` with ``low`` and ``high``, ``known_shift``, ``known_spread``,
        ``open_place`` and ``open_width``. ``None``: nothing. See :func:`set_operating_point`.
    groups_ : ndarray of shape (n_samples,)
        Samples with the same number were held out together; those with −1 were not used. After a change of the classes
        these are the samples that the classifier keeps: known ones with their copies, then open ones.
    changes_ : list of dict
        Changes of the classes since ``fit``: what was done, to which classes, with how many samples, and when.
    held_out_scores_ : ndarray of shape (n_held_out,) or None
        Scores of known samples by boundaries that were computed without them, in ascending order.
    held_out_ : Bunch of ndarray of shape (n_held_out,) or None
        The same scores with the classes of the samples, and scores of samples whose whole class was held out.
    n_iter_, loss_curve_, validation_scores_ : int, list of float, list of float or None
        With a trainer alone: number of epochs; mean loss and macro F1 of the validation samples in each.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of features seen in ``fit``, and their names, if X has names that are all strings.

    See Also
    --------
    explain, set_operating_point : After the fit.

    References
    ----------
    .. [1] Zou, Y., and others. "Ellipsoid-Based Decision Boundaries for Open Intent Classification." AAAI 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [10]], 100, axis=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
    >>> clf.predict([[0, 0], [10, 10], [0, 10]]).tolist()
    ['left', 'right', '-1']
    """

    _kept: TrainingSamples | None
    _learned: Learned | None = None  # messages of logs, which are not among the samples that are kept
    _expected: Expected | None = None  # of the traffic, by the fit; None of a model that was pickled before
    changes_: list[dict[str, Any]]
    _scores_as_new: ClassVar[bool] = True
    _state: ClassVar[Mapping[str, Rule | Record]] = state.STATE
    _check_state = state.check
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "open_share": [Interval(Real, 0, 1, closed="both"), "array-like", None],
        "known_shift": [Interval(Real, None, None, closed="neither"), None],
        "trainer": [EliDecide, None],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "outliers": [StrOptions({"drop", "keep"})],
        "keep_samples": ["boolean"],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "memory": [str, HasMethods(["cache"]), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        alpha: float = 0.6,
        beta: float = 0.5,
        open_share: float | tuple[float, float] | None = None,
        known_shift: float | None = None,
        trainer: EliDecide | None = None,
        duplicates: str = "once",
        outliers: str = "drop",
        keep_samples: bool = True,
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        memory: Any = None,
        verbose: int | bool = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.open_share = open_share
        self.known_shift = known_shift
        self.trainer = trainer
        self.duplicates = duplicates
        self.outliers = outliers
        self.keep_samples = keep_samples
        self.open_label = open_label
        self.device = device
        self.random_state = random_state
        self.memory = memory
        self.verbose = verbose

    @property
    def answers_version(self) -> int:
        """Raised when predictions of one setting change, so that a benchmark does not reuse older results.

        2: in closed form, a larger class is likelier.
        """
        return 2 if self.trainer is None else 1

    @fit_context(prefer_skip_nested_validation=True)
    @one_thread_each()
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the boundaries of the classes in ``y``.

        A fit that fails or is interrupted leaves the classifier as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: NumPy, pandas, polars, Arrow, or a torch tensor on any device. A column of vectors of one length
            is their matrix. Dense, finite and not masked; no dates.
        y : array-like of shape (n_samples,)
            Labels. Samples labelled ``open_label`` are real open samples: they never become a class, and help to choose
            the boundaries.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, on any scale; ``None`` is 1 for all. Samples of weight 0 are not used. The weight of
            duplicates depends on ``duplicates``. All real open samples of positive weight count the same.
        groups : array-like of shape (n_samples,), default=None
            Group of each sample: conversation, author, template. Samples of one group are held out together. ``None``:
            the duplicates that are found are the groups. Read more in the :ref:`User Guide <repeated>`.
        X_val : array-like of shape (n_val, n_features), default=None
            Validation samples: not in ``X``, and not trained on by the model that made the features. The closed form
            takes its size, the held-out scores and the p-values from them; the more there are, the more they count.
            Shapes are those of ``X``. Duplicates of samples in ``X`` are dropped. The closed form does not need them
            if nothing was trained on ``X``. With a trainer, they decide when to stop; ``None`` is then a part of
            ``X``, which is not trained on. In a Pipeline they must pass the same transformers as ``X``: see the
            :ref:`User Guide <validation_in_a_pipeline>`.
        y_val : array-like of shape (n_val,), default=None
            Labels of ``X_val``. A label outside ``classes_`` is read as open: these samples join the real open ones. A
            class or the open label in another spelling, such as ``"Alarm"`` beside ``"alarm"``, is an error.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If ``X`` is sparse, empty, not finite, masked, or holds dates or values whose squares overflow, if the
            lengths differ, if labels are missing, mix numbers and strings or are continuous, if weights are negative
            or all 0, if groups are missing, if every sample is open, or if ``X_val`` or ``y_val`` is given alone.
        TypeError
            If ``X`` or the weights hold what is no number, such as a dict.

        Warns
        -----
        UserWarning
            If -1 may be a class: only the classes 0 and 1, or fewer than two, remain beside open samples. If outliers,
            or duplicates in ``X_val``, are dropped. If a class is a single group. If a whitening was fitted to ``X``
            (:ref:`projections`), or if ``X`` holds word counts (:ref:`tfidf`).
        """
        if self.trainer is not None:
            validate_params(self.trainer)
        self._expected = Expected.by(self)
        X, y, weights, numbers, used = read_training(self, X, y, sample_weight, groups)
        self.open_label_, self.classes_, codes = encode(y, self.open_label, used)
        n_classes, validation = len(self.classes_), read_validation(self, X_val, y_val)
        projection = Projection.NONE if self.trainer is not None else find_projection(X, codes)
        if allows_for(projection):
            self._expected = self._expected._replace(projected=int(projection))
        if self.outliers == "drop":
            used = without_outliers(X, codes, used, n_classes)
        self._norm_range = usual_norms(select_rows(X, used), codes[used])
        self._zeros_are_none = zeros_are_none(select_rows(X, used[codes[used] < n_classes]))
        method = method_of(self)
        # A component of less variance says less: behind a PCA, F1 on bot 2 is 5 lower if they are divided.
        units = None if projection else method.column_units(X, codes, weights, used[codes[used] < n_classes])
        X = in_units(X, units)
        samples, self.groups_ = gather_used(X, codes, weights, numbers, used, self.classes_, self.duplicates)
        with method.enough_memory(samples, n_classes):
            samples, scale = samples.standardized(rescales=method.rescales)
            if validation is not None:
                features = ((in_units(validation[0], units) - samples.mean) / scale).astype(np.float32)
                samples = method.with_validation(samples, features, validation[1], n_classes)
            fitted, samples = method.fit(samples, self.classes_)
        self._store(fitted, samples.mean, scale, units)
        self._kept = samples if self.keep_samples else None
        self.offset_, self.class_offsets_ = 0.0, np.zeros(n_classes)
        self.changes_, self._learned = [], None
        if self.trainer is None:
            warn_of_expectation(self, samples.groups, samples.classes)
        return self

    def _store(
        self, fitted: Fitted, mean: NDArray[np.float64], scale: float, units: NDArray[np.float64] | None = None
    ) -> None:
        """Keep what a fit to features in units, less their mean, divided by their scale, has found."""
        self._boundaries = fitted.boundaries.placed(mean, scale, units)
        self._held_out = fitted.held_out
        if self.trainer is not None:
            self.n_iter_, self.loss_curve_ = max(1, len(fitted.losses)), list(fitted.losses)
            self.validation_scores_ = list(fitted.scores) or None
        is_zero = np.linalg.norm(self.centroids_, axis=1) < _NO_LENGTH * scale
        warn_of_degenerate(self.classes_, fitted.degenerate, is_zero & (len(mean) >= FEWEST_FEATURES))

    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        margins, assigned, _ = self._scored(X, of_all=False)
        return assigned[:, 0], margins[:, 0]

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        return self._scored(X, of_all=True)[0]

    def _score_checked(self, X: ArrayLike, *, with_norms: bool = False) -> Predictions:
        if (given := scoring.read_on_device(self, X)) is not None:
            margins, assigned, norms = self._scored(given, of_all=False)
            if np.isfinite(norms).all():
                return self._predictions(assigned[:, 0], margins[:, 0], self._unread(given, norms), norms)
        return super()._score_checked(X, with_norms=with_norms)

    def _score_all_checked(self, X: ArrayLike) -> NDArray[np.floating]:
        return self._decide(X)[0]

    def _decide(self, X: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        given = scoring.read_on_device(self, X)
        if given is not None:
            margins, first, norms = self._scored(given, of_all=True)
            unread = self._unread(given, norms)
        if given is None or not np.isfinite(norms).all():
            margins, first, _ = self._scored(checked := self._validate_scored_data(X), of_all=True)
            unread = self._unread(checked)
        margins[unread] = self._less_unread(margins[unread], first[unread, 0])
        return margins, first

    def _compared(self, scores: NDArray[np.float64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(np.square(1 - scores) - self._boundaries.shapes.allowances[classes])

    def _scored(self, X: NDArray[Any] | torch.Tensor, *, of_all: bool) -> scoring.Scored:
        device = X.device if isinstance(X, torch.Tensor) else resolve_device(self.device, fallback=True)
        return scoring.score(self._boundaries, X, device, of_all=of_all)

    @of_one_fit
    def known_p_value(self, X: ArrayLike) -> NDArray[np.float64]:
        """Conformal p-value of the hypothesis that a sample is of a known class.

        The score s of a sample is compared with the m ``held_out_scores_`` of known samples:
        p = (1 + #{held-out score ≤ s}) / (m + 1) [1]_. If samples with p ≤ ε are rejected, the rejection rate of new
        known samples is at most about ε. No open sample is needed for this. The p-value does not say how many open
        samples are accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        p_values : ndarray of shape (n_samples,)
            In [1 / (m + 1), 1]. Small: few known samples have such a low score.

        Raises
        ------
        ValueError
            If there are no ``held_out_scores_``, because there are too few samples.

        Notes
        -----
        The guarantee holds on average over training sets, under two conditions. New known samples must have the
        distribution of the training samples, with the same proportions of the classes. And no parameter may be chosen
        with the held-out samples: a, b, ρ and e (or the epoch) are, so that it holds about. If an encoder was trained
        on the samples, they lie closer to their class mean than new ones, and more than the proportion ε of these is
        rejected: pass ``X_val``, or the features of ``fit_transform`` of a :class:`SupConTextEncoder`.

        References
        ----------
        .. [1] Vovk, V., Gammerman, A., Shafer, G. "Algorithmic Learning in a Random World." Springer, 2005.

        Examples
        --------
        >>> import numpy as np
        >>> from skellipsoid import EllipsoidOpenSetClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
        >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, np.repeat(["left", "right"], 100))
        >>> (clf.known_p_value([[0, 0], [0, 10]]) > 0.05).tolist()
        [True, False]
        """
        scores = self.score_samples(X)
        if (held_out := self.held_out_scores_) is None:
            raise ValueError(
                "No known sample was held out of the fit, so that there are no scores to compare with; fit with at "
                "least two different samples of some class (with a trainer, better three)."
            )
        return p_values(held_out, scores)
