"""Ellipsoids, samples and open space on a plane through feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..metrics._reading import read_label_problem
from ._canvas import ACCEPTED, COLOURS, FAINT, INK, MARKERS, legend_name, make_axes, styled
from ._inputs import read_classifier
from ._names import write_names
from ._plane import choose_plane, cut_ellipsoids, frame_around, n_beyond, open_region, to_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEMBERS = ("predict", "predict_known", "ellipsoid_axes", "offset_", "class_offsets_")
#: Groups of samples, and their marks in the legend.
_GROUPS: dict[str, dict[str, Any]] = {
    "known accepted": {"marker": "o", "color": INK},
    "known rejected": {"marker": "o", "markerfacecolor": "none", "color": INK},
    "open accepted": {"marker": "X", "color": INK},
    "open rejected": {"marker": "x", "color": FAINT},
}
_MOST_IN_LEGEND = len(COLOURS)
#: Pictures more than this many times as long as wide are stretched.
_NARROW = 4
_CENTROID: dict[str, Any] = {"linestyle": "none", "marker": "+", "markersize": 9, "markeredgewidth": 1.6, "color": INK}
#: Colour of the other classes on the plane of one.
_OTHERS = COLOURS[4]
#: From this many classes on in one plane a new figure is larger.
_MANY = 12


@dataclass(eq=False, repr=False, kw_only=True)
class EllipsoidDisplay:
    r"""Ellipsoids, samples and open space on a plane.

    With two features the plane is the feature space. With more features it goes through a typical accepted sample of
    one class, along two axes. The ellipses are the sections of the ellipsoids with this plane, and the open space is
    the section of the region where ``predict`` returns open (see Notes). The samples are projected onto the plane.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        The samples on the plane.
    y_true : ndarray of shape (n_samples,)
        A class of ``classes``, or the open label.
    y_pred : ndarray of shape (n_samples,)
        Predictions of ``predict``.
    classes : ndarray of shape (n_classes,)
        The known classes.
    outlines : ndarray of shape (n_classes, n_points, 2)
        Closed outline of each class's ellipse; NaN for a class that the plane misses.
    centroids : ndarray of shape (n_classes, 2)
        The centroids, projected like the samples.
    limits : ndarray of shape (2, 2)
        Lower left and upper right corner of the picture.
    is_open : ndarray of shape (n_up, n_across)
        Whether the prediction is open, on a grid of cells that fills ``limits``, from below.
    open_label : int or str
        The open label.
    label : int or str, default=None
        The class whose axes span the plane; ``None`` for a plane of two features.
    axis_names : tuple of str, default=("feature 0", "feature 1")
        Labels of the two axes.
    origin : ndarray of shape (n_features,), default=None
        The plane is the points ``origin + p @ directions``; ``None`` is (0, 0).
    directions : ndarray of shape (2, n_features), default=None
        ``None`` is the unit matrix.
    coordinates : ndarray of shape (2, n_features), default=None
        A sample x is drawn at ``(x - origin) @ coordinates.T``; ``None`` is ``directions``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    outlines_ : list of matplotlib Line2D
        The ellipses drawn, for the classes that the plane meets.
    centroid_marks_ : matplotlib Line2D
        The centroids that are drawn: those of all classes in the legend.
    rows_ : dict of str to list of matplotlib PathCollection
        The samples that are drawn, under the keys "known accepted", "known rejected", "open accepted" and
        "open rejected".
    names_ : list of matplotlib Text
        The names written at the ellipses.
    accepted_ : matplotlib AxesImage
        The shaded space that is accepted; open space stays white.

    See Also
    --------
    ScoreHistogramDisplay : How far inside or outside all samples lie, without a projection.
    skellipsoid.EllipsoidOpenSetClassifier.ellipsoid_axes : The axes.

    Notes
    -----
    The plane is the points :math:`o + V^\top p`. It is parallel to two axes of the named class's ellipsoid. In the
    other directions it has the distance from the centre that accepted samples of the class have in the median, and
    :math:`o` is the point in the middle of the section. (Through the centre itself, the section would be as large as if
    samples had no distance in these directions. With many features it would be far larger than the cloud.) A
    class :math:`k` with matrix :math:`A_k`, centre :math:`m_k` and radius :math:`\Delta_k` is accepted where the norm
    is at most :math:`(1 - t) \Delta_k`, :math:`t` being the classifier's offset plus that of the class (0 unless they
    were moved). On the plane that is the ellipse

    .. math::

        \lVert F_k (o - m_k) + G_k \, p \rVert_2 \le 1 - t,
        \qquad F_k = A_k / \Delta_k, \quad G_k = F_k V^\top,

    with its centre at :math:`p_k = -G_k^+ F_k (o - m_k)`, and empty when the norm is larger even there. Every point
    of an outline, put back into feature space, has the margin :math:`t` for its class.

    A sample x is drawn at its coordinates :math:`P (x - o)`. For axes of the class's own ellipsoid :math:`P = V` is
    orthonormal. Shared axes are not perpendicular in feature space: there :math:`P` holds two rows of ``shared_axes``,
    and :math:`V = (P \Sigma P^\top)^{-1} P \Sigma` with :math:`\Sigma = (A_k^\top A_k)^{-1}`, the points that lie
    deepest inside the ellipsoid among all with the same coordinates. The section shows what is accepted of samples
    whose other coordinates are typical. A sample that is drawn inside may be rejected, and one that is drawn outside
    accepted, because its other coordinates count too. So accepted samples are filled, and rejected ones are not. For
    the other classes, the section says nothing about samples that are not on the plane.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.datasets import make_open_blobs
    >>> from skellipsoid.plotting import EllipsoidDisplay
    >>> X, y = make_open_blobs(random_state=0)
    >>> clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[y != -1], y[y != -1])
    >>> display = EllipsoidDisplay.from_estimator(clf, X, y)
    >>> display.outlines.shape
    (3, 201, 2)
    >>> plt.close(display.figure_)
    """

    points: NDArray[np.float64]
    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    classes: NDArray[Any]
    outlines: NDArray[np.float64]
    centroids: NDArray[np.float64]
    limits: NDArray[np.float64]
    is_open: NDArray[np.bool_]
    open_label: Any
    label: Any = None
    axis_names: tuple[str, str] = ("feature 0", "feature 1")
    origin: Any = None
    directions: Any = None
    coordinates: Any = None

    def __post_init__(self) -> None:
        self.origin = np.zeros(2) if self.origin is None else self.origin
        self.directions = np.eye(2) if self.directions is None else self.directions
        self.coordinates = self.directions if self.coordinates is None else self.coordinates

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        label: Any = None,
        axes: Literal["shared", "contributing", "longest"] | tuple[int, int] = "shared",
        grid_resolution: int = 300,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the ellipsoids of a fitted classifier and its predictions for samples.

        Parameters
        ----------
        estimator : EllipsoidOpenSetClassifier, or Pipeline or search that ends in one
            Fitted. The picture is of the features that the classifier itself sees.
        X : array-like of shape (n_samples, n_features), or n_samples texts
            Features, or texts for a text Pipeline.
        y : array-like of shape (n_samples,)
            True labels; those outside ``classes_`` are open.
        label : int or str, default=None
            The class whose axes span the plane. ``None`` draws the features themselves, if there are two.
        axes : {"shared", "contributing", "longest"} or pair of int, default="shared"
            Which two axes span the plane. ``"shared"``: the two ``shared_axes`` along which the samples of the
            class lie farthest out. Each is named by its two poles. The
            other values are axes of the class's own ellipsoid. ``"contributing"``: the two that contribute most to the
            distance of these samples. ``"longest"``: the two longest. A pair of int: positions as in
            ``ellipsoid_axes``, where 0 is the longest and -1 the shortest. If classes share fewer than two axes,
            ``"shared"`` is ``"contributing"``. Without ``label`` it has no effect.
        grid_resolution : int, default=300
            Points along each side of the grid on which open space is found.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        **plot_options : dict
            Further options of :meth:`plot`.

        Returns
        -------
        display : EllipsoidDisplay

        Raises
        ------
        ValueError
            If there are more than two features and no ``label``, if ``label`` is not a known class, if ``axes`` does
            not name two axes, if ``X`` has a single feature or holds NaN, or if the lengths differ.
        TypeError
            If the estimator does not end in a classifier with ellipsoids.
        ImportError
            If matplotlib is not installed.
        """
        classifier, features = read_classifier(cls, estimator, X, *_MEMBERS)
        problem = read_label_problem(
            y,
            classifier.predict(features),  # which also checks the features
            open_label=classifier.open_label_,
            labels=classifier.classes_,
            pred_name="X",
        )
        plane, axis_names = choose_plane(classifier, features, label, axes)
        outlines = cut_ellipsoids(classifier, plane)
        points = plane.project(to_floats(features))
        is_known = problem.true < len(problem.classes)
        drawn = outlines if label is None else outlines[problem.classes == label]
        whole = [points[is_known], drawn[~np.isnan(drawn)].reshape(-1, 2)]
        limits = frame_around(np.concatenate(whole) if is_known.any() else points[:0], points[~is_known])
        labels = np.append(problem.classes, np.asarray([problem.open_label]))
        display = cls(
            points=points,
            y_true=labels[problem.true],
            y_pred=labels[problem.predicted],
            classes=problem.classes,
            outlines=outlines,
            centroids=plane.project(classifier.centroids_),
            limits=limits,
            is_open=open_region(classifier, plane, limits, grid_resolution),
            open_label=problem.open_label,
            label=label,
            axis_names=axis_names,
            **plane._asdict(),
        )
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        names: bool | Literal["auto"] = "auto",
        legend: bool = True,
        scatter_kw: dict[str, Any] | None = None,
        outline_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the picture.

        Accepted samples are filled. Rejected known samples are hollow, rejected open samples thin crosses. Names that
        would cover one another are left out, those of the smaller ellipses first. On the plane of a ``label`` that
        class is named in the legend only.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        names : bool or "auto", default="auto"
            Whether to write the names of the classes at their ellipses. "auto" writes them if the legend does not name
            all classes: for more than six classes, and on the plane of a ``label``.
        legend : bool, default=True
            Whether to draw the legend, to the right of the axes.
        scatter_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.scatter` for all samples.
        outline_kw : dict, default=None
            Keywords of :meth:`matplotlib.axes.Axes.plot` for all ellipses.

        Returns
        -------
        display : EllipsoidDisplay
            This display, with the drawn artists.
        """
        many = len(self.classes) > _MANY and self.label is None
        self.ax_, self.figure_ = make_axes(self, ax, figsize=(10.5, 7.5) if many else (8.5, 5.5))
        self._draw_accepted_space()
        self._draw_outlines(outline_kw)
        self._draw_rows(scatter_kw)
        marked = self.centroids[(self.classes == self.label) | self._in_legend]
        (self.centroid_marks_,) = self.ax_.plot(*marked.T, **_CENTROID, zorder=5)
        self.ax_.set(xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        if legend:
            self.ax_.legend(handles=self._legend_entries(), loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
        if ax is None:
            # Axes of equal scales beside a legend get their final position only at the second drawing.
            self.figure_.figure.draw_without_rendering()
        self.names_ = []
        if names is True or (names == "auto" and not self._in_legend):
            self.figure_.figure.draw_without_rendering()
            named = np.flatnonzero(self._is_met if self.label is None else self._is_met & (self.classes != self.label))
            self.names_ = write_names(self.ax_, self.outlines[named, :-1], self.classes[named].tolist())
        return self

    @property
    def _is_met(self) -> NDArray[np.bool_]:
        """Whether the plane intersects the ellipsoid of each class."""
        return np.asarray(~np.isnan(self.outlines).any(axis=(1, 2)))

    @property
    def _in_legend(self) -> bool:
        """Whether the legend tells the classes apart."""
        return self.label is None and len(self.classes) <= _MOST_IN_LEGEND

    def _style(self, k: int) -> tuple[str, str]:
        """Colour and marker of a class; on the plane of one class only that one has its own."""
        if self.label is None:
            return COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        return (COLOURS[0] if self.classes[k] == self.label else _OTHERS), "o"

    def _draw_accepted_space(self) -> None:
        from matplotlib.colors import ListedColormap

        (left, bottom), (right, top) = self.limits.tolist()
        self.accepted_ = self.ax_.imshow(
            np.ma.masked_equal(~self.is_open, False),
            extent=(left, right, bottom, top),
            origin="lower",
            cmap=ListedColormap([ACCEPTED]),
            interpolation="nearest",
            zorder=0,
        )
        width, height = self.limits[1] - self.limits[0]
        is_narrow = max(width, height) > _NARROW * min(width, height)
        self.ax_.set(xlim=(left, right), ylim=(bottom, top), aspect="auto" if is_narrow else "equal")

    def _draw_outlines(self, outline_kw: dict[str, Any] | None) -> None:
        from matplotlib.lines import Line2D

        self.outlines_ = []
        for k in np.flatnonzero(self._is_met).tolist():
            colour = self._style(k)[0]
            width = 2.2 if self._in_legend or self.classes[k] == self.label else 1.2
            style = styled({"color": colour, "linewidth": width}, outline_kw, Line2D)
            self.outlines_ += self.ax_.plot(*self.outlines[k].T, zorder=3, **style)

    def _group_rows(self) -> dict[str, NDArray[np.bool_]]:
        """Which samples are in each group."""
        is_open, accepted = self.y_true == self.open_label, self.y_pred != self.open_label
        masks = (~is_open & accepted, ~is_open & ~accepted, is_open & accepted, is_open & ~accepted)
        return dict(zip(_GROUPS, masks, strict=True))

    def _draw_rows(self, scatter_kw: dict[str, Any] | None) -> None:
        from matplotlib.collections import PathCollection

        groups = self._group_rows()
        size = float(np.clip(6000 / len(self.points), 8, 30))
        self.rows_: dict[str, list[PathCollection]] = {name: [] for name in _GROUPS}

        def scatter(group: str, rows: NDArray[np.bool_] | bool = True, **style: Any) -> None:
            drawn = groups[group] & rows
            if drawn.any():
                style = styled(style, scatter_kw, PathCollection)
                self.rows_[group].append(self.ax_.scatter(*self.points[drawn].T, **style))

        order = np.argsort(self.classes == self.label)  # the named class on top
        scatter("open rejected", marker="x", s=size, color=FAINT, linewidths=0.8, zorder=2)
        for k in order.tolist():
            own, (colour, marker) = self.y_true == self.classes[k], self._style(k)
            look: dict[str, Any] = {"marker": marker, "s": size, "edgecolors": colour, "linewidths": 0.9, "zorder": 4}
            if self.label is not None and self.classes[k] != self.label:
                look |= {"s": 0.5 * size, "alpha": 0.6}
            scatter("known rejected", own, **look | {"facecolors": "none"})
            scatter("known accepted", own, **look | {"facecolors": colour})
        look = {"marker": "X", "s": 1.8 * size, "facecolors": INK, "edgecolors": "white", "linewidths": 0.6}
        scatter("open accepted", **look, zorder=5)

    def _legend_entries(self) -> list[Any]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        def mark(label: str, marker: str, **style: Any) -> Line2D:
            return Line2D([], [], linestyle="none", marker=marker, label=label, **style)

        entries: list[Any] = []
        if self._in_legend:
            for k, name in enumerate(self.classes.tolist()):
                colour, marker = self._style(k)
                entries.append(mark(legend_name(name), marker, color=colour))
        elif self.label is not None:
            others = mark("other known classes", "o", color=_OTHERS)
            entries += [mark(legend_name(self.label), "o", color=COLOURS[0]), others]
        counts = {group: int(rows.sum()) for group, rows in self._group_rows().items()}
        entries += [mark(f"{group} ({counts[group]})", **_GROUPS[group]) for group in _GROUPS if counts[group]]
        if np.size(self.centroid_marks_.get_xdata()):
            entries.append(Line2D([], [], **_CENTROID, label="centroid"))
        if self._is_met.any():
            cut = n_beyond(self.outlines[self._is_met], self.limits)
            entries.append(Line2D([], [], color=INK, label="boundary (cut off)" if cut else "boundary"))
        if not self.is_open.all():
            entries.append(Patch(facecolor=ACCEPTED, label="accepted (white: open)"))
        if n_out := n_beyond(self.points, self.limits):
            entries.append(Line2D([], [], linestyle="none", label=f"samples beyond the frame: {n_out}"))
        return entries
