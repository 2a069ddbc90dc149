"""The covariances that all classes share: T within classes, and B₀ of the class means.

One eigenproblem of the within-class scatter and one singular value decomposition of the class means give coordinates in
which T is the identity and B₀ is diagonal.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..._samples.samples import Samples
from ..._torch.devices import row_chunks
from ..._torch.threads import map_parts
from .class_sizes import effective_sizes, of_frequencies
from .geometry import class_means
from .left_out import Chunk, LeftOut, LeftOutSets, Sets
from .tiles import of_like_size

#: Candidates of a, the weight of the sphere in the within-class covariance T = (1 − a) W + a w̄ I. On text the choice is
#: 0.1 to 0.9 (TRIED.md, *Weights*). With every other one F1 falls by up to 1.1, with 0.03 besides by 1.2 on
#: logs (results/constants.rst).
SPHERICAL_SHRINKAGES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
#: Temperatures of the cross-entropy. Each candidate of a takes its best one. So the metric is compared, not its size.
#: With the temperature 1 alone, F1 is +0.2 frozen, −0.3 and −0.5 with a trained head (TRIED.md, *Weights*).
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: Rounding: axes with less than this proportion of the largest scatter of all samples are none. It is smaller than
#: that of a class, since classes may be small compared with their distances.
SPAN_TOLERANCE = 1e-13


#: Classes of about equal size, (n_own,) ascending; their samples, (n_own, size of the largest), −1 pads; their sizes.
ClassMembers = tuple[Tensor, Tensor, list[int]]


@dataclass(frozen=True)
class Frame:
    """Samples in coordinates that begin at the mean of the class means.

    ``principal_frame`` makes it, along the axes of W. ``rotated`` chooses other axes: T is the identity along them.
    """

    samples: Samples
    degenerate: Tensor  # (n_classes,) Boolean: classes without spread
    members: list[ClassMembers]
    origin: Tensor  # (n_features,) mean of the class means
    axes: Tensor  # (n_features, n_axes) features less the origin, times this, are coordinates
    back: Tensor  # (n_axes, n_features) coordinates times this are features less the origin
    offsets: Tensor  # (n_samples, n_axes) from the class means, in the precision of the samples
    means: Tensor  # (n_classes, n_axes)
    sets: LeftOutSets
    within: Tensor  # (n_axes,) variances of W along its own axes, also after ``rotated``
    variances_of_means: Tensor  # (n_axes,) of B₀ along the axes; 0 before ``rotated``
    mean_variance: float  # w̄
    n_varying: int  # features that vary
    freedom: float  # ν, degrees of freedom of W
    spherical: float = 0.0  # a

    @property
    def n_axes(self) -> int:
        """Number of coordinates."""
        return len(self.within)

    @cached_property
    def sizes(self) -> tuple[Tensor, float]:
        """Effective number of samples of each class, and its geometric mean."""
        return effective_sizes(self.sets.freedoms, self.degenerate)

    @cached_property
    def frequencies(self) -> Tensor:
        """What the allowances of the classes hold for their sizes, (n_classes,)."""
        return of_frequencies(*self.sizes)

    @property
    def pooled(self) -> float:
        """κ, the contribution of scatter to T: (1 − a) / ν."""
        return (1 - self.spherical) / self.freedom

    def coordinates(self, numbers: Tensor) -> Tensor:
        """Coordinates of samples, (n_samples, n_axes)."""
        return self.means[self.samples.classes[numbers]] + self.offsets[numbers].double()

    def onto(self, axes: Tensor, inverse: Tensor, spherical: float) -> "Frame":
        """Change to coordinates times ``axes``, (n_axes, n_axes), whose ``inverse`` leads back, in double precision."""
        return replace(
            self,
            axes=self.axes @ axes,
            back=inverse @ self.back,
            offsets=_by_chunks(lambda part: self.offsets[part].double() @ axes, self.offsets, self.n_axes),
            means=self.means @ axes,
            spherical=spherical,
        )

    def stretches(self, spherical: float) -> Tensor:
        """Factors of the coordinates with which T is the identity, (n_axes,), for a frame along the axes of W."""
        variances = (1 - spherical) * self.within + spherical * self.mean_variance
        return torch.rsqrt(variances)

    def without(self, sets: Sets) -> tuple[Tensor, Tensor]:
        """For each set: the factor ι of T' = ι (T − κ VᵀV), and the number of axes that remain.

        w̄ is less by the proportion tr VᵀV / tr(ν W) of itself, and the sphere a w̄ I is ``of_sphere`` T in the mean.
        """
        of_set = torch.where(sets.touched < 0, 0.0, self.sets.freedoms[sets.touched] - sets.freedoms).sum(1)
        of_sphere = (self.spherical * self.mean_variance * self.stretches(self.spherical).square()).mean()
        size, n_axes = (sets.members >= 0).sum(1), self.n_axes
        n_remaining = (self.samples.n_all - 1 - size).clamp(1, n_axes)
        if n_axes < self.n_varying:  # without a sample nothing but the sphere remains along it
            of_sphere, n_remaining = torch.ones_like(of_sphere), (n_axes - size).clamp_min(1)
        shrunk = of_sphere * sets.traces / (self.freedom * self.mean_variance * self.n_varying)
        return (1 - shrunk) * self.freedom / (self.freedom - of_set).clamp_min(1), n_remaining


def _by_chunks(compute: Callable[[slice], Tensor], like: Tensor, n_axes: int) -> Tensor:
    """Compute some rows at once, (n_samples, n_axes), in the precision of ``like``: lists of them stay in memory."""
    found = like.new_empty(len(like), n_axes)
    for part in row_chunks(len(like), 16 * max(n_axes, like.shape[1])):
        found[part] = compute(part)
    return found


def principal_frame(samples: Samples, degenerate: Tensor) -> Frame:
    """Put samples along the axes of W, the pooled within-class covariance of all but the ``degenerate`` classes."""
    features, classes = samples.features, samples.classes
    means = class_means(samples)
    origin = means.mean(0)
    varies = _varying(samples)
    is_wide, columns = bool(varies.sum() > samples.n_all), torch.nonzero(varies).flatten()
    axes = _span(features, origin) if is_wide else torch.diag(varies.to(origin))[:, columns]

    def along(values: Tensor) -> Tensor:
        return values @ axes if is_wide else values.index_select(1, columns)

    offsets = _by_chunks(lambda part: along(features[part].double() - means[classes[part]]), features, axes.shape[1])
    sets = LeftOutSets(samples, degenerate, offsets)
    freedom = float(sets.freedoms.sum())
    values, vectors = torch.linalg.eigh(_pooled_scatter(samples, degenerate, offsets, axes) / freedom)
    values, n_varying = values.clamp_min(0), max(1, int(varies.sum()))
    frame = Frame(
        samples=samples,
        degenerate=degenerate,
        members=_members(samples),
        origin=origin,
        axes=axes,
        back=axes.T,
        offsets=offsets,
        means=along(means - origin),
        sets=sets,
        within=values,
        variances_of_means=torch.zeros_like(values),
        mean_variance=float(values.sum()) / n_varying,
        n_varying=n_varying,
        freedom=freedom,
    )
    return frame.onto(vectors, vectors.T, 0.0)


def _members(samples: Samples) -> list[ClassMembers]:
    """List the samples of each class. Padding at most doubles the memory."""
    classes, device = samples.classes.cpu().numpy(), samples.features.device
    counts, order = np.bincount(classes, minlength=samples.n_classes), np.argsort(classes, kind="stable")
    found = []
    for own in of_like_size(counts):
        columns, ends = np.arange(counts[own].max()), np.cumsum(counts)[own]
        places = (ends - counts[own])[:, np.newaxis] + columns
        numbers = np.where(columns < counts[own][:, np.newaxis], order[np.minimum(places, len(order) - 1)], -1)
        padded = torch.from_numpy(numbers).to(device)
        found.append((torch.from_numpy(own).to(device), padded, counts[own].tolist()))
    return found


def _varying(samples: Samples) -> Tensor:
    """Mark features that vary, (n_features,)."""
    if samples.moments is not None:
        return torch.from_numpy(~samples.moments.constant).to(samples.features.device)
    return (samples.features != 0).any(0)  # constant features are 0 here


def _pooled_scatter(samples: Samples, degenerate: Tensor, offsets: Tensor, axes: Tensor) -> Tensor:
    """Scatter within all but the ``degenerate`` classes along the axes, (n_axes, n_axes)."""
    if samples.moments is not None:
        pooled = samples.moments.pooled_scatter((~degenerate).cpu().numpy())
        return axes.T @ torch.from_numpy(pooled).to(axes) @ axes
    counted = torch.where(degenerate[samples.classes], 0.0, samples.weights).sqrt().unsqueeze(1)
    scatter = axes.new_zeros(axes.shape[1], axes.shape[1])
    for part in row_chunks(len(offsets), 16 * samples.features.shape[1]):
        weighted = offsets[part].double() * counted[part]
        scatter.addmm_(weighted.T, weighted)
    return scatter


def _span(features: Tensor, origin: Tensor) -> Tensor:
    """Orthonormal axes of the span of the samples, (n_features, n_axes), if these are fewer than the features."""
    centred = features.double() - origin
    values, vectors = torch.linalg.eigh(centred @ centred.T)
    chosen = values > SPAN_TOLERANCE * values[-1]
    axes: Tensor = centred.T @ (vectors[:, chosen] / values[chosen].sqrt())
    return axes


def choose_frame(frame: Frame, validation: Tensor) -> Frame:
    """Choose a, and rotate the frame.

    The criterion is the cross-entropy of the classes of the ``validation`` samples, whose sets are left out, under
    Gaussian classes with a multiple of T as covariance. Candidates within one standard error of the difference to the
    best are equally good; the largest of them is taken, which makes T the simplest.
    """
    weights = frame.samples.counted_weights[validation]
    weights = weights / weights.sum()
    entropies = torch.stack([_entropies(frame, spherical, validation, weights) for spherical in SPHERICAL_SHRINKAGES])
    excess = entropies - entropies[(entropies @ weights).argmin()]
    means = excess @ weights
    errors = ((excess - means.unsqueeze(1)).square() @ weights / len(validation)).sqrt()
    return rotated(frame, SPHERICAL_SHRINKAGES[int(torch.nonzero(means <= errors).max())])


def rotated(frame: Frame, spherical: float) -> Frame:
    """Stretch and rotate a frame along the axes of W to coordinates where T is the identity and B diagonal."""
    stretches = frame.stretches(spherical)
    _, values, rotation = torch.linalg.svd(frame.means * stretches, full_matrices=True)
    variances = torch.zeros_like(frame.within)
    variances[: len(values)] = values.square() / max(1, len(frame.means) - 1)
    onto = stretches.unsqueeze(1) * rotation.T
    return replace(frame.onto(onto, rotation / stretches, spherical), variances_of_means=variances)


def _entropies(frame: Frame, spherical: float, validation: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of each validation sample's own class; 0 if no sample of the class remains."""
    squares = label_distances(replace(frame, spherical=spherical), validation, frame.stretches(spherical))
    own = frame.samples.classes[validation].unsqueeze(1)
    halves = squares / 2
    logits = [torch.log_softmax(-halves / temperature, dim=1).gather(1, own).squeeze(1) for temperature in TEMPERATURES]
    found = -torch.stack(logits).nan_to_num(nan=0.0, neginf=0.0)
    return found[(found @ weights).argmin()]


