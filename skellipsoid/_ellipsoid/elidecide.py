"""The settings of the paper's training of the boundary matrices."""

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from .._core.sklearn import Interval, StrOptions
from .paper.settings import TrainingSettings


class EliDecide(BaseEstimator):
    """Settings to train the boundary matrices as in the paper.

    Pass it to the classifier: ``EllipsoidOpenSetClassifier(trainer=EliDecide())``.

    The ellipsoid of class k is { z : ‖A_k (z − c_k)‖₂ < Δ_k }, with the class mean c_k and the mean distance Δ_k of
    the class's samples to it. Every A_k starts at the identity. Adam trains all matrices: known samples outside expand
    an ellipsoid, and pseudo-open samples contract all ellipsoids. The defaults are those of the code that the authors
    of the paper [1]_ released [2]_, except for ``rescale``. The paper itself does not print the weight decay.

    Settings are all that this object holds. It is never fitted.

    Read more in the :ref:`User Guide <elidecide>`.

    Parameters
    ----------
    n_mix : int or tuple of (int, int), default=(2, 3)
        P, number of samples with distinct labels that are mixed into a pseudo-open sample. A tuple gives the smallest
        and the largest P; each pseudo-open sample draws its own, all equally likely. If fewer classes are known, P is
        at most their number. If a batch has fewer labels than P, it has no pseudo-open sample of this P.

    learning_rate : float, default=0.001
        Step size of Adam.

    weight_decay : float, default=0.01
        L2 penalty in Adam's gradient, on every trained entry. It draws A_k towards 0, which enlarges the ellipsoids.
        0 is as the paper prints it; then far more known samples are rejected.

    batch_size : int, default=128
        Largest number of known samples in a step. Each step has as many pseudo-open samples.

    max_iter : int or "auto", default="auto"
        Largest number of epochs. ``"auto"``: 100, as in the released code, or on small data as many as make 1,500
        steps.

    n_iter_no_change : int, default=10
        Training stops after this number of epochs in a row without a better score, and not before the steps in which an
        entry of a matrix can move by 0.17 (170 with the default step size). A score that is flat from the first epoch
        on does not end a training whose loss falls; a ``ConvergenceWarning`` says if it ends so all the same. The score
        is the macro F1 of the validation samples over the known classes; the prediction open is an error. Validation
        samples are ``X_val`` of ``fit``, or else a part of the training samples.

    shape : {"full", "diagonal", "ball"}, default="full"
        What is trained of A_k: all entries, the diagonal, or one factor of the identity.

    negative_loss : {"contraction", "adb", "clab", "adb_gen"}, default="contraction"
        The loss that makes ellipsoids smaller (the second term of eq. 16). ``"contraction"``: eq. 15, for pseudo-open
        samples. The others are the paper's ablations: ``"adb_gen"`` is eq. 15 with β = 0. ``"adb"`` is K [Δ_k − r_k]₊
        of the known samples of class k, at the distance r_k, with the number of classes K. ``"clab"`` is [Δ_k − r_k]₊
        plus a loss of a sample of another class (see :ref:`ablations`).

    rescale : bool, default=True
        Whether features are centred and divided by ``scale_`` before the training. The losses contain exp(Δ − r), so
        they depend on the scale of the features. ``False`` is the released code, for features of about unit length.

    recalibrate : bool, default=False
        Whether all radii are multiplied by one factor after the training. The validation samples choose it by the
        expected F1, as in the closed form. ``True`` is not part of EliDecide.

    validation_fraction : float, default=0.1
        Share of each class's samples that are validation samples if ``fit`` gets no ``X_val``. They are not trained on.
        A class with a single sample has none.

    restore_best : bool, default=False
        Which matrices are kept: those of the last epoch (``False``, the released code), or those of the epoch with the
        best score.

    verbose : int, default=0
        Whether to show a progress bar, if standard error is a terminal or a notebook.

    See Also
    --------
    EllipsoidOpenSetClassifier : The classifier; its ``alpha`` and ``beta`` act in the training.

    References
    ----------
    .. [1] Zou, Y., Zhang, H., Xu, H., Li, S., Xiao, L. "Ellipsoid-Based Decision Boundaries for Open Intent
       Classification." AAAI 2026.
    .. [2] The platform TEXTOIR, repository thuiar/TEXTOIR, method EliDecide.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(100, 2)) for centre in (0, 10)])
    >>> y = np.repeat(["left", "right"], 100)
    >>> clf = EllipsoidOpenSetClassifier(trainer=EliDecide(), random_state=0).fit(X, y)
    >>> clf.predict([[0, 0], [10, 10], [0, 10]]).tolist()
    ['left', 'right', '-1']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_mix": [Interval(Integral, 2, None, closed="left"), tuple, list],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shape": [StrOptions({"full", "diagonal", "ball"})],
        "negative_loss": [StrOptions({"contraction", "adb", "clab", "adb_gen"})],
        "rescale": ["boolean"],
        "recalibrate": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "restore_best": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_mix: int | tuple[int, int] = (2, 3),
        learning_rate: float = 1e-3,
        weight_decay: float = 0.01,
        batch_size: int = 128,
        max_iter: int | str = "auto",
        n_iter_no_change: int = 10,
        shape: str = "full",
        negative_loss: str = "contraction",
        rescale: bool = True,
        recalibrate: bool = False,
        validation_fraction: float = 0.1,
        restore_best: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_mix = n_mix
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.shape = shape
        self.negative_loss = negative_loss
        self.rescale = rescale
        self.recalibrate = recalibrate
        self.validation_fraction = validation_fraction
        self.restore_best = restore_best
        self.verbose = verbose

    def _validate_params(self) -> None:
        super()._validate_params()
        pair: tuple[Any, ...] = self._range_of_p()
        if len(pair) != 2 or not all(isinstance(n, Integral) for n in pair) or not 2 <= pair[0] <= pair[1]:
            raise ValueError(
                f"n_mix of EliDecide is {self.n_mix!r}, but must be an integer of at least 2, or the smallest and the "
                "largest of them; pass for instance n_mix=(2, 3)."
            )

    def _range_of_p(self) -> tuple[int, ...]:
        given: Any = self.n_mix
        return tuple(given) if isinstance(given, tuple | list) else (given, given)

    def _settings(self, alpha: float, beta: float, n_classes: int) -> TrainingSettings:
        """Return the settings of the training; P is at most the number of known classes."""
        fewest, most = self._range_of_p()
        ours = {name: value for name, value in self.get_params().items() if name not in ("n_mix", "rescale")}
        n_mix = (min(fewest, n_classes), min(most, n_classes))
        return TrainingSettings(alpha=alpha, beta=beta, n_mix=n_mix, **ours)
