"""Features of a text model's own modules and prompt: those that sentence-transformers gives."""

import json
import pickle
import shutil
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from text_models import unit, written
from torch import nn

from skellipsoid import SupConTextEncoder, baselines, check_training_texts, export_onnx, load, save
from skellipsoid_runtime import OnnxPipeline

MODES = ("cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean")
#: What follows the transformer, of 32 features.
KINDS = {
    **{mode: lambda m, mode=mode: [m.Pooling(32, mode)] for mode in ("cls", "mean_sqrt_len_tokens", "weightedmean")},
    "mean of unit length": lambda m: [m.Pooling(32), m.Normalize()],
    "first token of unit length": lambda m: [m.Pooling(32, "cls"), m.Normalize()],
    "two poolings, norm, dropout": lambda m: [m.Pooling(32, ("max", "mean")), m.LayerNorm(64), m.Dropout(0.3)],
    "dense layers": lambda m: [m.Pooling(32), m.Dense(32, 9, True, nn.GELU()), m.Dense(9, 8, bias=False)],
    "residual": lambda m: [m.Pooling(32, "lasttoken"), m.Dense(32, 7, use_residual=True), m.Normalize()],
    "dense of tokens": lambda m: [m.Dense(32, 16, module_input_name="token_embeddings"), m.Pooling(16)],
    "unit length before a layer": lambda m: [m.Pooling(32), m.Normalize(), m.Dense(32, 32)],
    "mean behind a prompt": lambda m: [m.Pooling(32), m.Normalize()],
    "last token behind a prompt": lambda m: [m.Pooling(32, "lasttoken")],
    **{f"prompt left out of {mode}": lambda m, mode=mode: [m.Pooling(32, mode, False)] for mode in MODES},
    "truncated": lambda m: [m.Pooling(32), m.Normalize()],
}
#: The default prompt of those that have one.
PROMPTS = {kind: "set the lamp: " for kind in KINDS if "prompt" in kind}


@pytest.fixture(scope="module")
def write(tiny_model, tmp_path_factory):
    """Write a model of sentence-transformers: ``write(kind)``; gives the folder."""

    @cache
    def make(kind):
        settings = {"truncate_dim": 5} if kind == "truncated" else {}
        if kind in PROMPTS:
            settings = {"prompts": {"ours": PROMPTS[kind], "query": "q: "}, "default_prompt_name": "ours"}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return written(tmp_path_factory.mktemp("own") / "model", tiny_model, KINDS[kind], **settings)

    return make


def encode(folder, texts, **options):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(texts, show_progress_bar=False, **options)


def assert_close(found, expected, atol=1e-6):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= atol * max(1, np.abs(expected).max())


def make(folder, finetune="none", **options):
    chosen = {"random_state": 0, "max_iter": 2, "layers": "last"} | options
    return SupConTextEncoder(folder, finetune=finetune, **chosen)


# A head follows all modules, whatever they are.
@pytest.mark.parametrize(("kind", "finetune"), [(kind, "none" if i % 4 else "head") for i, kind in enumerate(KINDS)])
def test_features_stay_in_a_pickle_a_saved_and_an_exported_model(write, texts, labels, tmp_path, kind, finetune):
    encoder = make(write(kind), finetune).fit(texts, labels)
    expected = encoder.transform(texts)
    if finetune == "none":
        assert_close(expected, unit(encode(write(kind), texts)))
    save(encoder, tmp_path / "saved")
    for other in (load(tmp_path / "saved"), pickle.loads(pickle.dumps(encoder))):
        np.testing.assert_array_equal(other.transform(texts), expected)
    encoder.export(tmp_path / "exported")
    assert_close(encode(tmp_path / "exported", texts), expected)
    assert_close(make(str(tmp_path / "exported")).fit(texts).transform(texts), expected)


def test_a_head_begins_with_the_vectors_before_unit_length(write, texts, labels):
    for kind in ("first token of unit length", "dense layers", "truncated"):
        folder = write(kind)
        encoder = make(folder, "head", max_iter=1, learning_rate=1e-12).fit(texts, labels)
        width = encode(folder, texts[:1]).shape[1]
        np.testing.assert_allclose(encoder.weight_, np.eye(width), atol=1e-6)
        assert_close(encoder.transform(texts), unit(encode(folder, texts)), 1e-5)


