"""Boundaries of all classes, by the way that the settings name."""

from torch import Tensor

from .boundaries import Boundaries
from .closed_form import fit_closed_form
from .paper import fit_paper
from .samples import Samples
from .settings import BoundarySettings


def fit_boundaries(samples: Samples, real_open: Tensor, settings: BoundarySettings, seed: int) -> Boundaries:
    """Fit one ellipsoid per class to rows of unit scale.

    Parameters
    ----------
    samples : Samples
        Known rows, at least one of each class.
    real_open : Tensor of shape (n_open, n_features)
        Rows that are known to be open; may be empty.
    settings : BoundarySettings
    seed : int
    """
    fit = fit_paper if settings.init == "identity" else fit_closed_form
    return fit(samples, real_open, settings, seed)
