"""Boundaries in closed form, and their leave-one-out validation, against refits by NumPy."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.linalg import eigh

from skellipsoid._ellipsoid.math import class_sizes, left_out_shapes, table_maker
from skellipsoid._ellipsoid.math.closed_form import _choose_shrinkages
from skellipsoid._ellipsoid.math.frames import label_distances, principal_frame, rotated
from skellipsoid._ellipsoid.math.geometry import class_spheres
from skellipsoid._ellipsoid.math.left_out_shapes import LeftOutShapes
from skellipsoid._ellipsoid.math.table_maker import TableMaker
from skellipsoid._held_out.table import best_scale
from skellipsoid._samples.samples import Samples


class Weights(NamedTuple):
    """Shrinkages: a, b and ρ."""

    spherical: float
    between: float | None
    shared: float


SHARED_SHRINKAGES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.93, 0.97)

#: Two groups of each of these sizes make a class.
GROUP_SIZES = np.repeat([1, 2, 3, 7], 2)
WEIGHTS = [Weights(0.3, 0.2, 0.4), Weights(0.05, 0.6, 0.9), Weights(1.0, 0.9, 0.1)]
WITH_NONE = [*WEIGHTS[:2], Weights(0.3, None, 0.4)]


@pytest.fixture(autouse=True)
def all_of_a_set(monkeypatch):
    """All samples of a set are open samples, so that all of them are compared."""
    monkeypatch.setattr(table_maker, "MOST_OF_SET", 1000)


class Table(NamedTuple):
    """Rows as NumPy has them."""

    rows: np.ndarray
    classes: np.ndarray
    weights: np.ndarray
    units: np.ndarray
    groups: np.ndarray

    def fit(self, weights):
        return Fit(self, weights)


class Fit:
    """Shapes for given weights, and the samples that validate them."""

    def __init__(self, found, weights):
        columns = torch.from_numpy(found.rows), torch.from_numpy(found.classes), None
        self.samples = Samples.of(*columns, found.weights, found.units, found.groups)
        self.weights = weights
        degenerate = class_spheres(self.samples).degenerate
        self.frame = rotated(principal_frame(self.samples, degenerate), weights.spherical)
        real_open = torch.empty(0, found.rows.shape[1], dtype=torch.float64)
        self.maker = TableMaker(self.frame, real_open)
        self.shapes = LeftOutShapes(self.frame, weights.between)
        self.known = self.maker.held_out_samples(torch.nonzero(~degenerate[self.samples.classes]).flatten())

    def validate(self):
        """Distances without the samples' sets, before classes of unlike sizes are made comparable."""
        found = self.maker.tables(self.shapes, self.known, [self.weights.shared])[0]
        growths = np.concatenate([self.growths(part, found.mean_error) for part in self.known])
        nearest = np.concatenate([part.assigned for part in self.known])
        places = (nearest == found.assigned[:, np.newaxis]).argmax(axis=1)
        return replace(found, distances=found.distances * growths[np.arange(len(places)), places])

    def growths(self, part, mean_error):
        """How far out new samples lie, for each sample and each of its nearest classes."""
        return class_sizes.growths(mean_error, self.maker._sizes(part).numpy(), self.maker.typical_size)

    def norms(self, rows):
        """Distances of new rows to all classes."""
        radii = torch.ones(len(self.frame.means), dtype=torch.float64)
        scorer = self.shapes.shapes(self.weights.shared, 1.0, radii).scorer(1)
        return 1 - scorer.all(torch.from_numpy(rows) - self.frame.origin)[0]


def table(rows, classes, weights=None, units=None, groups=None):
    own = np.arange(len(rows))
    units = own if units is None else units
    weights = np.ones(len(rows)) if weights is None else weights
    return Table(rows, classes, weights, units, units if groups is None else groups)


