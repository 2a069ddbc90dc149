"""Losses, distances and radii against hand-computed values, literal sums and automatic differentiation."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from skellipsoid._torch.distances import euclidean
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


@pytest.mark.parametrize(
    ("loss", "norms", "losses", "slopes"),
    [
        # eq. 13: max(r - 2, 0)
        (expansion_loss, [0.0, 1.5, 2.25, 7.0], [0, 0, 0.25, 5], [0, 0, 1, 1]),
        # eq. 15 with β = 0.5: (2 - r) + 0.5 for r < 2, 0.5 exp(2 - r) for r >= 2
        (
            partial(contraction_loss, beta=0.5),
            [0.0, 1.0, 2.0, 3.0, 2 + math.log(4)],
            [2.5, 1.5, 0.5, 0.5 / math.e, 0.125],
            [-1, -1, -0.5, -0.5 / math.e, -0.125],
        ),
        # The contraction without its exponential.
        (inside_loss, [0.0, 1.0, 3.0], [2, 1, 0], [-1, -1, 0]),
        # η = 0.1: it shrinks below r = 2.1, and expands above r = 2.5.
        (other_class_loss, [0.0, 2.0, 2.2, 2.4, 3.5], [0.21, 0.01, 0, 0, 0.1], [-0.1, -0.1, 0, 0, 0.1]),
    ],
)
def test_losses_and_slopes_by_hand(loss, norms, losses, slopes):
    rows = tensor(norms).requires_grad_()
    found = loss(rows, RADIUS)
    np.testing.assert_allclose(found.detach(), losses, atol=1e-15)
    np.testing.assert_allclose(*torch.autograd.grad(found.sum(), rows), slopes, atol=1e-15)
    assert loss(torch.ones(3), RADIUS.float()).dtype == torch.float32


def literal_contrastive_loss(features, classes, temperature):
    """eq. 2 by double loops over anchors and their partners, the mean over anchors that have one."""
    per_anchor = []
    for i in range(len(features)):
        others = [a for a in range(len(features)) if a != i]
        partners = [p for p in others if classes[p] == classes[i]]
        if partners:
            similar = {a: (features[i] @ features[a]) / temperature for a in others}
            denominator = sum(similar[a].exp() for a in others)
            per_anchor.append(-sum((similar[p].exp() / denominator).log() for p in partners) / len(partners))
    return sum(per_anchor) / len(per_anchor)


def with_gradient(loss, features, *given):
    """A loss and its gradient."""
    features = features.clone().requires_grad_()
    value = loss(features, *given)
    return value.detach(), torch.autograd.grad(value, features)[0]


@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(
    "classes", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1, 1], [0, 1, 1, 2, 3], [5, 5], [0, 1, 0, 1, 0, 1, 4, 4]], ids=str
)
def test_contrastive_loss_is_the_literal_sum(classes, temperature):
    rows = np.random.default_rng(0).normal(size=(len(classes), 4))
    features = normalize(tensor(rows), dim=1)
    found = with_gradient(supervised_contrastive_loss, features, torch.tensor(classes), temperature)
    expected = with_gradient(literal_contrastive_loss, features, classes, temperature)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("classes", [[0, 1, 2, 3], [0, 0, 1, 2], [0], [0, 1], [3, 3, 3]], ids=str)
def test_contrastive_loss_is_never_nan_and_0_of_single_anchors(classes):
    # Equal and opposite rows at a low temperature, in single precision.
    features = torch.tensor([[1.0, 0], [-1, 0], [1, 0], [1, 0]])[: len(classes)]
    loss, gradient = with_gradient(supervised_contrastive_loss, features, torch.tensor(classes), 0.01)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    if len(set(classes)) == len(classes):
        assert not loss
        assert not gradient.any()


def test_distances_near_0_are_accurate_and_do_not_depend_on_the_number_of_rows():
    # 40 rows far from 0: more than the 25 from which torch would compute distances by a matrix product.
    rows = 10 + torch.randn(40, 768, generator=torch.Generator().manual_seed(0))
    moved = rows + 1e-3
    rows.requires_grad_()
    found = euclidean(rows, rows.detach())
    assert not found.diagonal().any()
    found.diagonal().sum().backward()
    assert not rows.grad.any()
    found = euclidean(rows, moved)
    torch.testing.assert_close(torch.cat([euclidean(part, moved[:20]) for part in rows.split(7)]), found[:, :20])
    expected = (rows.double().unsqueeze(1) - moved.double()).norm(dim=2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)