def label_distances(frame: Frame, validation: Tensor, stretches: Tensor | None = None) -> Tensor:
    """Squared distances of samples to all class means in the metric of T, both without the sample's set.

    T − κ VᵀV has the inverse I + κ Vᵀ (I − κ VVᵀ)⁻¹ V.

    Parameters
    ----------
    frame : Frame
    validation : Tensor of shape (n_validation,)
        Numbers of the samples.
    stretches : Tensor of shape (n_axes,), optional
        Factors of the coordinates with which T is the identity; 1 without it.

    Returns
    -------
    Tensor of shape (n_validation, n_classes)
        Infinite where no sample of the class remains.
    """
    metric = torch.ones_like(frame.within) if stretches is None else stretches.square()
    means = frame.means * metric
    between = frame.means @ means.T
    apart = _apart(between.diagonal(), between.diagonal().unsqueeze(1), between)
    squares = means.new_empty(len(validation) + 1, len(means))  # the last place is not used

    def compute(chunk: Chunk) -> None:
        squares[chunk.positions] = _squares_without(frame, chunk, validation[chunk.positions], metric, apart)

    def n_elements(sets: Sets, n_scored: int) -> int:
        return (len(means) + len(metric)) * (sets.members.shape[1] + n_scored)

    chunks = frame.sets.chunks(validation, torch.zeros_like(validation), n_elements)
    map_parts(compute, chunks, 16 * len(validation) * (len(means) + len(metric)), means.device)
    return squares[:-1]


