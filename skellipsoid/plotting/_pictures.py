"""The lazy import of matplotlib, which is an extra, and pictures in files."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skellipsoid_runtime._install import how_to_install


def require_matplotlib(what: str) -> None:
    """Raise an error that names the extra unless matplotlib is installed."""
    if find_spec("matplotlib") is None:
        how = how_to_install("skellipsoid[plot]")
        raise ImportError(f"{what} draws with matplotlib, which is not installed: {how}.")


def save_picture(path: Path, draw: Callable[[], Any]) -> None:
    """Write the figure that ``draw`` returns to a file, without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = draw()
    figure.savefig(path, dpi=150)
    plt.close(figure)