def groups_of_four_sizes(n_classes=5, n_features=4, seed=0):
    """Classes that overlap, with more rows than 4 features and fewer than 40; groups are alike within."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(n_classes), GROUP_SIZES.sum())
    groups = np.repeat(np.arange(n_classes * len(GROUP_SIZES)), np.tile(GROUP_SIZES, n_classes))
    stretch = np.exp(rng.normal(scale=0.5, size=(n_classes, n_features)))
    rows = rng.normal(size=(n_classes, n_features))[classes] + stretch[classes] * rng.normal(size=(len(classes), 1))
    rows += stretch[classes] * (rng.normal(size=(groups[-1] + 1, n_features))[groups] + rng.normal(size=rows.shape))
    order = rng.permutation(len(rows))
    return table(rows[order], classes[order], groups=groups[order])


def weighted(found, seed=1):
    return found._replace(weights=np.random.default_rng(seed).gamma(2, 0.5, size=len(found.rows)))


def with_near_duplicates(found, seed=2):
    """Within each group, rows are duplicates of another one: up to four together, and some alone."""
    rng = np.random.default_rng(seed)
    units, rows = np.arange(len(found.rows)), found.rows.copy()
    for group in np.unique(found.groups):
        mine = np.flatnonzero(found.groups == group)
        for unit in np.split(mine, range(4, len(mine), 4)):
            units[unit[: max(1, len(unit) - 1)]] = unit[0]
    return found._replace(units=units, rows=rows[units] + 0.01 * rng.normal(size=rows.shape))


def across_classes(found):
    """Groups of all sizes join one of another class each."""
    joined = found.groups.copy()
    n_groups = len(GROUP_SIZES)
    for group in range(0, n_groups, 2):
        joined[joined == n_groups + (group + 3) % n_groups] = group
    joined[joined == 2 * n_groups] = 7
    return found._replace(groups=joined)


def with_crossed_duplicates(found):
    """All groups of two rows or more have the same four texts: there are more sets than units."""
    units = np.arange(len(found.rows))
    for group in np.unique(found.groups[found.groups % len(GROUP_SIZES) > 1]):
        mine = np.flatnonzero(found.groups == group)
        units[mine] = len(units) + 4 * found.classes[mine] + np.arange(len(mine)) % 4
    return found._replace(units=units)


def with_a_degenerate_class(found):
    """All rows of one class are equal."""
    rows = found.rows.copy()
    rows[found.classes == 2] = rows[found.classes == 2].mean(axis=0)
    return found._replace(rows=rows)


TABLES = {
    "alone": lambda p, k=5: table(*groups_of_four_sizes(k, p)[:2]),
    "groups": lambda p, k=5: weighted(groups_of_four_sizes(k, p)),
    "near duplicates": lambda p, k=5: weighted(with_near_duplicates(groups_of_four_sizes(k, p))),
    "across classes": lambda p, k=5: weighted(across_classes(groups_of_four_sizes(k, p))),
    "crossed duplicates": lambda p, k=5: weighted(with_crossed_duplicates(groups_of_four_sizes(k, p))),
    "degenerate class": lambda p, k=5: weighted(with_a_degenerate_class(groups_of_four_sizes(k, p))),
}


def totals_of(values, weights):
    return np.bincount(np.unique(values, return_inverse=True)[1], weights)


class Moments:
    """Mean and scatter of one class's rows by definition, their units being independent of each other."""

    def __init__(self, found, k, kept):
        mine = kept & (found.classes == k)
        rows, weights = found.rows[mine], found.weights[mine]
        of_units = totals_of(found.units[mine], weights)
        n_features = found.rows.shape[1]
        self.mean, self.scatter, self.freedom = None, np.zeros((n_features, n_features)), 0.0
        if len(rows):
            self.mean = np.average(rows, axis=0, weights=weights)
            self.scatter = (rows - self.mean).T @ np.diag(weights) @ (rows - self.mean)
        if len(of_units) > 1:
            self.freedom = weights.sum() - np.square(of_units).sum() / weights.sum()


