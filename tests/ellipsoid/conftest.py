"""Embeddings of the shipped corpus, so that tests of real texts need no text model."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from skellipsoid.datasets import load_assistant_intents


@pytest.fixture(scope="session")
def assistant():
    """Texts, classes and parts of train and test, with stored embeddings: those of the frozen default model."""
    corpus = load_assistant_intents(subset="all")
    used = corpus.split != "dev"
    stored = np.load(Path(__file__).parent / "assistant_embeddings.npy")
    columns = {name: corpus[name][used] for name in ("data", "target", "split")}
    return Bunch(embeddings=stored.astype(np.float32), **columns)
