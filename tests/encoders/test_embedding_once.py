"""Inside of a block each text is embedded once, whichever encoder with the same text model needs it."""

import numpy as np
import pytest

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.text_features import embedding_once
from skellipsoid._encoders.torch.backbone import TextBackbone

TEXTS = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off", "set an alarm", "lamp on please"]
LABELS = ["alarm", "alarm", "light", "light", "alarm", "light"]


@pytest.fixture
def embedded(monkeypatch):
    """Texts that a text model embeds."""
    found, embed = [], TextBackbone._embed

    def noted(backbone, texts, *more):
        found.extend(texts)
        return embed(backbone, texts, *more)

    monkeypatch.setattr(TextBackbone, "_embed", noted)
    return found


def encoders():
    return [SupConTextEncoder(finetune=kind, random_state=0, max_iter=2) for kind in ("none", "head")]


def test_each_text_is_embedded_once(embedded):
    with embedding_once():
        for encoder in encoders():
            encoder.fit(TEXTS[:4], LABELS[:4]).transform(TEXTS)
            encoder.fit_transform(TEXTS[::-1], LABELS[::-1])
    assert sorted(embedded) == sorted(TEXTS)
    embedded.clear()
    encoders()[0].fit(TEXTS).transform(TEXTS)
    assert len(embedded) == 2 * len(TEXTS)


def test_features_are_those_without_it():
    def features():
        return [encoder.fit_transform(TEXTS, LABELS) for encoder in encoders()]

    alone = features()
    with embedding_once():
        encoders()[0].fit(TEXTS[1::2])
        together = features()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_text_model_that_is_trained_or_another_one_embeds_anew(embedded):
    with embedding_once():
        SupConTextEncoder(finetune="none", layers="last").fit(TEXTS)
        SupConTextEncoder(finetune="none", layers="last", max_length=4).fit(TEXTS)
        trained = SupConTextEncoder(finetune="full", max_iter=1, batch_size=6, random_state=0).fit(TEXTS, LABELS)
        plain = trained.transform(TEXTS)
    assert len(embedded) == 3 * len(TEXTS)
    np.testing.assert_allclose(trained.transform(TEXTS), plain, rtol=0, atol=1e-5)
