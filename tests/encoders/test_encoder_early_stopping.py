"""Early stopping of ``SupConTextEncoder``: which texts decide, when training stops, and which weights are kept."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._encoders.torch import contrastive


def make(model, finetune="full", **parameters):
    chosen = {"temperature": 0.3, "batch_size": 16, "max_iter": 30, "random_state": 0, "early_stopping": True}
    # A rate this high makes the accuracy go up and down.
    chosen["learning_rate"] = 0.3 if finetune == "head" else 3e-2
    return SupConTextEncoder(model, finetune=finetune, **chosen | parameters)


@pytest.fixture(scope="module")
def parts(texts, labels):
    """Five texts of each intent to train on, three to decide when to stop."""
    return texts[:20], labels[:20], texts[20:], labels[20:]


@pytest.mark.parametrize(("finetune", "normalize"), [("full", True), ("head", False)])
def test_the_best_epochs_weights_are_kept_and_its_score_is_that_of_the_features(tiny_model, parts, finetune, normalize):
    X, y, X_val, y_val = parts
    encoder = make(tiny_model, finetune, normalize=normalize, n_iter_no_change=4)
    encoder.fit(X, y, X_val=X_val, y_val=y_val)
    scores = np.array(encoder.validation_scores_)
    assert encoder.n_iter_ == len(scores) == len(encoder.loss_curve_) < 30
    assert encoder.stop_reason_ == "n_iter_no_change"
    # Four epochs after the best one, of several the first.
    assert encoder.n_iter_ == scores.argmax() + 1 + 4
    means = NearestCentroid().fit(encoder.transform(X), y)
    assert means.score(encoder.transform(X_val), y_val) == pytest.approx(scores.max())


def test_validation_texts_are_not_trained_on(tiny_model, parts):
    X, y, X_val, y_val = parts
    patient = {"n_iter_no_change": 3, "max_iter": 3, "learning_rate": 3e-3}
    alone = make(tiny_model, early_stopping=False, cross_fit=False, **patient).fit(X, y)
    watched = make(tiny_model, **patient).fit(X, y, X_val=X_val, y_val=y_val)
    other = make(tiny_model, **patient).fit(X, y, X_val=X_val[::-1], y_val=y_val)
    np.testing.assert_allclose(watched.loss_curve_, alone.loss_curve_, rtol=1e-5)
    np.testing.assert_allclose(watched.loss_curve_, other.loss_curve_, rtol=1e-5)
    assert watched.validation_scores_ != other.validation_scores_
    # Nothing of them is kept, and the groups are those of the training texts.
    assert len(watched.groups_) == len(X)
    assert watched.training_data_sha256_ == alone.training_data_sha256_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y_val": None}, r"X_val is given without y_val: pass the validation texts and one label for each"),
        ({"X_val": None}, r"y_val is given without X_val"),
        ({"X_val": [], "y_val": []}, r"X_val is empty, but must hold at least one text"),
        ({"y_val": ["alarm"]}, r"X_val has 12 texts, but y_val has 1 labels; pass one label for each text"),
        ({"y_val": list(range(12))}, r"y_val holds numbers such as 0 and y holds strings"),
        (
            {"y_val": ["alarm", "music", "jazz"] * 4},
            r"y_val holds 'jazz', 'music', but .* among the 4 classes of y",
        ),
        ({"y_val": ["-1"] * 12}, r"All 12 texts of X_val have the open label -1, but early stopping needs texts"),
    ],
)
def test_validation_texts_that_do_not_fit_are_an_error(tiny_model, parts, given, message):
    X, y, X_val, y_val = parts
    encoder = make(tiny_model, "head", max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match=message):
        encoder.fit(X, y, **{"X_val": X_val, "y_val": y_val, **given})
    encoder.transform(X)  # invalid input keeps the previous fit


def test_only_an_encoder_that_stops_early_must_say_whether_it_wants_the_texts(tiny_model, parts):
    X, y, X_val, y_val = parts
    clf = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=1), random_state=0)
    encoder = make(tiny_model, "head", max_iter=1)
    with config_context(enable_metadata_routing=True):
        clf.set_fit_request(X_val=True, y_val=True)
        pipeline = Pipeline([("enc", encoder), ("clf", clf)], transform_input=["X_val"])
        with pytest.raises(UnsetMetadataPassedError, match="X_val"):
            pipeline.fit(X, y, X_val=X_val, y_val=y_val)
        pipeline.set_params(enc__early_stopping=False).fit(X, y, X_val=X_val, y_val=y_val)
        encoder.set_fit_request(X_val=True, y_val=True)
        with pytest.raises(ValueError, match="X_val is given, but is not used with early_stopping=False"):
            pipeline.fit(X, y, X_val=X_val, y_val=y_val)


# Which texts are held out where none are given


@pytest.fixture
def held_out(monkeypatch):
    """What every call of the engine's hold-out chose."""
    calls, choose = [], contrastive.validation_rows

    def note(*given):
        calls.append(choose(*given))
        return calls[-1]

    monkeypatch.setattr(contrastive, "validation_rows", note)
    return calls


@pytest.mark.parametrize(("finetune", "duplicates"), [("full", "each"), ("head", "off")])
def test_copies_of_a_text_are_held_out_together(tiny_model, texts, labels, held_out, finetune, duplicates):
    several = [*texts, *(text.upper() for text in texts), f" {texts[0]}"]
    # One text has two labels.
    y = np.array([*labels, *labels, "weather"])
    encoder = make(tiny_model, finetune, max_iter=1, validation_fraction=0.4, duplicates=duplicates)
    encoder.fit(several, y)
    (marks,) = held_out
    np.testing.assert_array_equal(marks[:32], marks[32:64])
    assert marks[64] == marks[0]
    assert all(0.3 < marks[y == name].mean() < 0.6 for name in np.unique(y))


def test_folds_and_held_out_texts_keep_groups_together(tiny_model, texts, labels, held_out):
    groups = np.arange(len(texts)) // 8  # two texts of each intent in each of four groups
    encoder = make(tiny_model, "head", max_iter=4, validation_fraction=0.3)
    encoder.fit_transform(texts, labels, groups=groups)
    np.testing.assert_array_equal(encoder.groups_, groups)
    marks = held_out[0]
    assert all(len(np.unique(marks[groups == group])) == 1 for group in range(4))
    assert len(np.unique(marks)) > 1
