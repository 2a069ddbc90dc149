"""The classifier with one ellipsoid per known class."""

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar
from warnings import warn

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from ._base import BoundaryOpenSetClassifier
from ._engine.boundaries import Boundaries, Metric, Shapes
from ._engine.closed_form import fit_closed_form
from ._engine.devices import explain_out_of_memory, resolve_device, resolve_seed
from ._engine.geometry import Factors, scoring_chunks
from ._engine.held_out import FEWEST_OF_CLASS
from ._engine.paper import fit_paper
from ._engine.samples import Gathered, Samples, find_scale
from ._engine.settings import BoundarySettings
from ._engine.training import auto_batch_size
from ._fitted_axes import FittedAxes
from ._held_out import KeepsHeldOut
from ._validation import enumerated

#: ``learning_rate="auto"``.
_LEARNING_RATE = 2e-3


class EllipsoidOpenSetClassifier(FittedAxes, KeepsHeldOut, BoundaryOpenSetClassifier):
    """Open-set classifier with one ellipsoid around each known class.

    The boundary stage of EliDecide [1]_. The region of each known class k is one ellipsoid
    { z : ‖A_k (z − m_k)‖₂ ≤ Δ_k } with the matrix A_k, the centre m_k and the radius Δ_k. A sample is assigned to the
    class with the nearest mean. It is open if it lies outside the ellipsoid of this class. No threshold is tuned by
    hand. (Equation numbers below are those of the paper.)

    By default the ellipsoids are computed in closed form, from the covariance of each class, the covariance within all
    classes and the covariance of the class means. With ``init="identity"`` they are learned as in the paper, with two
    losses: known samples outside expand an ellipsoid, and pseudo-open samples contract all ellipsoids. Pseudo-open
    samples are mixtures of known samples with distinct labels.

    Read more in the :ref:`User Guide <method>`.

    Parameters
    ----------
    alpha : float, default=0.6
        α, concentration of the Dirichlet distribution of mixture weights (eq. 14). Below 1, one weight is usually much
        larger than the others, so mixtures lie close to a known class. With large values they lie half-way between
        classes. The mixtures are the means of the synthetic classes that help to choose the radius scale (see Notes).
        With ``init="identity"`` they are also the pseudo-open samples.

    beta : float, default=0.5
        β, strength of the contraction (eq. 15). With ``init="covariance"`` it acts on the radius scale: a larger value
        makes all boundaries smaller, so that more known and more open samples are rejected (see Notes). With
        ``init="identity"`` it contracts the shapes, most in the directions of pseudo-open samples; there it acts only
        with ``negative_loss="contraction"``.

    n_mix : int, default=3
        P, number of samples with distinct labels that are mixed into a pseudo-open sample. With fewer known classes,
        one sample of each class is mixed. Only with ``init="identity"`` and pseudo-open samples (see
        ``negative_loss``).

    init : {"covariance", "identity"}, default="covariance"
        ``"covariance"``: ellipsoids in closed form, without iterative training. ``"identity"``: the ellipsoids of the
        paper. Every A_k is initialised with the identity, and its entries are trained, which takes much longer.

    shape : {"full", "diagonal", "ball"}, default="full"
        What is trained of A_k: all entries, the diagonal, or one factor of the identity. Only with
        ``init="identity"``.

    negative_loss : {"contraction", "adb", "clab", "adb_gen"}, default="contraction"
        The loss that makes ellipsoids smaller (the second term of eq. 16). ``"contraction"``: eq. 15, for pseudo-open
        samples. The others are the ablations in the paper's appendix: ``"adb_gen"`` is eq. 15 with β = 0; ``"adb"`` is
        [Δ_k − r_k]₊ of the known samples of class k, at the distance r_k; ``"clab"`` adds for each of them the loss of
        a sample of another class (see :ref:`ablations`). With ``"adb"`` and ``"clab"``, open samples are used for
        validation only. Only with ``init="identity"``.

    learning_rate : float or "auto", default="auto"
        Step size of the Adam optimiser; ``"auto"`` is 0.002 (the paper uses 0.001 to 0.002). Only with
        ``init="identity"``.

    batch_size : int or "auto", default="auto"
        Known samples per step; each step has the same number of pseudo-open samples. ``"auto"`` divides an epoch into
        about 16 batches of 16 to 128 samples. Only with ``init="identity"``.

    max_iter : int, default=100
        Largest number of epochs. Only with ``init="identity"``.

    early_stopping : bool, default=True
        Whether training stops when the expected F1 (see Notes) of the validation samples has not improved by more than
        ``tol`` for ``n_iter_no_change`` epochs; the matrices with the best F1 are kept. ``False``: training stops when
        the training loss does not improve. Only with ``init="identity"``.

    recalibrate : bool, default=True
        Whether all radii are multiplied by one factor, the radius scale. It is chosen with held-out samples (with
        ``init="identity"`` with validation samples, see Notes). ``False`` keeps the radii of the paper, which are mean
        distances. Many known samples lie farther out and are rejected.

    validation_fraction : float, default=0.2
        Share of each class's samples that are validation samples, with ``early_stopping`` or ``recalibrate``. A class
        with a single sample has none. Only with ``init="identity"``.

    n_iter_no_change : int, default=5
        Number of epochs without improvement after which training stops. Only with ``init="identity"``.

    tol : float, default=0.001
        Smallest improvement that counts. Only with ``init="identity"``.

    rescale : bool, default=True
        Whether features are centred and divided by ``scale_`` before the fit. The losses contain exp(Δ − r), so they
        depend on the scale of the features. ``False`` is the exact setting of the paper, for features of about unit
        length.

    duplicates : {"once", "each", "off"}, default="once"
        Treatment of exact and near duplicates of a sample within its class, which are frequent in real logs. If a
        sample is held out and its duplicate stays in the fit, the sample lies too near to its class. ``"once"``:
        duplicates are held out together, and together have the weight of one sample. ``"each"``: they are held out
        together, and each has its own weight. ``"off"``: duplicates are not searched. ``groups_`` shows the duplicates
        found. Read more in the :ref:`User Guide <repeated>`.

    open_label : int or str, default=-1
        The label of open samples, cast to the kind of the classes: −1 for numbers, ``"-1"`` for strings. Samples with
        this label in ``y`` are real open samples.

    device : str, default="auto"
        Device of torch: ``"auto"`` is CUDA if it is available, else the CPU. A fitted classifier predicts on the CPU
        if its device does not exist on the present machine.

    random_state : int, RandomState instance or None, default=None
        Determines the synthetic classes, and which 2,048 samples choose the shapes if there are more. With
        ``init="identity"`` it determines the validation samples, the batches and the mixtures. The same integer gives
        the same result on one device, and the same decisions up to rounding on another. ``None`` draws one integer from
        NumPy's global generator, so that ``np.random.seed`` repeats a fit; nothing else of the caller's random state is
        touched. Random numbers belong to samples by their order, so a shuffled training set changes a few decisions.

    verbose : int, default=0
        Whether to show a progress bar, if standard error is a terminal or a notebook. Only with
        ``init="identity"``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes.

    open_label_ : int, float or str
        The open label, in the kind of ``classes_``.

    centroids_ : ndarray of shape (n_classes, n_features)
        c_k, the class means, in the units of X.

    centers_ : ndarray of shape (n_classes, n_features)
        m_k, the centres of the ellipsoids, in the units of X: the class means, moved away from the mean of all class
        means. With ``init="identity"`` or fewer than four classes they are the class means.

    radii_ : ndarray of shape (n_classes,)
        Δ_k times the radius scale that ``recalibrate`` chose, in the units of X. By default Δ is the same for all
        classes, the mean of their mean distances, since the shapes A_k differ in size.

    components_ : ndarray of shape (n_classes, n_features, n_features)
        A_k, without units, float32. Computed at each access from the few axes that are stored for each class.

    within_covariance_ : ndarray of shape (n_features, n_features) or None
        T, the covariance within classes, in the squared units of X. Samples are assigned to the nearest class mean in
        its metric. Computed at each access. ``None`` if that metric is Euclidean, with ``init="identity"``.

    spherical_share_ : float or None
        a, spherical share of T (see Notes); ``None`` with ``init="identity"``.

    between_share_ : float or None
        b, share of T in the covariance of the class means; ``None`` with ``init="identity"``, with fewer than four
        classes, or if the class means are equal.

    shrinkage_ : float or None
        ρ, share of the common shape Q in the shape of each class; ``None`` with ``init="identity"``.

    scale_ : float
        Divisor of the features: the root mean squared distance of the known samples to their mean; 1 if that is 0 or
        ``rescale=False``.

    offset_ : float
        ``predict`` answers open if ``score_samples`` is below it (and ``class_offsets_`` are 0). 0 after ``fit``,
        which is the fitted boundary. :func:`set_operating_point` changes it.

    class_offsets_ : ndarray of shape (n_classes,)
        Offset of each class relative to ``offset_``: ``predict`` answers open if ``score_samples`` is below
        ``offset_`` plus the entry of the assigned class. Zeros after ``fit``.

    groups_ : ndarray of shape (n_samples,)
        Samples with the same number were held out together: the ``groups`` given to ``fit``, else the duplicates
        found. −1 for samples of weight 0 and outliers.

    held_out_scores_ : ndarray of shape (n_held_out,) or None
        Scores of the known samples by boundaries that were computed without them, in ascending order. ``None`` if
        there are none.

    held_out_ : Bunch of ndarray of shape (n_rows,) or None
        The same scores with the classes of the samples, and the scores of samples whose whole class was held out. Such
        samples stand in for open ones: :class:`~skellipsoid.plotting.TradeOffDisplay` draws what an operating point
        costs. Columns: ``is_open``, ``label``, ``nearest_class``, ``score``, ``weight``. ``None`` if there are none.

    n_iter_ : int
        Number of epochs; 1 for the closed form.

    loss_curve_ : list of float
        Mean loss per sample (eq. 16, divided by the number of samples) in each epoch; empty for the closed form.

    validation_scores_ : list of float or None
        Expected F1 of the validation samples after each epoch; ``None`` without early stopping, and for the closed
        form.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SupConTextEncoder : Transforms text to features for this classifier.
    explain : After the fit: why each sample got its answer.
    set_operating_point : After the fit: reject more samples, or fewer.
    skellipsoid.plotting.EllipsoidDisplay : Draws the fitted boundaries.
    save : Writes the fitted classifier to a folder, without pickle.

    Notes
    -----
    The default fit, step by step. W, T and B are covariances; c_k is the mean of class k:

    1. T = (1 − a) W + a w̄ I: the pooled covariance W of all samples about their class means, shrunk towards a sphere
       with its mean variance w̄ [2]_.
    2. B: the covariance of the class means about their mean μ, shrunk towards a multiple of T with the share b.
    3. Q = T + T B⁻¹ T is the common shape. Its inverse Q⁻¹ = T⁻¹ − (T + B)⁻¹ is the quadratic form of the likelihood
       ratio of a class against a class never seen, whose mean is drawn from N(μ, B) [3]_. It is strict where
       classes differ, and tolerant where every class varies. The centre of the ratio is m_k = c_k + T B⁻¹ (c_k − μ).
       With fewer than four classes Q = T and m_k = c_k.
    4. Σ_k = (1 − ρ) S_k + ρ Q is the shape of class k, with its own covariance S_k: A_kᵀ A_k ∝ Σ_k⁻¹.
    5. A sample is assigned to the class whose mean c_k is nearest in the metric of T.
    6. Leave-one-out validation: every known sample is scored by boundaries that were computed without its group (itself
       and its duplicates, or a group given to ``fit``). Without a group, class means, T, B and S_k change by terms of
       low rank. So the distances are exact, and nothing is refitted [4]_. Known samples should lie inside. Two kinds of
       samples imitate open samples and should lie outside. First, a whole class is removed, and its samples are scored
       by the nearest other class. Second, synthetic classes are made. The mean of a synthetic class lies between two
       known class means. Its samples deviate from this mean as samples of the nearer known class deviate from theirs.
    7. The expected F1 of a radius scale is the macro F1 over the known classes and open. It is the mean over both kinds
       of open samples and over three shares of them: a quarter, a half and three quarters.
    8. The expected F1 chooses b and ρ (by the first kind of open samples only) and then the radius scale (by both).
       Each is an average over all candidates, with weights exp(F1 / standard error): the fewer groups there are, the
       more candidates count. The share a is chosen before, by the cross-entropy of the classes of held-out samples.
       With fewer than ten groups per class on average, the radius scale is smaller by up to one standard deviation of
       the candidates, since too few samples judge it.
    9. The radius scale is multiplied by s*(β) / s*(0.5). Here s*(β) is the radius scale that minimises the sum of the
       paper's two losses: the mean of eq. 13 over held-out known samples, and the mean of eq. 15 over samples of
       synthetic classes. Distances are in units of the standard deviation of those of the known samples. s* never grows
       with β.

    With ``init="identity"`` the initialisation is a sphere with the mean distance as radius. Adam minimises eq. 16. A
    share of the samples, ``validation_fraction``, chooses the epoch and the radius scale. On text the closed form is
    better on average: see :ref:`figures`.

    A class is degenerate if all its samples are equal (with ``init="identity"`` also if it has two samples of which one
    is a validation sample). It takes the common shape, as large as the other classes, with one warning. With
    ``init="identity"`` it takes a sphere with the median radius of the others. If all classes are degenerate, the
    radius is half the smallest distance between class means.

    With a single known class there are no mixtures. So without real open samples in ``y``, nothing contracts its
    boundary, and its ellipsoid covers all held-out samples.

    References
    ----------
    .. [1] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026.
    .. [2] Friedman, J. H. "Regularized Discriminant Analysis." Journal of the American Statistical Association 84,
       1989.
    .. [3] Ioffe, S. "Probabilistic Linear Discriminant Analysis." ECCV 2006.
    .. [4] Hoffbeck, J. P., Landgrebe, D. A. "Covariance Matrix Estimation and Classification With Limited Training
       Data." IEEE Transactions on Pattern Analysis and Machine Intelligence 18, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> y = np.repeat(["left", "right"], 100)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> clf.predict([[0, 0], [10, 10], [0, 10]]).tolist()
    ['left', 'right', '-1']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_mix": [Interval(Integral, 2, None, closed="left")],
        "init": [StrOptions({"covariance", "identity"})],
        "shape": [StrOptions({"full", "diagonal", "ball"})],
        "negative_loss": [StrOptions({"contraction", "adb", "clab", "adb_gen"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "recalibrate": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "rescale": ["boolean"],
        "duplicates": [StrOptions({"once", "each", "off"})],
        "open_label": [Real, str],
        "device": [str, torch.device],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        alpha: float = 0.6,
        beta: float = 0.5,
        n_mix: int = 3,
        init: str = "covariance",
        shape: str = "full",
        negative_loss: str = "contraction",
        learning_rate: float | str = "auto",
        batch_size: int | str = "auto",
        max_iter: int = 100,
        early_stopping: bool = True,
        recalibrate: bool = True,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 5,
        tol: float = 1e-3,
        rescale: bool = True,
        duplicates: str = "once",
        open_label: int | str = -1,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.n_mix = n_mix
        self.init = init
        self.shape = shape
        self.negative_loss = negative_loss
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.recalibrate = recalibrate
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.rescale = rescale
        self.duplicates = duplicates
        self.open_label = open_label
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def known_p_value(self, X: ArrayLike) -> NDArray[np.float64]:
        """Conformal p-value of the hypothesis that a sample is of a known class.

        The score s of a sample is compared with the m ``held_out_scores_`` of known samples:
        p = (1 + #{held-out score ≤ s}) / (m + 1) [5]_. If samples with p ≤ ε are answered open, at most about the share
        ε of new known samples is rejected. No open sample is needed for this. The p-value does not say how many open
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
            If there are no ``held_out_scores_``: with ``init="identity", early_stopping=False, recalibrate=False``, or
            with too few samples.

        Notes
        -----
        The guarantee holds on average over training sets, under two conditions. New known samples must have the
        distribution of the training samples, with the same proportions of the classes. And no parameter may be chosen
        with the held-out samples. The second condition is not met exactly, because the shares a, b and ρ (or the epoch)
        are chosen with them. The radius scale is too, but it does not change the order of the scores, so it does not
        change p. If an encoder was trained on the samples, they lie closer to their class mean than new samples, and
        more than the share ε of new samples is rejected.

        References
        ----------
        .. [5] Vovk, V., Gammerman, A., Shafer, G. "Algorithmic Learning in a Random World." Springer, 2005.

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
        if self.held_out_scores_ is None:
            msg = (
                "No known sample was held out of the fit, so that there are no scores to compare with; fit with "
                "recalibrate=True and at least two different samples of some class."
            )
            raise ValueError(msg)
        as_low = np.searchsorted(self.held_out_scores_, scores, side="right")
        return (1 + as_low) / (len(self.held_out_scores_) + 1)

    def _fit_boundaries(
        self, X: NDArray[Any], classes: NDArray[np.int64], real_open: NDArray[Any], gathered: Gathered
    ) -> None:
        device = resolve_device(self.device)
        weights = gathered.weights / gathered.weights.sum()
        # Statistics in double precision: a large shift costs nothing.
        self._mean = weights @ X.astype(np.float64, copy=False)
        # Adam amplifies the rounding of a mean: a constant feature must become exactly 0.
        constant = np.ptp(X, axis=0) == 0
        self._mean[constant] = X[0, constant]
        self.scale_ = find_scale(X, self._mean, weights) if self.rescale else 1.0
        n_classes, n_features = len(self.classes_), X.shape[1]
        what = f"the axes of {n_classes} classes, {len(X)} × {n_features} numbers in double precision"
        if self.init == "identity":
            what = f"{n_classes} classes × {n_features} × {n_features} matrices with Adam's two moments"
        with explain_out_of_memory(what, "reduce the number of features (PCA) or use device='cpu'"):
            samples = Samples.of(
                self._standardize(X, np.float32).to(device),
                torch.from_numpy(classes).to(device),
                n_classes,
                gathered.weights,
                gathered.units,
                gathered.groups,
            )
            opened = self._standardize(real_open, np.float32).to(device)
            fit = fit_paper if self.init == "identity" else fit_closed_form
            fitted = fit(samples, opened, self._settings(len(X)), resolve_seed(self.random_state))
        self._store(fitted)
        if self.init == "covariance":
            self._warn_of_few(classes, gathered.groups, fitted.degenerate.cpu().numpy())

    def _warn_of_few(
        self, classes: NDArray[np.int64], groups: NDArray[np.int64], degenerate: NDArray[np.bool_]
    ) -> None:
        """Warn of classes whose boundaries are judged by too few left-out groups; those of one have other warnings."""
        counts = np.bincount(np.unique(np.stack([classes, groups]), axis=1)[0], minlength=len(self.classes_))
        few = (counts > 1) & (counts < FEWEST_OF_CLASS) & ~degenerate
        if not few.any():
            return
        if 2 * few.sum() > len(few):
            result = "new samples may be rejected, and open samples accepted, much more often than left-out ones"
        else:
            result = "many of their new samples will be rejected"
        warn(
            f"{few.sum()} of {len(few)} classes have fewer than {FEWEST_OF_CLASS} different samples, or groups of "
            f"them ({enumerated(self.classes_[few])}; the smallest has {counts[few].min()}). Too few left-out samples "
            f"judge their boundaries, so {result}; collect at least {FEWEST_OF_CLASS} of each class, or set the "
            "operating point on new samples.",
            stacklevel=6,
        )

    def _settings(self, n_rows: int) -> BoundarySettings:
        batch_size = auto_batch_size(n_rows) if isinstance(self.batch_size, str) else self.batch_size
        rate = _LEARNING_RATE if isinstance(self.learning_rate, str) else self.learning_rate
        return BoundarySettings(
            alpha=self.alpha,
            beta=self.beta,
            n_mix=self.n_mix,
            shape=self.shape,
            negative_loss=self.negative_loss,
            learning_rate=rate,
            batch_size=batch_size,
            max_iter=self.max_iter,
            early_stopping=self.early_stopping,
            recalibrate=self.recalibrate,
            validation_fraction=self.validation_fraction,
            n_iter_no_change=self.n_iter_no_change,
            tol=self.tol,
            verbose=self.verbose,
        )

    def _store(self, fitted: Boundaries) -> None:
        """Store the fitted boundaries as NumPy arrays, in the units of X."""
        shapes, factors = fitted.shapes, fitted.shapes.factors
        self._mean = self._mean + self.scale_ * _array(fitted.origin)
        self.centroids_ = self._mean + self.scale_ * _array(fitted.centroids)
        self.centers_ = self._mean + self.scale_ * _array(fitted.centres)
        self.radii_ = self.scale_ * _array(shapes.radii)
        self._centers = _array(shapes.centres)
        metric = shapes.metric
        self._metric_axes = None if metric.axes is None else _array(metric.axes, np.float32)
        self._metric_products = None if metric.products is None else _array(metric.products)
        self._off_span = metric.off_span
        self._labels, self._label_constants = _array(metric.labels), _array(metric.constants)
        self._axes = _array(factors.axes, np.float32)
        self._axis_weights, self._axis_starts = _array(factors.weights), np.array(factors.starts)
        self._residual_weights = _array(factors.residual)
        moments = fitted.moments
        self.spherical_share_: float | None = None
        self.between_share_: float | None = None
        self.shrinkage_: float | None = None
        if moments:
            self.spherical_share_, self.between_share_, self.shrinkage_ = moments.weights
            self._class_counts, self._class_freedoms = _array(moments.counts), _array(moments.freedoms)
            self._axis_scatters, self._between = _array(moments.scatters), _array(moments.between)
            self._stretches, self._off_variance = _array(moments.stretches), moments.off_span
        self._held_out = self.held_out_scores_ = None
        if (left := fitted.held_out) is not None:
            self._keep_held_out(left.margins, left.assigned, left.classes, left.weights, left.is_open)
            self.held_out_scores_ = np.sort(left.margins[~left.is_open])
        self.n_iter_ = max(1, fitted.history.n_iter)
        self.loss_curve_ = fitted.history.losses
        self.validation_scores_ = fitted.history.scores or None
        self._warn_of_degenerate(fitted.degenerate.cpu().numpy(), stacklevel=7)

    def _standardize(self, X: NDArray[Any], dtype: Any) -> Tensor:
        return torch.from_numpy(((X - self._mean) / self.scale_).astype(dtype, copy=False))

    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        assigned = np.empty(len(X), dtype=np.int64)
        margins = np.empty(len(X), dtype=X.dtype)
        for chunk, (found, margin) in self._in_chunks(X, Shapes.assigned):
            assigned[chunk], margins[chunk] = found.cpu().numpy(), margin.cpu().numpy()
        return assigned, margins

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        margins = np.empty((len(X), len(self.classes_)), dtype=X.dtype)
        for chunk, margin in self._in_chunks(X, Shapes.all):
            margins[chunk] = margin.cpu().numpy()
        return margins

    def _in_chunks(self, X: NDArray[Any], score: Callable[[Shapes, Tensor], Any]) -> Iterator[tuple[slice, Any]]:
        """Score samples in chunks, in the precision of X."""
        device = resolve_device(self.device, fallback=True)

        def on_device(values: NDArray[Any]) -> Tensor:
            # torch warns of read-only memory, and joblib maps large arrays to such memory.
            return torch.from_numpy(np.require(values.astype(X.dtype, copy=False), requirements="W")).to(device)

        def optional(values: NDArray[Any] | None) -> Tensor | None:
            return None if values is None else on_device(values)

        shapes = Shapes(
            Metric(
                optional(self._metric_axes),
                optional(self._metric_products),
                self._off_span,
                on_device(self._labels),
                on_device(self._label_constants),
            ),
            on_device(self._centers),
            Factors(
                on_device(self._axes),
                on_device(self._axis_weights),
                self._axis_starts.tolist(),
                on_device(self._residual_weights),
            ),
            on_device(self.radii_ / self.scale_),
        )
        with torch.inference_mode():
            for chunk in scoring_chunks(len(X), X.shape[1], len(self.classes_)):
                yield chunk, score(shapes, self._standardize(X[chunk], X.dtype).to(device))


def _array(values: Tensor, dtype: Any = np.float64) -> NDArray[Any]:
    return values.cpu().numpy().astype(dtype)
