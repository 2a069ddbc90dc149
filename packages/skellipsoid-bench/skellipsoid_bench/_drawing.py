"""Loads and saves pictures with matplotlib, which is an extra."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: Colours of lines and names, and of an axis.
INK, FAINT = "#222222", "#707070"


def require_matplotlib(what: str) -> None:
    """Raise an error that names the extra unless matplotlib is installed."""
    if find_spec("matplotlib") is None:
        raise ImportError(f"{what} draws with matplotlib, which is not installed: pip install 'skellipsoid[plot]'.")


def save_picture(path: Path, draw: Callable[[], Any]) -> None:
    """Write the figure that ``draw`` makes to a file, which needs no screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = draw()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def make_axes(ax: Any, figsize: tuple[float, float]) -> tuple[Any, Any]:
    """Give the axes to draw on and their figure: ``ax``, or the axes of a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=figsize, layout="constrained")[1]
    return ax, ax.figure


def styled(defaults: dict[str, Any], chosen: dict[str, Any] | None, artist: Any) -> dict[str, Any]:
    """Merge a caller's keywords over the defaults; ``lw`` replaces ``linewidth``."""
    from matplotlib.cbook import normalize_kwargs

    return defaults | normalize_kwargs(chosen or {}, artist)


def shorten(name: Any, most: int = 30) -> str:
    """Write a name in one line, the end of a long one cut off, and without formulas."""
    text = " ".join(str(name).split())
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")
