"""Inside of a block each text is embedded once, whichever encoder with the same text model needs it."""

import numpy as np

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.text_features import embedding_once

TEXTS = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off", "set an alarm", "lamp on please"]
LABELS = ["alarm", "alarm", "light", "light", "alarm", "light"]


def encoders():
    one = {"random_state": 0, "max_iter": 2}
    yield from (SupConTextEncoder(finetune=kind, **one) for kind in ("none", "head"))
    yield SupConTextEncoder(finetune="none", layers="last", max_length=4)
    yield SupConTextEncoder(finetune="full", max_iter=1, batch_size=6, random_state=0)  # trains the text model


def test_features_are_those_without_it():
    """The command ``train`` embeds each text once by it: ``tests/cli/test_cli_embeds_once.py``."""

    def features():
        return [encoder.fit(TEXTS, LABELS).transform(TEXTS) for encoder in encoders()]

    alone = features()
    with embedding_once():
        SupConTextEncoder(finetune="none").fit(TEXTS[1::2])
        together = features()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
