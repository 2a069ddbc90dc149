"""Long texts: no model is given more tokens than it has positions, wherever it numbers them from."""

import re

import numpy as np
import pytest
import torch
from text_models import carried, counter, read

from skellipsoid import SupConTextEncoder, check_training_texts

LONG = "wake me at six " * 40
#: Kinds of models, their padding token, and the positions of 64 that texts have.
KINDS = {
    "Bert": (0, 64),
    "DistilBert": (0, 64),
    "Roberta": (1, 62),
    "Roberta padded by 0": (0, 63),
    "MPNet": (1, 62),
    "Data2VecText": (1, 62),
    "Longformer": (1, 62),
    "RoFormer": (0, 64),
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


def test_more_tokens_than_positions_are_refused_by_one_sentence(kind):
    folder, positions = kind
    encoder = SupConTextEncoder(folder, finetune="none", max_length=positions + 1)
    for use in (encoder.fit, lambda texts: check_training_texts(texts, [0, 1], encoder=encoder)):
        said = f"max_length={positions + 1}, but the embedding model {folder!r} has {positions} positions; use at most"
        with pytest.raises(ValueError, match=rf"^{re.escape(said)} that\.$"):
            use([LONG, "wake me"])
    encoder = SupConTextEncoder(folder, finetune="none", max_length=positions).fit(["wake me"])
    assert np.isfinite(encoder.transform([LONG])).all()
    # It is the last position that there is, and the files alone tell it.
    assert counter(folder).longest == positions
    backbone, ids = read(folder), torch.full((1, positions + 1), 7)
    assert len(backbone.tokenize([LONG])[0]) == positions
    with torch.inference_mode(), pytest.raises((RuntimeError, IndexError)):
        backbone.transformer(input_ids=ids, attention_mask=torch.ones_like(ids))


def test_a_limit_that_counts_rows_of_padding_is_read_and_mended(build_model, tmp_path):
    folder = build_model(tmp_path / "model", model_class="RobertaModel", config_class="RobertaConfig", pad_token_id=1)
    backbone = read(folder)
    assert carried(backbone).longest == carried(backbone, limit=64).longest == 62
    with pytest.raises(ValueError, match="limit is 65 tokens, but it has 64 positions"):
        carried(backbone, limit=65)
