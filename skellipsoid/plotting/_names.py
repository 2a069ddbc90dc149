"""Names of classes written into their ellipses without overlap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._canvas import INK, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_FONT_SIZE = 8.0
#: Width of an average letter and height of a line, in font sizes.
_LETTER, _LINE = 0.6, 1.3


def write_names(ax: "Axes", outlines: NDArray[np.float64], names: Sequence[Any]) -> list["Text"]:
    """Write names into ellipses, leaving out those that would cover the name of a larger one.

    Parameters
    ----------
    ax : matplotlib Axes
        Its limits and its position in the figure must be final.
    outlines : ndarray of shape (n_names, n_points, 2)
        In the units of the axes.
    names : sequence of length n_names

    Returns
    -------
    texts : list of matplotlib Text
    """
    from matplotlib.patheffects import withStroke

    texts: list[Text] = []
    low, high = ax.transData.transform(np.transpose([ax.get_xlim(), ax.get_ylim()]))
    letter, line = (part * _FONT_SIZE * ax.figure.dpi / 72 for part in (_LETTER, _LINE))  # pixels
    taken: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []  # centre and half the size of each name
    for k in np.argsort(-np.ptp(outlines, axis=1).prod(axis=1), kind="stable").tolist():
        name = shorten(names[k])
        half = np.array([0.5 * letter * len(name), 0.5 * line])
        seen = _points_inside(ax.transData.transform(outlines[k]), low, high)
        if not len(seen):
            continue
        # The middle of the visible part of the ellipse, moved so that the name is not cut off.
        middle = seen[np.square(seen - seen.mean(axis=0)).sum(axis=1).argmin()]
        middle = np.maximum(np.minimum(middle, high - half), low + half)
        if any((np.abs(middle - other) < half + other_half).all() for other, other_half in taken):
            continue
        taken.append((middle, half))
        x, y = ax.transData.inverted().transform(middle).tolist()
        halo = withStroke(linewidth=2.5, foreground="white")
        looks: dict[str, Any] = {"fontsize": _FONT_SIZE, "color": INK, "ha": "center", "va": "center"}
        texts.append(ax.text(x, y, name, path_effects=[halo], clip_on=True, zorder=6, **looks))
    return texts


def _points_inside(
    outline: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Points of an ellipse and its inside that lie between two corners, (n_points, 2)."""
    middle = outline.mean(axis=0)
    points = np.concatenate([middle + part * (outline - middle) for part in np.linspace(0, 1, 9)])
    return np.asarray(points[((points > low) & (points < high)).all(axis=1)])
