"""Curves over all thresholds: known rejected against open detected, F1, or OSCR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import auc

from .._core.pipelines import split_estimator
from .._held_out.kept import held_out_rows
from ..metrics._reading import f1_at, trade_off_at
from ._canvas import COLOURS, INK, KNOWN_COLOUR, LINE_STYLES, OPEN_COLOUR, legend_above, legend_name, make_axes, styled
from ._inputs import read_predictions, read_rows, warn_of_missing_classes
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Kind = Literal["trade_off", "f1", "oscr"]

#: The curves of each kind but the last, with their labels, colours and line styles.
_CURVES = {
    "trade_off": {
        "open_noticed": ("open detected", OPEN_COLOUR, LINE_STYLES[0]),
        "wrong_class": ("known with a wrong class", COLOURS[2], LINE_STYLES[1]),
        "known_rejected": ("known rejected", KNOWN_COLOUR, LINE_STYLES[2]),
    },
    "f1": {
        "open_set_f1": ("F1, K+1 classes", COLOURS[0], LINE_STYLES[0]),
        "known_f1": ("F1, known classes", COLOURS[2], LINE_STYLES[1]),
        "open_f1": ("F1, open", OPEN_COLOUR, LINE_STYLES[2]),
    },
}
_FORMS = {"trade_off": ".1%", "f1": ".3f"}
_KINDS = (*_CURVES, "oscr")
_ACROSS = {
    "known_rejected": "known samples that are rejected",
    "offset": "offset: samples with a lower score are rejected",
}
#: Mark by which OSCR curves of earlier displays on the same axes are found.
_GID = "skellipsoid.oscr"


@dataclass(eq=False, repr=False, kw_only=True)
class TradeOffDisplay:
    """Trade-off at each threshold: known samples rejected, open samples detected, wrong classes; F1; the OSCR curve.

    Shows the cost of a threshold: how many open samples are accepted if at most 5 % of the known samples are rejected,
    for example. No open data are needed: held-out training samples stand in for new known samples, and samples of
    held-out classes for open ones.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. ``kind="f1"`` draws F1 over all classes, over
    the known ones, and of open. ``kind="oscr"`` draws known samples accepted and right, against open samples accepted.
    To draw several models in one OSCR picture, pass ``ax_`` of the first display as ``ax`` to the next.

    Parameters
    ----------
    offsets : ndarray of shape (n_offsets,)
        Thresholds, rising; a sample is rejected if its score is below the offset.
    known_rejected : ndarray of shape (n_offsets,)
        Proportion of known samples that are rejected.
    open_noticed : ndarray of shape (n_offsets,)
        Proportion of open samples that are rejected: the recall of open.
    wrong_class : ndarray of shape (n_offsets,)
        Proportion of known samples that are accepted and get a wrong class.
    open_set_f1 : ndarray of shape (n_offsets,)
        Macro F1 over the K known classes and open.
    known_f1 : ndarray of shape (n_offsets,)
        Macro F1 over the K known classes.
    open_f1 : ndarray of shape (n_offsets,)
        F1 of open.
    offset : float, default=None
        The current threshold, one of ``offsets``. ``None`` marks none.
    name : str, default=None
        The model's name, for the legend of OSCR curves.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        The curves. Trade-off: open detected, wrong class, and with ``x="offset"`` known rejected. F1: K+1, known, open.
        OSCR: one.
    offset_line_ : matplotlib Line2D or None
        The current threshold; ``None`` if it is not on the axis, and in an OSCR picture.

    See Also
    --------
    skellipsoid.set_operating_point : Moves the offset.
    skellipsoid.metrics.trade_off_curve : The numbers of the trade-off.
    skellipsoid.metrics.oscr_curve : The numbers of the OSCR curve, with formulas.

    Notes
    -----
    For balls and ellipsoids, the offset o multiplies every radius by 1 − o. Held-out classes are as near to the known
    classes as these are to each other. Open samples farther away are detected more often, nearer ones less often. The
    guide compares the curves with those of new samples: :ref:`trade_off`.

    At the offset o, the prediction is the closed-set prediction for a sample with a score of at least o, and open for
    any other. F1 is that of these predictions: ``open_set_f1_score``, ``known_f1_score`` and ``open_f1_score``. A known
    class without a sample has an F1 of 0 at every offset. The OSCR curve [1]_ ends at a false positive rate of 1 and
    the closed-set accuracy, not at (1, 1).

    References
    ----------
    .. [1] A. R. Dhamija, M. Günther, T. E. Boult, "Reducing Network Agnostophobia", NeurIPS 2018.

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
    (array([0.02]), array([1.]))
    >>> f"{display.oscr:.2f}"
    '1.00'
    >>> plt.close(display.figure_)
    """

    offsets: NDArray[np.float64]
    known_rejected: NDArray[np.float64]
    open_noticed: NDArray[np.float64]
    wrong_class: NDArray[np.float64]
    open_set_f1: NDArray[np.float64]
    known_f1: NDArray[np.float64]
    open_f1: NDArray[np.float64]
    offset: float | None = None
    name: str | None = None

    @property
    def oscr(self) -> float:
        """The area under the OSCR curve."""
        return float(auc(1 - self.open_noticed, self._ccr()))

    def _ccr(self) -> NDArray[np.float64]:
        """Proportion of known samples that are accepted and right."""
        return np.asarray(1 - self.known_rejected - self.wrong_class)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        kind: Kind = "trade_off",
        name: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curves of a fitted classifier, with its current offset marked.

        ``class_offsets_`` are subtracted from the scores, so that open is predicted exactly below the offset.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), or n_samples texts, default=None
            New samples: features, or texts for a text Pipeline. ``None``: the held-out training samples and held-out
            classes that the classifier keeps (``held_out_``).
        y : array-like of shape (n_samples,), default=None
            True labels of ``X``; those outside ``classes_`` are open.
        kind : {"trade_off", "f1", "oscr"}, default="trade_off"
            What to draw.
        name : str, default=None
            The model's name, for the legend of OSCR curves; ``None`` is the classifier's class.
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

        Warns
        -----
        UndefinedMetricWarning
            If F1 is drawn and a known class has no sample.
        """
        if (X is None) != (y is None):
            given, missing = ("X", "y") if y is None else ("y", "X")
            raise ValueError(
                f"{given} is given without {missing}: pass both, or neither to use the held-out training samples."
            )
        if X is None or y is None:
            require_matplotlib(f"{cls.__name__}.from_estimator")
            rows = held_out_rows(split_estimator(estimator)[1], f"{cls.__name__}.from_estimator")
        else:
            rows = {"y_true": y, **read_predictions(cls, estimator, X, "predict_known", "score_samples")}
        name = type(split_estimator(estimator)[1]).__name__ if name is None else name
        return cls.from_predictions(**rows, kind=kind, name=name, ax=ax, **plot_options)

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
        kind: Kind = "trade_off",
        name: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the curves of any model's predictions and scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, all numbers or all strings. A label outside ``labels`` is read as open.
        y_pred_known : array-like of shape (n_samples,)
            Closed-set predictions of the same kind, as of ``predict_known``: a known class for every sample, never
            open.
        score : array-like of shape (n_samples,)
            Knownness, in any units: higher is more known.
        offset : float, default=None
            The current threshold, to be marked. ``None`` marks none.
        open_label : int or str, default=-1
            The label for open, cast to the kind of the labels.
        labels : array-like of shape (n_classes,), default=None
            The known classes. None takes all that occur and are not the open label.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; ``None`` is 1 for all.
        kind : {"trade_off", "f1", "oscr"}, default="trade_off"
            What to draw.
        name : str, default=None
            The model's name, for the legend of OSCR curves.
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

        Warns
        -----
        UndefinedMetricWarning
            If F1 is drawn and a known class has no sample.
        """
        options = {"open_label": open_label, "labels": labels, "sample_weight": sample_weight}
        rows, offset = read_rows(cls, y_true, y_pred_known, score, offset, **options)
        if kind == "f1":
            warn_of_missing_classes(rows)
        offsets = np.unique([*rows.score, np.inf, *([] if offset is None else [offset])])
        curves = ("known_rejected", "open_noticed", "wrong_class", "open_set_f1", "known_f1", "open_f1")
        values = (*trade_off_at(rows, offsets), *f1_at(rows, offsets))
        display = cls(offsets=offsets, offset=offset, name=name, **dict(zip(curves, values, strict=True)))
        return display.plot(kind=kind, ax=ax, **plot_options)

    def plot(
        self,
        *,
        kind: Kind = "trade_off",
        x: Literal["known_rejected", "offset"] = "known_rejected",
        ax: Axes | None = None,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        kind : {"trade_off", "f1", "oscr"}, default="trade_off"
            What to draw.
        x : {"known_rejected", "offset"}, default="known_rejected"
            Quantity on the horizontal axis of the trade-off and of F1. With ``"offset"`` the known samples that are
            rejected are a third curve of the trade-off. OSCR curves have the proportion of open samples accepted there.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure. On the axes of another OSCR curve this one takes the next colour
            and line style.
        legend : bool, default=True
            Whether to draw the legend; it shows the rates at the current offset, or the area of an OSCR curve.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for all curves.

        Returns
        -------
        display : TradeOffDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``kind`` or ``x`` is none of these.
        """
        for argument, value, allowed in (("kind", kind, _KINDS), ("x", x, _ACROSS)):
            if value not in allowed:
                raise ValueError(f"{argument}={value!r} is not allowed: pass {' or '.join(map(repr, allowed))}.")
        is_new = ax is None
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(5.8, 5.4) if kind == "oscr" else None)
        self.lines_: list[Line2D] = []
        self.offset_line_: Line2D | None = None
        present = None if self.offset is None else int(np.flatnonzero(self.offsets == self.offset)[0])
        if kind == "oscr":
            self._draw_oscr(present, is_new, legend, line_kw)
            return self
        self._draw_curves(kind, x, present, line_kw)
        if legend:
            legend_above(self.ax_, ncols=2)
        return self

    def _draw_curves(self, kind: Kind, x: str, present: int | None, line_kw: dict[str, Any] | None) -> None:
        """Draw curves over all offsets, with the rates at the current offset in the legend, and mark that offset."""
        from matplotlib.lines import Line2D
        from matplotlib.ticker import PercentFormatter

        ax, across = self.ax_, self.known_rejected if x == "known_rejected" else self.offsets
        drawn, curves = np.isfinite(across), {curve: look for curve, look in _CURVES[kind].items() if curve != x}
        for curve, (label, colour, style) in curves.items():
            values = getattr(self, curve)
            at = "" if present is None else f": {values[present]:{_FORMS[kind]}}"
            looks = {"color": colour, "linestyle": style, "linewidth": 2.0, "label": f"{label}{at}"}
            self.lines_ += ax.plot(across[drawn], values[drawn], **styled(looks, line_kw, Line2D))
        if present is not None and drawn[present]:
            values = [getattr(self, curve)[present] for curve in curves]
            ax.plot([across[present]] * len(curves), values, linestyle="", marker="o", markersize=5, color=INK)
            label = f"offset {self.offset:.3g} (known rejected {self.known_rejected[present]:.1%})"
            self.offset_line_ = ax.axvline(across[present], color=INK, linestyle="--", linewidth=1.2, label=label)
        ylabel = "F1" if kind == "f1" else "proportion of the open, or of the known samples"
        ax.set(xlabel=_ACROSS[x], ylabel=ylabel, ylim=(-0.02, 1.02))
        if kind == "trade_off":
            ax.yaxis.set_major_formatter(PercentFormatter(1))
        if x == "known_rejected":
            ax.xaxis.set_major_formatter(PercentFormatter(1))

    def _draw_oscr(self, present: int | None, is_new: bool, legend: bool, line_kw: dict[str, Any] | None) -> None:
        """Draw the OSCR curve in the next colour, and mark the current offset."""
        from matplotlib.lines import Line2D

        ax, fpr, ccr = self.ax_, 1 - self.open_noticed, self._ccr()
        turn = sum(line.get_gid() == _GID for line in ax.lines)
        area, name = f"area {self.oscr:.3f}", legend_name(self.name or "", 40)
        looks = {
            "color": COLOURS[turn % len(COLOURS)],
            "linestyle": LINE_STYLES[turn % len(LINE_STYLES)],
            "linewidth": 2.0,
            "label": f"{name} ({area})" if name else area,
        }
        self.lines_ = ax.plot(fpr, ccr, gid=_GID, **styled(looks, line_kw, Line2D))
        if present is not None:
            colour, place = self.lines_[0].get_color(), slice(present, present + 1)
            ax.plot(fpr[place], ccr[place], "o", markersize=8, markeredgecolor="white", color=colour, zorder=4)
        ax.set(
            xlabel="false positive rate: open samples accepted",
            ylabel="correct classification rate:\nknown samples accepted and right",
        )
        if is_new:
            # A little beyond the unit square, so that lines on its sides are visible.
            ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        if legend:
            ax.legend(loc="lower right")
