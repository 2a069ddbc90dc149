"""Promise: a saved model says what it is, in the manifest for programs and in the model card for people."""

import json
import re
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from persistence_helpers import MANIFEST, make_pipeline
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, load, save, set_operating_point

REPORT = """              precision  recall
balance            1.00    0.75
```
open               0.50    1.00"""


def read(folder):
    return json.loads((folder / MANIFEST).read_text()), (folder / "README.md").read_text(encoding="utf-8")


def test_what_comes_from_the_user_is_kept_as_it_is_and_shown(pipeline, tmp_path):
    provenance = {
        "n_texts": np.int64(32),
        "share": 0.25,
        "file": "a`b|c <b>\n",
        "data_check": {"near_duplicates": 3, "labels": ["a", None, True]},
        "report": REPORT,
    }
    save(pipeline, tmp_path / "model", provenance=provenance)
    manifest, card = read(tmp_path / "model")
    data = {"training_data_sha256": pipeline["enc"].training_data_sha256_}
    assert manifest["provenance"] == {**data, **provenance, "n_texts": 32}
    assert manifest["versions"]["torch"] == metadata.version("torch")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(manifest["saved"])) < timedelta(minutes=1)
    assert f"- `torch`: `{metadata.version('torch')}`\n" in card
    assert f"- `training_data_sha256`: `{data['training_data_sha256']}`\n- `n_texts`: `32`\n" in card
    assert '## data_check\n\n- `near_duplicates`: `3`\n- `labels`: `["a", null, true]`\n' in card
    assert f"## report\n\n````text\n{REPORT}\n````\n" in card
    # A later load needs none of it, a later save does not inherit it.
    save(load(tmp_path / "model"), tmp_path / "again")
    assert read(tmp_path / "again")[0]["provenance"] == data


NOT_JSON = [
    ({"a": np.zeros(2)}, r"provenance\['a'\] is array\(\[0., 0.\]\) of type ndarray, but must be what JSON can"),
    ({"a": {"b": [1, float("nan")]}}, r"provenance\['a'\]\['b'\]\[1\] is nan of type float, but must be what"),
    ({"a": {1: 2}}, r"provenance\['a'\] has the key 1, but its keys must be strings; convert them"),
    ("trained on Monday", "provenance is 'trained on Monday' of type str, but must be a"),
]


@pytest.mark.parametrize(("provenance", "sentence"), NOT_JSON, ids=str)
def test_provenance_that_json_cannot_hold_is_refused(classifier, tmp_path, provenance, sentence):
    with pytest.raises(TypeError, match=sentence):
        save(classifier, tmp_path / "model", provenance=provenance)
    assert list(tmp_path.iterdir()) == []


def test_the_card_says_what_a_text_model_is(tiny_model, texts, labels, tmp_path):
    save(make_pipeline(tiny_model).set_params(enc__keep_texts=True).fit(texts, labels), tmp_path / "model")
    card = read(tmp_path / "model")[1]
    assert card.startswith("# Open-set text classifier\n")
    assert "one of 4 known classes, or `-1` (open)" in card
    name = Path(tiny_model).name  # of the path of a folder no more
    assert f"1. `SupConTextEncoder` (texts to 6 features, embedding model `{name}`, fitted on 32 samples)\n" in card
    assert "2. `EllipsoidOpenSetClassifier` (6 features, fitted on 32 samples)\n" in card
    assert "## Classes\n\n`alarm`, `balance`, `light`, `weather`\n" in card
    assert "## Threshold\n\n`offset_` is 0, the fitted threshold itself.\n" in card
    assert "- `enc.temperature`: `0.3`\n" in card
    assert "`clf.alpha`" not in card
    assert "This folder holds 32 training texts, in `skellipsoid.json`." in card
    (code,) = re.findall(r"```python\n(.*?)```", card, re.S)
    assert 'model = skellipsoid.load("path/to/this/folder")\nmodel.predict(["a text", "another text"])\n' in code
    found = {}
    exec(code.replace("path/to/this/folder", str(tmp_path / "model")), found)
    assert [name for name, _ in found["model"].steps] == ["enc", "clf"]


def test_the_card_shows_a_moved_operating_point(blobs, tmp_path):
    X, y = blobs[0], np.tile([0, 1, 2], 20)
    X = X + 9 * y[:, np.newaxis]
    frozen, clf = FrozenEstimator(PCA(2).fit(X)), EllipsoidOpenSetClassifier(random_state=0)
    inner = Pipeline([("scale", StandardScaler()), ("pca", frozen), ("clf", clf)])
    tuned = TunedOperatingPointCV(inner, rejection_rate=0.25, cv=3).fit(X, y)
    save(tuned, tmp_path / "tuned")
    card = read(tmp_path / "tuned")[1]
    assert f"`offset_` is {tuned.offset_:.6g}: open where `score_samples` is below it." in card
    assert "- `cv`: `3`\n- `rejection_rate`: `0.25`\n" in card
    assert "- `estimator_.clf.random_state`: `0`\n" in card
    names = ["TunedOperatingPointCV", "StandardScaler", "PCA", "EllipsoidOpenSetClassifier"]
    assert re.findall(r"^\d+\. `(\w+)`", card, re.M) == names
    clf = set_operating_point(EllipsoidOpenSetClassifier().fit(X, y), X, rejection_rate=0.25)
    clf.class_offsets_ = np.array([0.0, 0.125, 0.0])
    save(clf, tmp_path / "classes")
    assert "For some classes it is moved: `1` +0.125." in read(tmp_path / "classes")[1]
    assert load(tmp_path / "classes").class_offsets_.tolist() == [0.0, 0.125, 0.0]


@pytest.mark.filterwarnings("ignore:y has classes with usual names")
@pytest.mark.parametrize("name", ["a\nb", "``", "<img src=x>", " ", "größer, 左"])
def test_no_label_breaks_the_card(blobs, tmp_path, name):
    X, codes = blobs
    save(EllipsoidOpenSetClassifier(random_state=0).fit(X, np.array([name, "~"])[codes]), tmp_path / "model")
    card = read(tmp_path / "model")[1]
    (line,) = re.findall(r"## Classes\n\n(.*)\n\n## Threshold\n", card)
    fence = max(re.findall("`+", name), key=len, default="") + "`"
    shown = name.replace("\n", "\\n")
    assert line in [f"{fence}{shown}{fence}, `~`", f"{fence} {shown} {fence}, `~`"]


# Whose README.md it is


def test_a_card_is_replaced_and_a_readme_of_the_user_is_not(classifier, pipeline, tmp_path):
    target = tmp_path / "model"
    save(classifier, target)
    save(pipeline, target, overwrite=True)
    assert "# Open-set text classifier" in read(target)[1]
    (target / "README.md").write_text("mine")
    save(classifier, target, overwrite=True)
    assert (target / "README.md").read_text() == "mine"
    (target / "README.md").unlink()
    (target / "README.md").symlink_to(tmp_path / "nowhere")
    save(classifier, target, overwrite=True)
    assert (target / "README.md").is_symlink()


@pytest.mark.parametrize(("n_classes", "end"), [(200, "`199`\n"), (201, "`199`, and 1 more\n")])
def test_of_many_classes_the_first_are_named(tmp_path, n_classes, end):
    y = np.repeat(np.arange(n_classes), 3)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + 50 * y[:, None]
    save(EllipsoidOpenSetClassifier(random_state=0).fit(X, y), tmp_path / "model")
    assert re.search(rf"\n\n`0`, `1`, .*, {end}", read(tmp_path / "model")[1])
