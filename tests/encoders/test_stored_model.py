"""Text models as plain data: of every usual architecture, they come back as they were."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from text_models import carried, wrapped, written
from text_models import embedded as embedded_texts
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split
from torch import nn

from skellipsoid import SupConTextEncoder, save
from skellipsoid._torch.devices import kept_torch_state

TEXTS = ["wake me at six", "Wake ME", "", "what is the weather ☔ déjà 漢字", "rain " * 100]
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
T5 = {"d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 64}
CAUSAL = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}
SPLIT = SMALL | {"embedding_size": 16}
RELATIVE = SMALL | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3}
#: A class of each kind that can be saved, with settings that are not the defaults of its configuration.
ARCHITECTURES = {
    "AlbertModel": SPLIT,
    "BertModel": SMALL,
    "ConvBertModel": SPLIT | {"conv_kernel_size": 3},
    "DebertaV2Model": RELATIVE | {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    "DistilBertModel": DISTIL,
    "Gemma2Model": CAUSAL,
    "GPT2Model": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "LlamaModel": CAUSAL,
    "LongformerModel": SMALL | {"attention_window": 4, "max_position_embeddings": 128},
    "ModernBertModel": SMALL,
    "NomicBertModel": SMALL,
    "Qwen3Model": CAUSAL,
    "RobertaModel": SMALL,
    "T5EncoderModel": T5,
}


def small_model(name, tiny_model, after=(), limit=64, lowers=False, prompt="", **settings):
    """A random model of an architecture, with the tokenizer of the tiny model."""
    import transformers

    kind = getattr(transformers, name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = kind.config_class(
            vocab_size=len(tokenizer), pad_token_id=0, bos_token_id=2, eos_token_id=3, **ARCHITECTURES[name], **settings
        )
        model = kind(config).eval()
    return wrapped(model, tokenizer, after, limit, lowers=lowers, prompt=prompt)


def embedded(model):
    return embedded_texts(model, TEXTS)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_model_of_every_usual_architecture_comes_back_as_it_was(tiny_model, name):
    model = small_model(name, tiny_model)
    expected = embedded(model)
    assert np.abs(expected - expected[0]).max() > 1e-3
    state = torch.get_rng_state()
    again = carried(model)
    assert torch.equal(state, torch.get_rng_state())  # a training in another thread may draw meanwhile
    np.testing.assert_array_equal(embedded(again), expected)
    np.testing.assert_array_equal(embedded(carried(again)), expected)
    assert again.stored() == model.stored()


class Own(nn.Module):
    """A module that only its author has."""

    def get_config_dict(self):
        return {}


def test_what_needs_code_of_its_own_is_refused(tiny_model):
    own, python, other, odd, slow = (small_model("BertModel", tiny_model, [Own()] if i == 0 else []) for i in range(5))
    python.model.tokenizer = type("PythonTokenizer", (), {"is_fast": False})()
    other.model.transformer = Own()
    odd.transformer.config.hidden_act = "some/act"
    slow.model.tokenizer.backend_tokenizer.pre_tokenizer = Split(Regex("(x+)+$"), "isolated")
    for model, sentence in (
        (own, "The embedding model cannot be saved: its module Own is not of sentence-transf"),
        (python, "The embedding model has a PythonTokenizer, which runs Python code of its own"),
        (other, "The embedding model is a Own, which cannot be saved; use one of Albert, Bert, "),
        (odd, "setting 'hidden_act' is 'some/act', which cannot be saved"),
        # What restore would refuse is not stored either.
        (slow, r"tokenizer cannot be saved, because its pattern .* is none of .*; use a"),
    ):
        with pytest.raises(TypeError, match=sentence):
            carried(model)


@pytest.mark.parametrize("window", [2**26, [4, 2**26]])
def test_a_window_that_would_lengthen_texts_without_limit_is_refused(tiny_model, window):
    model = small_model("LongformerModel", tiny_model)
    with pytest.raises(ValueError, match=r"attention_window is \[?.*67108864\]?; at most 2048 is allowed"):
        carried(model, {"attention_window": window})


def test_building_beside_a_training_leaves_the_random_state_and_no_file(tiny_model, tmp_path, monkeypatch):
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling

    content = pickle.dumps(small_model("BertModel", tiny_model, [Pooling(32), Dense(32, 7)]))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))  # a temporary file would be an error
    monkeypatch.setattr("tempfile.tempdir", None)
    state = torch.get_rng_state()
    with ThreadPoolExecutor(1) as pool, kept_torch_state():  # which a training holds to its end
        pool.submit(lambda: embedded(pickle.loads(content))).result(timeout=60)
        assert torch.equal(state, torch.get_rng_state())


def test_another_pooling_needs_another_fit(tiny_model, texts, tmp_path):
    folder = written(tmp_path / "own", tiny_model, lambda m: [m.Pooling(32, "max")])
    encoder = SupConTextEncoder(folder, finetune="none").fit(texts)
    encoder.set_params(pooling="mean")
    sentence = "pooling='mean', but the encoder was fitted with another pooling; call fit again"
    with pytest.raises(ValueError, match=sentence):
        encoder.transform(texts)
    with pytest.raises(ValueError, match=sentence):
        save(encoder, tmp_path / "model")
    assert encoder.fit(texts).transform(texts).shape == (len(texts), 32)
