"""Figures of the paper's Table 1."""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

#: The paper's row of each class of this package, by its name in small letters without its ending.
_ROWS = {
    "ellipsoid": "EliDecide",
    "softmax": "Softmax-MSP",
    "softmaxmsp": "Softmax-MSP",
    "msp": "Softmax-MSP",
    "doc": "DOC",
    "openmax": "OpenMax",
    "adb": "ADB",
    "clab": "CLAB",
    "mogb": "MOGB",
}
_ENDINGS = ("classifier", "openset", "boundary")


class PaperFigure(NamedTuple):
    """One cell pair of the paper's Table 1: means over five seeds, in percent.

    Attributes
    ----------
    data : str
        ``"banking"``, ``"oos"`` or ``"stackoverflow"``.
    method : str
        As the paper calls it.
    ratio : float
        Share of the classes that are known.
    f1, accuracy : float
    """

    data: str
    method: str
    ratio: float
    f1: float
    accuracy: float


@lru_cache(maxsize=1)
def paper_figures() -> tuple[PaperFigure, ...]:
    """Read the paper's Table 1: ten methods with BERT-base, tuned as a whole.

    Returns
    -------
    figures : tuple of PaperFigure
        90 of them; Table 1's averages are means of theirs.

    Examples
    --------
    >>> from skellipsoid_bench import paper_figures
    >>> paper_figures()[-1]
    PaperFigure(data='stackoverflow', method='EliDecide', ratio=0.75, f1=88.0, accuracy=84.93)
    """
    text = files(__package__).joinpath("paper_table1.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return tuple(
        PaperFigure(row["data"], row["method"], float(row["ratio"]), float(row["f1"]), float(row["accuracy"]))
        for row in csv.DictReader(lines)
    )


def paper_row(estimator: str) -> str | None:
    """Name the paper's row of a class as results name it; ``None`` if it has none, as every user's ``module:Class``."""
    name = estimator.lower()
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return _ROWS.get(name)
