"""Training of features: the start of W, dropout views, the schedule, and which weights are kept."""

import copy
import random

import numpy as np
import pytest
import torch
from operator_helpers import HostCopies, Operators, trainer_of
from torch.nn import functional

from skellipsoid._encoders.torch import contrastive
from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid._encoders.torch.contrastive import (
    ContrastiveSettings,
    FrozenRows,
    TokenRows,
    start_projection,
    train_projection,
)
from skellipsoid._encoders.torch.token_table import PIECE_TOKENS
from skellipsoid._samples.folds import fold_numbers, validation_rows


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


def test_the_square_projection_starts_at_the_identity():
    layer = start_projection(6, 6, seed=0)
    torch.testing.assert_close(layer.weight.data, torch.eye(6))
    assert not layer.bias.data.any()


@pytest.mark.parametrize(("width", "n_components"), [(8, 3), (3, 8), (8, 1), (1, 8)])
def test_other_projections_start_with_orthonormal_directions(width, n_components):
    layer = start_projection(width, n_components, seed=0)
    weight = layer.weight.data
    assert weight.shape == (n_components, width)
    gram = weight @ weight.T if n_components < width else weight.T @ weight
    torch.testing.assert_close(gram, torch.eye(min(width, n_components)), atol=1e-6, rtol=0)
    assert not layer.bias.data.any()
    torch.testing.assert_close(start_projection(width, n_components, seed=0).weight.data, weight)
    if min(width, n_components) > 1:
        assert (start_projection(width, n_components, seed=1).weight.data - weight).abs().max() > 1e-3


@pytest.mark.parametrize("n_components", [3, 6])
def test_the_start_leaves_the_random_state_alone(n_components):
    state = torch.get_rng_state()
    start_projection(6, n_components, seed=0)
    assert torch.equal(state, torch.get_rng_state())


# Views


def test_frozen_views_are_two_dropouts_of_each_row():
    rows = FrozenRows(torch.ones(50, 40))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = rows.views(np.arange(50)).chunk(2)
    for view in first, second:
        assert view.unique().tolist() == [0.0, pytest.approx(1 / 0.6)]
        assert abs((view == 0).float().mean() - 0.4) < 0.03
    assert (first != second).any(dim=1).all()


def test_frozen_views_keep_the_order_of_the_rows():
    rows = FrozenRows(torch.arange(1.0, 6.0).repeat(100, 1).T)
    chosen = np.array([3, 0, 4])
    torch.testing.assert_close(rows.plain(chosen)[:, 0], torch.tensor([4.0, 1.0, 5.0]))
    views = rows.views(chosen) * 0.6
    torch.testing.assert_close(views.amax(dim=1), torch.tensor([4.0, 1.0, 5.0] * 2))


@pytest.fixture
def token_rows(tiny_model, texts):
    return TokenRows(TextBackbone.load(tiny_model), texts)


def test_token_views_have_the_models_dropout_and_plain_rows_have_none(token_rows):
    chosen = np.array([5, 0, 31, 2])
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        plain = token_rows.plain(chosen)
        views = torch.stack([token_rows.views(chosen) for _ in range(20)])
        torch.testing.assert_close(token_rows.plain(chosen), plain)
    first, second = views.chunk(2, dim=1)
    assert (first - second).abs().amax(dim=2).min() > 0.01
    # On average each view is nearest to its own text.
    for view in first, second:
        assert torch.cdist(view.mean(0), plain).argmin(dim=1).tolist() == [0, 1, 2, 3]


def test_a_models_every_weight_learns_but_the_unused_pooler(token_rows):
    classes = np.arange(32) % 4
    before = {name: p.detach().clone() for name, p in token_rows.backbone.transformer.named_parameters()}
    projection = start_projection(32, 32, 0)
    train_projection(token_rows, classes, 4, projection, settings(max_iter=1, learning_rate=1e-3, weight_decay=0.0), 0)
    after = dict(token_rows.backbone.transformer.named_parameters())
    still = {name for name in before if torch.equal(before[name], after[name])}
    # A bias of the keys shifts all scores of a query alike: softmax does not see it.
    assert {name for name in still if "pooler" not in name and "key.bias" not in name} == set()


# Training


