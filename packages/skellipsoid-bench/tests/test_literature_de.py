"""``DEClassifier``: the vote of the layers, early exit, what each parameter does, and how it travels."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skellipsoid import load, save
from skellipsoid_bench.literature import DEClassifier


def make(model, **parameters):
    chosen = {"learning_rate": 3e-3, "batch_size": 16, "max_iter": 2, "early_stopping": False, "n_neighbors": 5}
    return DEClassifier(model, **chosen | {"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def deep(build_model, tmp_path_factory):
    """A text model of six layers."""
    return build_model(tmp_path_factory.mktemp("models") / "deep", num_hidden_layers=6)


@pytest.fixture(scope="module")
def fitted(deep, texts, labels):
    return make(deep, max_iter=10).fit(texts, labels)


def layer_answers(clf, texts):
    """Answers of every layer, by the fitted arrays alone."""
    with torch.no_grad():
        found = []
        for text in texts:
            transformer = clf._backbone.transformer
            ids = torch.tensor(clf._backbone.tokenize([text]), device=transformer.device)
            states = transformer(input_ids=ids, output_hidden_states=True).hidden_states[1:]
            means = np.stack([state[0].mean(0).cpu().numpy() for state in states])
            features = np.tanh(np.einsum("li,loi->lo", means, clf.weight_) + clf.bias_)
            answers = (np.einsum("li,lki->lk", features, clf.class_weight_) + clf.class_bias_).argmax(1)
            pairs = zip(clf.outlier_factors_, features, strict=True)
            scores = np.array([lof.score_samples(row[np.newaxis])[0] for lof, row in pairs])
            found.append(np.where(scores < 0, len(clf.classes_), answers))
    return np.array(found)


def test_answers_are_the_vote_of_the_layers(fitted, texts, open_texts):
    asked = [*texts, *open_texts]
    names = np.append(fitted.classes_, "-1")
    expected, exits = [], []
    for answers in layer_answers(fitted, asked):
        votes = np.zeros(5, dtype=int)
        for layer, answer in enumerate(answers, start=1):
            votes[answer] += 1
            if votes[answer] >= (1.5 if answer == 4 else 1.4) * layer**0.75 or layer == 6:
                expected.append(names[answer])
                exits.append(layer)
                break
    assert fitted.predict(asked).tolist() == expected
    assert fitted.exit_layers(asked).tolist() == exits
    assert set(exits) > {6}
    assert fitted.speed_up(asked) == pytest.approx(6 / np.mean(exits))
    assert 1 <= fitted.speed_up(asked) <= 1.5


def test_validation_texts_decide_when_to_stop(tiny_model, texts, labels):
    stopping = {"early_stopping": True, "max_iter": 30, "n_iter_no_change": 2, "learning_rate": 1e-2}
    clf = make(tiny_model, **stopping).fit(texts[:24], labels[:24], X_val=texts[24:], y_val=labels[24:])
    assert len(clf.validation_scores_) == clf.n_iter_ < 30
    assert clf.stop_reason_ == "n_iter_no_change"
    assert clf.n_iter_ == int(np.argmax(clf.validation_scores_)) + 1 + 2
    other = make(tiny_model, **stopping, validation_fraction=0.4).fit(texts, labels)
    assert other.validation_scores_ != make(tiny_model, **stopping).fit(texts, labels).validation_scores_


def test_a_saved_one_comes_back(fitted, texts, open_texts, tmp_path):
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model")
    asked = [*texts, *open_texts]
    assert loaded.get_params() == fitted.get_params()
    assert loaded.predict(asked).tolist() == fitted.predict(asked).tolist()
    assert loaded.exit_layers(asked).tolist() == fitted.exit_layers(asked).tolist()
    card = (tmp_path / "model/README.md").read_text()
    assert card.startswith("# Open-set text classifier")
    assert 'model.predict(["a text", "another text"])' in card
    assert not hasattr(clone(loaded), "weight_")


def test_bad_input_is_one_sentence_and_keeps_the_fit(fitted, texts):
    before = fitted.predict(texts)
    for y, sentence in ((None, "DEClassifier requires y to be passed"), (["-1"] * 2, "All 2 texts have the open")):
        with pytest.raises(ValueError, match=sentence):
            fitted.fit(["a text", "b"], y)
        assert fitted.predict(texts).tolist() == before.tolist()
    with pytest.raises(ValueError, match="The 'exponent' parameter of DEClassifier"):
        make("unused", exponent=-1).fit(texts, texts)


def test_an_interrupted_fit_changes_nothing(tiny_model, texts, labels, monkeypatch):
    clf = make(tiny_model).fit(texts, labels)
    clf._note, before = "mine", clf.predict(texts)

    def interrupt(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(texts, labels)
    assert clf._note == "mine"
    np.testing.assert_array_equal(clf.predict(texts), before)
