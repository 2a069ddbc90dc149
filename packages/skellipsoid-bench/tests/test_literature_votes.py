"""DE's engine: heads behind all layers, adversarial embeddings, early exit and votes."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid_bench.literature._torch.dynamic_ensemble import (
    EnsembleSettings,
    Perturbations,
    Vote,
    ascend,
)
from skellipsoid_bench.literature._torch.layers import LayerHeads, LayerRows, layer_list, visit_layers


def settings(**changed):
    defaults = {
        "normalize": False,
        "learning_rate": 3e-3,
        "weight_decay": 0.01,
        "batch_size": 16,
        "max_iter": 3,
        "early_stopping": False,
        "validation_fraction": 0.25,
        "n_iter_no_change": 5,
        "tol": 0.0,
        "cross_fit": False,
        "verbose": 0,
        "redundancy": 0.1,
        "adversarial_steps": 2,
        "adversarial_norm": 0.4,
        "adversarial_rate": 0.15,
    }
    return EnsembleSettings(**defaults | changed)


@pytest.fixture
def backbone(tiny_model):
    return TextBackbone.load(tiny_model, pooling="mean")


@pytest.fixture
def codes(labels):
    return np.unique(labels, return_inverse=True)[1]


# Layers


def test_heads_start_at_the_identity_and_classify_each_layer_alone():
    heads = LayerHeads(3, 4, 2)
    means = torch.randn(5, 3, 4)
    torch.testing.assert_close(heads(means), means)
    logits = heads.logits(means)
    assert logits.shape == (3, 5, 2)
    torch.testing.assert_close(logits[1], means[:, 1] @ heads.class_weight[1].T)


def test_rows_are_the_mean_token_vectors_of_all_layers(backbone, texts):
    rows = LayerRows(backbone, texts)
    with torch.no_grad():
        means = rows.plain(np.array([3, 0]))
        ids = torch.tensor([backbone.tokenize([texts[3]])[0]])
        states = backbone.transformer(input_ids=ids, output_hidden_states=True).hidden_states
    assert means.shape == (2, 2, 32)
    torch.testing.assert_close(means[0], torch.stack([state[0].mean(0) for state in states[1:]]), atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(means[:, -1], backbone.pooled(rows.table, np.array([3, 0])))


@pytest.fixture
def deep(build_model, tmp_path):
    return TextBackbone.load(build_model(tmp_path / "deep", num_hidden_layers=5), pooling="mean")


def test_layers_after_the_last_text_has_left_do_not_run_and_no_hook_stays(deep, texts):
    layers, calls = layer_list(deep.transformer), []
    handle = layers[3].register_forward_hook(lambda *given: calls.append(1))
    visit_layers(deep, deep.tokenize(texts), lambda layer, means, running: torch.full((len(running),), layer < 2))
    assert calls == []
    handle.remove()
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)

    def fail(layer, means, running):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        visit_layers(deep, deep.tokenize(texts), fail)
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)


# Votes


def voted(n_layers, thresholds, exponent, answers):
    """Votes of texts by the answers of their layers, as many as each needs."""
    vote, running = Vote(len(answers), n_layers, np.array(thresholds), exponent), np.arange(len(answers))
    for layer in range(n_layers):
        if len(running):
            given = np.array([answers[row][layer] for row in running])
            running = running[~vote.add(layer, running, given)]
    assert not len(running)
    return vote


def test_a_text_is_decided_by_enough_votes_of_the_layers_answer():
    # Needed votes: 1 at the first layer, √2, √3, 2 for class 0; twice that for class 1.
    vote = voted(4, [1.0, 2.0, 1.5], 0.5, [[0], [1, 0, 0], [2, 2, 2]])
    assert vote.answers.tolist() == [0, 0, 2]
    assert vote.exit_layers.tolist() == [1, 3, 3]
    assert vote.votes.tolist() == [[1, 0, 0], [2, 1, 0], [0, 0, 3]]


# Adversarial embeddings


def test_a_step_goes_along_the_gradient_and_stays_within_the_norm():
    start = torch.zeros(2, 1, 2).requires_grad_()
    (start * torch.tensor([[[3.0, 4.0]], [[0.0, 0.001]]])).sum().backward()
    moved = ascend(start, 0.15, 0.4)
    torch.testing.assert_close(moved, torch.tensor([[[0.09, 0.12]], [[0.0, 0.15]]]))
    far = torch.tensor([[[3.0, 4.0]]]).requires_grad_()
    (0 * far).sum().backward()
    torch.testing.assert_close(ascend(far, 0.15, 0.5), torch.tensor([[[0.3, 0.4]]]))


def test_the_pieces_of_a_pass_meet_their_own_changes():
    changes = Perturbations(4.0, 0.15, torch.Generator().manual_seed(0))
    masks = [torch.ones(2, 3, dtype=torch.long), torch.ones(1, 5, dtype=torch.long)]
    start = torch.get_rng_state()
    passes = []
    for _ in range(3):
        changed = changes.next_pass()
        made = [changed(torch.zeros(*mask.shape, 4), mask) for mask in masks]
        (made[0].sum() - made[1].sum()).backward()
        passes.append([change.detach() for change in made])
        changes.ascend()
    assert torch.equal(torch.get_rng_state(), start)
    for before, after in pairwise(passes):
        assert (after[0] - before[0] > 0).all()
        assert (after[1] - before[1] < 0).all()
        torch.testing.assert_close((after[1] - before[1]).norm(), torch.tensor(0.15))


def test_a_model_without_a_list_of_layers_is_refused(backbone):
    assert len(layer_list(backbone.transformer)) == 2
    backbone.transformer.config.num_hidden_layers = 7
    with pytest.raises(ValueError, match="BertModel has no list of 7 layers; use a text model like BERT"):
        layer_list(backbone.transformer)
