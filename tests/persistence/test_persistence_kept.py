"""Promise: a model that was saved once is read by every later version, and answers as it did.

The folders in ``kept`` were written by ``save`` in the version that first kept its format; the JSON file beside each
holds questions and that version's answers. ``SKELLIPSOID_TESTS_KEEP=yes`` writes those of the present format, where
they are missing. When may they change? Until their format is released; then never: a later format, or a renamed
attribute, comes with code that reads them.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from persistence_helpers import make_pipeline as of_texts
from persistence_helpers import read_manifest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, learn_from_traffic, load, save
from skellipsoid.persistence._folder import FORMAT_VERSION

KEPT = Path(__file__).parent / "kept"
MODELS = ("classifier", "scaled", "texts", "trained", "learned")
NAMES = sorted(f"{path.parent.name}/{path.stem}" for path in KEPT.glob("format_*/*.json"))


@pytest.fixture(scope="module")
def made(tiny_model, texts, labels, open_texts):
    """Models as a fit of today makes them, with questions: ``made(name)``."""
    rng = np.random.default_rng(0)
    middles = np.array([[0, 0, 1], [7, 0, 0], [0, 7, 0], [7, 7, 3]])
    y = np.arange(80) % 4
    X = middles[y] + rng.normal(size=(80, 3))
    probes = np.concatenate([X[:8] + 0.1, 3 * rng.normal(size=(6, 3)) + 3]).round(3)

    def make(name):
        if name == "texts":
            pipe = of_texts(tiny_model).fit(texts, labels)
            pipe.steps[0][1].set_params(model_name="tiny")  # no path of this machine
            return pipe, [*texts[::4], *open_texts, "alarm " * 90]
        if name == "scaled":
            pipe = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(open_label="open", random_state=0))
            wide = [1, 100, 1]
            return pipe.fit(X * wide, np.array(["left", "right", "top", "open"])[y]), (probes * wide).tolist()
        trainer = EliDecide(max_iter=3) if name == "trained" else None
        clf = EllipsoidOpenSetClassifier(trainer=trainer, random_state=0).fit(X, y)
        if name == "learned":
            log = np.concatenate([middles[np.arange(30) % 4], np.full((10, 3), 4.0)]) + rng.normal(size=(40, 3))
            clf = learn_from_traffic(clf, log, [*(np.arange(30) % 4).tolist(), *[-1] * 10])
        return clf, probes.tolist()

    return make


def answers_of(model, probes):
    methods = ("predict", "score_samples", "predict_known", "known_p_value")
    return {name: getattr(model, name)(probes).tolist() for name in methods if hasattr(model, name)}


@pytest.mark.skipif("SKELLIPSOID_TESTS_KEEP" not in os.environ, reason="writes the models of a new format")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_of_the_present_format_are_written_where_they_are_missing(made):
    folder = KEPT / f"format_{FORMAT_VERSION}"
    for name in MODELS:
        if not (folder / f"{name}.json").exists():
            model, probes = made(name)
            save(model, folder / name)
            kept = {"probes": probes, "answers": answers_of(model, probes)}
            (folder / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
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


def entries(value):
    """What stands in a description, without its numbers."""
    if isinstance(value, dict):
        # A memory, sheets of labels and what these placed are written where a model has learned, units of columns where
        # a fit found some, a history where there is a trainer, and since then what is done with unread texts; models
        # with or without them load as they were.
        history = {"n_iter_", "loss_curve_", "validation_scores_"}
        since = {"memory", "sheets", "units", "_taught", "_zeros_are_none", "zeros", *history}
        return {name: entries(item) for name, item in value.items() if name not in since}
    if isinstance(value, list):
        return [entries(item) for item in value if isinstance(item, dict)]
    return None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_what_save_writes_has_the_entries_of_its_format(name, made, tmp_path):
    """A new name or a new array is a new format: raise ``FORMAT_VERSION`` and keep models of it."""
    save(made(name)[0], tmp_path / "model")
    now, kept = (read_manifest(folder) for folder in (tmp_path / "model", KEPT / f"format_{FORMAT_VERSION}" / name))
    parts = now["model"].get("steps", [now["model"]])
    for part in parts:  # where it is missing, load reads the parameters, as the version did that kept the models
        part.get("state", {}).pop("_expected", None)
        for change in part.get("state", {}).get("changes_", []):
            change["mapping"].pop("n_trained", None)  # said since, and needed by nothing
    assert entries(now["model"]) == entries(kept["model"])
    assert now.keys() - {"sizes"} == kept.keys()  # models without sizes have bounds for them
