"""Objectives of text encoders of the literature: what they draw, keep and compute in an epoch."""

import numpy as np
import pytest
import torch
from torch.nn import functional
from training_helpers import SHORT, overlapping_rows

from skellipsoid._base import Learner
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.torch.contrastive import start_projection, train_projection
from skellipsoid._encoders.torch.rows import FrozenRows, TokenRows
from skellipsoid_bench.literature._torch import objectives
from skellipsoid_bench.literature._torch.objectives import (
    ClassSampler,
    CrossEntropySettings,
    DistanceAwareSettings,
    GranularBallSettings,
    KCenterSettings,
    KNNContrastiveSettings,
)

CLASSES, ALL = np.repeat(np.arange(4), 10), np.arange(40)
#: Settings of each objective.
KINDS = {
    "cross-entropy": (CrossEntropySettings, {}),
    "DA-ADB": (DistanceAwareSettings, {"scale": 4.0}),
    "CLAB": (KCenterSettings, {"contrastive_weight": 0.25, "n_positives": 3, "n_negatives": 1, "normalize": True}),
    "KNNCL": (
        KNNContrastiveSettings,
        {"contrastive_weight": 0.1, "temperature": 0.3, "n_neighbors": 4, "n_positives": 3, "queue_size": 70},
    ),
    "MOGB": (
        GranularBallSettings,
        {"ball_learning_rate": 1e-2, "split_purity": 0.9, "split_size": 5, "min_purity": 1.0},
    ),
}


def settings(kind, **changed):
    of_kind, own = KINDS[kind]
    return of_kind(**SHORT | {"normalize": False} | own | changed)


def train(embeddings, kind, **changed):
    """Train W, and give it with what was noted in each epoch."""
    projection = start_projection(8, 8, 0)
    rows, chosen = FrozenRows(embeddings), settings(kind, **changed)
    return projection.weight, train_projection(rows, CLASSES, 4, projection, chosen, 0)


@pytest.fixture
def embeddings():
    return overlapping_rows()[0]


@pytest.fixture
def objective(embeddings):
    """Make an objective of 40 rows, some of them held out: ``objective(kind, training=..., **changed)``."""

    def make(kind, training=ALL, **changed):
        chosen, rng = settings(kind, **changed), np.random.default_rng(0)
        learner = Learner(FrozenRows(embeddings), start_projection(8, 8, 0), CLASSES, 4, training, chosen, rng)
        return chosen.objective(learner)

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_the_classifier_of_the_objective_decides_when_to_stop(embeddings, kind, monkeypatch):
    seen, made_by = [], settings(kind).objective
    logits = made_by.logits

    def noting(objective, features):
        seen.append(len(features))
        return logits(objective, features)

    monkeypatch.setattr(made_by, "logits", noting)
    chosen = {"max_iter": 40, "n_iter_no_change": 2, "learning_rate": 0.2}
    _, history = train(embeddings, kind, early_stopping=True, **chosen)
    assert seen.count(8) >= history.n_iter  # two held-out texts of each class
    assert history.n_iter == int(np.argmax(history.scores)) + 1 + 2
    assert history.stopped_early


# What is drawn


@pytest.fixture
def sampler(objective):
    """What draws among training texts."""
    return lambda *training: ClassSampler(objective("cross-entropy", *training).learner)


def test_positives_are_other_texts_of_the_class_and_negatives_of_another(sampler):
    batch = np.array([0, 13, 39, 13])
    positives, negatives = sampler().positives(batch, 9), sampler().negatives(batch, 50)
    assert (CLASSES[positives] == CLASSES[batch][:, None]).all()
    assert (positives != batch[:, None]).all()
    assert all(len(set(row)) == 9 for row in positives.tolist())
    assert (CLASSES[negatives] != CLASSES[batch][:, None]).all()
    assert {*CLASSES[negatives[0]]} == {1, 2, 3}


def test_only_training_texts_are_drawn_and_small_classes_are_repeated(sampler):
    few = sampler(np.array([0, 1, 10, 20, 21, 22, 23]))
    assert few.positives(np.array([0]), 4).tolist() == [[1] * 4]
    assert few.positives(np.array([10]), 2).tolist() == [[10, 10]]
    assert {*few.negatives(np.array([0] * 30), 3).ravel()} <= {10, 20, 21, 22, 23}
    alone = sampler(np.arange(10))
    assert alone.negatives(np.array([0, 1]), 3).shape == (2, 0)


# KNNCL


def test_the_queue_keeps_the_newest_keys_of_unit_length(objective):
    made = objective("KNNCL")
    for batch in (np.arange(16), np.arange(16, 32)):
        list(made.losses(batch))
    # 2 · 16 · 3 keys, of which the newest 70 stay.
    assert made.keys.shape == (70, 8)
    torch.testing.assert_close(made.keys.norm(dim=1), torch.ones(70))
    assert not made.keys.requires_grad
    assert made.key_classes.tolist() == np.repeat(CLASSES[:32], 3)[-70:].tolist()


def test_the_momentum_encoder_is_a_copy_of_the_text_model(tiny_model, texts):
    rows = TokenRows(TextBackbone.load(tiny_model), texts)
    copied = rows.copy()
    (own,), (other,) = rows.modules_to_keep(), copied.modules_to_keep()
    pairs = list(zip(own.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) and a.data_ptr() != b.data_ptr() for a, b in pairs)
    assert all(a.requires_grad and not b.requires_grad for a, b in pairs)
    with torch.no_grad():
        torch.testing.assert_close(copied.plain(np.arange(4)), rows.plain(np.arange(4)))
        for parameter in own.parameters():
            parameter.zero_()
        assert copied.plain(np.arange(4)).abs().max() > 0.1


# DA-ADB


def test_class_means_are_those_at_the_start_of_the_epoch(objective):
    made = objective("DA-ADB", training=np.arange(25))
    first = made.means
    torch.testing.assert_close(first[0], functional.relu(made.learner.rows.embeddings[:10]).mean(0))
    # Without a training text a class has no mean.
    assert len(first) == 3
    with torch.no_grad():
        made.learner.projection.weight.mul_(2)
    list(made.losses(np.arange(4)))
    assert made.means is first
    made.start_epoch()
    torch.testing.assert_close(made.means, 2 * first)


# MOGB


def test_the_second_stage_is_one_step_of_all_texts_at_its_own_rate(embeddings, monkeypatch):
    rates, step = [], torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda adam: rates.append(adam.param_groups[0]) or step(adam))
    train(embeddings, "MOGB", max_iter=2, ball_learning_rate=1e-3)
    # Three batches of at most 16 texts, then all 40.
    assert [each["initial_lr"] for each in rates] == [0.01, 0.01, 0.01, 0.001] * 2


def test_the_ball_loss_is_the_mean_over_texts_whatever_the_batch_size(objective, monkeypatch):
    monkeypatch.setattr(objectives, "FEATURE_DROPOUT", 0.0)
    totals = []
    for batch_size in (7, 40):
        made = objective("MOGB", batch_size=batch_size)
        monkeypatch.setattr(made.learner.rows, "dropped", made.learner.rows.plain)
        parts = list(made.ball_losses(ALL))
        assert len(parts) == -(-40 // batch_size)
        totals.append(sum(parts).item())
    assert totals[0] == pytest.approx(totals[1])


def test_balls_that_are_not_pure_do_not_count(objective, embeddings):
    # Equal rows of two classes cannot be divided.
    embeddings[:] = 1.0
    made = objective("MOGB")
    assert list(made.ball_losses(ALL)) == []
    assert len(list(objective("MOGB", min_purity=0.2).ball_losses(ALL))) > 0
