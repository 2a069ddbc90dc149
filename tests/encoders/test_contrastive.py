"""Training of features: the start of W, dropout views, the schedule, and which weights are kept."""

import numpy as np
import pytest
import torch
from training_helpers import SHORT, overlapping_rows

from skellipsoid._encoders.torch import contrastive
from skellipsoid._encoders.torch.contrastive import ContrastiveSettings, FrozenRows, start_projection, train_projection
from skellipsoid._samples.folds import fold_numbers


def settings(**changed):
    defaults = {"loss": "supcon", "normalize": True, "temperature": 0.1, "max_iter": 10}
    return ContrastiveSettings(**SHORT | defaults | changed)


def train(rows, classes, **changed):
    """Train W, of the width of the rows, on rows; gives the layer and what was noted."""
    layer = start_projection(rows.shape[1], rows.shape[1], 0)
    return layer, train_projection(FrozenRows(rows), classes, int(classes.max()) + 1, layer, settings(**changed), 0)


# The start of W


@pytest.mark.parametrize("n_components", [3, 40])
def test_a_projection_starts_with_orthonormal_directions(n_components):
    weight, other = (start_projection(32, n_components, seed).weight.detach() for seed in (0, 1))
    assert weight.shape == (n_components, 32)
    gram = weight @ weight.T if n_components < 32 else weight.T @ weight
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)
    assert abs(other - weight).max() > 1e-3


# Training


@pytest.mark.parametrize("normalize", [True, False])
def test_the_softmax_loss_is_of_the_features_that_are_shown(normalize, monkeypatch):
    """Lengths count only where features are not normalised."""
    monkeypatch.setattr(FrozenRows, "views", lambda own, rows: torch.cat([own.plain(rows)] * 2))  # without dropout
    rows, classes = overlapping_rows()
    chosen = {"loss": "softmax", "normalize": normalize, "batch_size": 40, "max_iter": 1}
    once, twice = (train(factor * rows, classes, **chosen)[1].losses[0] for factor in (1, 2))
    assert (twice == pytest.approx(once, rel=1e-5)) == normalize


def test_the_rate_rises_for_a_tenth_of_the_steps_and_falls_to_nothing(monkeypatch):
    rates, step = [], torch.optim.AdamW.step

    def noted(optimizer, *given):
        rates.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *given)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    train(*overlapping_rows(), learning_rate=1e-3, batch_size=64, max_iter=100)
    rates = 1000 * np.array(rates)
    assert len(rates) == 100
    assert 0 < rates[-1] < 0.03
    assert (np.diff(rates[:11]) > 0).all()
    assert (np.diff(rates[10:]) < 0).all()
    assert rates[[10, 55]] == pytest.approx([1, 0.5])


# Out-of-fold features


@pytest.mark.parametrize(("n_rows", "share"), [(7, 0.75), (75, 2 / 3)])
def test_out_of_fold_features_are_those_of_other_heads_turned_onto_the_final_ones(n_rows, share):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), n_rows)
    rows = torch.from_numpy((rng.normal(size=(4, 8))[classes] + rng.normal(size=(len(classes), 8))).astype(np.float32))

    def shown(features):
        return features / np.linalg.norm(features, axis=1, keepdims=True)

    # A final head whose features are turned far away from those of the others.
    final = shown(rows.numpy().astype(float)) @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    of_final, everything = torch.from_numpy(final.astype(np.float32)), np.arange(len(classes))
    given = np.ones(len(classes), dtype=bool), everything, (rows[:0], classes[:0])
    found = contrastive.cross_fit(rows, classes, 4, of_final, settings(max_iter=3), 0, *given).numpy()
    expected = final.copy()
    folds = fold_numbers(classes, everything, 3, np.random.default_rng(0))
    assert set(folds) == {0, 1, 2}
    for fold in range(3):
        rest = folds != fold
        head, _ = train(rows[torch.from_numpy(rest)], classes[rest], max_iter=3)
        unseen = shown(head(rows).detach().numpy().astype(float))
        # Where rows say nothing of a direction it stays: that is worth a tenth of what they say of one on average.
        stays = np.sqrt(0.1 * rest.sum() / 8) * np.eye(8)
        left, _, right = np.linalg.svd(np.vstack([unseen[rest], stays]).T @ np.vstack([final[rest], stays]))
        expected[~rest] = (1 - share) * final[~rest] + share * unseen[~rest] @ left @ right
    np.testing.assert_allclose(found, shown(expected), atol=1e-4)
    assert abs(shown(expected) - final).max() > 0.05


def test_trained_texts_are_spread_as_fresh_ones():
    rng = np.random.default_rng(0)
    means, classes = 3 * rng.normal(size=(5, 16)), np.repeat(np.arange(5), 80)
    trained = np.tile(np.arange(80) < 70, 5)
    spread = np.where(trained, 0.5, 0.8)[:, np.newaxis]
    features = torch.from_numpy((means[classes] + spread * rng.normal(size=(400, 16))).astype(np.float32))
    held = torch.from_numpy(np.flatnonzero(~trained))
    found = contrastive.spread_as_fresh(features, classes, trained, features[held], classes[held], trained)
    np.testing.assert_array_equal(found[held], features[held])
    offsets = [found[classes == k][:70] - found[classes == k][:70].mean(0) for k in range(5)]
    # 50 fresh texts: 5/7 of the way, in logarithms.
    assert torch.cat(offsets).std() == pytest.approx(0.5 * (0.8 / 0.5) ** (50 / 70), rel=0.03)
    for k in range(5):  # means stay
        own = torch.from_numpy(trained & (classes == k))
        np.testing.assert_allclose(found[own].mean(0), features[own].mean(0), atol=1e-5)


def test_without_fresh_texts_or_without_a_spread_nothing_moves():
    features, classes = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), np.arange(6)
    everything, first, halves = np.ones(6, dtype=bool), np.arange(6) < 3, np.repeat([0, 1], 3)
    equal = features[:1].repeat(6, 1)
    for of, *given in (
        (features, classes, everything, features[:0], classes[:0], everything),
        # Classes of one text each have no distance of their own.
        (features, classes, everything, features + 1, classes, everything),
        # Nor have equal texts.
        (equal, halves, everything, features, halves, everything),
        # A fresh text of a class that was not trained on says nothing.
        (features, halves, first, features[3:], halves[3:], first),
    ):
        assert torch.equal(contrastive.spread_as_fresh(of, *given), of)
