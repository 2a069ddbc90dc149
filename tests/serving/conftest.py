"""Two models that a server may change between, exported and saved."""

import json
import shutil

import pytest
import serve_helpers
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, export_onnx, save
from skellipsoid.persistence._folder import manifest_bytes
from skellipsoid_runtime._folder import MANIFEST

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
def rewritten(exported):
    """Copy the exported model with another manifest: ``rewritten(folder, change)``; gives the folder."""

    def copy(folder, change):
        shutil.copytree(exported, folder)
        manifest = json.loads((folder / MANIFEST).read_bytes())
        change(manifest)
        del manifest["manifest_sha256"]
        (folder / MANIFEST).write_bytes(manifest_bytes(manifest))
        return folder

    return copy


@pytest.fixture(scope="session")
def exported_later(rewritten, exported):
    """Folder of the same model, whose classes have names in capitals."""

    def change(manifest):
        answers = manifest["answers"]
        answers["values"] = [str(value).upper() for value in answers["values"]]

    return rewritten(exported.with_name("second"), change)


@pytest.fixture
def serve(tmp_path, fresh_environment):
    """Start a server: ``with serve(model, wait_ms=5) as server``."""

    def start(model, **options):
        return serve_helpers.running(model, tmp_path, fresh_environment(), **options)

    return start
