"""Promise: a model that is pushed is the one that is loaded, in one commit, and its card is what the hub shows."""

import json
from pathlib import Path

import numpy as np
import pytest
from hub_helpers import TOKEN, refusal
from huggingface_hub import ModelCard, constants
from persistence_helpers import MANIFEST, make_encoder
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, load, push_to_hub, save

# The hub's client sends large files in a way that its library for HTTP would like otherwise.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
NAME = "user/intents"


@pytest.fixture(autouse=True)
def _owner(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def content(hub, revision="main"):
    repository = hub.repositories[NAME]
    return repository.commits[repository.find(revision)]


def test_the_card_has_the_metadata_that_the_hub_shows(hub, pipeline):
    measured = {"f1": 0.93, "auroc": np.float64(0.875)}
    facts = {"language": "en", "license": "mit", "dataset": "requests", "metrics": measured, "report": "two\nlines"}
    push_to_hub(pipeline, NAME, provenance=facts)
    card = ModelCard(content(hub)["README.md"].decode())
    assert (card.data.library_name, card.data.pipeline_tag) == ("skellipsoid", "text-classification")
    assert (card.data.language, card.data.license, card.data.base_model) == ("en", "mit", None)
    assert "open-set-classification" in card.data.tags
    numbers = {(each.metric_type, each.metric_value, each.dataset_name) for each in card.data.eval_results}
    assert numbers == {("f1", 0.93, "requests"), ("auroc", 0.875, "requests")}
    assert card.data.model_name == "intents"
    assert f'skellipsoid.load("{NAME}")' in card.text
    assert json.loads(content(hub)[MANIFEST])["provenance"]["metrics"] == {"f1": 0.93, "auroc": 0.875}


def test_a_folder_is_pushed_with_its_provenance(hub, pipeline, tmp_path, queries):
    save(pipeline, tmp_path / "model", provenance={"data": "mine", "license": "mit"})
    (tmp_path / "model" / "onnx").mkdir()  # an export beside the model
    (tmp_path / "model" / "onnx" / "skellipsoid_onnx.json").write_text("{}")
    push_to_hub(str(tmp_path / "model"), NAME, provenance={"license": "apache-2.0"})
    assert not any(name.startswith("onnx/") for name in content(hub))
    provenance = json.loads(content(hub)[MANIFEST])["provenance"]
    assert (provenance["data"], provenance["license"]) == ("mine", "apache-2.0")
    np.testing.assert_array_equal(load(NAME).predict(queries), pipeline.predict(queries))


def test_a_second_push_replaces_the_model_or_fails_and_nothing_else(hub, pipeline, other, queries):
    first = push_to_hub(pipeline, NAME)
    before = content(hub)
    hub.repositories[NAME].commit({**before, "notes.md": b"mine"})
    push_to_hub(other, NAME)
    after = content(hub)
    parts = {name.partition("/")[0] for name in after if "/" in name}
    assert parts == {json.loads(after[MANIFEST])["parts"]}
    assert after["notes.md"] == b"mine"
    assert after["README.md"] != before["README.md"]
    np.testing.assert_array_equal(load(NAME).predict(queries), other.predict(queries))
    np.testing.assert_array_equal(load(NAME, revision=first).predict(queries), pipeline.predict(queries))
    # One that fails leaves the model.
    hub.refuses = True
    assert "and the model that was there is unchanged" in refusal(ConnectionError, push_to_hub, pipeline, NAME)
    assert content(hub) == after


@pytest.mark.parametrize("has_model", [False, True])
def test_a_card_of_the_user_stays(hub, classifier, has_model):
    push_to_hub(classifier, NAME)
    mine = {"README.md": content(hub)["README.md"] + b"mine"}
    hub.repositories[NAME].commit(content(hub) | mine if has_model else mine)
    for _ in range(2):
        push_to_hub(classifier, NAME)
        assert content(hub)["README.md"] == mine["README.md"]


def test_kept_texts_are_not_published_without_a_warning(hub, tiny_model, texts, labels):
    pipe = make_pipeline(make_encoder(tiny_model).set_params(keep_texts=True), EllipsoidOpenSetClassifier())
    pipe.fit(texts, labels)
    with pytest.warns(UserWarning, match=r"^The model holds 32 training texts, which everybody who can read 'user/in"):
        push_to_hub(pipe, NAME)
    push_to_hub(pipe, NAME, private=True)


# What is refused


@pytest.mark.parametrize(
    "facts", [{"metrics": {"f1": "high"}}, {"metrics": [0.9]}, {"metrics": {"f1": True}}, {"language": 7}], ids=str
)
def test_metadata_must_be_of_their_type(hub, classifier, facts):
    sentence = refusal(TypeError, push_to_hub, classifier, NAME, provenance=facts)
    assert f"provenance[{next(iter(facts))!r}] is " in sentence
    assert hub.requests == []


def test_who_may_not_write_is_told_so(hub, classifier, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    sentence = refusal(PermissionError, push_to_hub, classifier, NAME)
    assert sentence.startswith(f"The model cannot be pushed to {NAME!r}, because the hub refuses (")
    assert sentence.endswith("log in with `hf auth login`, or pass a token that may write to it.")
    assert push_to_hub(classifier, NAME, token=TOKEN)


def test_no_path_of_this_machine_is_published(hub, tiny_model, texts, labels, tmp_path):
    encoder = SupConTextEncoder(str(tiny_model), finetune="none", random_state=0)
    memory = tmp_path / "cache of mine"
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(memory=str(memory), random_state=0)).fit(texts, labels)
    push_to_hub(pipe, NAME)
    for name, published in content(hub).items():
        for path in (tiny_model, memory, tmp_path):
            assert str(path).encode() not in published, name
    assert load(NAME)[0].model_name == Path(tiny_model).name


@pytest.mark.parametrize("name", ["intents", "a--b/c", 7])
def test_the_name_must_be_one(hub, classifier, name):
    said = f"repo_id={name!r} is not the name of a repository; pass one of the form 'user/name'."
    assert refusal(ValueError, push_to_hub, classifier, name) == said
    assert hub.requests == []


def test_a_hub_that_is_away(hub, classifier, monkeypatch):
    hub.status = 501
    assert refusal(ConnectionError, push_to_hub, classifier, NAME).startswith(
        f"The model cannot be pushed to {NAME!r} ("
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = f"The model cannot be pushed to {NAME!r}: HF_HUB_OFFLINE forbids to ask the hub; unset it."
    assert refusal(ConnectionError, push_to_hub, classifier, NAME) == said


def test_a_branch_is_created(hub, pipeline, other):
    first = push_to_hub(pipeline, NAME)
    second = push_to_hub(other, NAME, revision="candidate")
    third = push_to_hub(other, NAME, revision="candidate")
    assert hub.repositories[NAME].branches == {"main": first, "candidate": third}
    assert second != third