@pytest.mark.parametrize("loss", ["supcon", "softmax"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_loss_falls_and_classes_separate(loss, normalize):
    # As wide as a small text model: of a few features dropout would leave too little.
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), 10)
    rows = torch.from_numpy((rng.normal(size=(4, 64))[classes] + 2 * rng.normal(size=(40, 64))).astype(np.float32))
    projection = start_projection(64, 64, 0)

    def spread():
        with torch.no_grad():
            directions = functional.normalize(projection(rows), dim=1)
        similar = directions @ directions.T
        same = torch.from_numpy(classes[:, None] == classes)
        return float(similar[same].mean() - similar[~same].mean())

    before = spread()
    history = train_projection(
        FrozenRows(rows), classes, 4, projection, settings(loss=loss, normalize=normalize, max_iter=40), 0
    )
    assert history.n_iter == 40
    assert np.mean(history.losses[-5:]) < 0.9 * np.mean(history.losses[:5])
    assert spread() > before + 0.03


def test_the_first_loss_is_that_of_the_rows_as_they_are(blobs):
    rows, classes = blobs
    history = train_projection(
        PlainRows(rows), classes, 4, start_projection(8, 8, 0), settings(batch_size=40, max_iter=1), 0
    )
    directions = functional.normalize(torch.cat([rows, rows]).double(), dim=1).numpy()
    similar = np.exp(directions @ directions.T / 0.1)
    both = np.concatenate([classes, classes])
    losses = []
    for i in range(80):
        others = np.arange(80) != i
        positives = others & (both == both[i])
        losses.append(-np.log(similar[i, positives] / similar[i, others].sum()).mean())
    assert history.losses[0] == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("loss", ["supcon", "softmax"])
