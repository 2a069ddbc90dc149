"""Critical-difference diagram: mean ranks of models over cases, Friedman and Nemenyi tests."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ._drawing import FAINT, INK, make_axes, require_matplotlib, shorten, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Places in the picture, in units of a line of text: the axis, the first name below it, a bar below the other.
_FIRST_NAME, _BAR = 1.6, 0.35
#: With more ranks on the axis, every other one has its number.
_MOST_NUMBERS = 12


@dataclass(eq=False, repr=False)
class CriticalDifferenceDisplay:
    r"""Critical-difference diagram: mean ranks of models, and bars over models without a significant difference.

    Use :meth:`from_scores` to make one.

    Parameters
    ----------
    mean_ranks : ndarray of shape (n_models,)
        1 is the best model of every case.
    names : sequence of str of length n_models
    critical_difference : float
        Models whose mean ranks differ by less are not significantly different (Nemenyi test).
    n_cases : int, default=None
        How many cases were ranked, for the title.
    unit : str, default="cases"
        What was ranked, for the title.
    statistic, pvalue : float, default=None
        Of the Friedman test, for the title.

    Attributes
    ----------
    groups_ : list of tuple of int
        Largest sets of models without a significant difference, the best first; sets of one model are left out.
    ax_ : matplotlib Axes
        Axes with the diagram.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    text_ : list of matplotlib Text
        The names with their mean ranks, in the order of ``names``.
    bars_ : list of matplotlib Line2D
        One for each of ``groups_``.

    See Also
    --------
    paired_test : Two models.

    Notes
    -----
    The k models are ranked in each of N cases; tied models get their mean rank. The Friedman test tests whether the
    mean ranks differ at all. The Nemenyi test calls two mean ranks different if they are at least

    .. math:: \mathrm{CD} = q_\alpha \sqrt{\frac{k (k + 1)}{6 N}}

    apart, with q_α the quantile of the Studentized range for infinitely many degrees of freedom, divided by √2 [1]_.
    Both tests assume independent cases. Seeds of one data set share test samples: rank their means
    (:func:`plot_ranks` does), or differences look more significant than they are.

    References
    ----------
    .. [1] J. Demšar, "Statistical Comparisons of Classifiers over Multiple Data Sets", JMLR 7, 2006.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid_bench import CriticalDifferenceDisplay
    >>> scores = [[0.80, 0.70, 0.60], [0.90, 0.80, 0.70], [0.70, 0.75, 0.60], [0.85, 0.80, 0.65]]
    >>> display = CriticalDifferenceDisplay.from_scores(scores, ["ellipsoid", "ball", "softmax"])
    >>> display.mean_ranks.tolist()
    [1.25, 1.75, 3.0]
    >>> round(display.critical_difference, 3)
    1.657
    >>> display.groups_
    [(0, 1), (1, 2)]
    >>> plt.close(display.figure_)
    """

    mean_ranks: NDArray[np.float64]
    names: Any
    critical_difference: float
    _: KW_ONLY
    n_cases: int | None = None
    unit: str = "cases"
    statistic: float | None = None
    pvalue: float | None = None

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        names: Any,
        *,
        alpha: float = 0.05,
        greater_is_better: bool = True,
        unit: str = "cases",
        ax: "Axes | None" = None,
        **plot_options: Any,
    ) -> Self:
        """Rank models by their scores in each case, and draw the diagram.

        Parameters
        ----------
        scores : array-like of shape (n_cases, n_models)
            One score of each model for each case; at least two cases and three models.
        names : sequence of str of length n_models
        alpha : float, default=0.05
            Level of the Nemenyi test, in (0, 1).
        greater_is_better : bool, default=True
        unit : str, default="cases"
            What was ranked, for the title.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : CriticalDifferenceDisplay

        Raises
        ------
        ValueError
            If there are fewer than two cases or three models, a score is not finite, names are missing, or ``alpha`` is
            not in (0, 1).
        ImportError
            If matplotlib is not installed.
        """
        require_matplotlib(f"{cls.__name__}.from_scores")
        table = _check_scores(scores, names, alpha)
        ranked = _rank(table if greater_is_better else -table, alpha)
        return cls(names=list(names), n_cases=len(table), unit=unit, **ranked).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        line_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        line_kw : dict, default=None
            Keywords of :class:`matplotlib.lines.Line2D` for the bars.
        text_kw : dict, default=None
            Keywords of :class:`matplotlib.text.Text` for the names.

        Returns
        -------
        display : CriticalDifferenceDisplay
            This display, with what was drawn.
        """
        order = np.argsort(self.mean_ranks, kind="stable")
        self.groups_ = _groups(self.mean_ranks, order, self.critical_difference)
        n_models = len(order)
        n_left = (n_models + 1) // 2
        top = _FIRST_NAME + _BAR * len(self.groups_)
        depth = top + n_left
        self.ax_, self.figure_ = make_axes(ax, figsize=(8.0, 0.9 + 0.28 * (depth + 1)))
        low, high = 1, max(n_models, 2)
        span = high - low
        self.ax_.set(xlim=(low - 0.45 * span, high + 0.45 * span), ylim=(depth, -2.4))
        self.ax_.axis("off")
        self._draw_axis(low, high)
        self._draw_names(order, top, low - 0.04 * span, high + 0.04 * span, text_kw)
        self._draw_bars(line_kw)
        self.ax_.set_title(self._title(), fontsize=9, color=FAINT)
        return self

    def _title(self) -> str:
        parts = ["mean rank (1 is best)"]
        if self.n_cases is not None:
            parts.append(f"{self.n_cases} {self.unit}")
        if self.statistic is not None and self.pvalue is not None:
            parts.append(f"Friedman test: {self.statistic:.1f}, p = {self.pvalue:.1g}")
        return "; ".join(parts)

    def _draw_axis(self, low: int, high: int) -> None:
        self.ax_.plot([low, high], [0, 0], color=INK, linewidth=1)
        for rank in range(low, high + 1):
            self.ax_.plot([rank, rank], [-0.2, 0], color=INK, linewidth=1)
            if high <= _MOST_NUMBERS or rank % 2:
                self.ax_.text(rank, -0.4, str(rank), ha="center", va="bottom", fontsize=9)
        end = min(low + self.critical_difference, high + 0.4 * (high - low))
        self.ax_.plot([low, end], [-1.5, -1.5], color=INK, linewidth=1, marker="|")
        text = f"critical difference {self.critical_difference:.2f}"
        self.ax_.text((low + end) / 2, -1.6, text, ha="center", va="bottom", fontsize=9)

    def _draw_names(
        self, order: NDArray[np.intp], top: float, left: float, right: float, text_kw: dict[str, Any] | None
    ) -> None:
        """Write the better half on the left, from above, the other half on the right, from below."""
        from matplotlib.text import Text

        n_left = (len(order) + 1) // 2
        written: dict[int, Any] = {}
        for place, model in enumerate(order.tolist()):
            is_left = place < n_left
            y = top + (place if is_left else len(order) - 1 - place)
            rank, edge = float(self.mean_ranks[model]), left if is_left else right
            self.ax_.plot([rank, rank, edge], [0, y, y], color=FAINT, linewidth=0.8)
            name = shorten(self.names[model])
            side = "right" if is_left else "left"
            looks = {"horizontalalignment": side, "verticalalignment": "center", "fontsize": 9}
            text = f"{name}  {rank:.2f} " if is_left else f" {rank:.2f}  {name}"
            written[model] = self.ax_.text(edge, y, text, **styled(looks, text_kw, Text))
        self.text_ = [written[model] for model in range(len(order))]

    def _draw_bars(self, line_kw: dict[str, Any] | None) -> None:
        from matplotlib.lines import Line2D

        looks = styled({"color": INK, "linewidth": 3.5, "solid_capstyle": "round"}, line_kw, Line2D)
        self.bars_ = []
        for place, group in enumerate(self.groups_):
            ranks = self.mean_ranks[list(group)]
            y = 0.6 + _BAR * place
            self.bars_ += self.ax_.plot([ranks.min(), ranks.max()], [y, y], **looks)


