"""Data larger than the memory of one machine: score and fit on Dask arrays, dataframes and bags.

Nothing is computed until Dask computes it, by ``fit`` alone. The extra ``[dask]`` installs what is needed.
"""

from ._fit import fit
from ._score import known_p_value, predict, score_samples, transform

__all__ = ["fit", "known_p_value", "predict", "score_samples", "transform"]
