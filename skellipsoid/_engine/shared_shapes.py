"""What all classes share: the covariance T within classes, and the covariance B of the class means.

Coordinates are found in which T is the identity and B is diagonal, by one eigenproblem of the within-class scatter and
one singular value decomposition of the class means; everything that follows is diagonal there.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .geometry import by_class
from .left_out import ClassRows, LeftOutSets, onto
from .samples import Samples

#: Spherical shares a of the within-class covariance T = (1 − a) W + a w̄ I to choose among.
SPHERICAL_SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
#: Scales of squared distances, the best of which judges each of them: a metric need not say how sure it is.
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: Classes that make a background; with fewer, leaving one out would leave nothing to compare with.
FEWEST_CLASSES_OF_BACKGROUND = 4
#: Variances below this share of the largest say nothing.
SMALLEST_VARIANCE = 1e-9
#: Variances of all rows below this share of the largest are rounding: classes may be small for their distances.
ROUNDING = 1e-13


@dataclass(frozen=True)
class Frame:
    """Samples in coordinates that begin at the mean of the class means."""

    origin: Tensor  # (n_features,) mean of the class means
    axes: Tensor  # (n_features, n_axes) features less the origin, times this, are coordinates
    back: Tensor  # (n_axes, n_features) coordinates times this are features less the origin
    rows: Tensor  # (n_samples, n_axes)
    means: Tensor  # (n_classes, n_axes)
    classes: list[ClassRows]
    sets: LeftOutSets
    within: Tensor  # (n_axes,) variances of W
    between: Tensor  # (n_axes,) variances of the class means
    mean_variance: float  # w̄
    freedom: float  # ν, degrees of freedom of W
    spherical: float = 0.0  # a

    @property
    def pooled(self) -> float:
        """What a unit of scatter adds to T, (1 − a) / ν."""
        return (1 - self.spherical) / self.freedom

    def onto(self, axes: Tensor, spherical: float) -> "Frame":
        """Give the same along other orthonormal axes, (n_axes, n_axes), or in other units, (n_axes,)."""
        rows, means = onto(self.rows, axes), onto(self.means, axes)
        parts = zip(self.classes, means, strict=True)
        return replace(
            self,
            axes=onto(self.axes, axes),
            back=self.back / axes.unsqueeze(1) if axes.dim() == 1 else axes.T @ self.back,
            rows=rows,
            means=means,
            classes=[part._replace(offsets=rows[part.members] - mean) for part, mean in parts],
            sets=self.sets.onto(axes),
            spherical=spherical,
        )

    def units(self, spherical: float) -> Tensor:
        """Units in which T is the identity, (n_axes,), for a frame whose axes are those of W."""
        variances = (1 - spherical) * self.within + spherical * self.mean_variance
        return torch.rsqrt(variances)


def principal_frame(samples: Samples, points: Tensor) -> Frame:
    """Rows along the axes of W, the pooled within-class covariance; ``points`` are classes without a spread."""
    rows, weights = samples.rows.double(), samples.weights
    members = by_class(samples.classes, samples.n_classes)
    means = torch.stack([(weights[mine].unsqueeze(1) * rows[mine]).sum(0) / weights[mine].sum() for mine in members])
    origin = means.mean(0)
    rows, means = rows - origin, means - origin
    telling = (samples.rows != 0).any(0)  # features that vary: constant ones are 0 here
    axes = _span(rows, telling)
    rows, means = rows @ axes, means @ axes
    units = samples.units
    classes = [
        ClassRows(
            mine,
            rows[mine] - means[k],
            weights[mine],
            torch.from_numpy(np.unique(units[mine.cpu().numpy()], return_inverse=True)[1].ravel()).to(rows.device),
        )
        for k, mine in enumerate(members)
    ]
    shaped = [part for part, point in zip(classes, points.tolist(), strict=True) if not point]
    freedom = sum(part.degrees_of_freedom() for part in shaped)
    scatter = rows.new_zeros(rows.shape[1], rows.shape[1])
    for part in shaped:
        weighted = part.offsets * part.weights.sqrt().unsqueeze(1)
        scatter.addmm_(weighted.T, weighted)
    values, vectors = torch.linalg.eigh(scatter / freedom)
    frame = Frame(
        origin,
        axes,
        axes.T,
        rows,
        means,
        classes,
        LeftOutSets(samples, classes),
        values.clamp_min(0),
        torch.zeros_like(values),
        float(values.clamp_min(0).sum()) / max(1, int(telling.sum())),
        freedom,
    )
    return frame.onto(vectors, 0.0)


def _span(rows: Tensor, telling: Tensor) -> Tensor:
    """Orthonormal axes of everything that the rows span, (n_features, n_axes); ``telling`` are features that vary."""
    if telling.sum() <= len(rows):
        return torch.diag(telling.to(rows))[:, telling]
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    kept = values > ROUNDING * values[-1]
    axes: Tensor = rows.T @ (vectors[:, kept] / values[kept].sqrt())
    return axes


def shared_frame(frame: Frame, classes: Tensor, weights: Tensor, judged: Tensor) -> Frame:
    """Choose a, and turn the frame.

    The ``judged`` rows, whose sets are left out, choose a: by the cross-entropy of their classes under Gaussian ones
    with a multiple of T as covariance. Of the shares that are no worse than the best by the standard error of the
    difference, the largest is taken, which makes T the simplest.
    """
    weights = weights[judged] / weights[judged].sum()
    entropies = torch.stack([_entropies(frame, share, classes, judged, weights) for share in SPHERICAL_SHARES])
    excess = entropies - entropies[(entropies @ weights).argmin()]
    means = excess @ weights
    errors = ((excess - means.unsqueeze(1)).square() @ weights / len(judged)).sqrt()
    return turned(frame, SPHERICAL_SHARES[int(torch.nonzero(means <= errors).max())])


def turned(frame: Frame, share: float) -> Frame:
    """Turn a frame whose axes are those of W to coordinates where T is the identity and B diagonal."""
    frame = frame.onto(frame.units(share), share)
    _, values, turn = torch.linalg.svd(frame.means, full_matrices=True)
    between = torch.zeros_like(frame.within)
    between[: len(values)] = values.square() / max(1, len(frame.means) - 1)
    return replace(frame.onto(turn.T, share), between=between)


def _entropies(frame: Frame, share: float, classes: Tensor, judged: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of each judged row's own class; 0 where nothing is left of the class."""
    squares = label_distances(replace(frame, spherical=share), classes, judged, frame.units(share))
    own = classes[judged].unsqueeze(1)
    found = [
        -torch.log_softmax(-squares / (2 * temperature), dim=1)
        .gather(1, own)
        .squeeze(1)
        .nan_to_num(nan=0.0, posinf=0.0)
        for temperature in TEMPERATURES
    ]
    return min(found, key=lambda entropies: float(entropies @ weights))


