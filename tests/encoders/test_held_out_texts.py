"""Which texts a training holds out, and of which epoch it keeps the weights."""

import numpy as np
import pytest

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


@pytest.mark.parametrize(("finetune", "duplicates"), [("full", "each"), ("head", "off")])
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


def test_folds_and_held_out_texts_keep_groups_together(tiny_model, texts, labels, held_out):
    groups = np.arange(len(texts)) // 8  # two texts of each intent in each of four groups
    encoder = make(tiny_model, "head", max_iter=4, validation_fraction=0.3)
    encoder.fit_transform(texts, labels, groups=groups)
    np.testing.assert_array_equal(encoder.groups_, groups)
    marks = held_out[0]
    assert all(len(np.unique(marks[groups == group])) == 1 for group in range(4))
    assert len(np.unique(marks)) > 1
