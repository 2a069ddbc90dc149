"""Which texts a training holds out, and of which epoch it keeps the weights."""

import numpy as np
import pytest
import torch
from torch import nn

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.torch import contrastive


def make(model, finetune="full", **parameters):
    chosen = {"temperature": 0.3, "batch_size": 16, "max_iter": 30, "random_state": 0, "early_stopping": True}
    # A rate this high makes the accuracy go up and down.
    chosen["learning_rate"] = 0.3 if finetune == "head" else 3e-2
    return SupConTextEncoder(model, finetune=finetune, **chosen | parameters)


@pytest.fixture
def held_out(monkeypatch):
    """What every call of the engine's hold-out chose."""
    calls, choose = [], contrastive.validation_rows

    def note(*given):
        calls.append(choose(*given))
        return calls[-1]

    monkeypatch.setattr(contrastive, "validation_rows", note)
    return calls


@pytest.mark.parametrize("duplicates", ["each", "off"])
@pytest.mark.parametrize("finetune", ["full", "head"])
def test_copies_of_a_text_are_held_out_together(tiny_model, texts, labels, held_out, finetune, duplicates):
    several = [*texts, *(text.upper() for text in texts), f" {texts[0]}"]
    # One text has two labels.
    y = np.array([*labels, *labels, "weather"])
    encoder = make(tiny_model, finetune, max_iter=1, validation_fraction=0.4, duplicates=duplicates)
    encoder.fit(several, y)
    (marks,) = held_out
    np.testing.assert_array_equal(marks[:32], marks[32:64])
    assert marks[64] == marks[0]
    shares = [marks[y == name].mean() for name in np.unique(y)]
    assert min(shares) > 0.3
    assert max(shares) < 0.6


def test_the_best_epoch_is_that_of_all_layers(tiny_model, texts, labels, tmp_path, monkeypatch):
    """Of the epoch that is kept, the weights of the layers after the transformer are kept as well."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    layers = [modules.Dense(32, 9, True, nn.GELU()), modules.Dense(9, 8, bias=False)]
    own = SentenceTransformer(modules=[modules.Transformer(tiny_model), modules.Pooling(32), *layers], device="cpu")
    own.save_pretrained(str(tmp_path / "own"), create_model_card=False)
    seen, scores = [], iter([1.0, 0.5, 0.5])

    def score(trainer):
        seen.append({name: each.clone() for name, each in trainer.learner.rows.backbone.model.state_dict().items()})
        return next(scores)

    monkeypatch.setattr(contrastive._Trainer, "_score", score)
    options = {"early_stopping": True, "validation_fraction": 0.3, "random_state": 0, "max_iter": 3}
    encoder = SupConTextEncoder(str(tmp_path / "own"), finetune="full", **options).fit(texts, labels)
    found = encoder._backbone.model.state_dict()
    assert all(torch.equal(tensor, seen[0][name]) for name, tensor in found.items())
    assert not torch.equal(seen[0]["after.1.linear.weight"], seen[2]["after.1.linear.weight"])


def test_folds_and_held_out_texts_keep_groups_together(tiny_model, texts, labels, held_out):
    groups = np.arange(len(texts)) // 8  # two texts of each intent in each of four groups
    encoder = make(tiny_model, "head", max_iter=4, validation_fraction=0.3)
    encoder.fit_transform(texts, labels, groups=groups)
    np.testing.assert_array_equal(encoder.groups_, groups)
    marks = held_out[0]
    assert all(len(np.unique(marks[groups == group])) == 1 for group in range(4))
    assert len(np.unique(marks)) > 1
    # A class of one group is in every fold: its features are those of the final head, and no other's are.
    one = np.where(labels == "alarm", 0, 1 + np.arange(len(texts)))
    encoder = make(tiny_model, "head", max_iter=4, early_stopping=False)
    moved = abs(encoder.fit_transform(texts, labels, groups=one) - encoder.transform(texts)).max(axis=1)
    assert (moved[labels == "alarm"] < 1e-6).all()
    assert (moved[labels != "alarm"] > 1e-4).all()
