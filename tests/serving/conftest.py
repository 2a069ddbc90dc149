"""Two models that a server may change between, exported and saved."""

import shutil

import pytest
import serve_helpers
from export_helpers import changed_manifest, manifest_of
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, export_onnx, save

for name in ("fastapi", "uvicorn", "prometheus_client", "onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name)


@pytest.fixture(scope="session")
def pipeline(tiny_model, texts, labels):
    """A text Pipeline of four intents."""
    encoder = SupConTextEncoder(tiny_model, finetune="none", max_length=24, random_state=0)
    return Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(texts, labels)


@pytest.fixture(scope="session")
def saved(pipeline, tmp_path_factory):
    """Folder of the saved Pipeline."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(pipeline, folder)
    return folder


@pytest.fixture(scope="session")
def exported(pipeline, tmp_path_factory, one_registry):
    """Folder of the exported Pipeline."""
    folder = tmp_path_factory.mktemp("exported") / "first"
    export_onnx(pipeline, folder)
    return folder


@pytest.fixture(scope="session")
def exported_later(exported):
    """Folder of the same model, whose classes have names in capitals."""
    folder = shutil.copytree(exported, exported.with_name("second"))
    answers = manifest_of(folder)["answers"]
    changed_manifest(folder, answers=answers | {"values": [value.upper() for value in answers["values"]]})
    return folder


@pytest.fixture
def serve(tmp_path, fresh_environment):
    """Start a server: ``with serve(model, wait_ms=5) as server``."""

    def start(model, **options):
        return serve_helpers.running(model, tmp_path, fresh_environment(), **options)

    return start
