"""Bars of the predictions that change from one model to the next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._canvas import COLOURS, KNOWN_COLOUR, OPEN_COLOUR, legend_above, make_axes, name_bars, shorten, styled
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._traffic.compare import Comparison

#: Height of the line of one pair, and of all that is not a line, in inches.
_LINE, _MARGIN = 0.3, 1.6
#: Kinds of changes, and their colours.
_KINDS = {"no longer answered": OPEN_COLOUR, "answered now": KNOWN_COLOUR, "another class": COLOURS[2]}


class ComparisonDisplay:
    """Which predictions changed: one bar for each pair of a prediction before and after.

    Use :meth:`from_estimators` or :meth:`from_result` to make one.

    Parameters
    ----------
    result : Comparison
        Result of :func:`skellipsoid.compare`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : matplotlib BarContainer
        One bar for each pair: its number of samples.
    texts_ : list of matplotlib Text
        This number, beside each bar.

    See Also
    --------
    skellipsoid.compare : Compares the models.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.plotting import ComparisonDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> old = EllipsoidOpenSetClassifier(random_state=0).fit(X[:200], y[:200])
    >>> new = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> display = ComparisonDisplay.from_estimators(old, new, X)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'open → c'
    >>> plt.close(display.figure_)
    """

    def __init__(self, result: Comparison) -> None:
        self.result = result

    @classmethod
    def from_estimators(cls, before: Any, after: Any, X: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Compare two models and draw what changes.

        Parameters
        ----------
        before, after : open-set classifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), or n_samples texts
            Features, or texts for text Pipelines.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **options : dict
            Further options of :func:`skellipsoid.compare`.

        Returns
        -------
        display : ComparisonDisplay

        Raises
        ------
        TypeError, ValueError
            As by :func:`skellipsoid.compare`.
        ImportError
            If matplotlib is not installed.
        """
        from .._traffic.compare import compare

        require_matplotlib(f"{cls.__name__}.from_estimators")
        return cls(compare(before, after, X, **options)).plot(ax=ax)

    @classmethod
    def from_result(cls, result: Comparison, *, ax: Axes | None = None, **plot_options: Any) -> Self:
        """Draw the result of a comparison.

        Parameters
        ----------
        result : Comparison
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : ComparisonDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        require_matplotlib(f"{cls.__name__}.from_result")
        return cls(result).plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        n_pairs: int = 15,
        legend: bool = True,
        bar_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one bar for each pair of predictions, the most frequent one at the top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        n_pairs : int, default=15
            Number of pairs at most, the most frequent ones.
        legend : bool, default=True
            Whether to draw the legend, above the axes: the kinds of changes, with all samples of each.
        bar_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.barh`.
        text_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.text`.

        Returns
        -------
        display : ComparisonDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``n_pairs`` is less than 1.
        """
        if n_pairs < 1:
            raise ValueError(f"n_pairs={n_pairs!r} is not allowed: pass the number of pairs to draw, at least 1.")
        pairs = list(zip(*self.result.pairs.values(), strict=True))
        shown, places = pairs[:n_pairs], np.arange(min(n_pairs, len(pairs)))
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(8.5, _MARGIN + _LINE * max(2, len(shown))))
        from matplotlib.patches import Rectangle

        counts = np.array([count for *_, count in shown], dtype=np.int64)
        colours = [_KINDS[self._kind(before, after)] for before, after, _ in shown]
        looks: dict[str, Any] = {"height": 0.7, "color": colours}
        self.bars_ = self.ax_.barh(places, counts, **styled(looks, bar_kw, Rectangle))
        names = [f"{self._name(before)} → {self._name(after)}" for before, after, _ in shown]
        remarks = [f"{count:,}" for count in counts.tolist()]
        self.texts_ = name_bars(self.ax_, counts, names, remarks, room=1.12, without="no change", text_kw=text_kw)
        self.ax_.set_xlabel(self._below(pairs[n_pairs:]))
        self.ax_.locator_params(axis="x", integer=True)
        if legend and shown:
            self._draw_legend(pairs)
        return self

    def _kind(self, before: Any, after: Any) -> str:
        """Name the kind of a change."""
        gone, there = (label == self.result.open_label for label in (after, before))
        return "no longer answered" if gone else "answered now" if there else "another class"

    def _name(self, label: Any) -> str:
        return "open" if label == self.result.open_label else shorten(label, 34)

    def _below(self, left: list[Any]) -> str:
        """Text below the axes: how much changed, how much another seed changes, and how much is not drawn."""
        result = self.result
        lines = [f"samples ({result.n_changed:,} of {result.n_samples:,} predictions changed)"]
        if result.repeat_shares:
            counts = sorted({round(share * result.n_samples) for share in result.repeat_shares})
            between = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
            lines.append(f"training again with another seed changes {between}")
        if left:
            lines.append(f"{len(left):,} other pairs, {sum(count for *_, count in left):,} samples, are not shown")
        return "\n".join(lines)

    def _draw_legend(self, pairs: list[Any]) -> None:
        from matplotlib.patches import Patch

        totals: Counter[str] = Counter()
        for before, after, count in pairs:
            totals[self._kind(before, after)] += count
        handles = [
            Patch(color=colour, label=f"{kind} ({totals[kind]:,})") for kind, colour in _KINDS.items() if totals[kind]
        ]
        legend_above(self.ax_, ncols=3, handles=handles)