def _squares_without(frame: Frame, chunk: Chunk, sources: Tensor, metric: Tensor, apart: Tensor) -> Tensor:
    """Squared distances of the samples of a chunk to all class means, (n_pairs, n_scored, n_classes).

    ``metric`` has the squared stretches of the coordinates, and ``apart`` the squared distances of the class means.
    """
    sets, numbers, means = chunk.sets, chunk.numbers, frame.means * metric
    given, scored, left_out = _sums_of_few(frame, sets, numbers, sources)
    inner, onto = (given * metric) @ given.mT, given @ means.T
    own, V = frame.samples.classes[sources], left_out.V  # (n_pairs, n_scored)
    of_scored, scored_onto = ((scored @ inner[numbers]) * scored).sum(2), scored @ onto[numbers]
    scored_onto -= scored_onto.gather(2, own.unsqueeze(2))  # ⟨d, c_k − c_own⟩ for a sample c_own + d
    near = (apart[own] + of_scored.unsqueeze(2)).sub_(scored_onto, alpha=2).clamp_min_(0)
    # The first touched class stands where others are padded.
    places = torch.where(sets.touched < 0, 0, torch.arange(sets.touched.shape[1], device=means.device))
    touched, exists = sets.touched.gather(1, places), sets.exists.gather(1, places)
    moves = left_out.moves.gather(1, places.unsqueeze(2).expand(-1, -1, V.shape[1]))  # (n_sets, n_touched, size)
    v_inner, v_onto = V @ inner, V @ onto
    v_v, v_scored = v_inner @ V.mT, v_inner[numbers] @ scored.mT  # (n_sets, size, size), (n_pairs, size, n_scored)
    v_touched = v_onto.gather(2, touched.unsqueeze(1).expand(-1, V.shape[1], -1))
    v_own = v_onto[numbers].gather(2, own.unsqueeze(1).expand(-1, V.shape[1], -1))
    # The means that move replace those that do not: a sample less one of them is c_own − c_k + d − σV.
    moved = (moves @ v_v * moves).sum(2)[numbers].unsqueeze(1)
    moved = moved + of_scored.unsqueeze(2) - 2 * (moves[numbers] @ v_scored).mT
    crossed = (moves[numbers] @ v_own).mT - (moves * v_touched.mT).sum(2)[numbers].unsqueeze(1)
    of_touched = touched[numbers].unsqueeze(1).expand(-1, own.shape[1], -1)
    crossed += scored_onto.gather(2, of_touched)
    moved = moved + apart[own.unsqueeze(2), of_touched] - 2 * crossed
    remaining = torch.where(exists[numbers].unsqueeze(1), moved.clamp_min(0), torch.inf)
    near.scatter_(2, of_touched, remaining)
    index = touched.unsqueeze(1).expand(-1, V.shape[1], -1)
    v_onto = v_onto.scatter(2, index, v_touched + v_v @ moves.mT)
    root = torch.linalg.cholesky(identity(V.shape[1], V) - frame.pooled * v_v)
    along = torch.linalg.solve_triangular(root, v_onto, upper=False)[numbers]
    of_samples = torch.linalg.solve_triangular(root[numbers], v_own + v_scored, upper=False)
    lengths = along.square().sum(1).unsqueeze(1), of_samples.square().sum(1).unsqueeze(2)
    near += _apart(*lengths, of_samples.mT @ along).mul_(frame.pooled)
    near /= frame.without(sets)[0][numbers].view(-1, 1, 1)
    return near


