"""``DEClassifier``: the vote of the layers, early exit, what each parameter does, and how it travels."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from skellipsoid import SupConTextEncoder, load, save
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
    return make(deep, max_iter=20).fit(texts, labels)


def layer_answers(clf, texts):
    """Answers of every layer, by the fitted arrays alone."""
    with torch.no_grad():
        found = []
        for text in texts:
            ids = torch.tensor(
                [clf._backbone.tokenize([text])[0]], device=next(clf._backbone.transformer.parameters()).device
            )
            states = clf._backbone.transformer(input_ids=ids, output_hidden_states=True).hidden_states[1:]
            means = np.stack([state[0].mean(0).cpu().numpy() for state in states])
            features = np.tanh(np.einsum("li,loi->lo", means, clf.weight_) + clf.bias_)
            answers = (np.einsum("li,lki->lk", features, clf.class_weight_) + clf.class_bias_).argmax(1)
            scores = [
                lof.score_samples(row[np.newaxis])[0] for lof, row in zip(clf.outlier_factors_, features, strict=True)
            ]
            found.append(np.where(np.array(scores) < 0, len(clf.classes_), answers))
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


def test_training_texts_are_recognised(fitted, texts, labels):
    assert (fitted.predict_known(texts) == labels).mean() > 0.6
    assert fitted.score(texts, labels) > 0.6
    assert fitted.score(["tell a joke"], ["joke"]) == (fitted.predict(["tell a joke"])[0] == "-1")


def test_predict_known_is_never_open(fitted, texts, open_texts):
    strict = make("unused", contamination=0.5)
    assert strict.contamination == 0.5
    assert "-1" not in fitted.predict_known([*texts, *open_texts])


def test_large_thresholds_leave_the_decision_to_the_last_layer(fitted, texts):
    patient = pickle.loads(pickle.dumps(fitted)).set_params(known_threshold=9.0, open_threshold=9.0)
    assert patient.speed_up(texts) == 1
    last = layer_answers(patient, texts)[:, -1]
    assert patient.predict(texts).tolist() == np.append(patient.classes_, "-1")[last].tolist()
    eager = pickle.loads(pickle.dumps(fitted)).set_params(known_threshold=1.0, open_threshold=1.0)
    assert (eager.exit_layers(texts) == 1).all()


def test_open_is_said_of_texts_unlike_all_others(deep, texts, labels):
    clf = make(deep, max_iter=12, contamination=0.3).fit(texts, labels)
    assert (clf.predict(texts) == "-1").any()
    assert clf.open_label_ == "-1"
    lenient = make(deep, max_iter=12, contamination=0.05).fit(texts, labels)
    assert (lenient.predict(texts) == "-1").sum() < (clf.predict(texts) == "-1").sum()


CHANGES = [
    ("redundancy", 0.9),
    ("adversarial_steps", 0),
    ("adversarial_norm", 0.05),
    ("adversarial_rate", 0.01),
    ("learning_rate", 1e-3),
    ("batch_size", 8),
    ("max_iter", 1),
    ("early_stopping", True),
    ("duplicates", "each"),
    ("max_length", 4),
    ("open_label", "alarm"),
    ("random_state", 1),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_every_parameter_of_the_training_acts(tiny_model, texts, labels, name, value):
    texts, labels = [*texts, texts[0]], [*labels, labels[0]]
    plain, changed = (make(tiny_model, **given).fit(texts, labels) for given in ({}, {name: value}))
    assert not np.array_equal(changed.weight_, plain.weight_)


@pytest.mark.parametrize(
    ("name", "value"),
    [("known_threshold", 1.0), ("open_threshold", 1.0), ("exponent", 0.0)],
)
def test_every_parameter_of_the_vote_acts(fitted, texts, open_texts, name, value):
    asked = [*texts, *open_texts]
    strict = pickle.loads(pickle.dumps(fitted))
    for lof in strict.outlier_factors_:
        lof.thresholds_ += 0.45  # so that some layers answer open
    changed = pickle.loads(pickle.dumps(strict)).set_params(**{name: value})
    assert strict.exit_layers(asked).tolist() != changed.exit_layers(asked).tolist()


def test_the_outlier_factors_have_their_parameters(deep, texts, labels):
    clf = make(deep, n_neighbors=3, contamination=0.2).fit(texts, labels)
    assert len(clf.outlier_factors_) == 6
    assert {(lof.n_neighbors, lof.contamination, lof.scope) for lof in clf.outlier_factors_} == {(3, 0.2, "all")}


def test_validation_texts_decide_when_to_stop(tiny_model, texts, labels):
    stopping = {"early_stopping": True, "max_iter": 30, "n_iter_no_change": 2, "learning_rate": 1e-2}
    clf = make(tiny_model, **stopping).fit(texts[:24], labels[:24], X_val=texts[24:], y_val=labels[24:])
    assert len(clf.validation_scores_) == clf.n_iter_ < 30
    assert clf.stop_reason_ == "n_iter_no_change"
    assert clf.n_iter_ == int(np.argmax(clf.validation_scores_)) + 1 + 2
    other = make(tiny_model, **stopping, validation_fraction=0.4).fit(texts, labels)
    assert other.validation_scores_ != make(tiny_model, **stopping).fit(texts, labels).validation_scores_


def test_open_texts_and_copies_take_no_part(tiny_model, texts, labels, open_texts):
    alone = make(tiny_model).fit(texts, labels)
    beside = make(tiny_model).fit([*open_texts, *texts, texts[0]], ["-1"] * 6 + [*labels, labels[0]])
    np.testing.assert_allclose(beside.weight_, alone.weight_, atol=1e-3)
    assert beside.predict(texts).tolist() == alone.predict(texts).tolist()


@pytest.mark.parametrize("y", [["a", "a", "b", "b"], [0, 1, 2, 3], [True, False, True, False], ["a"] * 4], ids=str)
def test_few_texts_and_other_kinds_of_labels_are_answered(tiny_model, texts, y):
    clf = make(tiny_model).fit(pd.Series(texts[:4]), y)
    answers = clf.predict(["rain", "🙂 你好", "", *texts[:4]])
    assert {*answers.tolist()} <= {*clf.classes_.tolist(), clf.open_label_}
    assert answers.shape == (7,)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ([], [], "X is empty"),
        (["a text", None], ["a", "b"], r"X\[1\] is None"),
        (["a text", "b"], None, "DEClassifier requires y to be passed"),
        (["a text", "b"], ["-1", "-1"], "All 2 texts have the open label"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence_and_keeps_the_fit(fitted, texts, X, y, sentence):
    before = fitted.predict(texts)
    with pytest.raises(ValueError, match=sentence):
        fitted.fit(X, y)
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


@pytest.mark.parametrize("damage", ["fewer factors", "another model"])
def test_state_that_does_not_fit_together_is_refused(fitted, tiny_model, tmp_path, damage):
    broken = pickle.loads(pickle.dumps(fitted))
    if damage == "fewer factors":
        del broken.outlier_factors_[0]
    else:
        broken._backbone = SupConTextEncoder(tiny_model, finetune="none", pooling="mean").fit(["a text"])._backbone
    with pytest.raises(ValueError, match=r"outlier_factors_ must hold 6|its text model has 2 layers of the width 32"):
        save(broken, tmp_path / "model")


def test_threads_share_it(fitted, texts):
    expected = fitted.predict(texts).tolist()
    copied = pickle.loads(pickle.dumps(fitted))
    with ThreadPoolExecutor(4) as pool:
        assert all(found.tolist() == expected for found in pool.map(lambda _: copied.predict(texts), range(8)))


def test_its_parameters_are_searched(tiny_model, texts, labels):
    search = GridSearchCV(make(tiny_model, max_iter=1), {"redundancy": [0.0, 0.5]}, cv=StratifiedKFold(2))
    assert search.fit(texts, labels).best_params_["redundancy"] in (0.0, 0.5)
