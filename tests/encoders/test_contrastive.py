"""Training of features: the start of W, dropout views, the schedule, and which weights are kept."""

import random
from typing import NamedTuple

import numpy as np
import pytest
import torch
import transformers
from operator_helpers import Operators
from text_models import read

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.torch import contrastive
from skellipsoid._encoders.torch.contrastive import (
    ContrastiveSettings,
    FrozenRows,
    TokenRows,
    start_projection,
    train_projection,
)
from skellipsoid._encoders.torch.rows import Rows
from skellipsoid._samples.folds import fold_numbers, validation_rows
from skellipsoid._torch.training_loop import History


def settings(**changed):
    defaults = {
        "loss": "supcon",
        "normalize": True,
        "temperature": 0.1,
        "cross_fit": False,
        "learning_rate": 1e-2,
        "weight_decay": 0.01,
        "batch_size": 16,
        "max_iter": 10,
        "early_stopping": False,
        "validation_fraction": 0.25,
        "n_iter_no_change": 5,
        "tol": 0.0,
        "verbose": 0,
    }
    return ContrastiveSettings(**defaults | changed)


class Trained(NamedTuple):
    """W after a training and before it, what was noted in each epoch, and the layer."""

    weight: torch.Tensor
    start: torch.Tensor
    history: History
    layer: torch.nn.Linear


def rows_of(given):
    return given if isinstance(given, Rows) else FrozenRows(given)


def train(given, classes, *, seed=0, n_validation=0, layer=None, **changed):
    """Train W, of the width of the rows, on rows or on what makes their views."""
    rows, n_classes = rows_of(given), int(classes.max()) + 1
    width = rows.plain(np.arange(1)).shape[1]
    layer = start_projection(width, width, 0) if layer is None else layer
    start = layer.weight.detach().clone()
    history = train_projection(rows, classes, n_classes, layer, settings(**changed), seed, n_validation=n_validation)
    return Trained(layer.weight.detach(), start, history, layer)


@pytest.fixture
def blobs():
    """40 rows of 4 classes that overlap, in 8 dimensions."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 10)
    centres = rng.normal(size=(4, 8))
    return torch.from_numpy((centres[classes] + rng.normal(size=(40, 8))).astype(np.float32)), classes


class PlainRows(FrozenRows):
    """Rows without dropout."""

    def views(self, rows):
        chosen = self.plain(rows)
        return torch.cat([chosen, chosen])


# The start of W


@pytest.mark.parametrize("n_components", [None, 3, 40, 1])
def test_a_projection_starts_with_orthonormal_directions(tiny_model, texts, labels, n_components):
    def start(seed):
        still = {"learning_rate": 1e-30, "weight_decay": 0.0, "max_iter": 1, "cross_fit": False}
        encoder = SupConTextEncoder(tiny_model, finetune="head", n_components=n_components, random_state=seed, **still)
        encoder.fit(texts, labels)
        assert not encoder.bias_.round(20).any()
        return encoder.weight_

    weight = start(0)
    assert weight.shape == (n_components or 32, 32)
    gram = weight @ weight.T if len(weight) < 32 else weight.T @ weight
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)
    np.testing.assert_array_equal(start(0), weight)
    if n_components is None:
        np.testing.assert_allclose(weight, np.eye(32), atol=1e-20)
    elif n_components > 1:
        assert abs(start(1) - weight).max() > 1e-3


# Views


# Training


@pytest.fixture
def passes(monkeypatch):
    """Number of texts in each forward pass of the library's model."""
    found, forward = [], transformers.BertModel.forward

    def noted(model, input_ids=None, **options):
        found.append(len(input_ids))
        return forward(model, input_ids=input_ids, **options)

    monkeypatch.setattr(transformers.BertModel, "forward", noted)
    return found


def test_a_step_of_a_text_model_reads_nothing_however_many_texts_there_are(tiny_model, texts, passes):
    """But for the library's model, which looks in each pass whether the mask is all ones."""
    extra = []
    for n_texts in (8, 32):
        rows = TokenRows(read(tiny_model), texts[:n_texts])
        passes.clear()
        with Operators() as operators:
            train(rows, np.arange(n_texts) % 4, batch_size=8, max_iter=2)
        extra.append(operators.reads.total() - len(passes))
    assert extra[0] == extra[1]


