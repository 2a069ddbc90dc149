"""Layers that an encoder reads beside the last one: what they add, for which models, and how they travel."""

import pickle

import numpy as np
import pytest
import torch
import transformers
from sklearn.preprocessing import normalize
from text_models import written

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, load, save
from skellipsoid._encoders.torch.stored_model import restore
from skellipsoid.datasets import load_assistant_intents


def make(model, layers="auto", **parameters):
    return SupConTextEncoder(model, **{"finetune": "none", "layers": layers, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def new():
    return ["a lamp", "wake me", "rain", "is it raining today or tomorrow"]


@pytest.fixture(scope="module")
def layers_of(tiny_model):
    """Mean token vectors after each layer, one text at a time: ``layers_of(texts)``, (n_layers + 1, n_texts, 32)."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
    model = transformers.AutoModel.from_pretrained(tiny_model).eval()

    def give(texts):
        with torch.no_grad():
            found = [model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True) for text in texts]
        return np.stack([[state[0].mean(0).numpy() for state in each.hidden_states] for each in found], axis=1)

    return give


@pytest.mark.parametrize(("layers", "unit"), [((0, 1), True), ((2, 0), False)])
def test_features_are_the_vector_and_the_centred_means_of_layers(tiny_model, texts, new, layers_of, layers, unit):
    encoder = make(tiny_model, layers, normalize=unit)
    fitted = encoder.fit_transform(texts)
    of_train, of_new = layers_of(texts), layers_of(new)
    for found, given in ((fitted, of_train), (encoder.transform(new), of_new)):
        parts = [normalize(given[layer] - of_train[layer].mean(axis=0)) for layer in layers]
        expected = normalize(given[-1]) + 0.4 * sum(parts)
        np.testing.assert_allclose(found, normalize(expected) if unit else expected, atol=2e-5)


def test_auto_reads_no_layers_whose_vectors_have_another_width(tiny_model, texts, tmp_path):
    folder = written(tmp_path / "m", tiny_model, lambda m: [m.Pooling(32), m.Dense(32, 8)])
    assert make(folder).fit(texts).layers_ == ()
    assert make(folder, pooling="mean").fit(texts).layers_ == (0, 1)
    with pytest.raises(ValueError, match="vectors of 8 numbers from token vectors of 32; use layers='last'"):
        make(folder, (0,)).fit(texts)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": (3,)}, "has 2 layers; use numbers from 0 to 2"),
        ({"layers": (-1,)}, "must be 'auto', 'last', or a tuple of whole numbers from 0"),
        ({"layers": "first"}, "The 'layers' parameter of SupConTextEncoder must be"),
        ({"layers": (0,), "finetune": "full"}, "but finetune='full' trains it; use layers='last', or finetune='head'"),
    ],
)
def test_layers_that_are_not_there_are_refused_and_leave_the_earlier_fit(
    tiny_model, texts, labels, new, params, message
):
    encoder = make(tiny_model).fit(texts)
    before = encoder.transform(new)
    with pytest.raises(ValueError, match=message):
        encoder.set_params(**params).fit(texts, labels)
    np.testing.assert_array_equal(encoder.transform(new), before)


def test_it_travels(tiny_model, texts, labels, new, tmp_path):
    """As a graph, too: ``test_own_features.py``."""
    encoder = make(tiny_model, finetune="head", max_iter=2, keep_texts=True).fit(texts, labels)
    expected = encoder.transform(new)
    save(encoder, tmp_path / "model")
    for found in (pickle.loads(pickle.dumps(encoder)), load(tmp_path / "model")):
        assert found.layers_ == (0, 1)
        np.testing.assert_array_equal(found.transform(new), expected)
    with pytest.raises(ValueError, match=r"reads the layers \(0, 1\) .* fit with layers='last' to export"):
        encoder.export(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "change", [{"numbers": [7], "weight": 0.4}, {"numbers": [0], "weight": 2.0}, {"numbers": []}, 3]
)
def test_altered_layers_are_refused(tiny_model, texts, change):
    encoder = make(tiny_model, (0,)).fit(texts)
    stored = encoder._backbone.stored()
    stored.description["layers"] = change
    with pytest.raises(ValueError, match=r"layers|weigh"):
        restore(stored)


@pytest.mark.slow
def test_held_out_scores_stay_as_like_fresh_ones_as_with_the_last_layer():
    """The centre is fitted on the training texts; few of them must not make fresh texts look strange."""
    data = load_assistant_intents()
    shares = {"last": [], "auto": []}
    for draw in range(4):
        order = np.random.default_rng(20 + draw).permutation(len(data.target))
        rank = np.array([(data.target[order[:i]] == data.target[order[i]]).sum() for i in range(len(order))])
        train, fresh = order[rank < 2], order[rank >= 2]
        for layers, found in shares.items():
            encoder = SupConTextEncoder(finetune="none", layers=layers)
            clf = EllipsoidOpenSetClassifier(random_state=0)
            clf.fit(encoder.fit_transform(data.data[train]), data.target[train])
            found.append((clf.known_p_value(encoder.transform(data.data[fresh])) <= 0.1).mean())
    assert np.mean(shares["auto"]) == pytest.approx(np.mean(shares["last"]), abs=0.02)
    assert np.mean(shares["auto"]) < 0.12
