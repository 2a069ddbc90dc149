"""DE's engine: heads behind all layers, adversarial embeddings, early exit and votes."""

import pytest
import torch

from skellipsoid._encoders.torch.backbone import TextBackbone
from skellipsoid_bench.literature._torch.dynamic_ensemble import ascend
from skellipsoid_bench.literature._torch.layers import layer_list, visit_layers


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


# Adversarial embeddings


def test_a_step_goes_along_the_gradient_and_stays_within_the_norm():
    start = torch.zeros(2, 1, 2).requires_grad_()
    (start * torch.tensor([[[3.0, 4.0]], [[0.0, 0.001]]])).sum().backward()
    moved = ascend(start, 0.15, 0.4)
    torch.testing.assert_close(moved, torch.tensor([[[0.09, 0.12]], [[0.0, 0.15]]]))
    far = torch.tensor([[[3.0, 4.0]]]).requires_grad_()
    (0 * far).sum().backward()
    torch.testing.assert_close(ascend(far, 0.15, 0.5), torch.tensor([[[0.3, 0.4]]]))


def test_a_model_without_a_list_of_layers_is_refused(deep):
    assert len(layer_list(deep.transformer)) == 5
    deep.transformer.config.num_hidden_layers = 7
    with pytest.raises(ValueError, match="BertModel has no list of 7 layers; use a text model like BERT"):
        layer_list(deep.transformer)
