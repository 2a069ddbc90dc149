"""A graph answers as the estimator that it was made of, and what has no graph is refused before anything is written."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.torch import load_file, save_file
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from skellipsoid import (
    EliDecide,
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    TunedOperatingPointCV,
    baselines,
    export_onnx,
)
from skellipsoid._onnx.folder import GRAPH, MANIFEST, write_export
from skellipsoid_runtime import OnnxPipeline

NEAR = 1e-4  # answers may differ where a score is this near to its limit


class OwnEncoder(SupConTextEncoder):
    """An encoder of a user's, which may compute other features."""


@pytest.fixture(scope="module")
def blobs():
    """Training samples of six classes, some of which overlap, with their classes; and new samples near and far."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 12)) * 2
    y = np.repeat(np.arange(6), (12, 20, 30, 40, 50, 60))
    spreads = np.linspace(0.2, 1.5, 12)
    X = centres[y] + rng.normal(size=(len(y), 12)) * spreads
    near = centres[rng.integers(0, 6, 300)] + rng.normal(size=(300, 12)) * spreads
    far = [rng.normal(size=(300, 12)) * 3, rng.normal(size=(20, 12)) * 100]
    return X, y, np.concatenate([near, *far, centres, centres[:1] * 1e-200])


def exported_model(estimator, folder):
    export_onnx(estimator, folder / "model")
    return OnnxPipeline(folder / "model")


def assert_same_answers(model, estimator, classifier, X, features):
    """Compare every answer; gives them."""
    found = model.answers(X)
    scores = classifier.score_samples(features)
    assigned = np.searchsorted(classifier.classes_, classifier.predict_known(features))
    margins = scores - classifier.offset_ - classifier.class_offsets_[assigned]
    decided = np.abs(margins) > NEAR
    assert decided.mean() > 0.9
    assert 0 < (found["label"] == classifier.open_label_).mean() < 1
    np.testing.assert_array_equal(found["label"][decided], estimator.predict(X)[decided])
    np.testing.assert_array_equal(found["nearest_class"], classifier.predict_known(features))
    np.testing.assert_allclose(found["score"], scores, atol=NEAR / 2, rtol=1e-6)
    np.testing.assert_allclose(found["margins"], classifier._score_all_checked(features), atol=NEAR / 2, rtol=1e-6)
    return found


#: One of each head of a graph.
OF_EACH_HEAD = [
    EllipsoidOpenSetClassifier(random_state=0),
    EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=3), random_state=0),
    baselines.BallClassifier(),
    baselines.MahalanobisClassifier(),
    baselines.PLDAClassifier(),
    baselines.MaxLogitClassifier(),
]


@pytest.mark.parametrize("classifier", OF_EACH_HEAD, ids=lambda classifier: type(classifier).__name__)
def test_the_graph_of_a_classifier_answers_as_it_does(classifier, blobs, tmp_path):
    X, y, new = blobs
    classifier.fit(X, y)
    classifier.class_offsets_ = np.linspace(-0.01, 0.01, 6)
    assert_same_answers(exported_model(classifier, tmp_path), classifier, classifier, new, new)


def test_units_of_columns_are_part_of_the_graph(blobs, tmp_path):
    X, y, new = blobs
    units = 10.0 ** (np.arange(X.shape[1]) % 7 - 3)
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X * units, y)
    assert classifier.column_units_ is not None
    assert_same_answers(exported_model(classifier, tmp_path), classifier, classifier, new * units, new * units)


@pytest.mark.parametrize(
    "steps",
    # One graph for several: the second is fitted to what the first gives.
    [
        (StandardScaler(with_mean=False), Normalizer("l1"), TruncatedSVD(4, random_state=0)),
        (StandardScaler(), Normalizer("max"), PCA(4, whiten=True, random_state=0)),
    ],
    ids=["linear", "centred"],
)
def test_steps_before_the_classifier_are_part_of_the_graph(steps, blobs, tmp_path):
    X, y, new = blobs
    pipe = make_pipeline(*steps, "passthrough", baselines.BallClassifier()).fit(X, y)
    new = np.concatenate([new, np.zeros((1, 12)), np.full((1, 12), 1e-16)])
    assert_same_answers(exported_model(pipe, tmp_path), pipe, pipe[-1], new, pipe[:-1].transform(new))


@pytest.mark.parametrize(
    "names", [np.array(["a", "ä 😀", "c" * 40]), np.array([False, True, True])], ids=["str", "bool"]
)
@pytest.mark.filterwarnings("ignore:y holds booleans")
def test_labels_come_back_as_they_are(names, blobs, tmp_path):
    X, y, new = blobs
    classifier = baselines.BallClassifier(open_label=-2).fit(X, names[y % 3])
    model = exported_model(classifier, tmp_path)
    expected = classifier.predict(new)
    assert model.predict(new).dtype == expected.dtype
    assert model.predict(new).tolist() == expected.tolist()
    assert model.open_label_ == classifier.open_label_
    assert model.classes_.tolist() == classifier.classes_.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Bert", "DistilBert", "MPNet", "Roberta"])
def test_text_models_of_four_kinds_answer_alike_at_any_batch_size_and_length(
    kind, build_model, texts, labels, open_texts, tmp_path
):
    # Texts of two kinds begin behind the position of the padding; a DistilBERT names the width of its layers otherwise.
    more = {"hidden_dim": 64} if kind == "DistilBert" else {"pad_token_id": 1 if kind in ("MPNet", "Roberta") else 0}
    classes = {"model_class": f"{kind}Model", "config_class": f"{kind}Config"}
    encoder = SupConTextEncoder(build_model(tmp_path / kind, **classes, seed=1, **more), finetune="none")
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    model = exported_model(pipe, tmp_path)
    new = [*texts, *open_texts, "", "😀", "alarm " * 5000, texts[3] * 2]
    features = pipe[:-1].transform(new)
    together = assert_same_answers(model, pipe, pipe[-1], new, features)
    np.testing.assert_allclose(together["features"], features, atol=1e-5)
    for text, score in zip(new, together["score"], strict=True):
        np.testing.assert_allclose(model.score_samples([text]), [score], atol=1e-5)


@pytest.mark.slow
def test_a_product_that_integers_would_spoil_stays_in_single_precision(build_model, texts, labels, tmp_path):
    folder = build_model(tmp_path / "text model", seed=2)
    weights = load_file(f"{folder}/model.safetensors")
    weights["encoder.layer.1.intermediate.dense.bias"][0] = 1e4  # beside it the others are rounded to 0
    weights["encoder.layer.1.output.dense.weight"][:, 0] = 0
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    encoder = SupConTextEncoder(folder, finetune="none", keep_texts=True)
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    export_onnx(pipe, tmp_path / "int8", quantize=True)
    model = OnnxPipeline(tmp_path / "int8")
    assert (model.predict(texts) == pipe.predict(texts)).mean() > 0.8
    assert not np.array_equal(model.held_out_scores_, pipe[-1].held_out_scores_)  # they are those of the graph
    features = model.answers(texts)["features"]
    assert (features * pipe[0].transform(texts)).sum(axis=1).min() > 0.99
    nodes = onnx.load(tmp_path / "int8" / "model.onnx").graph.node
    assert [node.op_type for node in nodes].count("MatMulInteger") == 11  # of two layers of six products


class Own(baselines.BallClassifier):
    """A class of a user's, which may score otherwise."""


