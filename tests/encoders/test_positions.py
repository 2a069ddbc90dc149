"""Long texts: no model is given more tokens than it has positions, wherever it numbers them from."""

import pickle
import re

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sklearn.pipeline import make_pipeline
from text_models import carried, counter, read

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, check_training_texts, load, save

LONG = "wake me at six " * 40
#: Kinds of models, their padding token, and the positions of 64 that texts have.
KINDS = {
    "Bert": (0, 64),
    "DistilBert": (0, 64),
    "Electra": (0, 64),
    "Roberta": (1, 62),
    "Roberta padded by 0": (0, 63),
    "XLMRoberta": (1, 62),
    "Camembert": (1, 62),
    "MPNet": (1, 62),
    "Data2VecText": (1, 62),
    "Longformer": (1, 62),
    "XLMRobertaXL": (1, 62),
    "RoFormer": (0, 64),
    "Albert": (0, 64),
    "GPT2": (None, 64),
}
#: Those that name a width of theirs otherwise.
OTHERS = {"DistilBert": {"hidden_dim": 64}, "Longformer": {"attention_window": 4}}


@pytest.fixture(scope="module", params=KINDS)
def kind(request, build_model, tmp_path_factory):
    """Folder of a random model of a kind, and its largest number of tokens."""
    name = request.param.partition(" ")[0]
    padding, positions = KINDS[request.param]
    folder = build_model(
        tmp_path_factory.mktemp("models") / "model",
        model_class=f"{name}Model",
        config_class=f"{name}Config",
        num_hidden_layers=1,
        pad_token_id=padding,
        **OTHERS.get(name, {}),
    )
    return folder, positions


def test_a_long_text_is_cut_at_the_last_position_and_that_one_is_used(kind):
    folder, positions = kind
    backbone = read(folder)
    assert backbone.longest == backbone.model.limit == positions
    assert len(backbone.tokenize([LONG])[0]) == positions
    assert np.isfinite(backbone.embed([LONG, "wake me", ""]).numpy()).all()
    ids = torch.ones(1, positions + 1, dtype=torch.long) * 7
    with torch.inference_mode(), pytest.raises((RuntimeError, IndexError)):
        backbone.transformer(input_ids=ids, attention_mask=torch.ones_like(ids))
    if type(backbone.transformer).__name__ != "Data2VecTextModel":  # which cannot be saved
        again = pickle.loads(pickle.dumps(backbone))
        assert again.longest == positions
        np.testing.assert_array_equal(again.embed([LONG]).numpy(), backbone.embed([LONG]).numpy())


def test_more_tokens_than_positions_are_refused_by_one_sentence(kind):
    folder, positions = kind
    sentence = (
        f"max_length={positions + 1}, but the embedding model {folder!r} has {positions} positions; use at most that."
    )
    encoder = SupConTextEncoder(folder, finetune="none", max_length=positions + 1)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        encoder.fit([LONG, "wake me"])
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        check_training_texts([LONG, "wake me"], [0, 1], encoder=encoder)
    encoder = SupConTextEncoder(folder, finetune="none", max_length=positions).fit(["wake me"])
    assert np.isfinite(encoder.transform([LONG])).all()


def test_the_files_alone_tell_the_same_limit(kind):
    folder, positions = kind
    assert counter(folder).longest == positions
    assert counter(folder, 11).longest == 11
    # With both special tokens the second text has a token too many.
    texts = ["wake " * (positions - 2), "wake " * (positions - 1)]
    found = check_training_texts(texts, [0, 1], encoder=SupConTextEncoder(folder))
    assert [rows for name, rows in zip(found.kind, found.rows, strict=True) if name == "long_texts"] == [(1,)]


def test_a_model_keeps_its_limit_saved_and_exported(build_model, tmp_path, texts, labels):
    folder = build_model(tmp_path / "model", model_class="RobertaModel", config_class="RobertaConfig", pad_token_id=1)
    encoder = SupConTextEncoder(folder, finetune="none", layers="last")
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    asked = [*texts[:4], LONG, f"{LONG} play jazz"]
    save(pipe, tmp_path / "saved")
    np.testing.assert_array_equal(load(tmp_path / "saved").predict(asked), pipe.predict(asked))
    pipe[0].export(tmp_path / "plain")
    again = SentenceTransformer(str(tmp_path / "plain"), device="cpu")
    np.testing.assert_allclose(again.encode(asked), pipe[0].transform(asked), atol=1e-5)


def test_a_limit_that_counts_rows_of_padding_is_read_and_mended(build_model, tmp_path):
    folder = build_model(tmp_path / "model", model_class="RobertaModel", config_class="RobertaConfig", pad_token_id=1)
    backbone = read(folder)
    assert carried(backbone).longest == carried(backbone, limit=64).longest == 62
    with pytest.raises(ValueError, match="limit is 65 tokens, but it has 64 positions"):
        carried(backbone, limit=65)
