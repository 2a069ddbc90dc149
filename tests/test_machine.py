"""Promise: what the package does and says holds on every machine."""

import copy
import json
import os
import pickle
import tempfile
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import torch
from machines import PROCESSORS
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, load, save


@pytest.mark.parametrize("machine", ["no_home"], indirect=True)
@pytest.mark.parametrize(
    "script",
    [
        "from skellipsoid_runtime import OnnxPipeline",
        "from skellipsoid._onnx.quantize import import_onnxruntime\nimport_onnxruntime()",
    ],
    ids=["runtime", "export"],
)
def test_onnxruntime_writes_nothing_into_the_home(machine, script, fresh_python):
    """Nor does it complain that it cannot; the variable that keeps it from doing so is not left behind."""
    done = fresh_python(
        f"{script}\nimport os, sys\nprint('onnxruntime' in sys.modules, 'ORT_DISABLE_TELEMETRY' in os.environ)"
    )
    assert (done.stderr, done.stdout) == ("", "True False\n")


@pytest.mark.parametrize("machine", PROCESSORS, indirect=True)
def test_a_model_is_loaded_without_a_word_and_embeds_with_one(machine, tmp_path, encoder):
    """No processor is slow at what is not computed."""
    save(copy.copy(encoder).set_params(dtype="bfloat16"), tmp_path / "model")
    ran = []
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, given: ran.append(type(module)))
    try:
        loaded = load(tmp_path / "model")
        save(loaded, tmp_path / "again")
        pickle.dumps(loaded)
        assert ran == []
        loaded._backbone.embed(["a text"])
        assert ran
    finally:
        hook.remove()
    if machine in ("avx512", "no_vector_extensions"):
        with pytest.warns(UserWarning, match="no AMX; use dtype='float32' here"):
            loaded.transform(["a text"])
    else:
        loaded.transform(["a text"])


@pytest.fixture(scope="module")
def encoder(tiny_model, texts):
    return SupConTextEncoder(tiny_model, finetune="none", device="cpu").fit(texts)


@pytest.mark.parametrize("machine", ["one_core", "many_cores", "little_memory", "no_gpu"], indirect=True)
def test_answers_are_those_of_every_machine(machine, encoder, texts, labels):
    features = encoder.transform(texts)
    found = EllipsoidOpenSetClassifier(random_state=0).fit(features, labels)
    assert (found.predict(features) == labels).mean() > 0.5


@pytest.mark.parametrize("machine", ["tmp_elsewhere", "no_home", "other_time_zone"], indirect=True)
def test_a_model_is_saved_and_loaded_on_every_machine(machine, encoder, texts, labels, tmp_path):
    pipeline = Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))])
    pipeline.steps[1][1].fit(encoder.transform(texts), labels)
    save(pipeline, tmp_path / "model")
    save(pipeline, tmp_path / "model", overwrite=True)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(texts), pipeline.predict(texts))
    saved = json.loads((tmp_path / "model" / "skellipsoid.json").read_bytes())["saved"]
    assert abs(datetime.fromisoformat(saved) - datetime.now(UTC)) < timedelta(minutes=10)
    if machine == "tmp_elsewhere":
        assert os.stat(tempfile.gettempdir()).st_dev != os.stat(tmp_path).st_dev