def _check_scores(scores: ArrayLike, names: Any, alpha: float) -> NDArray[np.float64]:
    table = np.ma.filled(np.ma.asarray(scores, dtype=np.float64), np.nan)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3:
        raise ValueError(
            f"scores has the shape {table.shape}, but must be (n_cases, n_models) with at least two cases and three "
            "models; compare two models with paired_test."
        )
    if not np.isfinite(table).all():
        raise ValueError(
            f"scores holds {table[~np.isfinite(table)][0].item()!r}; pass the cases that every model has a score for."
        )
    if len(names) != table.shape[1]:
        raise ValueError(f"names has {len(names)} names for {table.shape[1]} models; pass one for each.")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} is not in (0, 1); pass a level such as 0.05.")
    return table


def _rank(table: NDArray[np.float64], alpha: float) -> dict[str, Any]:
    """Mean ranks, critical difference and Friedman test, by the names of the display's parameters."""
    n_cases, n_models = table.shape
    quantile = stats.studentized_range.isf(alpha, n_models, np.inf) / np.sqrt(2)
    statistic, pvalue = 0.0, 1.0  # if all ranks are tied, of which the test makes 0 / 0
    if (table != table[:, :1]).any():
        statistic, pvalue = stats.friedmanchisquare(*table.T)
    return {
        "mean_ranks": stats.rankdata(-table, axis=1).mean(axis=0),
        "critical_difference": float(quantile * np.sqrt(n_models * (n_models + 1) / (6 * n_cases))),
        "statistic": float(statistic),
        "pvalue": float(pvalue),
    }


def _groups(ranks: NDArray[np.float64], order: NDArray[np.intp], critical_difference: float) -> list[tuple[int, ...]]:
    """Largest runs of neighbouring ranks that lie within the critical difference."""
    groups: list[tuple[int, ...]] = []
    last = -1
    for start in range(len(order)):
        within = ranks[order] < ranks[order[start]] + critical_difference
        stop = int(np.flatnonzero(within)[-1])
        if stop > max(start, last):
            groups.append(tuple(order[start : stop + 1].tolist()))
        last = max(last, stop)
    return groups
