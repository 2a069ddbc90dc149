"""Shared code of the displays: axes, colours, legends, short names.

No function here touches pyplot when axes are given, and none changes ``rcParams``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._pictures import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

#: The colours of Okabe and Ito, which colour-blind people can tell apart; without black, and yellow, faint on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
#: One marker and one line style for each colour, so that nothing depends on colour alone.
MARKERS = ("o", "s", "^", "D", "v", "P")
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: Colours of known and open samples if classes are not distinguished.
KNOWN_COLOUR, OPEN_COLOUR = "#0072B2", "#D55E00"
#: Colours of a threshold, and of all that is neither known nor open.
INK, FAINT = "#222222", "#707070"
ACCEPTED = "#DCE8F2"
HATCH = "#DCDCDC"


def make_axes(
    display: object, ax: "Axes | None", *, figsize: tuple[float, float] | None = None
) -> tuple["Axes", "Figure | SubFigure"]:
    """Return the axes to draw on and their figure: ``ax``, or the axes of a new figure with constrained layout.

    Parameters
    ----------
    display : object
        The display, for the error without matplotlib.
    ax : matplotlib Axes or None
    figsize : tuple of float, default=None
        Of a new figure, in inches.
    """
    require_matplotlib(f"{type(display).__name__}.plot")
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=figsize, layout="constrained")[1]
    return ax, ax.figure


def legend_above(ax: "Axes", *, ncols: int = 1, handles: "Sequence[Artist] | None" = None) -> None:
    """Draw the legend above the axes, where it covers nothing; of these lines, or of all that the axes have.

    It has at most ``ncols`` columns, and is no wider than the axes at any font size: a wider one would shrink the axes,
    or be cut off.
    """
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0, "frameon": False}
    beside = ax.yaxis.get_tightbbox()  # the layout leaves space for the labels
    room = min(ax.get_window_extent().width, ax.figure.bbox.width - (beside.width if beside else 0))
    for columns in range(ncols, 0, -1):
        legend = ax.legend(handles=handles, ncols=columns, **place)
        width = legend.get_window_extent().width
        if width <= room:
            return
    size = float(legend.get_texts()[0].get_fontsize()) * room / width
    ax.legend(handles=handles, fontsize=size, **place)


def name_bars(
    ax: "Axes",
    lengths: NDArray[np.int64],
    names: Sequence[str],
    remarks: Sequence[str],
    *,
    room: float,
    without: str,
    text_kw: dict[str, Any] | None,
) -> "list[Text]":
    """Write the name of each horizontal bar at its start and a remark at its end, the first bar at the top.

    Parameters
    ----------
    ax : matplotlib Axes
    lengths : ndarray of shape (n_bars,)
    names, remarks : sequence of str
    room : float
        Length of the axis, as a multiple of the longest bar.
    without : str
        Text to write if there is no bar.
    text_kw : dict or None
        Keywords of the remarks.

    Returns
    -------
    texts : list of Text
        The remarks.
    """
    from matplotlib.text import Text

    longest = max(1, int(lengths.max(initial=1)))
    looks = styled({"va": "center", "ha": "left", "fontsize": 8, "color": INK}, text_kw, Text)
    texts = [
        ax.text(length + 0.01 * longest, place, remark, **looks)
        for place, (length, remark) in enumerate(zip(lengths.tolist(), remarks, strict=True))
    ]
    ax.set_yticks(range(len(lengths)), names)
    ax.set(xlim=(0, room * longest), ylim=(len(lengths) - 0.4, -0.6))
    ax.spines[["top", "right"]].set_visible(False)
    if not texts:
        ax.text(0.5, 0.5, without, transform=ax.transAxes, ha="center", va="center", color=FAINT)
    return texts


def styled(defaults: dict[str, Any], chosen: dict[str, Any] | None, artist: Any) -> dict[str, Any]:
    """Merge a caller's keywords over the defaults; ``lw`` replaces ``linewidth``.

    Parameters
    ----------
    defaults : dict
        By the names in full.
    chosen : dict or None
    artist : type
        The class of matplotlib artists whose short names are understood.
    """
    from matplotlib.cbook import normalize_kwargs

    return defaults | normalize_kwargs(chosen or {}, artist)


def shorten(name: Any, most: int = 30) -> str:
    """Write a name in one line of at most that many characters, the end of it cut off.

    Dollar signs are escaped: matplotlib would read a formula between two of them.
    """
    text = " ".join(str(name).split())
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")


def legend_name(name: Any, most: int = 30) -> str:
    """Write a name for a legend, which leaves out what begins with an underscore."""
    text = shorten(name, most)
    return f" {text}" if text.startswith("_") else text