@pytest.mark.parametrize(
    ("kind", "layers"),
    [("prompt left out of weightedmean", "auto"), pytest.param("residual", "last", marks=pytest.mark.slow)],
)
@pytest.mark.usefixtures("one_registry")
def test_an_exported_graph_has_the_same_features(write, texts, labels, tmp_path, kind, layers):
    pipe = make_pipeline(make(write(kind), "head", layers=layers), baselines.BallClassifier()).fit(texts, labels)
    assert pipe[0].layers_ == ((0, 1) if layers == "auto" else ())
    export_onnx(pipe, tmp_path / "graph")
    new = ["a", "lamp", *texts]
    found = OnnxPipeline(tmp_path / "graph").answers(new)
    np.testing.assert_allclose(found["features"], pipe[0].transform(new), atol=1e-5)
    np.testing.assert_allclose(found["score"], pipe.score_samples(new), atol=1e-4)


def test_a_model_of_means_needs_no_sentence_transformers_once_it_is_fitted(write, texts, tmp_path, warm_python):
    encoder = make(write("mean behind a prompt")).fit(texts)
    save(encoder, tmp_path / "model")
    (tmp_path / "pickle").write_bytes(pickle.dumps(encoder))
    script = (
        "import pickle, sys, skellipsoid\n"
        "for model in (skellipsoid.load(sys.argv[1]), pickle.load(open(sys.argv[2], 'rb'))):\n"
        "    model.transform(['wake me at six'])\n"
        "print([name for name in sys.modules if name.startswith('sentence_transformers')])"
    )
    done = warm_python(script, tmp_path / "model", tmp_path / "pickle")
    assert (done.stderr, done.stdout) == ("", "[]\n")


# The prompt


@pytest.mark.parametrize("kind", ["mean behind a prompt", "prompt left out of mean"])
def test_a_prompt_is_chosen(write, texts, labels, kind):
    folder = write(kind)
    for prompt in ("", "dim the lights "):
        expected = unit(encode(folder, texts, prompt=prompt))
        assert_close(make(folder, prompt=prompt).fit(texts).transform(texts), expected)
    head = make(folder, "head", prompt="dim the lights ").fit(texts, labels)
    assert not np.allclose(head.transform(texts), make(folder, "head").fit(texts, labels).transform(texts), atol=1e-3)


# What is not supported


def test_modules_that_are_not_supported_are_named(tiny_model, texts, tmp_path):
    folder = written(tmp_path / "own", tiny_model, lambda m: [m.CNN(32, 8), m.Pooling(24)])
    sentence = "cannot embed texts by its own modules: .* module 'CNN'; allowed are Pooling, .*; use pooling='mean', or"
    with pytest.raises(ValueError, match=sentence):
        make(folder).fit(texts)
    assert make(folder, pooling="mean").fit(texts).transform(texts).shape == (32, 32)


def test_settings_that_give_other_features_are_refused(write, texts, tmp_path):
    folder = shutil.copytree(write("cls"), tmp_path / "model")
    path, modules = folder / "sentence_bert_config.json", folder / "modules.json"
    config = json.loads(path.read_text())
    config["modality_config"]["text"]["method_output_name"] = "pooler_output"
    path.write_text(json.dumps(config | {"module_output_name": "sentence_embedding"}))
    modules.write_text(json.dumps(json.loads(modules.read_text())[:1]))
    with pytest.raises(ValueError, match=r"^The embedding model '.*' has unsupported settings, with which .*; use"):
        make(str(folder)).fit(texts)
    assert make(str(folder), pooling="mean").fit(texts).transform(texts).shape == (32, 32)


def test_a_prompt_without_room_for_a_text_is_refused(tiny_model, texts):
    sentence = r"^prompt has 4 tokens, but a text with its prompt may have 5; use a shorter prompt, or a larger max_len"
    with pytest.raises(ValueError, match=sentence):
        make(tiny_model, prompt="wake me at", max_length=5).fit(texts)
    assert make(tiny_model, prompt="wake me at", max_length=6).fit(texts).transform(texts).shape == (32, 32)
    with pytest.raises(ValueError, match=r"^prompt\[0\] is .*, which holds half of a character"):
        make(tiny_model, prompt="\ud800").fit(texts)


@pytest.mark.parametrize(("prompt", "n_prompt"), [(None, 4), ("", 0), ("lamp on ", 2)])
def test_tokens_are_counted_with_the_prompt(write, texts, prompt, n_prompt):
    folder = write("mean behind a prompt")
    encoder = make(folder, prompt=prompt)
    most = 64 - 2 - n_prompt  # of 64 positions two are of special tokens
    for each in (encoder, make(folder, prompt=prompt).fit(["a text"])):
        for n_words in (most, most + 1):
            found = check_training_texts([" ".join(["lamp"] * n_words)] * 5, ["a"] * 5, encoder=each)
            assert ("long_texts" in found.kind.tolist()) == (n_words > most)
