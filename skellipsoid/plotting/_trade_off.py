"""What each operating point costs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.answers import trade_off_at
from .._core.held_out_scores import held_out_rows
from .._core.pictures import require_matplotlib
from .._core.pipelines import split_estimator
from ._canvas import COLOURS, KNOWN_COLOUR, LINE_STYLES, OPEN_COLOUR, draw_curves, legend_above, make_axes
from ._inputs import read_answers, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The curves, with their labels, colours and line styles.
_CURVES = {
    "open_noticed": ("open noticed", OPEN_COLOUR, LINE_STYLES[0]),
    "wrong_class": ("known with a wrong class", COLOURS[2], LINE_STYLES[1]),
    "known_rejected": ("known rejected", KNOWN_COLOUR, LINE_STYLES[2]),
}
_ACROSS = {
    "known_rejected": "known samples that are rejected",
    "offset": "offset: samples with a lower score are rejected",
}


@dataclass(eq=False, repr=False, kw_only=True)
class TradeOffDisplay:
    """Trade-off of rejection: known samples rejected, open samples noticed, wrong classes, at every operating point.

    Shows what a choice costs before it is made: what "reject at most 5 % of the known samples" does to the open ones.
    No open data is needed: held-out samples of the fit stand in for new known samples, and samples whose whole class
    was held out stand in for open samples.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one.

    Parameters
    ----------
    offsets : ndarray of shape (n_offsets,)
        Operating points, rising; a sample is rejected when its score is below the offset.
    known_rejected : ndarray of shape (n_offsets,)
        Share of known samples that are rejected.
    open_noticed : ndarray of shape (n_offsets,)
        Share of open samples that are rejected.
    wrong_class : ndarray of shape (n_offsets,)
        Share of known samples that are accepted and get a wrong class.
    offset : float, default=None
        The present operating point, one of ``offsets``. ``None`` marks none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        The curves: open noticed, wrong class, and with ``x="offset"`` known rejected.
    offset_line_ : matplotlib Line2D or None
        The present operating point; ``None`` if it is not on the axis.

    See Also
    --------
    skellipsoid.set_operating_point : Moves the offset.
    skellipsoid.metrics.trade_off_curve : The numbers.
    CoverageDisplay : F1 at every operating point.

    Notes
    -----
    For balls and ellipsoids, the offset o multiplies every radius by 1 − o. Held-out classes are as near to the known
    classes as these are to each other. Open samples are noticed more often if they are farther away, and less often if
    they are nearer. The guide compares them with new samples: :ref:`trade_off`.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> from skellipsoid.plotting import TradeOffDisplay
    >>> X, y = make_open_blobs(600, 8, n_known=6, open_share=0.0, random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> display = TradeOffDisplay.from_estimator(clf)
    >>> present = display.offsets == clf.offset_
    >>> display.known_rejected[present].round(2), display.open_noticed[present].round(2)
    (array([0.04]), array([1.]))
    >>> plt.close(display.figure_)
    """

    offsets: NDArray[np.float64]
    known_rejected: NDArray[np.float64]
    open_noticed: NDArray[np.float64]
    wrong_class: NDArray[np.float64]
    offset: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the trade-off of a fitted classifier, its present offset marked.

        Scores are those minus ``class_offsets_``. So the samples below the offset are those answered open.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like, default=None
            New samples: features, or texts for a text Pipeline. ``None``: the held-out training samples and held-out
            classes that the classifier keeps (``held_out_``).
        y : array-like of shape (n_samples,), default=None
            True labels of ``X``; those outside ``classes_`` are open.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : TradeOffDisplay

        Raises
        ------
        ValueError
            If only one of ``X`` and ``y`` is given, if the classifier has held out no samples or no class, if known or
            open samples are missing in ``y``, labels mix numbers and strings, or lengths differ.
        TypeError
            If the estimator does not end in an open-set classifier, or in one that keeps no held-out samples and ``X``
            is not given.
        ImportError
            If matplotlib is not installed.
        """
        if (X is None) != (y is None):
            given, missing = ("X", "y") if y is None else ("y", "X")
            raise ValueError(
                f"{given} is given without {missing}: pass both, or none to take the held-out training samples."
            )
        if X is None or y is None:
            require_matplotlib(f"{cls.__name__}.from_estimator")
            rows = held_out_rows(split_estimator(estimator)[1], f"{cls.__name__}.from_estimator")
            return cls.from_predictions(**rows, ax=ax, **plot_options)
        answers = read_answers(cls, estimator, X, "predict_known", "score_samples")
        return cls.from_predictions(y, **answers, ax=ax, **plot_options)

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
        sample_weight: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the trade-off of any model's answers and scores.

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
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; ``None`` is 1 for all.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : TradeOffDisplay

        Raises
        ------
        ValueError
            If known or open samples are missing, ``offset`` or a score is NaN, ``y_pred_known`` holds the open label,
            labels mix numbers and strings, or lengths differ.
        ImportError
            If matplotlib is not installed.
        """
        options = {"open_label": open_label, "labels": labels, "sample_weight": sample_weight}
        rows, offset = read_rows(cls, y_true, y_pred_known, score, offset, **options)
        offsets = np.unique([*rows.score, np.inf, *([] if offset is None else [offset])])
        known_rejected, open_noticed, wrong_class = trade_off_at(rows, offsets)
        return cls(
            offsets=offsets,
            known_rejected=known_rejected,
            open_noticed=open_noticed,
            wrong_class=wrong_class,
            offset=offset,
        ).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        x: Literal["known_rejected", "offset"] = "known_rejected",
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        x : {"known_rejected", "offset"}, default="known_rejected"
            Quantity on the horizontal axis. With ``"offset"`` the known samples that are rejected are a third curve.
        legend : bool, default=True
            Whether to draw the legend, above the axes, with the figures at the present offset.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for all curves.

        Returns
        -------
        display : TradeOffDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``x`` is neither.
        """
        if x not in _ACROSS:
            raise ValueError(f"x={x!r} is not allowed: pass 'known_rejected' or 'offset'.")
        self.ax_, self.figure_ = make_axes(self, ax)
        from matplotlib.ticker import PercentFormatter

        across = self.known_rejected if x == "known_rejected" else self.offsets
        curves = {curve: look for curve, look in _CURVES.items() if curve != x}
        draw_curves(self, across, curves, form=".1%", told="known_rejected", line_kw=line_kw)
        self.ax_.set(xlabel=_ACROSS[x], ylabel="share of the open, or of the known samples", ylim=(-0.02, 1.02))
        self.ax_.yaxis.set_major_formatter(PercentFormatter(1))
        if x == "known_rejected":
            self.ax_.xaxis.set_major_formatter(PercentFormatter(1))
        if legend:
            legend_above(self.ax_, ncols=2)
        return self