@pytest.mark.parametrize(
    ("estimator", "part"),
    [
        (baselines.KNNOpenSetClassifier(n_neighbors=2), "A KNNOpenSetClassifier cannot be exported"),
        (Own(), "A Own cannot be exported"),
        (baselines.SoftmaxOpenSetClassifier(LogisticRegression()), "takes its logits from a LogisticRegression"),
        (make_pipeline(MinMaxScaler(), baselines.BallClassifier()), "A MinMaxScaler cannot be exported"),
    ],
    ids=["neighbours", "subclass", "own logits", "step"],
)
def test_what_has_no_graph_is_refused_in_one_sentence_and_nothing_is_written(estimator, part, blobs, tmp_path):
    with pytest.raises(TypeError, match=part) as caught:
        export_onnx(estimator.fit(*blobs[:2]), tmp_path / "model")
    assert "; use " in str(caught.value) or "; before " in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_an_exported_model_is_replaced_if_that_is_asked(blobs, tmp_path):
    export_onnx(baselines.BallClassifier().fit(*blobs[:2]), tmp_path / "model")
    before = (tmp_path / "model" / "model.onnx").read_bytes()
    other = baselines.MahalanobisClassifier().fit(*blobs[:2])
    with pytest.raises(FileExistsError, match="holds an exported model; overwrite it, or export"):
        export_onnx(other, tmp_path / "model")
    assert (tmp_path / "model" / "model.onnx").read_bytes() == before
    export_onnx(other, tmp_path / "model", overwrite=True)
    features = blobs[2]
    decided = np.abs(other.score_samples(features) - other.offset_) > NEAR
    found = OnnxPipeline(tmp_path / "model").predict(features)
    np.testing.assert_array_equal(found[decided], other.predict(features)[decided])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    with pytest.raises(TypeError, match="overwrite=1 must be True or False"):
        export_onnx(other, tmp_path / "model", overwrite=1)


