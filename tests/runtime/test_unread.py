"""Texts of which the text model reads nothing: one row of zeros, and one open answer wherever the model answers."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    SupConTextEncoder,
    explain,
    export_onnx,
    load,
    predict_set,
    save,
)
from skellipsoid.baselines import BallClassifier, KNNOpenSetClassifier
from skellipsoid_runtime import OnnxPipeline
from skellipsoid_runtime.serve._models import load as served

#: Blanks, marks, punctuation, and signs and letters that the tiny model does not know.
LETTERS = [*" \t\n\u00a0\u200b\ufeff.,;:!?…¿-–*()[]{}'\"+=<>|/\\#@&%$€^~`", "👍", "🎉", "❤️", "ก", "漢", "字", "한", "π"]
KEPT = ("label", "action", "p_value", "unread")


@pytest.fixture(scope="module")
def answering(tiny_model, texts, labels, tmp_path_factory):
    """A Pipeline with a prompt and a head, and the folders in which it is saved and exported."""
    more = {"prompt": "lamp ", "finetune": "head", "max_iter": 3}
    encoder = SupConTextEncoder(tiny_model, keep_texts=True, random_state=0, **more)
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    parent = tmp_path_factory.mktemp("unread")
    save(pipe, parent / "saved")
    export_onnx(pipe, parent / "exported")
    return pipe, parent


def test_what_cannot_be_read_is_open_everywhere(answering, texts):
    pipe, parent = answering
    rng = np.random.default_rng(0)
    lost = ["".join(rng.choice(LETTERS, rng.integers(0, 12))) for _ in range(200)]
    assert not pipe[0].transform(lost).any()
    assert pipe[0].transform(texts).any(axis=1).all()
    why, sets = explain(pipe, lost, n_axes=0), predict_set(pipe, lost)
    assert {*why.answer} == {"-1"}
    assert {*sets.action} == {"open"}
    assert why.unread.all()
    np.testing.assert_array_equal(why.p_value, 1 / (1 + len(pipe[-1].held_out_scores_)))
    np.testing.assert_allclose(why.shared_share + why.own_share + why.other_share, 1)
    assert not explain(pipe, texts, n_axes=0).unread.any()
    both = [*lost, *texts]
    expected = served(parent / "saved").answers(both)
    np.testing.assert_array_equal(expected["label"], pipe.predict(both))
    np.testing.assert_array_equal(expected["unread"], np.arange(len(both)) < len(lost))
    found = OnnxPipeline(parent / "exported").answers(both)
    for name in KEPT:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-4)
    np.testing.assert_allclose(found["margins"], pipe[-1].class_margins(pipe[0].transform(both)), atol=1e-4)


def test_names_of_special_tokens_are_letters(answering):
    pipe, parent = answering
    given = ["[MASK] rain", "[CLS]", "rain [SEP]", "[UNK] [PAD]"]
    backbone = pipe[0]._backbone
    special = {*backbone.tokenizer().all_special_ids} - {backbone.tokenizer().unk_token_id}
    tokens = backbone.tokenize(given)
    assert not any(special & {*ids[1:-1]} for ids in tokens)
    assert load(parent / "saved")[0]._backbone.tokenize(given) == tokens
    assert OnnxPipeline(parent / "exported")._reader.tokens(given) == tokens


def test_a_class_of_such_texts_answers_them(tiny_model, texts, labels):
    pipe = make_pipeline(SupConTextEncoder(tiny_model, finetune="none"), EllipsoidOpenSetClassifier(random_state=0))
    with pytest.warns(UserWarning, match="samples are all zeros: 'smile'; .* use an embedding model"):
        pipe.fit([*texts, "👍", "🎉🎉", "漢字"], [*labels, *["smile"] * 3])
    assert pipe.predict(["👍", "?"]).tolist() == ["smile"] * 2
    assert not explain(pipe, ["👍"], n_axes=0).unread.any()


@pytest.mark.parametrize("kind", [EllipsoidOpenSetClassifier, BallClassifier, KNNOpenSetClassifier])
def test_zeros_are_no_sample_where_no_training_sample_is_short(kind):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = normalize(np.eye(3, 12)[y] + rng.normal(0, 0.2, (120, 12)))
    zeros, whole = np.zeros((1, 12)), np.vstack([X, np.zeros((1, 12))])
    clf = kind().fit(X, y)
    assert clf.predict(zeros).tolist() == [-1]
    scores = clf.score_samples(whole)
    assert scores[-1] < min(0, scores[:-1].min())
    np.testing.assert_array_equal(clf.predict(whole)[:-1], clf.predict(X))
    assert clf.decision_function(whole)[-1].argmax() == np.searchsorted(clf.classes_, clf.predict_known(zeros)[0])
    with_zeros = kind().fit(np.vstack([X, zeros, 0.3 * X[:1]]), [*y, 0, 0])
    assert not with_zeros._zeros_are_none
