"""The runtime answers without torch, refuses what it should, and reads no more of a long text than counts."""

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pytest
from container_helpers import KINDS
from export_helpers import changed_manifest
from scipy.sparse import csr_array
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import skellipsoid
from skellipsoid._base import check_texts
from skellipsoid_runtime import OnnxPipeline
from skellipsoid_runtime._texts import TextReader


@pytest.fixture(scope="module")
def model(exported):
    return OnnxPipeline(exported)


def test_explanations_name_the_same_training_texts(model, pipeline, texts, open_texts):
    new = [*open_texts, texts[5], "wake me please"]
    found = model.explain_nearest(new, n_neighbors=3)
    expected = skellipsoid.explain(pipeline, new, n_axes=0, n_neighbors=3)
    assert found.keys() <= expected.keys()
    assert len(found) == 13
    for name, values in found.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, expected[name], atol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_numbers_that_cannot_be_are_refused(model, exported):
    for number in (-1, 33, 1.5):
        with pytest.raises(ValueError, match="is not possible; use a whole number from 0 to 32"):
            model.explain_nearest(["alarm"], n_neighbors=number)
    for number in (0, 4, True, 1.0):
        with pytest.raises(ValueError, match=r"^max_classes=.* is not possible; use 1, 2 or 3\.$"):
            model.predict_set(["one text"], max_classes=number)
    for number in (0, 1.0, True, 1025):
        with pytest.raises(ValueError, match=r"^n_threads=.* is not possible; use a whole number from 1 to 1024.$"):
            OnnxPipeline(exported, n_threads=number)


@pytest.mark.parametrize("X", ["one text", [], ["a", 3], ["half \ud800"]], ids=repr)
def test_wrong_input_is_explained_as_by_the_package(model, X):
    with pytest.raises(ValueError, match=r".") as expected:
        check_texts(X)
    for method in (model.predict, model.score_samples, model.known_p_value, model.answers, model.explain_nearest):
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            method(X)


@pytest.fixture(scope="module")
def of_features(tmp_path_factory):
    """An exported classifier of features: without texts, and without held-out scores."""
    rng = np.random.default_rng(0)
    classifier = skellipsoid.baselines.BallClassifier().fit(
        rng.normal(size=(60, 3)) + np.arange(60)[:, None] % 2, [0, 1] * 30
    )
    folder = tmp_path_factory.mktemp("features") / "model"
    skellipsoid.export_onnx(classifier, folder)
    return OnnxPipeline(folder), classifier


def test_a_model_of_features_takes_tables(of_features):
    model, classifier = of_features
    X = np.random.default_rng(1).normal(size=(50, 3))
    of_objects = pd.DataFrame({"a": X[:, 0], "b": 1, "c": True}).astype(object)
    for table in (X, X.tolist(), X.astype(np.float32), np.round(X).astype(int), of_objects.to_numpy(), X.astype(str)):
        np.testing.assert_array_equal(model.predict(table), classifier.predict(table))
    model._rows_at_once = 7
    for kind in KINDS:
        np.testing.assert_allclose(model.score_samples(kind.X(X)), classifier.score_samples(X), err_msg=kind.name)
    np.testing.assert_allclose(model.score_samples(X), classifier.score_samples(X))


@pytest.mark.parametrize(
    ("X", "part"),
    [
        (None, "X is a NoneType, but must be a table"),
        (csr_array(np.ones((2, 3))), "X is a csr_array, but must be a table"),
        (np.ma.masked_equal([[1.0, 2.0, 3.0]], 2.0), "X has masked values"),
        ([[1.0, 2.0], [1.0]], "X is a column of vectors, of 2 numbers in row 0, but row 1 holds one of 1; pass"),
        (pl.LazyFrame({"x": [1.0]}), r"X is a polars LazyFrame, but must be in memory; call its collect\(\) first"),
        ([["a", "b", "c"]], "X holds values of type <U1, but features must be numbers; convert them"),
        (np.array([[1, 2.5, {}]], dtype=object), "X holds values of type object, but"),
        ([[1.0, 2.0]], "X has 2 features, but the model is expecting 3; pass"),
        ([[0.0] * 3, [0.0, np.nan, 0.0]], "Row 1 of X holds NaN or infinity"),
    ],
    ids=str,
)
def test_wrong_tables_are_explained(of_features, X, part):
    with pytest.raises(ValueError, match=part):
        of_features[0].predict(X)


WORDS = ["wake", "me", "😀", "Straße", "don't", "[SEP]", "x" * 130, "   ", "\t\n", "日本語", "...", "e\u0301"]


@pytest.fixture(scope="module", params=["words", "bytes"])
def rules(request, tiny_model):
    """Rules of a tokenizer of words, and of one of bytes, as of BERT and RoBERTa."""
    if request.param == "words":
        return Tokenizer.from_file(f"{tiny_model}/tokenizer.json").to_str().encode()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    return tokenizer.to_str().encode()


