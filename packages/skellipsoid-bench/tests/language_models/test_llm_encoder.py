"""Promise: a causal language model reads each text as if it were alone, and gives what the model itself computes."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from container_helpers import KINDS
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid_bench.language_models import LLMTextEncoder

TEXTS = ["wake me at six please", "dim the lamp", "lamp", "wake me", "the lamp at six in this sentence", "😀 été 灯"]


def states(folder, text, layer, *, special=()):
    """Hidden states of one text alone, by transformers itself."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([[*special, *tokenizer(text)["input_ids"]]])
    with torch.inference_mode():
        return model(ids, output_hidden_states=True).hidden_states[layer][0].numpy()


@pytest.mark.parametrize(("layer", "pooling"), [(-1, "last"), (-1, "mean"), (0, "mean"), (2, "last")])
def test_features_are_the_states_of_the_model(tiny_causal, layer, pooling):
    encoder = LLMTextEncoder(tiny_causal, layer=layer, pooling=pooling, normalize=False).fit(TEXTS)
    features = encoder.transform(TEXTS)
    assert (features.shape, features.dtype) == ((len(TEXTS), 32), np.float32)
    assert encoder.n_layers_ == 3
    for text, vector in zip(TEXTS, features, strict=True):
        alone = states(tiny_causal, text, layer)
        np.testing.assert_allclose(vector, alone[-1] if pooling == "last" else alone.mean(0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_text_has_the_same_features_alone_and_in_a_batch(build_causal, padding_side, pooling):
    encoder = LLMTextEncoder(build_causal(padding_side=padding_side), pooling=pooling).fit(TEXTS)
    together = encoder.transform(TEXTS)
    alone = np.concatenate([encoder.transform([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(encoder.transform(TEXTS[::-1])[::-1], together, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    repeated = encoder.transform([*TEXTS, *TEXTS[:3]])
    assert (repeated[-3:] == repeated[:3]).all()  # exactly


def test_a_long_text_loses_its_end_and_keeps_its_prompt(tiny_causal):
    settings = {"prompt": "this sentence {text} please", "normalize": False}
    # The model's own limit is 32 positions.
    for max_length, n_left in ((6, 3), (None, 29)):
        encoder = LLMTextEncoder(tiny_causal, max_length=max_length, **settings).fit(TEXTS)
        found = encoder.transform(["wake me at " * 200])[0]
        left = " ".join(("wake me at " * 10).split()[:n_left])
        wanted = states(tiny_causal, f"this sentence {left} please", -1)[-1]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_precision_that_overflows_is_said(build_causal):
    from safetensors.torch import load_file, save_file

    folder = build_causal()
    weights = {name: 300 * tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    encoder = LLMTextEncoder(folder, dtype="float16", normalize=False).fit(TEXTS)
    with pytest.raises(ValueError, match=r"features that are not finite in the precision 'float16'; use dtype="):
        encoder.transform(TEXTS)
    assert np.isfinite(encoder.set_params(dtype="float32").fit(TEXTS).transform(TEXTS)).all()


@pytest.mark.parametrize("kind", KINDS[::9], ids=str)
def test_texts_of_every_container(tiny_causal, kind):
    expected = LLMTextEncoder(tiny_causal).fit(TEXTS).transform(TEXTS)
    encoder = LLMTextEncoder(tiny_causal)
    np.testing.assert_array_equal(encoder.fit_transform(kind.texts(TEXTS)), expected)
    np.testing.assert_array_equal(encoder.transform(kind.texts(TEXTS)), expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty"),
        (["a", None], r"X\[1\] is None"),
        (["half \ud83d"], "lone surrogate"),
        (np.array([["a", "b"]]), r"shape \(1, 2\)"),
    ],
)
def test_input_that_is_no_texts(tiny_causal, X, message):
    encoder = LLMTextEncoder(tiny_causal).fit(TEXTS)
    for method in (encoder.fit, encoder.transform, encoder.fit_transform):
        with pytest.raises(ValueError, match=message):
            method(X)
    assert encoder.transform(["lamp"]).shape == (1, 32)  # the fit before is still there


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"prompt": "no place"}, r"prompt='no place' holds \{text\} 0 times, but must hold it once"),
        ({"layer": 4}, r"layer=4, but the language model '.*' has 3 layers; use 0 \(the word vectors\) to 3"),
        ({"max_length": 33}, r"max_length=33, but the language model '.*' has 32 positions"),
        ({"max_length": 3, "prompt": "in this sentence {text}"}, r"prompt has 3 tokens, but .* may have 3; use a sh"),
        ({"pooling": "first"}, "pooling"),
        ({"device": "no-device"}, "device='no-device' is not available"),
    ],
)
def test_parameters_that_cannot_be_used(tiny_causal, params, message):
    with pytest.raises(ValueError, match=message):
        LLMTextEncoder(tiny_causal, **params).fit(TEXTS)


def test_models_that_cannot_be_loaded(build_causal, tmp_path):
    from safetensors.torch import load_file, save_file

    for path, sentence in (
        ("no/such", r"^The language model 'no/such' is no folder and no GGUF file here"),
        (tmp_path / "none.gguf", r"^There is no file '.*none\.gguf'; check the path"),
        (tmp_path, r"holds no language model that can be loaded"),
    ):
        with pytest.raises(OSError, match=sentence):
            LLMTextEncoder(path).fit(TEXTS)
    # Missing weights are not drawn at random.
    broken = build_causal()
    path = broken / "model.safetensors"
    weights = load_file(path)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(OSError, match=r"its weights lack '.*up_proj\.weight'"):
        LLMTextEncoder(broken).fit(TEXTS)
    path.write_bytes(path.read_bytes()[:9999])
    with pytest.raises(OSError, match=r"holds no language model that can be loaded \(.*\); pass another one"):
        LLMTextEncoder(broken).fit(TEXTS)


def test_a_pickle_holds_no_language_model_and_reads_it_again(build_causal, tmp_path):
    folder = tmp_path / "model"
    build_causal(seed=1).rename(folder)
    encoder = LLMTextEncoder(folder).fit(TEXTS)
    content = pickle.dumps(encoder)
    assert len(content) < 5000
    again = pickle.loads(content)
    assert again.n_layers_ == 3
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    with ThreadPoolExecutor(3) as pool:
        for features in pool.map(again.transform, [TEXTS] * 3):
            np.testing.assert_array_equal(features, encoder.transform(TEXTS))
    # Another model in its place, and none.
    folder.rename(tmp_path / "kept")
    with pytest.raises(OSError, match="is no folder and no GGUF file here"):
        pickle.loads(content).transform(TEXTS)
    build_causal(seed=2).rename(folder)
    with pytest.raises(OSError, match="is not the one that this encoder was fitted with; put that one back"):
        pickle.loads(content).transform(TEXTS)


@pytest.mark.slow
def test_a_real_model_of_gguf(smollm, capfd):
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    encoder = LLMTextEncoder(smollm, pooling="mean", layer=9).fit(["a"])
    assert capfd.readouterr().err == ""
    assert encoder.n_layers_ == 30
    texts = ["wake me at six", "set an alarm for the early morning please", "how much money is in my account"]
    features = encoder.transform(texts)
    assert features.shape == (3, 576)
    np.testing.assert_allclose(features[:1], encoder.transform(texts[:1]), atol=1e-5)
    assert features[0] @ features[1] > features[0] @ features[2]


def test_files_of_gguf_need_two_packages(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    with pytest.raises(ImportError, match=r"with the package gguf, but it is not installed; run pip install 'skell"):
        LLMTextEncoder(tmp_path / "a.gguf").fit(TEXTS)


def test_transform_before_fit(tiny_causal):
    with pytest.raises(NotFittedError):
        LLMTextEncoder(tiny_causal).transform(TEXTS)


def test_a_text_without_tokens_has_features(tiny_causal):
    encoder = LLMTextEncoder(tiny_causal, normalize=False).fit(TEXTS)
    features = encoder.transform(["", "  ", "lamp"])
    np.testing.assert_allclose(features[0], states(tiny_causal, "", -1, special=[1])[-1], rtol=1e-4, atol=1e-5)
    assert (features[0] == features[1]).all()


def test_save_says_why_it_refuses(tiny_causal, texts, labels, tmp_path):
    pipe = make_pipeline(LLMTextEncoder(tiny_causal), EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    message = r"^The step 'llmtextencoder' is a LLMTextEncoder, which cannot be saved: .*save what comes after it"
    with pytest.raises(TypeError, match=message):
        skellipsoid.save(pipe, tmp_path / "model")
    assert not (tmp_path / "model").exists()
