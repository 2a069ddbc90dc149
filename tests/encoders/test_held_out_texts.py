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


@pytest.fixture(scope="module")
def parts(texts, labels):
    """Five texts of each intent to train on, three to decide when to stop."""
    return texts[:20], labels[:20], texts[20:], labels[20:]


@pytest.fixture
def held_out(monkeypatch):
    """What every call of the engine's hold-out chose."""
    calls, choose = [], contrastive.validation_rows

    def note(*given):
        calls.append(choose(*given))
        return calls[-1]

    monkeypatch.setattr(contrastive, "validation_rows", note)
    return calls


def test_every_head_of_cross_fitting_watches_the_given_texts(tiny_model, parts):
    """With given texts no head holds out a share of its own."""
    X, y, *given = parts
    encoders = [make(tiny_model, "head", max_iter=3, validation_fraction=share) for share in (0.1, 0.5)]
    one, other = (each.fit_transform(X, y, X_val=given[0], y_val=given[1]) for each in encoders)
    np.testing.assert_array_equal(one, other)
    assert abs(one - encoders[0].transform(X)).max() > 1e-4
    assert abs(one - encoders[0].fit_transform(X, y)).max() > 1e-4


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


def test_by_default_nothing_is_watched(tiny_model, texts, labels):
    encoder = make(tiny_model, early_stopping=False, cross_fit=False, max_iter=2).fit(texts, labels)
    assert (encoder.n_iter_, encoder.validation_scores_) == (2, None)
    # Parameters of early stopping change nothing without it.
    idle = {"n_iter_no_change": 1, "validation_fraction": 0.4, "tol": 1.0}
    same = make(tiny_model, early_stopping=False, cross_fit=False, max_iter=2, **idle).fit(texts, labels)
    np.testing.assert_array_equal(same.transform(texts), encoder.transform(texts))


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