def reader_of(rules, **changes):
    """What reads texts by the rules of an export, of 8 tokens at most."""
    settings = {"max_length": 8, "pad_token_id": 0, "lowers": False, "prompt": "", "split_special_tokens": False}
    return TextReader(rules, settings | {"truncation_side": "right"} | changes)


@pytest.mark.parametrize(("lowers", "prompt"), [(False, ""), (True, "Six: ")])
def test_the_beginning_of_a_long_text_has_the_tokens_of_the_whole(rules, lowers, prompt):
    bounded = reader_of(rules, lowers=lowers, prompt=prompt)
    plain = Tokenizer.from_str(rules.decode())
    plain.no_padding()
    plain.enable_truncation(8)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size)) for size in rng.integers(0, 900, 150)]
    texts += ["word" * 5000, " " * 9000 + "six", "\n" * 300 + "wake me " * 300, "", "[SE" * 2000, "e\u0301" * 3000]
    for text, found in zip(texts, bounded.tokens(texts), strict=True):
        text = prompt + text
        assert found == plain.encode(text.lower() if lowers else text).ids


def test_a_graph_names_its_answers(exported, model):
    names = {prop.key: json.loads(prop.value) for prop in onnx.load(exported / "model.onnx").metadata_props}
    assert (names["classes"], names["open_label"]) == (model.classes_.tolist(), model.open_label_)
    assert names["answers"] == [*names["classes"], names["open_label"]]


@pytest.mark.slow
def test_the_javascript_of_the_guide_answers_as_the_runtime_does(exported, texts, open_texts, tmp_path):
    folder = exported
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    page = (Path(__file__).parents[2] / "docs/guide/serving.rst").read_text(encoding="utf-8")
    block = page.split(".. code-block:: javascript\n")[1].split("\n.. index:: ! INT8")[0]
    (tmp_path / "predict.mjs").write_text(textwrap.dedent(block), encoding="utf-8")
    packages = re.findall(r"npm install ([\w/@ -]+)", page)[0].split()
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages], cwd=tmp_path, capture_output=True
    )
    if installed.returncode:
        pytest.skip(f"npm could not install {packages}: {installed.stderr[-200:]!r}")
    given = [*texts, *open_texts, "LIGHTS OFF \u00e9\U0001f600", "wake " * 100, "?"]
    answer = subprocess.run(
        ["node", "predict.mjs", str(folder), *given], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == OnnxPipeline(folder).predict(given).tolist()


class TestAskingBack:
    @pytest.mark.parametrize("kind", ["one class", "Mahalanobis", "a rate", "a memory"])
    @pytest.mark.filterwarnings("ignore:Three classes cannot keep")
    def test_of_features(self, kind, tmp_path):
        rng = np.random.default_rng(0)
        n_classes = 1 if kind == "one class" else 6
        means = rng.normal(scale=2.5, size=(n_classes + 2, 4))
        y = np.repeat(np.arange(n_classes), 25)
        X, new = means[y] + rng.normal(size=(len(y), 4)), means[rng.integers(len(means), size=400)]
        new = new + rng.normal(size=new.shape)
        clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0)
        if kind == "Mahalanobis":
            clf = skellipsoid.baselines.MahalanobisClassifier(threshold="auto")
        skellipsoid.set_operating_point(clf.fit(X, y), open_share=0.2, miss_rate=0.05 if kind == "a rate" else None)
        if kind == "a rate":
            clf.class_offsets_ = np.linspace(-0.3, 0.3, n_classes)
        if kind == "a memory":
            labels = [*clf.predict(new[:60]), *[None] * 340]
            clf = skellipsoid.learn_from_traffic(clf, new, labels)
            assert (skellipsoid.explain(clf, new).near_open > 0).any()
        skellipsoid.export_onnx(clf, tmp_path / "model")
        found, expected = OnnxPipeline(tmp_path / "model").predict_set(new), skellipsoid.predict_set(clf, new)
        assert len(np.unique(expected.action)) >= 2
        np.testing.assert_array_equal(found["action"], expected.action)
        np.testing.assert_array_equal(found["classes"], expected.classes)

    def test_a_model_without_zones_says_so(self, copied):
        changed_manifest(copied, asking=...)
        older = OnnxPipeline(copied)
        assert not older.asks
        assert "action" not in older.answers(["one text"])
        with pytest.raises(ValueError, match=r"^The exported model has no zones to ask by; export "):
            older.predict_set(["one text"])


def test_what_a_model_lacks_is_named(of_features):
    with pytest.raises(ValueError, match="has no held-out scores to compare with; export an Ellipsoid"):
        of_features[0].known_p_value([[0.0] * 3])
    with pytest.raises(ValueError, match="keeps no training texts; fit the encoder with keep_texts=True"):
        of_features[0].explain_nearest([[0.0] * 3])


def test_a_long_text_is_not_read_to_its_end(rules):
    reader = reader_of(rules)
    assert len(reader._beginning("wake me at six " * 100_000)) < 5000
    left = reader_of(rules, truncation_side="left")
    assert left.tokens(["six " * 500 + "wake"]) != reader.tokens(["six " * 500 + "wake"])