class Fitted:
    """Shapes of all classes from the rows that are ``kept``, by definition: everything is computed from them alone.

    A class of ``held_out`` is no class of the background. What is known of a class's own spread stays as it was.
    Beside a ``whole`` fit the terms are kept that the table of ``left_out`` names: ``_kept_within``, ``_kept_shared``.
    """

    def __init__(self, found, weights, kept=None, held_out=None, degenerate=(), whole=None):
        kept = np.ones(len(found.rows), dtype=bool) if kept is None else kept
        self.weights, labels, self.n_features = weights, np.unique(found.classes), found.rows.shape[1]
        self.parts = [Moments(found, k, kept) for k in labels]
        for k in degenerate:
            self.parts[k].freedom, self.parts[k].scatter = 0.0, 0 * self.parts[k].scatter
        self.freedom = sum(part.freedom for part in self.parts)
        self.scatter = sum(part.scatter for part in self.parts if part.freedom or whole)
        self.sphere = weights.spherical * np.trace(self.scatter) / self.freedom / self.n_features
        self.within = (1 - weights.spherical) * self.scatter / self.freedom + self.sphere * np.eye(self.n_features)
        self.inflation = 1.0
        means = np.array([part.mean for k, part in enumerate(self.parts) if part.mean is not None and k != held_out])
        self.origin, self.between, self.n_means = means.mean(axis=0), None, len(means)
        self.n_axes = np.linalg.matrix_rank(found.rows[kept] - means.mean(axis=0))
        if whole:
            self._kept_within(whole)
        self.shared = self.within
        if weights.between is not None:
            self.scattered = np.cov(means.T)
            self.gamma = np.trace(np.linalg.solve(self.within, self.scattered)) / self.n_axes
            self.between = (1 - weights.between) * self.scattered + weights.between * self.gamma * self.within
            self.shared = self.within + self.within @ np.linalg.solve(self.between, self.within)
        reference, scale = self._kept_shared(whole, held_out is not None) if whole else (self.shared, 1.0)
        spreads = [
            np.trace(np.linalg.solve(reference, part.scatter)) / part.freedom
            for part in (whole or self).parts
            if part.freedom
        ]
        self.typical = np.mean(spreads) / (whole or self).n_axes / scale

    def _kept_within(self, whole):
        """T' = ι (T − κ VᵀV): the sphere shrinks as T does in the mean over the axes."""
        lost, a = whole.scatter - self.scatter, self.weights.spherical
        of_sphere = 1.0
        if whole.n_axes == self.n_features:
            of_sphere = np.mean(whole.sphere / np.linalg.eigvalsh(whole.within))
        shrunk = of_sphere * np.trace(lost) / np.trace(whole.scatter)
        self.inflation = (1 - shrunk) * whole.freedom / self.freedom
        self.within = self.inflation * (whole.within - (1 - a) / whole.freedom * lost)

    def _kept_shared(self, whole, without_class):
        """Q', of which the diagonal changes by one factor; gives what it was, and the factor by which Q' is larger."""
        if self.between is None:
            return whole.within, self.inflation
        b, left = self.weights.between, 1 - 1 / (whole.n_means - 1) if without_class else 1.0
        variances, axes = eigh(whole.scattered, whole.within)
        variances, back = np.maximum(variances, 0), np.linalg.inv(axes)
        was = 1 + left / ((1 - b) * variances + left * b * whole.gamma)
        ratio = self.inflation * (self.n_means - 1) / (whole.n_means - 1)
        exact = 1 + ratio / ((1 - b) * variances + ratio * b * self.gamma)
        factor = np.mean((exact / was)[-whole.n_axes :])  # without the axes off the span
        self.shared = self.shared + self.inflation * back.T @ np.diag(factor * was - exact) @ back
        return back.T @ np.diag(was) @ back, self.inflation * factor

    def ellipsoid(self, k):
        """Centre and matrix of one class."""
        part, rho = self.parts[k], self.weights.shared
        centre = part.mean
        if self.between is not None:
            centre = centre + self.within @ np.linalg.solve(self.between, centre - self.origin)
        if not part.freedom:
            return centre, ((1 - rho) * self.typical + rho) * self.shared
        return centre, (1 - rho) * part.scatter / part.freedom + rho * self.shared

    def allowance(self, k, *, without_class):
        """(c_k − μ)ᵀ B⁻¹ (c_k − μ); without a class the divisor of B₀ is less by one."""
        if self.between is None:
            return 0.0
        away, b = self.parts[k].mean - self.origin, self.weights.between
        fewer = 1 - 1 / (self.n_means - 1) if without_class else 1.0
        return away @ np.linalg.solve((1 - b) * self.scattered / fewer + b * self.gamma * self.within, away)

    def distance(self, row, k):
        centre, matrix = self.ellipsoid(k)
        return np.sqrt((row - centre) @ np.linalg.solve(matrix, row - centre))