@pytest.mark.parametrize("function", ["os.fsync", "tempfile.mkdtemp"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_while_writing_leaves_nothing(function, error, tmp_path, monkeypatch):
    files = {GRAPH: b"graph", MANIFEST: b"{}"}

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(function, fail)
    part = r"cannot be written to .*No space left on device.* needs" if isinstance(error, OSError) else None
    for parent in (tmp_path, tmp_path / "new" / "newer"):
        with pytest.raises(type(error), match=part):
            write_export(parent / "model", files)
    assert not [*tmp_path.rglob("*")]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=repr)
def test_an_earlier_export_that_cannot_come_back_is_kept_and_named(error, tmp_path, monkeypatch):
    target, replace = tmp_path / "model", Path.replace
    first, second = ({GRAPH: content, MANIFEST: b"{}"} for content in (b"first", b"second"))
    write_export(target, first)

    def fail(path, other):
        if path == target:
            return replace(path, other)
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="nor can the earlier one be moved back") as caught:
        write_export(target, second)
    monkeypatch.undo()
    (kept,) = tmp_path.iterdir()
    reason = "Input/output error" if isinstance(error, OSError) else "KeyboardInterrupt"
    sentence = f" back ({reason}); the earlier one is complete in {str(kept)!r}, rename that folder to 'model'."
    assert sentence in str(caught.value)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == first
    # Another export in its place leaves it for an hour.
    write_export(target, second)
    assert kept.is_dir()
    os.utime(kept, (0, 0))
    write_export(target, second)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_unfitted_estimators_are_refused(tmp_path):
    tuned = TunedOperatingPointCV(EllipsoidOpenSetClassifier(), rejection_rate=0.1)
    for estimator in (tuned, make_pipeline(StandardScaler(), tuned)):
        with pytest.raises(NotFittedError, match="This TunedOperatingPointCV instance is not fitted yet"):
            export_onnx(estimator, tmp_path / "model")


def test_another_text_model_or_encoder_is_refused(build_model, texts, labels, tmp_path):
    encoder = SupConTextEncoder(build_model(tmp_path / "text model"), finetune="none")
    pipe = make_pipeline(encoder, baselines.BallClassifier()).fit(texts, labels)

    def is_refused(sentence):
        with pytest.raises(TypeError, match=sentence):
            export_onnx(pipe, tmp_path / "model")
        assert not (tmp_path / "model").exists()

    transformer = pipe[0]._backbone.transformer.half()
    is_refused(r"weights of torch\.float16, but only torch\.float32")
    transformer.__class__ = type("ElectraModel", (type(transformer),), {})
    is_refused("is a ElectraModel, which cannot be exported; use one of Bert, DistilBert")
    pipe[0].__class__ = OwnEncoder
    is_refused("A OwnEncoder cannot be exported; before the classifier")


def test_a_missing_package_is_named(blobs, tmp_path, monkeypatch):
    classifier = baselines.BallClassifier().fit(*blobs[:2])
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None if name == "onnxscript" else name)
    how = r"pip install 'skellipsoid\[onnx\]', or .* '\.\[onnx\]'"
    with pytest.raises(ImportError, match=rf"needs the package onnxscript, .* {how}\.$"):
        export_onnx(classifier, tmp_path / "model")
