"""Fitted models, what they are asked, and one that is saved."""

import shutil

import numpy as np
import pytest
from hub_helpers import client_of, running_hub
from persistence_helpers import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, save


@pytest.fixture(scope="module")
def queries(texts, open_texts):
    return [*texts, *open_texts]


@pytest.fixture(scope="module")
def pipeline(tiny_model, texts, labels):
    return make_pipeline(tiny_model).fit(texts, labels)


@pytest.fixture(scope="module")
def other(tiny_model, texts, labels):
    """A model that answers otherwise."""
    return make_pipeline(tiny_model, seed=1).fit(texts, np.char.upper(labels))


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 30)
    return rng.normal(size=(60, 4)) + 6 * codes[:, None], codes


@pytest.fixture(scope="module")
def rows():
    """Rows of four classes whose features differ in size, and their classes."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(4), 25)
    return (rng.normal(size=(100, 12)) + 5 * rng.normal(size=(4, 12))[codes]) * np.geomspace(0.1, 30, 12), codes


@pytest.fixture(scope="module")
def classifier(blobs):
    X, y = blobs
    return EllipsoidOpenSetClassifier(random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def saved_once(pipeline, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(pipeline, folder)
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    """A copy of a folder that was saved, to be changed."""
    return shutil.copytree(saved_once, tmp_path / "model")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that is asked by its client in this process, whose cache is empty."""
    with running_hub() as hub, client_of(hub, tmp_path / "cache", monkeypatch):
        monkeypatch.chdir(tmp_path)
        yield hub
