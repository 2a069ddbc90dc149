"""Histograms of knownness (score_samples) of known and open samples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics._reading import check_offset, read_scored_rows
from ._canvas import INK, KNOWN_COLOUR, OPEN_COLOUR, legend_above, make_axes, styled
from ._inputs import read_predictions
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ScoreHistogramDisplay:
    """Histograms of knownness of known and of open samples, with the threshold between accepted and rejected.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one.

    Parameters
    ----------
    known_score : ndarray of shape (n_known,)
        Knownness of the known samples: higher is more known.
    open_score : ndarray of shape (n_open,)
        Knownness of the open samples.
    offset : float, default=0.0
        Samples whose score is below it are rejected.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the histograms.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bin_edges_ : ndarray of shape (n_bins + 1,)
        Edges of the bins, the same for both kinds.
    known_heights_ : ndarray of shape (n_bins,)
        Proportion (or number) of the known samples in each bin; zeros without known samples.
    open_heights_ : ndarray of shape (n_bins,)
        Proportion (or number) of the open samples in each bin; zeros without open samples.
    known_bars_ : matplotlib StepPatch
        The known samples.
    open_bars_ : matplotlib StepPatch
        The open samples.
    line_ : matplotlib Line2D or None
        The offset; ``None`` if it is infinite.

    See Also
    --------
    skellipsoid.metrics.trade_off_curve : The two rates at every threshold.
    TradeOffDisplay : Rejected known and open samples at every threshold.

    Notes
    -----
    The proportion of accepted known samples is #{known: s ≥ offset} / #{known}, that of rejected open samples
    #{open: s < offset} / #{open}. Each bin contains its lower edge. If the offset lies among the scores, it is an edge
    of two bins, so that each bar lies on one side of it.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid.plotting import ScoreHistogramDisplay
    >>> y_true, score = [0, 0, 1, 1, -1, -1], [0.9, 0.4, 0.7, -0.1, 0.2, -0.5]
    >>> display = ScoreHistogramDisplay.from_predictions(y_true, score, bins=4)
    >>> display.bin_edges_.round(2)
    array([-0.7 , -0.35,  0.  ,  0.35,  0.7 ,  1.05])
    >>> display.known_heights_
    array([0.  , 0.25, 0.  , 0.25, 0.5 ])
    >>> plt.close(display.figure_)
    """

    known_score: NDArray[np.float64]
    open_score: NDArray[np.float64]
    _: KW_ONLY
    offset: float = 0.0

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Axes | None = None, **plot_options: Any
    ) -> Self:
        """Draw the histograms of a fitted classifier's ``score_samples``, minus its ``class_offsets_``.

        Parameters
        ----------
        estimator : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), or n_samples texts
            Features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            True labels; those outside ``classes_`` are open.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : ScoreHistogramDisplay

        Raises
        ------
        ValueError
            If a score is not finite, labels mix numbers and strings, or lengths differ.
        TypeError
            If the estimator does not end in an open-set classifier.
        ImportError
            If matplotlib is not installed.
        """
        return cls.from_predictions(y, **read_predictions(cls, estimator, X, "score_samples"), ax=ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        score: ArrayLike,
        *,
        offset: float = 0.0,
        open_label: Any = -1,
        labels: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the histograms of any model's scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, all numbers or all strings. A label outside ``labels`` is read as open.
        score : array-like of shape (n_samples,)
            Knownness, finite, in any units: higher is more known.
        offset : float, default=0.0
            Samples whose score is below it are rejected.
        open_label : int or str, default=-1
            The label for open, cast to the kind of the labels.
        labels : array-like of shape (n_classes,), default=None
            The known classes. None takes every label but the open one.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : ScoreHistogramDisplay

        Raises
        ------
        ValueError
            If a score is not finite, ``offset`` is NaN, labels mix numbers and strings, or lengths differ.
        ImportError
            If matplotlib is not installed.
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        is_known, scores, _ = read_scored_rows(y_true, score, open_label=open_label, labels=labels)
        infinite = scores[np.isinf(scores)]
        if len(infinite):
            raise ValueError(
                f"score holds {infinite[0]} in {len(infinite)} of {len(scores)} rows, but a histogram needs finite "
                "scores: leave those rows out."
            )
        display = cls(scores[is_known], scores[~is_known], offset=check_offset(offset))
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        bins: int = 40,
        share: bool = True,
        legend: bool = True,
        known_kw: dict[str, Any] | None = None,
        open_kw: dict[str, Any] | None = None,
        line_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the histograms.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        bins : int, default=40
            The range of all scores is this many bins long; there is one more because the offset is an edge.
        share : bool, default=True
            Whether heights are proportions of the samples of each kind, so that a few open samples are visible beside
            many known ones. ``False``: numbers of samples.
        legend : bool, default=True
            Whether to draw the legend, above the axes.
        known_kw, open_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.stairs` for each kind.
        line_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.axvline` for the offset.

        Returns
        -------
        display : ScoreHistogramDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``bins`` is less than 1.
        """
        self.bin_edges_ = _edges(np.concatenate([self.known_score, self.open_score]), self.offset, bins)
        self.known_heights_ = self._heights(self.known_score, share)
        self.open_heights_ = self._heights(self.open_score, share)
        self.ax_, self.figure_ = make_axes(self, ax)
        from matplotlib.lines import Line2D
        from matplotlib.patches import StepPatch

        def stairs(
            heights: NDArray[np.float64], colour: str, opacity: float, chosen: dict[str, Any] | None, **more: Any
        ) -> StepPatch:
            looks = {"facecolor": (colour, opacity), "edgecolor": colour, **more}
            return self.ax_.stairs(heights, self.bin_edges_, fill=True, **styled(looks, chosen, StepPatch))

        accepted = _proportion(self.known_score >= self.offset)
        label = f"known samples (n = {len(self.known_score)}): {accepted} accepted"
        self.known_bars_ = stairs(self.known_heights_, KNOWN_COLOUR, 0.55, known_kw, label=label)
        rejected = _proportion(self.open_score < self.offset)
        label = f"open samples (n = {len(self.open_score)}): {rejected} rejected"
        # Hatched, so that both kinds differ without colour.
        self.open_bars_ = stairs(self.open_heights_, OPEN_COLOUR, 0.25, open_kw, label=label, hatch="////")
        self.line_ = None
        if np.isfinite(self.offset):
            looks = {"color": INK, "linestyle": "--", "linewidth": 1.6, "label": f"offset {self.offset:.3g}"}
            self.line_ = self.ax_.axvline(self.offset, **styled(looks, line_kw, Line2D))
        self.ax_.set(xlabel="knownness (score_samples)", ylabel="proportion of samples" if share else "samples")
        if legend:
            legend_above(self.ax_)
        return self

    def _heights(self, score: NDArray[np.float64], share: bool) -> NDArray[np.float64]:
        counts = np.histogram(score, self.bin_edges_)[0].astype(np.float64)
        return counts / max(len(score), 1) if share else counts


def _proportion(rows: NDArray[np.bool_]) -> str:
    return f"{rows.mean():.1%}" if len(rows) else "none"


def _edges(scores: NDArray[np.float64], offset: float, bins: int) -> NDArray[np.float64]:
    """Edges of equal bins that hold all scores, the offset among them where it can be."""
    if bins < 1:
        raise ValueError(
            f"bins={bins!r} is not allowed: pass how many bins the range of the scores is long, at least 1."
        )
    low, high = float(scores.min()), float(scores.max())
    step = (high - low) / bins or 1.0
    # An offset far from all scores is not an edge of a bin with scores, and adding it would lose digits.
    start = offset if low <= offset <= high else low
    # The last bin holds its upper edge too, so that the greatest score must lie below.
    first, last = np.floor((low - start) / step), np.floor((high - start) / step) + 1
    return np.asarray(start + step * np.arange(first, last + 1))
