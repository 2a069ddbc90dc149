"""Bars of the groups of open samples that were discovered."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ._canvas import FAINT, KNOWN_COLOUR, OPEN_COLOUR, legend_above, make_axes, name_bars, shorten, styled
from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._traffic.discovery import DiscoveredClasses

#: Height of the line of one group, and of all that is not a line, in inches.
_LINE, _MARGIN = 0.3, 1.5


class DiscoveryDisplay:
    """Groups of open samples: how many samples each has, how alike they are, and what they are about.

    Use :meth:`from_estimator` or :meth:`from_result` to make one.

    Parameters
    ----------
    result : DiscoveredClasses
        Result of :func:`skellipsoid.discover_classes`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : matplotlib BarContainer
        One bar for each group: its number of samples, repeated ones included.
    distinct_bars_ : matplotlib BarContainer
        Its number of different samples.
    texts_ : list of matplotlib Text
        Frequent words (or the nearest class) and coherence of each group, beside its bar.

    See Also
    --------
    skellipsoid.discover_classes : Finds the groups.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.plotting import DiscoveryDisplay
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(0, 10, size=(12, 4))
    >>> X, y = rng.normal(size=(600, 4)) + np.repeat(centres, 50, axis=0), np.repeat(np.arange(12), 50)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 9], y[y < 9])
    >>> display = DiscoveryDisplay.from_estimator(clf, X)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['group 1', 'group 2', 'group 3']
    >>> plt.close(display.figure_)
    """

    def __init__(self, result: "DiscoveredClasses") -> None:
        self.result = result

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, texts: Any = None, ax: "Axes | None" = None, **options: Any
    ) -> Self:
        """Discover the groups and draw them.

        Parameters
        ----------
        estimator : EllipsoidOpenSetClassifier, or Pipeline or search that ends in one
            Fitted.
        X : array-like of shape (n_samples, n_features), or n_samples texts
            Features, or texts for a text Pipeline.
        texts : array-like of shape (n_samples,), of strings, default=None
            Texts of the samples. ``None``: X itself, if it holds texts.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **options : dict
            Further options of :func:`skellipsoid.discover_classes`.

        Returns
        -------
        display : DiscoveryDisplay

        Raises
        ------
        ValueError
            As by :func:`skellipsoid.discover_classes`.
        TypeError
            If the estimator does not end in an EllipsoidOpenSetClassifier.
        ImportError
            If matplotlib is not installed.
        """
        from .._traffic.discovery import discover_classes

        require_matplotlib(f"{cls.__name__}.from_estimator")
        return cls(discover_classes(estimator, X, texts=texts, **options)).plot(ax=ax)

    @classmethod
    def from_result(cls, result: "DiscoveredClasses", *, ax: "Axes | None" = None, **plot_options: Any) -> Self:
        """Draw groups that were discovered.

        Parameters
        ----------
        result : DiscoveredClasses
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : DiscoveryDisplay

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
        ax: "Axes | None" = None,
        n_groups: int = 20,
        legend: bool = True,
        bar_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one bar for each group, the largest group at the top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        n_groups : int, default=20
            Number of groups at most, the largest ones.
        legend : bool, default=True
            Whether to draw the legend, above the axes.
        bar_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.barh`, for both kinds of bars.
        text_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.text`.

        Returns
        -------
        display : DiscoveryDisplay
            This display, with the drawn artists.

        Raises
        ------
        ValueError
            If ``n_groups`` is less than 1.
        """
        if n_groups < 1:
            raise ValueError(f"n_groups={n_groups!r} is not allowed: pass the number of groups to draw, at least 1.")
        result = self.result
        shown = np.arange(min(n_groups, result.n_groups))
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(8.5, _MARGIN + _LINE * max(2, len(shown))))
        from matplotlib.patches import Rectangle

        colours = np.where(result.is_part[shown], KNOWN_COLOUR, OPEN_COLOUR).tolist()
        looks: dict[str, Any] = {"height": 0.7, "color": colours, "alpha": 0.35}
        self.bars_ = self.ax_.barh(shown, result.sizes[shown], **styled(looks, bar_kw, Rectangle))
        looks["alpha"] = 0.9
        self.distinct_bars_ = self.ax_.barh(shown, result.distinct_sizes[shown], **styled(looks, bar_kw, Rectangle))
        names = [shorten(result.names[group], 34) for group in shown.tolist()]
        remarks = [self._remark(group) for group in shown.tolist()]
        sizes = result.sizes[shown]
        self.texts_ = name_bars(self.ax_, sizes, names, remarks, room=1.7, without="no group", text_kw=text_kw)
        self.ax_.set_xlabel(self._below(len(shown)))
        if legend and len(shown):
            self._draw_legend(result.is_part[shown])
        return self

    def _remark(self, group: int) -> str:
        """Describe one group beside its bar."""
        result = self.result
        about = f"part of {result.nearest_class[group]}?" if result.is_part[group] else "new"
        if not result.is_part[group] and len(result.words[group]) > 3:
            about = ", ".join(result.words[group][3:6])
        return f"{result.coherence[group]:.2f}  {shorten(about, 40)}"

    def _below(self, n_shown: int) -> str:
        result = self.result
        more = f"; {result.n_groups - n_shown} smaller groups are not shown" if n_shown < result.n_groups else ""
        return f"samples (beside the bar: coherence)\n{int(result.is_noise.sum())} open samples are in no group{more}"

    def _draw_legend(self, is_part: Any) -> None:
        from matplotlib.patches import Patch

        kinds = [(OPEN_COLOUR, "new", ~is_part), (KNOWN_COLOUR, "probably part of a known class", is_part)]
        handles = [Patch(color=colour, alpha=0.9, label=name) for colour, name, there in kinds if there.any()]
        result = self.result
        if (result.sizes > result.distinct_sizes).any():
            handles.append(Patch(color=FAINT, alpha=0.35, label="repeated"))
        legend_above(self.ax_, ncols=3, handles=handles)