class Refits:
    """Fits without the rows that go with a row; the terms of the module's table are kept."""

    def __init__(self, found, weights):
        self.found, self.weights = found, weights
        self.labels = np.unique(found.classes)
        everything = np.ones(len(found.rows), dtype=bool)
        self.degenerate = [k for k in self.labels if np.trace(Moments(found, k, everything).scatter) < 1e-9]
        self.whole = Fitted(found, weights, degenerate=self.degenerate)
        #: Rows that are left out when each row is scored.
        self.gone = (found.groups == found.groups[:, np.newaxis]) | (found.units == found.units[:, np.newaxis])
        self.refits = {}

    def without(self, i, *, held_out=False):
        held_out = self.found.classes[i] if held_out else None
        key = self.gone[i].tobytes(), held_out
        if key not in self.refits:
            self.refits[key] = Fitted(self.found, self.weights, ~self.gone[i], held_out, self.degenerate, self.whole)
        return self.refits[key]

    def distance(self, i, k, *, held_out=False):
        """Distance of a row to a class, without what goes with it; and without its class in the background."""
        return self.without(i, held_out=held_out).distance(self.found.rows[i], k)

    def to_means(self, i):
        """Distances of a row to all class means in the metric of T, without what goes."""
        fitted = self.without(i)
        offsets = [None if part.mean is None else self.found.rows[i] - part.mean for part in fitted.parts]
        squares = [np.inf if off is None else off @ np.linalg.solve(fitted.within, off) for off in offsets]
        return np.sqrt(squares)


def check_against(fit, refits, step=1, rtol=1e-6):
    """Compare every so many distances of the validation with refits."""
    found, validation = refits.found, fit.validate()
    checked = np.arange(0, len(fit.known[0].sources), step)
    rows = fit.known[0].sources.numpy()[checked]
    distances = np.array([refits.to_means(i) for i in rows])
    found_distances = label_distances(fit.frame, fit.known[0].sources).sqrt().numpy()[checked]
    np.testing.assert_allclose(found_distances, distances, rtol=rtol)
    np.testing.assert_array_equal(validation.known.classes, found.classes[fit.known[0].sources])
    np.testing.assert_array_equal(validation.known.weights, found.weights[fit.known[0].sources])
    own = np.arange(len(rows)), found.classes[rows]
    for part, kind, held_out in ((fit.known[0], validation.known, False), (fit.known[1], validation.open[0], True)):
        nearest, assigned = part.assigned.numpy()[checked], kind.assigned[checked]
        if held_out:
            distances[own] = np.inf
        _check_nearest(nearest, distances, rtol)
        pairs = zip(rows, nearest, strict=True)
        literal = np.array([[refits.distance(i, k, held_out=held_out) for k in labels] for i, labels in pairs])
        places = (nearest == assigned[:, np.newaxis]).argmax(axis=1)
        chosen = np.arange(len(rows)), places
        np.testing.assert_allclose(kind.distances[checked], literal[chosen], rtol=rtol)
        allowances = [refits.whole.allowance(k, without_class=held_out) for k in refits.labels]
        sizes = fit.maker._sizes(part).numpy()[checked]
        allowances = np.array(allowances)[nearest] + class_sizes.FREQUENCY * np.log(sizes)
        literal = (literal / fit.growths(part, validation.mean_error)[checked]) ** 2 - allowances
        assert (literal[chosen] <= literal.min(axis=1) + rtol * np.abs(literal).max()).all()