@pytest.mark.parametrize("batch_size", [4, 40])
def test_an_epoch_reads_its_losses_once(blobs, monkeypatch, loss, batch_size):
    rows, classes = blobs
    copies, projection = HostCopies(monkeypatch), start_projection(8, 8, 0).to("meta")
    chosen = settings(loss=loss, batch_size=batch_size, max_iter=3)
    trainer = trainer_of(FrozenRows(rows.to("meta")), classes, projection, chosen)
    with Operators() as operators:
        trainer.run()
    assert copies.shapes == [(40 // batch_size,)] * 3
    assert operators.waits == 0 < operators.copies


def test_the_class_means_embed_the_training_texts_many_at_a_time(tiny_model, texts, monkeypatch):
    monkeypatch.setitem(PIECE_TOKENS, "cpu", 10_000)
    rows, passes = TokenRows(TextBackbone.load(tiny_model), texts), []
    rows.backbone.transformer.register_forward_pre_hook(
        lambda module, given, options: passes.append(len(options["input_ids"])), with_kwargs=True
    )
    trainer = trainer_of(rows, np.arange(32) % 4, start_projection(32, 32, 0), settings(early_stopping=True))
    assert 0 <= trainer._score() <= 1
    assert passes == [8, 24]  # the validation texts and the others


def test_a_step_of_a_text_model_reads_nothing_however_many_texts_there_are(tiny_model, texts):
    """But for the library's model, which looks in each pass whether the mask is all ones."""
    totals = []
    for n_texts in (8, 32):
        rows, passes = TokenRows(TextBackbone.load(tiny_model), texts[:n_texts]), []
        rows.backbone.transformer.register_forward_pre_hook(lambda *given, passes=passes: passes.append(1))
        trainer = trainer_of(rows, np.arange(n_texts) % 4, start_projection(32, 32, 0), settings())
        ((stage, optimizer, _),) = trainer.stages
        with torch.random.fork_rng():
            trainer._step(stage, np.arange(8), optimizer)  # makes the state of the optimiser
            passes.clear()
            with Operators() as operators:
                trainer._step(stage, np.arange(8), optimizer)
        assert operators.reads.total() == len(passes) == 1
        totals.append(operators.total)
    assert totals[0] == totals[1]


@pytest.mark.parametrize("normalize", [True, False])
def test_the_softmax_loss_is_of_the_features_that_are_shown(blobs, normalize):
    """Lengths count only where features are not normalised."""
    rows, classes = blobs
    chosen = settings(loss="softmax", normalize=normalize, batch_size=40, max_iter=1)
    once, twice = (
        train_projection(PlainRows(factor * rows), classes, 4, start_projection(8, 8, 0), chosen, 0).losses[0]
        for factor in (1, 2)
    )
    assert (twice == pytest.approx(once, rel=1e-5)) == normalize


@pytest.mark.parametrize("n_steps", [1, 7, 100])
def test_the_rate_rises_for_a_tenth_of_the_steps_and_falls_to_nothing(n_steps):
    optimizer = torch.optim.AdamW([{"params": [torch.zeros(1, requires_grad=True)], "initial_lr": 1.0}], lr=1.0)
    schedule = contrastive._warmup_then_cosine(optimizer, n_steps)
    rates = []
    for _ in range(n_steps + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    rates = np.array(rates)
    assert (rates[:-1] > 0).all()
    assert rates.max() <= 1
    assert rates[-1] < 0.03
    top = rates.argmax()
    assert top <= max(1, round(0.1 * n_steps))
    assert (np.diff(rates[: top + 1]) > 0).all()
    assert (np.diff(rates[top:]) < 0).all()
    if n_steps == 100:
        assert rates[10] == 1
        assert rates[55] == pytest.approx(0.5)


class WatchedRows(FrozenRows):
    """Rows that note the weights after each epoch, when the held-out rows are embedded."""

    def __init__(self, rows, classes, projection):
        super().__init__(rows)
        self.projection, self.seen = projection, []
        self.n_held_out = int(validation_rows(classes, 0.25, np.random.default_rng(0)).sum())

    def plain(self, chosen):
        if len(chosen) == self.n_held_out:
            self.seen.append(self.projection.weight.detach().clone())
        return super().plain(chosen)


def test_the_weights_of_the_best_epoch_are_kept(blobs):
    rows, classes = blobs

    projection = start_projection(8, 8, 0)
    watched = WatchedRows(rows, classes, projection)
    chosen = settings(early_stopping=True, learning_rate=0.3, batch_size=30, max_iter=60, n_iter_no_change=8)
    history = train_projection(watched, classes, 4, projection, chosen, 0)
    # With a rate this high the score has its peak early.
    assert history.n_iter < 60
    assert len(history.scores) == len(watched.seen) == history.n_iter
    best = int(np.argmax(history.scores))
    assert best < history.n_iter - 1
    assert history.n_iter == best + 1 + 8
    assert torch.equal(projection.weight.data, watched.seen[best])


def test_validation_rows_do_not_train_and_are_scored_against_those_that_do(blobs):
    rows, classes = blobs
    chosen = settings(early_stopping=True, learning_rate=1e-12, weight_decay=0.0, max_iter=1)
    history = train_projection(PlainRows(rows), classes, 4, start_projection(8, 8, 0), chosen, seed=3)
    held_out = validation_rows(classes, 0.25, np.random.default_rng(3))
    directions = functional.normalize(rows.double(), dim=1).numpy()
    means = np.stack([directions[~held_out & (classes == k)].mean(axis=0) for k in range(4)])
    distances = np.linalg.norm(directions[held_out, np.newaxis] - means, axis=2)
    assert history.scores == [pytest.approx((distances.argmin(axis=1) == classes[held_out]).mean())]
    assert 0.5 < history.scores[0] < 1


def test_given_validation_rows_are_the_last_ones_and_do_not_train(blobs):
    rows, classes = blobs
    chosen = settings(early_stopping=True, max_iter=4, n_iter_no_change=4, learning_rate=0.1)

    def train(new, labels):
        projection, seed = start_projection(8, 8, 0), 0
        both = FrozenRows(torch.cat([rows, new]))
        known = np.append(classes, labels)
        history = train_projection(both, known, 4, projection, chosen, seed, n_validation=len(new))
        return projection.weight.detach(), history

    _, one = train(rows[::4], classes[::4])
    _, other = train(rows[1::4] + 100, classes[1::4])
    assert one.losses == other.losses
    assert one.scores != other.scores
    # Without early stopping all forty rows train; here too.
    plain = train_projection(
        FrozenRows(rows), classes, 4, start_projection(8, 8, 0), settings(max_iter=4, learning_rate=0.1), 0
    )
    assert plain.losses == one.losses


def test_of_equally_good_epochs_the_first_is_kept(blobs):
    rows, classes = blobs
    apart = rows + 50 * torch.eye(8)[classes]  # every epoch has an accuracy of 1
    chosen = settings(early_stopping=True, max_iter=30, n_iter_no_change=3)
    stopped = start_projection(8, 8, 0)
    watched = WatchedRows(apart, classes, stopped)
    history = train_projection(watched, classes, 4, stopped, chosen, 0)
    assert history.scores == [1.0] * 4
    assert torch.equal(stopped.weight.data, watched.seen[0])
    assert not torch.equal(watched.seen[0], watched.seen[1])


def test_a_class_without_training_texts_is_nobodys_nearest(blobs):
    rows, classes = blobs
    chosen = settings(early_stopping=True, max_iter=1, learning_rate=1e-12, normalize=False)
    some = classes < 3
    both = FrozenRows(torch.cat([rows[torch.from_numpy(some)], rows[torch.from_numpy(~some)], 0 * rows[:10]]))
    # Rows at 0, where the mean of a class without texts would be.
    labels = np.concatenate([classes[some], np.full(20, 3)])
    history = train_projection(both, labels, 4, start_projection(8, 8, 0), chosen, 0, n_validation=20)
    assert history.scores == [0.0]


def test_without_early_stopping_every_epoch_runs_whatever_the_loss_does(blobs):
    rows, classes = blobs
    chosen = settings(learning_rate=1e-12, max_iter=30, n_iter_no_change=2, tol=1.0)
    history = train_projection(FrozenRows(rows), classes, 4, start_projection(8, 8, 0), chosen, 0)
    assert (history.n_iter, history.scores) == (30, [])


def test_a_text_that_is_alone_in_its_batch_has_its_other_view_alone_for_a_partner(blobs):
    rows, _ = blobs
    projection = start_projection(8, 8, 0)
    start = projection.weight.detach().clone()
    chosen = settings(batch_size=1, max_iter=3, weight_decay=0.0)
    history = train_projection(FrozenRows(rows[:5]), np.arange(5), 5, projection, chosen, 0)
    # The partner has the whole share: nothing is lost, and nothing is learned.
    assert history.losses == [0, 0, 0]
    torch.testing.assert_close(projection.weight.detach(), start, atol=1e-6, rtol=0)


# Out-of-fold features


@pytest.mark.parametrize(("n_rows", "share"), [(7, 0.75), (75, 2 / 3)])
@pytest.mark.parametrize("normalize", [True, False])
def test_out_of_fold_features_are_those_of_other_heads_turned_onto_the_final_ones(n_rows, share, normalize):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), n_rows)
    rows = torch.from_numpy((rng.normal(size=(4, 8))[classes] + rng.normal(size=(len(classes), 8))).astype(np.float32))
    chosen = settings(normalize=normalize, max_iter=3)

    def shown(features):
        return features / np.linalg.norm(features, axis=1, keepdims=True) if normalize else features

    # A final head whose features are turned far away from those of the others.
    final = shown(rows.numpy().astype(float)) @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    of_final, everything = torch.from_numpy(final.astype(np.float32)), np.arange(len(classes))
    given = np.ones(len(classes), dtype=bool), everything, (rows[:0], classes[:0])
    found = contrastive.cross_fit(rows, classes, 4, of_final, chosen, 0, *given).numpy()
    expected = final.copy()
    folds = fold_numbers(classes, everything, 3, np.random.default_rng(0))
    assert set(folds) == {0, 1, 2}
    for fold in range(3):
        rest = folds != fold
        head = start_projection(8, 8, 0)
        train_projection(FrozenRows(rows[torch.from_numpy(rest)]), classes[rest], 4, head, chosen, 0)
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

    start = start_projection(8, 8, 0)

    def train(seed):
        projection = copy.deepcopy(start)
        train_projection(FrozenRows(rows), classes, 4, projection, settings(loss=loss, max_iter=3), seed)
        return projection.weight.detach()

    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = train(0)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    torch.rand(3)
    assert torch.equal(train(0), first)
    assert not torch.allclose(train(1), first, atol=1e-4)


def test_training_works_where_the_caller_has_switched_gradients_off(blobs):
    rows, classes = blobs
    projection = start_projection(8, 8, 0)
    start = projection.weight.detach().clone()
    with torch.no_grad():
        train_projection(FrozenRows(rows), classes, 4, projection, settings(max_iter=1), 0)
        assert not torch.is_grad_enabled()
    assert not torch.equal(projection.weight.detach(), start)


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