def label_distances(frame: Frame, classes: Tensor, judged: Tensor, units: Tensor | None = None) -> Tensor:
    """Squared distances of rows to all class means in the metric of T, the row's set being left out of both.

    Parameters
    ----------
    frame : Frame
    classes : Tensor of shape (n_samples,)
    judged : Tensor of shape (n_judged,)
        Rows.
    units : Tensor of shape (n_axes,), optional
        In which T is the identity; without it the frame's own.

    Returns
    -------
    Tensor of shape (n_judged, n_classes)
        Infinite where nothing of the class is left.
    """
    units = torch.ones_like(frame.within) if units is None else units
    means = frame.means * units
    squares = means.new_empty(len(judged), len(means))
    for mine, removed in frame.sets.chunks(judged, len(frame.means)):
        rows, removed = frame.rows[judged[mine]] * units, removed.onto(units)
        near = torch.cdist(rows, means).square()
        # V (z − c_j) of every class, (n_rows, size, n_classes).
        along = removed.rows @ rows.unsqueeze(2) - removed.rows @ means.T
        moved = frame.sets.moved(judged[mine], classes, removed, units)
        offsets = rows[moved.places] - means[moved.labels] - moved.moves
        near[moved.places, moved.labels] = torch.where(moved.exists, offsets.square().sum(1), torch.inf)
        along[moved.places, :, moved.labels] = (removed.rows[moved.places] @ offsets.unsqueeze(2)).squeeze(2)
        # (T − κ VᵀV)⁻¹ = I + κ Vᵀ (I − κ V Vᵀ)⁻¹ V
        capacity = -frame.pooled * (removed.rows @ removed.rows.transpose(1, 2))
        capacity.diagonal(dim1=1, dim2=2).add_(1)
        lost = torch.linalg.solve_triangular(torch.linalg.cholesky(capacity), along, upper=False)
        squares[mine] = near + frame.pooled * lost.square().sum(1)
    return squares
