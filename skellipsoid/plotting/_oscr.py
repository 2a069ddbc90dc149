"""The open-set classification rate curve."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc

from .._core.pipelines import split_estimator
from ..metrics import oscr_curve
from ._canvas import COLOURS, FAINT, LINE_STYLES, legend_name, make_axes, styled
from ._inputs import read_answers, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How curves are found again that earlier displays drew on the same axes.
_GID = "skellipsoid.oscr"


@dataclass(eq=False, repr=False)
class OSCRDisplay:
    """Open-set classification rate curve: known samples accepted and correct, against open samples accepted.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. To draw several models in one picture, pass
    ``ax_`` of the first display as ``ax`` to the next.

    Parameters
    ----------
    fpr : ndarray of shape (n_thresholds,)
        Share of open samples that are accepted, rising.
    ccr : ndarray of shape (n_thresholds,)
        Share of known samples that are accepted and classified correctly, rising to the closed-set accuracy.
    oscr : float, default=None
        The area under the curve, for the legend.
    operating_point : tuple of float, default=None
        Both rates at the present offset, ``(fpr, ccr)``, to be marked.
    name : str, default=None
        The model's name, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    line_ : matplotlib Line2D
        The curve.
    point_ : matplotlib Line2D or None
        The mark of the operating point.

    See Also
    --------
    skellipsoid.metrics.oscr_curve : The numbers, with formulas.
    skellipsoid.metrics.oscr_score : The area.

    Notes
    -----
    The curve ends at a false positive rate of 1 and the closed-set accuracy, not at (1, 1). The best possible curve
    goes through (0, 1).

    References
    ----------
    .. [1] A. R. Dhamija, M. Günther, T. E. Boult, "Reducing Network Agnostophobia", NeurIPS 2018.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid.plotting import OSCRDisplay
    >>> y_true, y_pred_known = [0, 0, 1, 1, -1, -1], [0, 0, 1, 0, 0, 1]
    >>> score = [0.9, 0.6, 0.6, 0.5, 0.6, 0.1]
    >>> display = OSCRDisplay.from_predictions(y_true, y_pred_known, score, name="a model")
    >>> display.oscr
    0.625
    >>> display.line_.get_label()
    'a model (area 0.625)'
    >>> plt.close(display.figure_)
    """

    fpr: NDArray[np.float64]
    ccr: NDArray[np.float64]
    _: KW_ONLY
    oscr: float | None = None
    operating_point: tuple[float, float] | None = None
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier, its present offset marked.

        Scores are ``score_samples`` minus ``class_offsets_``. So the samples below the offset are those answered open.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like
            Features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            True labels; those outside ``classes_`` are open.
        name : str, default=None
            The model's name, for the legend; ``None`` is the classifier's class.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : OSCRDisplay

        Raises
        ------
        ValueError
            If known or open samples are missing, a score is NaN, labels mix numbers and strings, or lengths differ.
        TypeError
            If the estimator does not end in an open-set classifier.
        ImportError
            If matplotlib is not installed.
        """
        answers = read_answers(cls, estimator, X, "predict_known", "score_samples")
        name = type(split_estimator(estimator)[1]).__name__ if name is None else name
        return cls.from_predictions(y, **answers, name=name, ax=ax, **plot_options)

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
        name: str | None = None,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curve of any model's answers and scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, all numbers or all strings. A label outside ``labels`` is read as open.
        y_pred_known : array-like of shape (n_samples,)
            Closed-set answers of the same kind, as of ``predict_known``: a known class for every sample, never open.
        score : array-like of shape (n_samples,)
            Knownness, in any units: higher is more known.
        offset : float, default=None
            The operating point to mark: rows whose score is below it are rejected. ``None`` marks none.
        open_label : int or str, default=-1
            The label for open, cast to the kind of the labels.
        labels : array-like of shape (n_classes,), default=None
            The known classes. None takes all that occur and are not the open label.
        name : str, default=None
            The model's name, for the legend.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : OSCRDisplay

        Raises
        ------
        ValueError
            If known or open samples are missing, ``offset`` or a score is NaN, ``y_pred_known`` holds the open label,
            labels mix numbers and strings, or lengths differ.
        ImportError
            If matplotlib is not installed.
        """
        rows, offset = read_rows(cls, y_true, y_pred_known, score, offset, open_label=open_label, labels=labels)
        point = None
        if offset is not None:
            accepted = rows.score >= offset
            correct = rows.problem.true == rows.problem.predicted
            point = float(accepted[~rows.is_known].mean()), float((accepted & correct)[rows.is_known].mean())
        fpr, ccr, _ = oscr_curve(y_true, y_pred_known, score, open_label=open_label, labels=labels)
        return cls(fpr, ccr, oscr=float(auc(fpr, ccr)), operating_point=point, name=name).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        name: str | None = None,
        legend: bool = True,
        plot_random: bool = False,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure. On the axes of another display this one takes the next colour
            and line style.
        name : str, default=None
            The model's name, for the legend; ``None`` takes the display's.
        legend : bool, default=True
            Whether to draw the legend.
        plot_random : bool, default=False
            Whether to draw the curve of the same closed-set answers with random scores.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : OSCRDisplay
            This display, with the drawn artists.
        """
        is_new = ax is None
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(5.8, 5.4))
        from matplotlib.lines import Line2D

        turn = sum(line.get_gid() == _GID for line in self.ax_.lines)
        name = legend_name((self.name if name is None else name) or "", 40)
        area = "" if self.oscr is None else f"area {self.oscr:.3f}"
        text = f"{name} ({area})" if name and area else name or area
        looks = {
            "color": COLOURS[turn % len(COLOURS)],
            "linestyle": LINE_STYLES[turn % len(LINE_STYLES)],
            "linewidth": 2.0,
            "label": text,
        }
        (self.line_,) = self.ax_.plot(self.fpr, self.ccr, gid=_GID, **styled(looks, line_kw, Line2D))
        self.point_ = None
        if self.operating_point is not None:
            x, y = self.operating_point
            (self.point_,) = self.ax_.plot(
                [x], [y], marker="o", markersize=8, markeredgecolor="white", color=self.line_.get_color(), zorder=4
            )
        if plot_random:
            self.ax_.plot([0, 1], [0, self.ccr[-1]], color=FAINT, linestyle=":", label="scores that know nothing")
        self.ax_.set(
            xlabel="false positive rate: open samples accepted",
            ylabel="correct classification rate:\nknown samples accepted and right",
        )
        if is_new:
            # As scikit-learn's curves: a little beyond the unit square, so that lines on its sides are seen.
            self.ax_.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        if legend and text:
            self.ax_.legend(loc="lower right")
        return self
