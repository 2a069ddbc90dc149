"""Small text models of the four kinds that can be exported, and exported models."""

import shutil

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid


@pytest.fixture(scope="session", autouse=True)
def quick_exports(one_registry):
    """The tests of this folder export again and again."""


@pytest.fixture(scope="session")
def pipeline(tiny_model, texts, labels):
    """A text Pipeline with a trained head, a scaler, kept texts, and a moved operating point."""
    settings = {"finetune": "head", "max_iter": 3, "keep_texts": True, "max_length": 24, "random_state": 0}
    encoder = skellipsoid.SupConTextEncoder(tiny_model, **settings)
    classifier = skellipsoid.EllipsoidOpenSetClassifier(random_state=0)
    pipe = make_pipeline(encoder, StandardScaler(), classifier).fit(texts, labels)
    pipe[-1].offset_, pipe[-1].class_offsets_ = -0.1, np.array([0.0, 0.2, 0.0, -0.1])
    return pipe


@pytest.fixture(scope="session")
def exported(pipeline, tmp_path_factory):
    """Folder of the exported text Pipeline."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    skellipsoid.export_onnx(pipeline, folder)
    return folder


@pytest.fixture
def copied(exported, tmp_path):
    """A copy of the exported model that a test may damage."""
    return shutil.copytree(exported, tmp_path / "copy")
