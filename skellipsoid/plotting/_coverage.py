"""F1 at every operating point."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from .._core.answers import ClosedSetRows
from .._core.warn import warn
from ._canvas import COLOURS, LINE_STYLES, OPEN_COLOUR, draw_curves, legend_above, make_axes
from ._inputs import read_answers, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The curves, with their labels, colours and line styles.
_CURVES = {
    "open_set_f1": ("F1, K+1 classes", COLOURS[0], LINE_STYLES[0]),
    "known_f1": ("F1, known classes", COLOURS[2], LINE_STYLES[1]),
    "open_f1": ("F1, open", OPEN_COLOUR, LINE_STYLES[2]),
}
_ACROSS = {"offset": "offset: rejected below", "coverage": "coverage: known samples accepted"}


@dataclass(eq=False, repr=False, kw_only=True)
class CoverageDisplay:
    """F1 over all classes, over the known ones, and of open, against the operating point.

    Shows the effect of the offset. Choose the offset on development samples, and draw test samples only to evaluate the
    choice.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one.

    Parameters
    ----------
    offsets : ndarray of shape (n_offsets,)
        Operating points, rising; a sample is accepted when its score is at least the offset.
    coverage : ndarray of shape (n_offsets,)
        Share of known samples that are accepted.
    rejection : ndarray of shape (n_offsets,)
        Share of open samples that are rejected.
    open_set_f1 : ndarray of shape (n_offsets,)
        Macro F1 over the K known classes and open.
    known_f1 : ndarray of shape (n_offsets,)
        Macro F1 over the K known classes.
    open_f1 : ndarray of shape (n_offsets,)
        F1 of open.
    offset : float, default=None
        The present operating point, one of ``offsets``. ``None`` marks none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        The three curves: K+1, known, open.
    offset_line_ : matplotlib Line2D or None
        The present operating point; ``None`` if it is not on the axis.

    See Also
    --------
    skellipsoid.set_operating_point : Moves the offset.
    skellipsoid.metrics.open_set_f1_score : The first curve.
    OSCRDisplay : Accepted known and open samples for every offset.

    Notes
    -----
    At the offset o, each sample with a score of at least o has its closed-set answer, and every other sample is
    answered open. The three curves are ``open_set_f1_score``, ``known_f1_score`` and ``open_f1_score`` of these
    answers. Coverage is #{known: s ≥ o} / #{known}. A known class without a sample in ``y_true`` has an F1 of 0 at
    every offset, with one warning.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid.plotting import CoverageDisplay
    >>> y_true, y_pred_known = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1]
    >>> score = [0.9, 0.6, 0.6, 0.5, 0.6, 0.1]
    >>> display = CoverageDisplay.from_predictions(y_true, y_pred_known, score, offset=0.55)
    >>> present = display.offsets == 0.55
    >>> display.coverage[present], display.open_set_f1[present].round(4), display.open_f1[present]
    (array([0.75]), array([0.6556]), array([0.5]))
    >>> plt.close(display.figure_)
    """

    offsets: NDArray[np.float64]
    coverage: NDArray[np.float64]
    rejection: NDArray[np.float64]
    open_set_f1: NDArray[np.float64]
    known_f1: NDArray[np.float64]
    open_f1: NDArray[np.float64]
    offset: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_offsets: int = 200,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curves of a fitted classifier, its present offset marked.

        Scores are ``score_samples`` minus ``class_offsets_``. So the samples below the offset are those answered open.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like
            Features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            True labels; those outside ``classes_`` are open.
        n_offsets : int, default=200
            How many operating points to draw, with equally many samples between them.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : CoverageDisplay

        Raises
        ------
        ValueError
            If known or open samples are missing, a score is NaN, labels mix numbers and strings, or lengths differ.
        TypeError
            If the estimator does not end in an open-set classifier.
        ImportError
            If matplotlib is not installed.

        Warns
        -----
        UndefinedMetricWarning
            If a known class has no sample in ``y``.
        """
        answers = read_answers(cls, estimator, X, "predict_known", "score_samples")
        return cls.from_predictions(y, **answers, n_offsets=n_offsets, ax=ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred_known: ArrayLike,
        score: ArrayLike,
        *,
        offset: float | None = None,
        open_label: Any = -1,
        labels: ArrayLike | None = None,
        n_offsets: int = 200,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curves of any model's answers and scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, all numbers or all strings. A label outside ``labels`` is read as open.
        y_pred_known : array-like of shape (n_samples,)
            Closed-set answers of the same kind, as of ``predict_known``: a known class for every sample, never open.
        score : array-like of shape (n_samples,)
            Knownness, in any units: higher is more known.
        offset : float, default=None
            The present operating point, to be marked. ``None`` marks none.
        open_label : int or str, default=-1
            The label for open, cast to the kind of the labels.
        labels : array-like of shape (n_classes,), default=None
            The known classes. None takes all that occur and are not the open label.
        n_offsets : int, default=200
            How many operating points to draw, with equally many samples between them.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : CoverageDisplay

        Raises
        ------
        ValueError
            If known or open samples are missing, ``offset`` or a score is NaN, ``y_pred_known`` holds the open label,
            labels mix numbers and strings, or lengths differ.
        ImportError
            If matplotlib is not installed.

        Warns
        -----
        UndefinedMetricWarning
            If a known class has no sample in ``y_true``.
        """
        rows, offset = read_rows(cls, y_true, y_pred_known, score, offset, open_label=open_label, labels=labels)
        _warn_of_missing_classes(rows)
        offsets = _spread_offsets(rows.score, offset, n_offsets)
        accepted = rows.score >= offsets[:, np.newaxis]  # (n_offsets, n_samples)
        f1 = np.stack([_f1_scores(rows, row) for row in accepted])  # (n_offsets, n_classes + 1)
        return cls(
            offsets=offsets,
            coverage=accepted[:, rows.is_known].mean(axis=1),
            rejection=1 - accepted[:, ~rows.is_known].mean(axis=1),
            open_set_f1=f1.mean(axis=1),
            known_f1=f1[:, :-1].mean(axis=1),
            open_f1=f1[:, -1],
            offset=offset,
        ).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        x: Literal["offset", "coverage"] = "offset",
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        x : {"offset", "coverage"}, default="offset"
            Quantity on the horizontal axis. Use ``"coverage"`` to compare models whose scores have different units.
        legend : bool, default=True
            Whether to draw the legend, above the axes, with the figures at the present offset.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for all curves.

        Returns
        -------
        display : CoverageDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``x`` is neither.
        """
        if x not in _ACROSS:
            raise ValueError(f"x={x!r} is not allowed: pass 'offset' or 'coverage'.")
        self.ax_, self.figure_ = make_axes(self, ax)
        across = self.offsets if x == "offset" else self.coverage
        draw_curves(self, across, _CURVES, form=".3f", told="coverage", line_kw=line_kw)
        self.ax_.set(xlabel=_ACROSS[x], ylabel="F1", ylim=(-0.02, 1.02))
        if legend:
            legend_above(self.ax_, ncols=2)
        return self


def _warn_of_missing_classes(rows: ClosedSetRows) -> None:
    """Warn, at the caller of ``from_predictions``, of known classes without a defined F1."""
    missing = rows.problem.classes[np.bincount(rows.problem.true, minlength=len(rows.problem.classes))[:-1] == 0]
    if len(missing):
        warn(
            f"y_true has no row of {len(missing)} of the {len(rows.problem.classes)} known classes, such as "
            f"{missing[0].item()!r}: F1 counts 0 there at every offset.",
            UndefinedMetricWarning,
        )


def _spread_offsets(score: NDArray[np.float64], offset: float | None, n_offsets: int) -> NDArray[np.float64]:
    """Give offsets from no rejection to full rejection, with equally many samples between, and the present offset."""
    finite = score[np.isfinite(score)]
    offsets = [score.min(), np.nextafter(score.max(), np.inf), *([] if offset is None else [offset])]
    if len(finite):
        offsets.extend(np.quantile(finite, np.linspace(0, 1, n_offsets), method="closest_observation"))
    return np.unique(offsets)


def _f1_scores(rows: ClosedSetRows, accepted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """F1 of each known class and of open (last) when these samples are accepted; 0 for a class without any sample."""
    true, predicted = rows.problem.true, rows.problem.predicted
    n_known = len(rows.problem.classes)
    answers = np.where(accepted, predicted, n_known)
    # The last bin holds answers that are no known class: they are nobody's.
    answered = np.bincount(answers, minlength=n_known + 2)[: n_known + 1]
    support = np.bincount(true, minlength=n_known + 1)
    correct = np.bincount(true[true == answers], minlength=n_known + 1)
    return np.asarray(2 * correct / np.maximum(support + answered, 1))
