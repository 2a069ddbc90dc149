"""Losses of text encoders of the literature, on numbers worked by hand and by their defining properties."""

from math import exp, log

import numpy as np
import pytest
import torch
from torch.nn import functional

from skellipsoid_bench.literature._torch.losses import (
    distance_aware_logits,
    granular_ball_loss,
    k_center_contrastive_loss,
    knn_contrastive_loss,
    layer_losses,
)


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)


# DA-ADB


def test_distance_aware_logits_of_one_sample():
    # Distances 1 and 2 to the means, so that x' = e (3, 4) and ‖x'‖ = 5 e.
    features, means = tensor([3, 4]), tensor([3, 5], [5, 4], [30, 4])
    weights = tensor([2, 0], [0, 7], [-3, -4])
    length = 5 * exp(1) / (1 + 5 * exp(1))
    expected = 4 * length * np.array([3 / 5, 4 / 5, -1])
    np.testing.assert_allclose(distance_aware_logits(features, means, weights, 4.0)[0], expected)


# KNNCL


def test_knn_contrastive_loss_of_one_query():
    # Positives 0.8 and 0.6 (the nearest two of three), negatives 0.6 and 0.
    query, keys = tensor([1, 0]), tensor([0.8, 0.6], [0.6, 0.8], [-1, 0], [0.6, -0.8], [0, 1])
    key_classes = torch.tensor([0, 0, 0, 1, 2])
    negatives = exp(0.6 / 0.5) + exp(0)
    expected = np.mean([-log(exp(s / 0.5) / (exp(s / 0.5) + negatives)) for s in (0.8, 0.6)])
    found = knn_contrastive_loss(query, torch.tensor([0]), keys, key_classes, 2, 0.5)
    assert found.item() == pytest.approx(expected)


# CLAB


def test_k_center_contrastive_loss_of_three_members_as_the_public_code_counts():
    members, negatives = tensor([1, 0], [0.6, 0.8], [0, 1]).unsqueeze(0), tensor([0.8, -0.6], [-1, 0]).unsqueeze(0)
    e, to_negatives = (members[0] @ members[0].T).exp(), (members[0] @ negatives[0].T).exp().sum(1)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    losses = []
    for a, b in pairs:
        others = sum(e[pair] for pair in pairs if pair not in [(a, b), (b, a)])
        losses.append(-torch.log(e[a, b] / (e[a, b] + to_negatives[a] + to_negatives[b] + others)))
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(k_center_contrastive_loss(members, negatives), expected)


# MOGB


def test_granular_ball_loss_of_one_sample():
    # Distances: class 0 has balls at 1 and 3, so 1; class 1 at 4. Shares 0.2 and 0.8.
    features, centers, center_classes = tensor([0, 0]), tensor([1, 0], [0, 3], [0, 4]), torch.tensor([0, 0, 1])
    for own, share in ((0, 0.2), (1, 0.8)):
        found = granular_ball_loss(features, torch.tensor([own]), centers, center_classes, 2)
        assert found.item() == pytest.approx(-log(exp(-share) / (exp(-0.2) + exp(-0.8))))


def test_a_class_without_a_ball_is_left_out_with_its_samples():
    features = tensor([0, 0], [5, 5]).requires_grad_()
    centers, center_classes = tensor([1, 0], [0, 4]), torch.tensor([0, 2])
    loss = granular_ball_loss(features, torch.tensor([0, 1]), centers, center_classes, 3)
    loss.backward()
    alone = granular_ball_loss(features[:1].detach(), torch.tensor([0]), centers, torch.tensor([0, 1]), 2)
    torch.testing.assert_close(loss.detach(), alone)
    assert features.grad[0].any()
    assert features.grad.isfinite().all()
    assert not features.grad[1].any()


# DE


def test_the_redundancy_is_that_with_the_most_similar_earlier_layer():
    generator = torch.Generator().manual_seed(0)
    logits, classes = torch.randn(4, 5, 3, generator=generator), torch.tensor([0, 1, 2, 0, 1])
    crossed = [[functional.cross_entropy(logits[i], logits[j].softmax(1)) for j in range(i)] for i in range(1, 4)]
    expected = sum(functional.cross_entropy(layer, classes) for layer in logits) - 0.3 * sum(map(min, crossed))
    torch.testing.assert_close(layer_losses(logits, classes, 0.3), expected)
    torch.testing.assert_close(layer_losses(logits[:1], classes, 0.3), functional.cross_entropy(logits[0], classes))


def test_distance_aware_logits_are_finite_everywhere_and_need_one_mean_only():
    features = torch.tensor([[0.0, 0.0], [1e4, 0.0], [1e-30, 0.0]], requires_grad=True)
    logits = distance_aware_logits(features, torch.tensor([[0.0, 0.0], [1e4, 1e4]]), torch.eye(2), 4.0)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert features.grad.isfinite().all()
    assert logits.abs().max() <= 4
    alone = distance_aware_logits(tensor([3, 4]), tensor([0, 0]), tensor([3, 4]), 1.0)
    assert alone.item() == pytest.approx(5 / 6)