@pytest.mark.parametrize("normalize", [True, False])
def test_the_softmax_loss_is_of_the_features_that_are_shown(blobs, normalize):
    """Lengths count only where features are not normalised."""
    rows, classes = blobs
    chosen = {"loss": "softmax", "normalize": normalize, "batch_size": 40, "max_iter": 1}
    once, twice = (train(PlainRows(factor * rows), classes, **chosen).history.losses[0] for factor in (1, 2))
    assert (twice == pytest.approx(once, rel=1e-5)) == normalize


@pytest.mark.parametrize("n_steps", [1, 7, 100])
def test_the_rate_rises_for_a_tenth_of_the_steps_and_falls_to_nothing(tiny_model, texts, labels, n_steps, monkeypatch):
    rates, step = [], torch.optim.AdamW.step

    def noted(optimizer, *given):
        rates.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *given)

    monkeypatch.setattr(torch.optim.AdamW, "step", noted)
    chosen = {"learning_rate": 1e-3, "batch_size": 64, "max_iter": n_steps, "cross_fit": False, "random_state": 0}
    SupConTextEncoder(tiny_model, finetune="head", **chosen).fit(texts, labels)
    rates = 1000 * np.array(rates)
    assert len(rates) == n_steps
    assert (rates > 0).all()
    assert rates.max() <= 1
    assert rates[-1] < 0.03 or n_steps < 100
    top = rates.argmax()
    assert top <= max(1, round(0.1 * n_steps))
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    if n_steps == 100:
        assert rates[10] == pytest.approx(1)
        assert rates[55] == pytest.approx(0.5)


class WatchedRows(FrozenRows):
    """Rows that note the weights after each epoch, when the held-out rows are embedded."""

    def __init__(self, rows, classes):
        super().__init__(rows)
        self.layer, self.seen = start_projection(rows.shape[1], rows.shape[1], 0), []
        self.n_held_out = int(validation_rows(classes, 0.25, np.random.default_rng(0)).sum())

    def plain(self, chosen):
        if len(chosen) == self.n_held_out:
            self.seen.append(self.layer.weight.detach().clone())
        return super().plain(chosen)


def test_the_weights_of_the_best_epoch_are_kept(blobs):
    rows, classes = blobs
    watched = WatchedRows(rows, classes)
    chosen = {"learning_rate": 0.3, "batch_size": 30, "max_iter": 60, "n_iter_no_change": 8}
    weight, _, history, _ = train(watched, classes, layer=watched.layer, early_stopping=True, **chosen)
    # With a rate this high the score has its peak early.
    assert history.n_iter < 60
    assert len(history.scores) == len(watched.seen) == history.n_iter
    best = int(np.argmax(history.scores))
    assert best < history.n_iter - 1
    assert history.n_iter == best + 1 + 8
    assert torch.equal(weight, watched.seen[best])


def test_given_validation_rows_are_the_last_ones_and_do_not_train(blobs):
    rows, classes = blobs
    chosen = {"max_iter": 4, "n_iter_no_change": 4, "learning_rate": 0.1}

    def validated(new, labels):
        both, known = torch.cat([rows, new]), np.append(classes, labels)
        return train(both, known, n_validation=len(new), early_stopping=True, **chosen).history

    one = validated(rows[::4], classes[::4])
    other = validated(rows[1::4] + 100, classes[1::4])
    assert one.losses == other.losses
    assert one.scores != other.scores
    # Without early stopping all forty rows train; here too.
    assert train(rows, classes, max_iter=4, learning_rate=0.1).history.losses == one.losses


# Out-of-fold features


