"""Linear heads on fixed features."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from skellipsoid._engine.boundary.heads import HeadSettings, head_loss, head_slope, train_head
from skellipsoid._engine.common.samples import Samples


def settings(loss, **changed):
    return HeadSettings(**({"loss": loss, "learning_rate": 0.01, "batch_size": 32, "max_iter": 100} | changed))


def clusters(seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(4), 60))
    X = (1.5 * np.eye(4)[y] + 0.3 * spread * rng.normal(size=(240, 4))).astype(np.float32)
    return torch.from_numpy(X - X.mean(axis=0)), torch.from_numpy(y)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_slopes_are_derivatives_of_the_losses(loss):
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(20, 3))).requires_grad_()
    classes = torch.from_numpy(rng.integers(3, size=20))
    head_loss(logits, classes, loss).sum().backward()
    torch.testing.assert_close(head_slope(logits.detach(), classes, loss), logits.grad)


def test_losses_of_one_row():
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    assert head_loss(logits, torch.tensor([0]), "softmax").item() == pytest.approx(0.4076, abs=1e-4)
    # ln(1 + e⁻²) + ln(1 + e) + ln 2
    assert head_loss(logits, torch.tensor([0]), "sigmoid").item() == pytest.approx(2.1334, abs=1e-4)


@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_a_head_is_about_as_good_as_logistic_regression(loss):
    X, y = clusters(spread=2.0)
    new, truth = clusters(seed=1, spread=2.0)
    head = train_head(Samples.of(X, y), settings(loss), 0)
    right = ((new @ head.weights.T + head.bias).argmax(1) == truth).float().mean().item()
    theirs = LogisticRegression().fit(X.numpy(), y.numpy()).score(new.numpy(), truth.numpy())
    assert right > theirs - 0.02
    assert head.history.losses[-1] < head.history.losses[0]


def test_the_head_with_the_smallest_held_out_loss_is_kept():
    X, y = clusters(spread=3.0)
    short, long = (
        train_head(Samples.of(X, y), settings("softmax", max_iter=n, learning_rate=0.1), 0) for n in (8, 100)
    )
    assert long.history.n_iter < 100
    assert max(long.history.scores) >= max(short.history.scores)
    again = train_head(Samples.of(X, y), settings("softmax", learning_rate=0.1), 0)
    assert torch.equal(again.weights, long.weights)
    other = train_head(Samples.of(X, y), settings("softmax", learning_rate=0.1), 1)
    assert not torch.equal(other.weights, long.weights)


def test_at_the_start_probabilities_are_shares_of_the_weights():
    X, y = clusters()
    weights = np.where(y.numpy() == 0, 3.0, 1.0)
    for loss in ("softmax", "sigmoid"):
        head = train_head(Samples.of(0 * X, y, 4, weights), settings(loss, max_iter=1, learning_rate=1e-9), 0)
        shares = head.bias.softmax(0) if loss == "softmax" else head.bias.sigmoid()
        np.testing.assert_allclose(shares, [0.5, 1 / 6, 1 / 6, 1 / 6], rtol=1e-5)


def test_classes_of_one_row_train_without_held_out_rows():
    head = train_head(Samples.of(torch.eye(3), torch.arange(3)), settings("softmax"), 0)
    assert head.history.scores == []
    assert (torch.eye(3) @ head.weights.T + head.bias).argmax(1).tolist() == [0, 1, 2]
