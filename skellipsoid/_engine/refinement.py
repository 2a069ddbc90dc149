"""The paper's two losses on ellipsoids that start at class covariances: they learn the lengths of the axes.

A class has as many numbers to learn as its rows span directions, instead of n²; all other directions follow their mean,
because the class's own rows say nothing there. Every known row counts by its distance to the class without that row.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .class_covariance import ClassCovariance
from .covariance import CovarianceFit, fit_covariances
from .geometry import class_balls
from .held_out import HeldOutRows, boundary_f1, hold_out
from .losses import contraction_loss, contraction_slope, expansion_loss, expansion_slope
from .pseudo_open import MOST_NEGATIVES, draw_negatives
from .settings import BoundarySettings
from .training import History, run_epochs

#: Rows of each class, and pseudo-open rows for each class, that one step sees at most.
MOST_ROWS = 256
#: All rows are seen at every step: an epoch is a few of them.
STEPS_PER_EPOCH = 5
#: F1 that each half of the classes must gain by learning.
SUPPORTED_GAIN = 0.005
SMALLEST_NORM = 1e-6


class AxisLearner:
    """Steps of Adam on the logarithms of all classes' squared eigenvalues, all rows at once.

    Parameters
    ----------
    fit : CovarianceFit
    real_open : Tensor of shape (n_open, n_features)
    negatives_from : Tensor of shape (n_classes,)
        Boolean: classes whose rows are mixed into pseudo-open ones.
    settings : BoundarySettings
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        fit: CovarianceFit,
        real_open: Tensor,
        negatives_from: Tensor,
        settings: BoundarySettings,
        rng: np.random.Generator,
    ) -> None:
        known = fit.samples
        self.fit, self.settings, device = fit, settings, known.rows.device
        self.n_rows = float(known.weights.sum())
        n_axes = [len(part.eigenvalues) for part in fit.parts]
        self.log_weights = torch.zeros(len(fit.parts), max(n_axes), device=device)
        self.n_axes = torch.tensor(n_axes, device=device).unsqueeze(1)
        self.optimizer = torch.optim.Adam([self.log_weights], lr=settings.learning_rate)
        self.learns = torch.tensor([not part.point for part in fit.parts], device=device)
        self.own, self.own_weights = self._known_terms(rng)
        mixed, n_wanted = known.of_classes(negatives_from), min(len(known), MOST_NEGATIVES)
        codes, weights = mixed.classes.cpu().numpy(), mixed.weights.cpu().numpy()
        negatives = draw_negatives(mixed.rows, codes, real_open, n_wanted, settings, rng, weights)
        self.negatives, self.negative_weights = self._open_terms(negatives, rng)

    def step(self) -> float:
        """One step; returns the mean loss per known row before it (eq. 16)."""
        gains = torch.cat([self.log_weights, self._off_axes()], dim=1).exp()
        gradient = torch.zeros_like(gains)
        total = self._add(gradient, self.own, self.own_weights, gains, expansion_loss, expansion_slope)
        total += self._add(
            gradient,
            self.negatives,
            self.negative_weights,
            gains,
            lambda norms, radii: contraction_loss(norms, radii, self.settings.beta),
            lambda norms, radii: contraction_slope(norms, radii, self.settings.beta),
        )
        gradient.mul_(gains).mul_(self.learns.unsqueeze(1)).div_(self.n_rows)
        # What the directions off the axes ask for, all axes carry together.
        self.log_weights.grad = gradient[:, :-1] + gradient[:, -1:] / self.n_axes.clamp_min(1) * self._is_axis()
        self.optimizer.step()
        return total / self.n_rows

    def gains(self) -> list[Tensor]:
        """Logarithms of the factors of each class's squared eigenvalues, the last one off the axes."""
        found = torch.cat([self.log_weights, self._off_axes()], dim=1).double()
        return [torch.cat([found[k, : len(part.eigenvalues)], found[k, -1:]]) for k, part in enumerate(self.fit.parts)]

    def _is_axis(self) -> Tensor:
        return torch.arange(self.log_weights.shape[1], device=self.n_axes.device) < self.n_axes

    def _off_axes(self) -> Tensor:
        return (self.log_weights * self._is_axis()).sum(1, keepdim=True) / self.n_axes.clamp_min(1)

    def _add(
        self,
        gradient: Tensor,
        terms: Tensor,
        weights: Tensor,
        gains: Tensor,
        loss: Callable[[Tensor, Tensor], Tensor],
        slope: Callable[[Tensor, Tensor], Tensor],
    ) -> float:
        """Loss of rows, (n_classes, n_rows), whose squared norms are ``terms`` · ``gains``; adds its gradient."""
        norms = torch.bmm(terms, gains.unsqueeze(2)).squeeze(2).sqrt_().clamp_min_(SMALLEST_NORM)
        radii = norms.new_tensor(self.fit.radius)
        pull = weights * slope(norms, radii) / (2 * norms)
        gradient.add_(torch.bmm(pull.unsqueeze(1), terms).squeeze(1))
        return float((weights * loss(norms, radii)).sum())

    def _known_terms(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        counts = [min(len(part.own_squares), MOST_ROWS) for part in self.fit.parts]
        terms, weights = self._padded(max(counts))
        for k, (part, distances, n_kept) in enumerate(zip(self.fit.parts, self.fit.left_out, counts, strict=True)):
            n_rows = len(part.own_squares)
            kept = torch.from_numpy(rng.permutation(n_rows)[:n_kept]).to(terms.device)
            along = part.own_squares[kept]
            alone = along @ part.precisions(self.fit.shrinkage)[0]
            ratios = distances[kept].nan_to_num(posinf=0.0).square() / alone.clamp_min(SMALLEST_NORM)
            along = along * ratios.unsqueeze(1)
            self._write(terms[k, :n_kept], part, along, along.new_zeros(n_kept))
            # A row without a class to score it, its group being left out, does not count.
            weights[k, :n_kept] = (part.scatter.weights * distances.isfinite())[kept] * (n_rows / n_kept)
        return terms, weights

    def _open_terms(self, rows: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Rows for each class, near ones more often and counting less, so that the expected loss is that of all."""
        n_kept = min(len(rows), MOST_ROWS)
        terms, weights = self._padded(max(1, n_kept))
        if not n_kept:
            return terms, weights
        distances = torch.cdist(rows, self.fit.centroids)
        shares = torch.softmax(-distances.double(), dim=0).cpu().numpy()
        for k, part in enumerate(self.fit.parts):
            chosen = np.arange(n_kept) if n_kept == len(rows) else rng.choice(len(rows), n_kept, p=shares[:, k])
            rate = np.ones(n_kept) / n_kept if n_kept == len(rows) else 1 / (shares[chosen, k] * n_kept * len(rows))
            offsets = rows[torch.from_numpy(chosen).to(rows.device)] - self.fit.centroids[k]
            self._write(terms[k], part, *part.squares(offsets))
            # As many open rows as known ones, however few of them are computed.
            weights[k] = torch.from_numpy(rate * self.n_rows).to(weights)
        return terms, weights

    def _padded(self, n_rows: int) -> tuple[Tensor, Tensor]:
        n_classes, n_axes = self.log_weights.shape
        return self.log_weights.new_zeros(n_classes, n_rows, n_axes + 1), self.log_weights.new_zeros(n_classes, n_rows)

    def _write(self, target: Tensor, part: ClassCovariance, along: Tensor, off: Tensor) -> None:
        """Write what each axis, and everything off the axes, contributes to the squared norm of rows."""
        weights, residual = part.weights(self.fit.shrinkage, self.fit.radius / self.fit.unit)
        target[:, : len(weights)] = along * weights
        target[:, -1] = off * residual


def learn_axes(
    fit: CovarianceFit,
    real_open: Tensor,
    settings: BoundarySettings,
    rng: np.random.Generator,
) -> tuple[list[Tensor] | None, History]:
    """Learn as far as held-out rows and held-out classes support it.

    Twice, some rows of every class and one half of the classes are held out: the rows make no covariance, the classes
    are not mixed into pseudo-open rows and judge nobody. The number of epochs after which the held-out rows are told
    apart best, those of the held-out classes being open, is what all rows learn together; none where not both trials
    gain by it.

    Returns
    -------
    gains : list of Tensor or None
        For ``CovarianceFit.factors``; ``None`` where the start is kept.
    history : History
        Of the runs with rows held out, or of the only run without ``early_stopping``.
    """
    everything = torch.ones(len(fit.parts), dtype=torch.bool, device=fit.centroids.device)
    if not settings.early_stopping:
        learner = AxisLearner(fit, real_open, everything, settings, rng)
        history = _run([learner], settings, None)
        return learner.gains(), history
    trials = [_Trial(fit, real_open, unknown, settings, rng) for unknown in _halves(everything, rng)]
    start = np.array([trial.score() for trial in trials])
    gained = []

    def score() -> float:
        gained.append(np.array([trial.score() for trial in trials]) - start)
        return float((start + gained[-1]).mean())

    history = _run([trial.learner for trial in trials], settings, score)
    # What one half of the classes gains by and the other loses by is chance.
    is_supported = (gained[history.best_epoch] > SUPPORTED_GAIN).all()
    if not is_supported:
        return None, history
    learner = AxisLearner(fit, real_open, everything, settings, rng)
    for _ in range((history.best_epoch + 1) * STEPS_PER_EPOCH):
        learner.step()
    return learner.gains(), history


class _Trial:
    """Learning without some rows and without some classes, and the judgement of those."""

    def __init__(
        self,
        fit: CovarianceFit,
        real_open: Tensor,
        unknown: Tensor,
        settings: BoundarySettings,
        rng: np.random.Generator,
    ) -> None:
        (learning, open_learning), judging = hold_out(fit.samples, real_open, settings.validation_fraction, rng)
        balls = class_balls(learning)
        self.fit = fit_covariances(learning, balls, open_learning, fit.shrinkage, validated=False)
        self.learner = AxisLearner(self.fit, open_learning, ~unknown, settings, rng)
        self.judge = HeldOutRows(*judging, balls.centroids, balls.points, unknown if unknown.any() else None)
        self.shapes = self.fit.factors().to(balls.radii.dtype)
        self.radii = torch.full_like(balls.radii, self.fit.radius)
        self.is_sized = settings.recalibrate

    def score(self) -> float:
        weights, residual = self.fit.weights(self.learner.gains())
        shapes = replace(self.shapes, weights=weights.to(self.radii), residual=residual.to(self.radii))
        return boundary_f1(self.judge.reach(shapes, self.radii), is_sized=self.is_sized)


def _run(learners: list[AxisLearner], settings: BoundarySettings, score: Callable[[], float] | None) -> History:
    def run_epoch() -> float:
        return float(np.mean([[learner.step() for _ in range(STEPS_PER_EPOCH)] for learner in learners]))

    return run_epochs(
        run_epoch,
        max_iter=settings.max_iter,
        n_iter_no_change=settings.n_iter_no_change,
        tol=settings.tol,
        score=score,
        # The start is a candidate too: what is no better than it is not worth learning.
        loss_breaks_ties=False,
        label="ellipsoids",
        verbose=settings.verbose,
    )


def _halves(everything: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Two halves of the classes, each to be unknown in turn; none are where too few would remain to mix."""
    first = ~everything
    if len(first) < 4:
        return first, first
    first[torch.from_numpy(rng.permutation(len(first))[: len(first) // 2]).to(first.device)] = True
    return first, ~first