@pytest.mark.parametrize(("n_rows", "share"), [(7, 0.75), (75, 2 / 3)])
@pytest.mark.parametrize("normalize", [True, False])
def test_out_of_fold_features_are_those_of_other_heads_turned_onto_the_final_ones(n_rows, share, normalize):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), n_rows)
    rows = torch.from_numpy((rng.normal(size=(4, 8))[classes] + rng.normal(size=(len(classes), 8))).astype(np.float32))

    def shown(features):
        return features / np.linalg.norm(features, axis=1, keepdims=True) if normalize else features

    # A final head whose features are turned far away from those of the others.
    final = shown(rows.numpy().astype(float)) @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    of_final, everything = torch.from_numpy(final.astype(np.float32)), np.arange(len(classes))
    given = np.ones(len(classes), dtype=bool), everything, (rows[:0], classes[:0])
    found = contrastive.cross_fit(
        rows, classes, 4, of_final, settings(normalize=normalize, max_iter=3), 0, *given
    ).numpy()
    expected = final.copy()
    folds = fold_numbers(classes, everything, 3, np.random.default_rng(0))
    assert set(folds) == {0, 1, 2}
    for fold in range(3):
        rest = folds != fold
        head = train(rows[torch.from_numpy(rest)], classes[rest], normalize=normalize, max_iter=3).layer
        unseen = shown(head(rows).detach().numpy().astype(float))
        # Where rows say nothing of a direction it stays: that is worth a tenth of what they say of one on average.
        stays = np.sqrt(0.1 * rest.sum() / 8) * np.eye(8)
        left, _, right = np.linalg.svd(np.vstack([unseen[rest], stays]).T @ np.vstack([final[rest], stays]))
        expected[~rest] = (1 - share) * final[~rest] + share * unseen[~rest] @ left @ right
    np.testing.assert_allclose(found, shown(expected), atol=1e-4)
    assert abs(shown(expected) - final).max() > 0.05


@pytest.mark.parametrize("loss", ["supcon", "softmax"])
def test_one_seed_one_result_and_nobodys_random_state_moves(blobs, loss):
    rows, classes = blobs

    def learned(seed):
        return train(rows, classes, seed=seed, loss=loss, max_iter=3).weight

    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = learned(0)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    torch.rand(3)
    assert torch.equal(learned(0), first)
    assert not torch.allclose(learned(1), first, atol=1e-4)


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


def test_few_texts_that_are_spread_as_fresh_ones_stay_where_they_are():
    """Three texts are nearer to their own mean than a fourth one: this alone is no reason to move them."""
    rng = np.random.default_rng(0)
    classes, trained = np.repeat(np.arange(300), 4), np.tile([True, True, True, False], 300)
    rows = 3 * rng.normal(size=(300, 16))[classes] + 0.5 * rng.normal(size=(1200, 16))
    features, held = torch.from_numpy(rows), torch.from_numpy(np.flatnonzero(~trained))
    found = contrastive.spread_as_fresh(features, classes, trained, features[held], classes[held], trained)
    first = torch.from_numpy(np.flatnonzero(trained)).reshape(300, 3)
    spreads = [(table[first] - table[first].mean(1, keepdim=True)).std().item() for table in (found, features)]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.06)


def test_without_fresh_texts_or_without_a_spread_nothing_moves():
    features, classes = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), np.arange(6)
    everything, nothing = np.ones(6, dtype=bool), features[:0]
    same = contrastive.spread_as_fresh(features, classes, everything, nothing, classes[:0], everything)
    assert torch.equal(same, features)
    # Classes of one text each have no distance of their own.
    same = contrastive.spread_as_fresh(features, classes, everything, features + 1, classes, everything)
    assert torch.equal(same, features)
    # Nor have equal texts.
    same = features[:1].repeat(6, 1)
    halves = np.repeat([0, 1], 3)
    assert torch.equal(contrastive.spread_as_fresh(same, halves, everything, features, halves, everything), same)
    # A fresh text of a class that was not trained on says nothing.
    first = np.arange(6) < 3
    equal = np.zeros(6, dtype=np.int64)
    moved = contrastive.spread_as_fresh(features, np.where(first, 0, 1), first, features[3:], equal[3:] + 1, first)
    assert torch.equal(moved, features)
