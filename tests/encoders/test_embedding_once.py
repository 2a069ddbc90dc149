"""Inside of a block each text is embedded once, whichever encoder with the same text model needs it."""

import numpy as np

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.text_features import embedding_once


def test_features_are_those_without_it(tiny_model, texts, labels):
    """The command ``train`` embeds each text once by it: ``tests/cli/test_cli_train.py``."""

    def features():
        one = {"random_state": 0, "max_iter": 1}
        encoders = [SupConTextEncoder(tiny_model, finetune=mode, **one) for mode in ("none", "head", "full")]
        encoders.append(SupConTextEncoder(tiny_model, finetune="none", layers="last", max_length=4))
        return [encoder.fit(texts, labels).transform(texts) for encoder in encoders]

    alone = features()
    with embedding_once():
        SupConTextEncoder(tiny_model, finetune="none").fit(texts[1::2])
        together = features()
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