def _sums_of_few(frame: Frame, sets: Sets, numbers: Tensor | slice, sources: Tensor) -> tuple[Tensor, Tensor, LeftOut]:
    """Write scored samples, less their class means, and V as sums of a few vectors: one product of these serves all.

    Returns
    -------
    given : Tensor of shape (n_sets, n_given, n_axes)
        The members of each set, less their class means; or the axes, if these are fewer.
    scored : Tensor of shape (n_pairs, n_scored, n_given)
    left_out : LeftOut
        With V in terms of these.
    """
    (n_sets, size), n_axes = sets.members.shape, frame.n_axes
    members = frame.offsets[sets.members].double()
    if size > n_axes:
        given = identity(n_axes, members).expand(n_sets, -1, -1)
        return given, frame.offsets[sources].double(), sets.left_out(members)
    scored = (sources.unsqueeze(2) == sets.members[numbers].unsqueeze(1)).double()
    return members, scored, sets.left_out(identity(size, members).expand(n_sets, -1, -1))


def _apart(squares: Tensor, others: Tensor, products: Tensor) -> Tensor:
    """Squared distances of vectors, from their squares and products."""
    return products.mul(-2).add_(squares).add_(others).clamp_min_(0)


def identity(size: int, like: Tensor) -> Tensor:
    """Identity matrix of the type and on the device of a tensor."""
    return torch.eye(size, dtype=like.dtype, device=like.device)
