"""The shapes that all classes share: the covariance T within classes, and the covariance B of the class means.

One eigenproblem of the within-class scatter and one singular value decomposition of the class means give coordinates in
which T is the identity and B is diagonal.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .geometry import by_class
from .left_out import ClassRows, LeftOutSets, onto
from .samples import Samples

#: Candidates of a, the spherical share of the within-class covariance T = (1 − a) W + a w̄ I.
SPHERICAL_SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
#: Temperatures of the cross-entropy; the best of them is taken for each candidate of a, which are so compared by the
#: metric and not by its scale.
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: Smallest number of classes with a background; with fewer, too few are left when one is left out.
FEWEST_CLASSES_OF_BACKGROUND = 4
#: Variances below this share of the largest are taken as 0.
SMALLEST_VARIANCE = 1e-9
#: Rank tolerance of all samples together. It is smaller, since classes may be small compared with their distances.
RANK_TOLERANCE = 1e-13


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
        """κ, the contribution of a unit of scatter to T: (1 − a) / ν."""
        return (1 - self.spherical) / self.freedom

    def onto(self, axes: Tensor, spherical: float) -> "Frame":
        """Change to other orthonormal axes, (n_axes, n_axes), or to other units, (n_axes,)."""
        rows, means = onto(self.rows, axes), onto(self.means, axes)
        return replace(
            self,
            axes=onto(self.axes, axes),
            back=self.back / axes.unsqueeze(1) if axes.dim() == 1 else axes.T @ self.back,
            rows=rows,
            means=means,
            classes=[
                of_class._replace(offsets=rows[of_class.members] - mean)
                for of_class, mean in zip(self.classes, means, strict=True)
            ],
            sets=self.sets.onto(axes),
            spherical=spherical,
        )

    def units(self, spherical: float) -> Tensor:
        """Units in which T is the identity, (n_axes,), for a frame along the axes of W."""
        variances = (1 - spherical) * self.within + spherical * self.mean_variance
        return torch.rsqrt(variances)


def principal_frame(samples: Samples, degenerate: Tensor) -> Frame:
    """Put samples along the axes of W, the pooled within-class covariance of all but the ``degenerate`` classes."""
    rows, weights = samples.rows.double(), samples.weights
    members = by_class(samples.classes, samples.n_classes)
    means = torch.stack([(weights[mine].unsqueeze(1) * rows[mine]).sum(0) / weights[mine].sum() for mine in members])
    origin = means.mean(0)
    rows, means = rows - origin, means - origin
    varies = (samples.rows != 0).any(0)  # constant features are 0 here
    axes = _span(rows, varies)
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
    freedom = 0.0
    scatter = rows.new_zeros(rows.shape[1], rows.shape[1])
    for of_class, is_degenerate in zip(classes, degenerate.tolist(), strict=True):
        if not is_degenerate:
            freedom += of_class.degrees_of_freedom()
            weighted = of_class.offsets * of_class.weights.sqrt().unsqueeze(1)
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
        float(values.clamp_min(0).sum()) / max(1, int(varies.sum())),
        freedom,
    )
    return frame.onto(vectors, 0.0)


def _span(rows: Tensor, varies: Tensor) -> Tensor:
    """Orthonormal axes of the span of the samples, (n_features, n_axes); ``varies`` marks features that vary."""
    if varies.sum() <= len(rows):
        return torch.diag(varies.to(rows))[:, varies]
    values, vectors = torch.linalg.eigh(rows @ rows.T)
    kept = values > RANK_TOLERANCE * values[-1]
    axes: Tensor = rows.T @ (vectors[:, kept] / values[kept].sqrt())
    return axes


def shared_frame(frame: Frame, classes: Tensor, weights: Tensor, validation: Tensor) -> Frame:
    """Choose a, and rotate the frame.

    The criterion is the cross-entropy of the classes of the ``validation`` samples, whose sets are left out, under
    Gaussian classes with a multiple of T as covariance. Candidates within one standard error of the difference to the
    best are equally good; the largest of them is taken, which makes T the simplest.
    """
    weights = weights[validation] / weights[validation].sum()
    entropies = torch.stack([_entropies(frame, share, classes, validation, weights) for share in SPHERICAL_SHARES])
    excess = entropies - entropies[(entropies @ weights).argmin()]
    means = excess @ weights
    errors = ((excess - means.unsqueeze(1)).square() @ weights / len(validation)).sqrt()
    return rotated(frame, SPHERICAL_SHARES[int(torch.nonzero(means <= errors).max())])


def rotated(frame: Frame, share: float) -> Frame:
    """Rotate a frame along the axes of W to coordinates where T is the identity and B diagonal."""
    frame = frame.onto(frame.units(share), share)
    _, values, rotation = torch.linalg.svd(frame.means, full_matrices=True)
    between = torch.zeros_like(frame.within)
    between[: len(values)] = values.square() / max(1, len(frame.means) - 1)
    return replace(frame.onto(rotation.T, share), between=between)


def _entropies(frame: Frame, share: float, classes: Tensor, validation: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of each validation sample's own class; 0 if no sample of the class is left."""
    squares = label_distances(replace(frame, spherical=share), classes, validation, frame.units(share))
    own = classes[validation].unsqueeze(1)
    found = [
        -torch.log_softmax(-squares / (2 * temperature), dim=1)
        .gather(1, own)
        .squeeze(1)
        .nan_to_num(nan=0.0, posinf=0.0)
        for temperature in TEMPERATURES
    ]
    return min(found, key=lambda entropies: float(entropies @ weights))


def label_distances(frame: Frame, classes: Tensor, validation: Tensor, units: Tensor | None = None) -> Tensor:
    """Squared distances of samples to all class means in the metric of T, both without the sample's set.

    Parameters
    ----------
    frame : Frame
    classes : Tensor of shape (n_samples,)
    validation : Tensor of shape (n_validation,)
        Numbers of the samples.
    units : Tensor of shape (n_axes,), optional
        Units in which T is the identity; the frame's own without it.

    Returns
    -------
    Tensor of shape (n_validation, n_classes)
        Infinite where no sample of the class is left.
    """
    units = torch.ones_like(frame.within) if units is None else units
    means = frame.means * units
    squares = means.new_empty(len(validation), len(means))
    for mine, removed in frame.sets.chunks(validation, len(frame.means)):
        rows, removed = frame.rows[validation[mine]] * units, removed.onto(units)
        near = torch.cdist(rows, means).square()
        # V (z − c_j) of every class, (n_rows, size, n_classes).
        along = removed.rows @ rows.unsqueeze(2) - removed.rows @ means.T
        moved = frame.sets.moved(validation[mine], classes, removed, units)
        offsets = rows[moved.places] - means[moved.labels] - moved.moves
        near[moved.places, moved.labels] = torch.where(moved.exists, offsets.square().sum(1), torch.inf)
        along[moved.places, :, moved.labels] = (removed.rows[moved.places] @ offsets.unsqueeze(2)).squeeze(2)
        # (T − κ VᵀV)⁻¹ = I + κ Vᵀ (I − κ V Vᵀ)⁻¹ V
        capacity = -frame.pooled * (removed.rows @ removed.rows.transpose(1, 2))
        capacity.diagonal(dim1=1, dim2=2).add_(1)
        lost = torch.linalg.solve_triangular(torch.linalg.cholesky(capacity), along, upper=False)
        squares[mine] = near + frame.pooled * lost.square().sum(1)
    return squares