def _check_nearest(nearest, distances, rtol):
    """The classes are the three nearest ones; where fewer remain, the nearest one stands again."""
    numbers = np.arange(len(nearest))[:, np.newaxis]
    wanted = np.sort(distances, axis=1)[:, : nearest.shape[1]]
    wanted = np.where(np.isfinite(wanted), wanted, wanted[:, :1])
    np.testing.assert_allclose(distances[numbers, nearest], wanted, rtol=rtol)
    for row, of_row in zip(nearest, wanted, strict=True):
        assert len(set(row)) == len(row) - (of_row[1:] == of_row[0]).sum()


@pytest.mark.parametrize(
    ("kind", "numbers", "weights"),
    # Features, classes, and every which row is compared: fewer features than a class has samples, more, and more than
    # there are samples.
    [(kind, ((4, 8, 5), (40, 8, 13), (170, 6, 31))[i % 3], WITH_NONE[i // 2]) for i, kind in enumerate(TABLES)],
    ids=str,
)
def test_samples_are_scored_as_by_a_fit_without_their_set(kind, numbers, weights, monkeypatch):
    n_features, n_classes, step = numbers
    found = TABLES[kind](n_features, n_classes)
    refits, likelihoods = Refits(found, weights), []
    for is_refit in (False, True):  # by changes of low rank, and by refits of whole matrices
        monkeypatch.setattr(left_out_shapes, "refit_is_faster", lambda *_, is_refit=is_refit: is_refit)
        fit = found.fit(weights)
        check_against(fit, refits, step, 1e-4 if n_features > 40 else 1e-6)
        own = fit.known[0]._replace(assigned=fit.samples.classes[fit.known[0].sources])
        likelihoods.append(fit.shapes.log_likelihoods(own, SHARED_SHRINKAGES, fit.samples.weights[own.sources]))
    np.testing.assert_allclose(*likelihoods, rtol=1e-9)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda weights: str(tuple(weights)))
def test_the_ellipsoids_are_those_of_the_covariances(kind, weights):
    found = TABLES[kind](4)
    fit, refits = found.fit(weights), Refits(found, weights)
    new = np.random.default_rng(5).normal(size=(9, found.rows.shape[1]))
    norms = fit.norms(new)
    for k in refits.labels:
        centre, matrix = refits.whole.ellipsoid(k)
        squared = np.einsum("ij,ij->i", new - centre, np.linalg.solve(matrix, (new - centre).T).T)
        np.testing.assert_allclose(norms[:, k], np.sqrt(squared), rtol=1e-8)
        np.testing.assert_allclose(fit.frame.origin + fit.shapes.centres[k] @ fit.frame.back, centre, rtol=1e-8)


@pytest.mark.parametrize(("n_classes", "smallest"), [(5, 0.2), (16, 0.125)])
def test_the_shares_are_the_mean_of_those_with_the_best_f1_of_left_out_samples(n_classes, smallest):
    found = groups_of_four_sizes(n_classes, n_features=6)
    scores = {}
    for between in (smallest, 0.4, 0.6):
        for shared in SHARED_SHRINKAGES:
            fit = found.fit(Weights(0.3, between, shared))
            validation = fit.maker.tables(fit.shapes, fit.known, [shared])[0]
            scores[between, shared] = best_scale(validation)[1]
    best = max(scores.values())
    assert sorted(scores.values())[-2] < best
    error = np.sqrt(best * (1 - best) / validation.n_independent)
    weights, pairs = np.exp((np.array([*scores.values()]) - best) / error), np.array([*scores])
    odds = np.exp(np.average(np.log(pairs / (1 - pairs)), axis=0, weights=weights))
    fit = found.fit(Weights(0.3, 0.5, 0.5))
    np.testing.assert_allclose(_choose_shrinkages(fit.maker, fit.known), odds / (1 + odds))


def test_equally_good_shares_leave_the_likeliest():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2)) * [10, 1]
    # Classes of different shapes that lie far apart.
    rows[1000:] = rows[1000:, ::-1]
    rows[1000:] += 1e4
    found = table(rows, np.repeat([0, 1], 1000))
    fit = found.fit(Weights(0.3, None, 0.5))
    between, shared = _choose_shrinkages(fit.maker, fit.known)
    assert between is None
    assert shared == pytest.approx(0.1)
