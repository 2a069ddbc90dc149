"""Losses and distances against hand-computed values, literal sums and automatic differentiation."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from skellipsoid._encoders.torch.objectives import nearest_mean
from skellipsoid._torch.distances import euclidean, nearest_of
from skellipsoid._torch.losses import (
    contraction_loss,
    expansion_loss,
    inside_loss,
    other_class_loss,
    supervised_contrastive_loss,
)

RADIUS = torch.tensor(2.0, dtype=torch.float64)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def test_expansion_loss_by_hand():
    # eq. 13: max(r - 2, 0)
    assert expansion_loss(tensor([0.0, 1.5, 2.0, 2.25, 7.0]), RADIUS).tolist() == [0, 0, 0, 0.25, 5]


def test_contraction_loss_by_hand():
    # eq. 15 with β = 0.5: (2 - r) + 0.5 for r < 2, 0.5 exp(2 - r) for r >= 2
    losses = contraction_loss(tensor([0.0, 1.0, 2.0, 3.0, 2 + math.log(4)]), RADIUS, 0.5)
    np.testing.assert_allclose(losses, [2.5, 1.5, 0.5, 0.5 / math.e, 0.125], rtol=1e-15)


def slope(loss, norms):
    norms = norms.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(norms, RADIUS).sum(), norms)
    return gradient


def contraction(beta):
    return lambda norms, radii: contraction_loss(norms, radii, beta)


def test_slopes_by_hand():
    norms = tensor([0.0, 1.0, 2.0, 3.0])
    assert slope(expansion_loss, norms)[[0, 1, 3]].tolist() == [0, 0, 1]
    np.testing.assert_allclose(slope(contraction(0.5), norms), [-1, -1, -0.5, -0.5 / math.e], rtol=1e-15)


def test_ablation_losses_by_hand():
    # A = diag(2, 1/2), c = 0, Δ = 1: known (0.3, 0), of another class (1, 0), pseudo-open (0, 1) and (1, 0).
    component, radius = tensor([[2, 0], [0, 0.5]]), tensor(1.0)
    own, far, near = (torch.linalg.vector_norm(component @ tensor(z)) for z in ([0.3, 0], [1, 0], [0, 1]))
    assert (own.item(), far.item(), near.item()) == pytest.approx((0.6, 2, 0.5))
    assert expansion_loss(own, radius) == 0
    assert inside_loss(own, radius).item() == pytest.approx(0.4)  # ADB
    assert (inside_loss(own, radius) + other_class_loss(far, radius)).item() == pytest.approx(0.45)  # CLAB
    assert inside_loss(near, radius).item() == pytest.approx(0.5)  # ADB-Gen
    assert contraction_loss(near, radius, 0.5).item() == pytest.approx(1.0)
    assert inside_loss(far, radius) == 0
    assert contraction_loss(far, radius, 0.5).item() == pytest.approx(0.1839, abs=5e-5)


def test_the_loss_of_a_sample_of_another_class_by_hand():
    # Δ = 2, η = 0.1: it shrinks below r = 2.1, and expands above r = 2.5.
    norms = tensor([0.0, 2.0, 2.2, 2.4, 3.5])
    np.testing.assert_allclose(other_class_loss(norms, RADIUS), [0.21, 0.01, 0, 0, 0.1], atol=1e-15)
    np.testing.assert_allclose(slope(other_class_loss, norms), [-0.1, -0.1, 0, 0, 0.1])


def test_inside_is_the_contraction_without_its_exponential():
    norms = tensor([0.0, 1.0, 2.0, 3.0])
    assert inside_loss(norms, RADIUS).tolist() == contraction_loss(norms, RADIUS, 0.0).tolist() == [2, 1, 0, 0]
    np.testing.assert_array_equal(inside_loss(norms, RADIUS) + expansion_loss(norms, RADIUS), abs(norms - RADIUS))


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 2.0])
def test_contraction_on_the_boundary(beta):
    just_inside, on, just_outside = tensor([2 - 1e-9, 2.0, 2 + 1e-9])
    # The loss has no jump: β from both sides.
    for norm in (just_inside, on, just_outside):
        assert contraction_loss(norm, RADIUS, beta).item() == pytest.approx(beta, abs=1e-8)
    # Its slope jumps from -1 to -β.
    assert slope(contraction(beta), just_inside) == -1
    assert slope(contraction(beta), on) == -beta
    assert slope(contraction(beta), just_outside).item() == pytest.approx(-beta, abs=1e-8)


def test_expansion_has_no_jump():
    assert expansion_loss(tensor([2 + 1e-9]), RADIUS).item() == pytest.approx(0, abs=1e-8)


def test_losses_far_inside_and_far_outside_are_finite():
    norms = torch.tensor([0.0, 1e30], requires_grad=True)
    losses = contraction_loss(norms, torch.tensor(1e3), 0.5)
    np.testing.assert_allclose(losses.detach(), [1000.5, 0])
    losses.sum().backward()
    assert norms.grad.tolist() == [-1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_keep_the_precision(dtype):
    norms = torch.ones(3, dtype=dtype)
    for values in (
        expansion_loss(norms, norms),
        contraction_loss(norms, norms, 0.5),
        inside_loss(norms, norms),
        other_class_loss(norms, norms),
    ):
        assert values.dtype == dtype


def literal_contrastive_loss(features, classes, temperature):
    """eq. 2 by double loops over anchors and their partners, the mean over anchors that have one."""
    per_anchor = []
    for i in range(len(features)):
        others = [a for a in range(len(features)) if a != i]
        partners = [p for p in others if classes[p] == classes[i]]
        if not partners:
            continue
        denominator = sum(math.exp(float(features[i] @ features[a]) / temperature) for a in others)
        logs = [math.log(math.exp(float(features[i] @ features[p]) / temperature) / denominator) for p in partners]
        per_anchor.append(-sum(logs) / len(partners))
    return sum(per_anchor) / len(per_anchor)


def unit_rows(n_rows, n_features, seed=0):
    return normalize(tensor(np.random.default_rng(seed).normal(size=(n_rows, n_features))), dim=1)


def test_contrastive_loss_by_hand():
    features = tensor([[1, 0], [1, 0], [0, 1]])
    # Both anchors of class 0: -log(e / (e + 1)); the single row of class 1 is no anchor.
    loss = supervised_contrastive_loss(features, torch.tensor([0, 0, 1]), 1.0)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(
    "classes", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1, 1], [0, 1, 1, 2, 3], [5, 5], [0, 1, 0, 1, 0, 1, 4, 4]], ids=str
)
def test_contrastive_loss_is_the_literal_sum(classes, temperature):
    features = unit_rows(len(classes), 4)
    loss = supervised_contrastive_loss(features, torch.tensor(classes), temperature)
    expected = literal_contrastive_loss(features.numpy(), classes, temperature)
    assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_contrastive_loss_gradient():
    features = unit_rows(6, 3).requires_grad_()
    classes = torch.tensor([0, 0, 1, 1, 1, 2])
    assert torch.autograd.gradcheck(lambda rows: supervised_contrastive_loss(rows, classes, 0.2), features)


def test_contrastive_loss_of_single_anchors_is_zero():
    features = unit_rows(4, 3).requires_grad_()
    loss = supervised_contrastive_loss(features, torch.arange(4), 0.07)
    loss.backward()
    assert loss.item() == 0
    assert (features.grad == 0).all()


@pytest.mark.parametrize("classes", [[0, 0, 1, 2], [0], [0, 1], [3, 3, 3]], ids=str)
def test_contrastive_loss_is_never_nan(classes):
    # Equal and opposite rows at a low temperature, in single precision.
    features = torch.tensor([[1.0, 0], [-1, 0], [1, 0], [1, 0]])[: len(classes)].requires_grad_()
    loss = supervised_contrastive_loss(features, torch.tensor(classes), 0.01)
    loss.backward()
    assert loss.isfinite()
    assert features.grad.isfinite().all()


def test_contrastive_loss_prefers_classes_that_lie_together():
    together = tensor([[1, 0], [1, 0], [0, 1], [0, 1]])
    classes, wrong = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    good = supervised_contrastive_loss(together, classes, 0.1)
    assert good < 1e-3 < 4 < supervised_contrastive_loss(together, wrong, 0.1)


# Distances near 0 are accurate, and do not depend on the number of rows


def some_rows():
    """40 rows far from 0: more than the 25 from which torch would compute distances by a matrix product."""
    return 10 + torch.randn(40, 768, generator=torch.Generator().manual_seed(0))


def test_distances_of_rows_to_themselves_are_0_and_have_no_gradient():
    rows = some_rows().requires_grad_()
    found = euclidean(rows, rows.detach())
    assert not found.diagonal().any()
    found.diagonal().sum().backward()
    assert not rows.grad.any()


def test_distances_do_not_depend_on_the_number_of_rows():
    rows, moved = some_rows(), some_rows() + 1e-3
    found = euclidean(rows, moved)
    torch.testing.assert_close(torch.cat([euclidean(part, moved[:20]) for part in rows.split(7)]), found[:, :20])
    expected = (rows.double().unsqueeze(1) - moved.double()).norm(dim=2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)


def test_the_nearest_mean_is_found_among_near_ones():
    near = some_rows()[:1] + 1e-4 * torch.arange(-15, 15).unsqueeze(1)  # 30 means
    learner = SimpleNamespace(class_means=lambda: (near, torch.ones(30)))
    assert nearest_mean(learner, near).tolist() == list(range(30))


@pytest.mark.parametrize("origin", [0, 1e7], ids=["", "where products are rounding alone"])
@pytest.mark.parametrize("n_others", [2, 40])
def test_nearest_others_are_those_of_the_differences(n_others, origin):
    rows = origin + tensor(np.random.default_rng(0).normal(size=(200, 5)))
    others = origin + tensor(np.random.default_rng(1).normal(size=(n_others, 5)))
    expected = (rows.unsqueeze(1) - others).square().sum(2).argsort(dim=1)[:, :3]
    torch.testing.assert_close(nearest_of(rows, others, 3), expected)
