"""Promise: a model that was saved once is read by every later version, and answers as it did.

The folders in ``kept`` were written by ``save`` in the version that first kept its format; the JSON file beside each
holds questions and that version's answers. When may these files change? Never. A later format, or a renamed attribute,
comes with code that reads them; a new format adds a folder of its own.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from persistence_helpers import snapshot

from skellipsoid import load, refresh, save

KEPT = Path(__file__).parent / "kept"
#: SHA-256 of all files of a model with its questions and answers.
DIGESTS = {
    "format_6/classifier": "bcb7a98623321d3f439bb13007898ffbae8277126e8b856e7462890cc7608d4b",
    "format_6/scaled": "c5929b8aebf314f0ca1ada88c57c8227027ad28593f0dabf340043b2e6e14e58",
    "format_6/texts": "a3b559aa330c7a50990c72ca0d899840731ffda9572360414f219c8434ab6946",
    "format_6/trained": "7903f5a943d84ce796b7f8c7aaa5f644f574b43b37be9716de67363fe97296c3",
    "format_7/classifier": "408e61f5316d38063c3e7b6a0052cd1e3b82f0c3bee607243857f1bb5be04aa0",
    "format_7/scaled": "041374c74075689cc95cea7a4a096c80151af940f5b7397dbad95676ccc541b1",
    "format_7/texts": "b766538d6f1d97ec9a0f9cbf94ab454f00622553c09ab777f48ce646a464a402",
    "format_7/trained": "321b51320096b6842f2d7af60a13980e2583cb9ee9c93b2075f6412d70330485",
    "format_8/learned": "234ee2b37e18badce157016a57fac6119e1d1892e140ae7aa1558da3783ca7ac",
}


def digest(name):
    files = snapshot(KEPT / name) | {"answers": (KEPT / f"{name}.json").read_bytes()}
    lines = [f"{path} {hashlib.sha256(files[path]).hexdigest()}" for path in sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_the_kept_models_are_those_that_were_kept():
    assert {name: digest(name) for name in DIGESTS} == DIGESTS
    assert {f"{path.parent.name}/{path.stem}" for path in KEPT.glob("*/*.json")} == DIGESTS.keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_a_kept_model_answers_as_it_did(name, tmp_path):
    kept = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    model = load(KEPT / name)
    save(model, tmp_path / "again")
    for each in (model, load(tmp_path / "again")):
        for method, expected in kept["answers"].items():
            found = getattr(each, method)(kept["probes"])
            if "predict" in method:
                assert found.tolist() == expected
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=method)


@pytest.mark.parametrize("name", ["format_6/classifier", "format_7/classifier", "format_7/trained"])
def test_training_samples_are_read_by_their_earlier_names(name, tmp_path):
    (arrays,) = (KEPT / name).glob("parts-*/estimator/arrays.safetensors")
    saved = safetensors.numpy.load_file(arrays)
    model = load(KEPT / name)
    save(model, tmp_path / "again")
    again = load(tmp_path / "again")
    names = {"rows": "features", "held": "validates", "open_rows": "open_features", "open_held": "open_validates"}
    for each in (model, again):
        for old, new in names.items():
            np.testing.assert_array_equal(getattr(each._kept, new), saved[f"_kept.{old}"])
    probes = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))["probes"]
    np.testing.assert_array_equal(again.score_samples(probes), model.score_samples(probes))
    np.testing.assert_array_equal(refresh(again).score_samples(probes), refresh(model).score_samples(probes))
