"""Promise: an explanation repeats the answer of predict, and its parts add up to the score."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder, explain, predict_set
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(400, 5, n_known=4, random_state=0)


@pytest.fixture(scope="module")
def clf(blobs):
    X, y = blobs
    return EllipsoidOpenSetClassifier(random_state=0).fit(X[y >= 0], y[y >= 0])


@pytest.fixture(scope="module")
def apart():
    """Classifier of four classes so far apart that beyond a boundary the class is still the nearest."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 60)
    X = 30 * np.eye(5)[codes] + rng.normal(size=(240, 5)) * [1, 2, 0.5, 1, 1]
    return EllipsoidOpenSetClassifier(random_state=0).fit(X, np.array(["a", "b", "c", "d"])[codes])


def test_explanation_is_what_the_classifier_says(blobs, clf):
    X = blobs[0]
    why = explain(clf, X, n_axes=2)
    said = {"answer": clf.predict, "nearest_class": clf.predict_known, "margin": clf.score_samples}
    for name, method in (said | {"p_value": clf.known_p_value}).items():
        np.testing.assert_array_equal(why[name], method(X))
    np.testing.assert_array_equal(why.action, predict_set(clf, X).action)
    order, margins = np.argsort(-clf.decision_function(X), axis=1), clf.class_margins(X)
    np.testing.assert_array_equal(why.runner_up, clf.classes_[order[:, 1]])
    np.testing.assert_array_equal(why.runner_up_margin, margins[np.arange(len(X)), order[:, 1]])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reach", [0.5, 1.5])
def test_a_row_off_the_centre_along_one_axis_is_explained_by_that_axis(apart, axis, reach):
    # From the middle of a class along one axis, half-way to the boundary or beyond it.
    axes = apart._boundaries.shapes.metric.axes.astype(float)
    direction = np.linalg.pinv(axes)[axis] * apart._boundaries.divisor
    to_boundary = 1 - apart.class_margins([apart.centers_[0] + direction])[0, 0]
    row = apart.centers_[0] + reach / to_boundary * direction
    why = explain(apart, [row], n_axes=2)
    assert (why.nearest_class[0], why.answer[0]) == ("a", "a" if reach < 1 else "-1")
    assert why.margin[0] == pytest.approx(1 - reach, abs=1e-3)
    assert why.share_1[0] == pytest.approx(1, abs=1e-3)
    assert why.share_2[0] == pytest.approx(0, abs=1e-3)
    assert abs(why.deviation_1[0]) == pytest.approx(reach, rel=1e-3)
    opposite = explain(apart, [2 * apart.centers_[0] - row], n_axes=1)
    assert opposite.deviation_1[0] == pytest.approx(-why.deviation_1[0], rel=1e-3)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_kept_texts_are_the_reference(tiny_model, texts, labels, output):
    classifier = EllipsoidOpenSetClassifier(random_state=0)
    encoder = SupConTextEncoder(tiny_model, finetune="none", keep_texts=True)
    model = make_pipeline(encoder, StandardScaler(), classifier).set_output(transform=output).fit(texts, labels)
    queries = ["wake me at six", "lights off", "a rainy morning"]
    kept = explain(model, queries, n_neighbors=2)
    given = explain(model, queries, n_neighbors=2, reference=texts)
    for name, column in given.items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(kept[name], column, atol=1e-5)
        else:
            assert kept[name].tolist() == column.tolist()
    assert kept.keys() - given.keys() == {"neighbor_label_1", "neighbor_label_2"}
    label_of = dict(zip(texts, labels, strict=True))
    assert kept.neighbor_label_2.tolist() == [label_of[text] for text in kept.neighbor_2]
    encoder.fit(texts)
    assert "neighbor_label_1" not in explain(make_pipeline(encoder, classifier), queries, n_neighbors=1)


def test_frames_pipelines_and_single_classes(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(random_state=0))
    model.set_output(transform="pandas").fit(frame[y >= 0], y[y >= 0])
    assert "text" not in explain(model, frame)
    single = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=3), random_state=0)
    single.fit(frame[y == 0], y[y == 0])
    why = explain(single, frame)
    assert (why.runner_up == 0).all()
    np.testing.assert_array_equal(why.runner_up_margin, why.margin)
    with pytest.warns(UserWarning, match="Classes without spread"):
        points = EllipsoidOpenSetClassifier(random_state=0).fit(np.repeat(X[:2], 3, axis=0), np.repeat([0, 1], 3))
    assert "p_value" not in explain(points, X)  # nothing could be held out


def test_errors_are_sentences(blobs, clf):
    X, y = blobs
    with pytest.raises(TypeError, match=r"explain needs .* which LogisticRegression does not have"):
        explain(LogisticRegression().fit(X, y), X)
    with pytest.raises(ValueError, match="n_axes=-1 is not possible; use a whole number from 0 on"):
        explain(clf, X, n_axes=-1)
    with pytest.raises(ValueError, match="n_neighbors=1 needs samples to look in; pass reference"):
        explain(clf, X, n_neighbors=1)
    with pytest.raises(ValueError, match="n_neighbors=9 is not possible"):
        explain(clf, X, n_neighbors=9, reference=X[:3])


def test_a_row_between_two_classes_lies_along_the_axis_between_them():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "d", "e"], 60)
    means = np.zeros((5, 12))
    means[[0, 4], 0] = -20, 20
    means[[1, 3], 1] = 12, -12
    X = np.repeat(means, 60, axis=0) + rng.normal(size=(300, 12))
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    why = explain(clf, means[[0, 4]] / 2 + means[[2]] / 2, n_axes=1)
    assert why.from_1.tolist() == ["a", "a"]
    assert why.to_1.tolist() == ["e", "e"]
    towards = {"a": 1, "c": -1}
    assert np.sign(why.deviation_1[0]) == towards[why.nearest_class[0]]
    assert (why.share_1 > 0.5).all()
    why = explain(clf, means[[1]] * 0.7, n_axes=1)
    assert (why.from_1[0], why.to_1[0]) == ("b", "d")
    with pytest.warns(UserWarning, match="Half of the samples have less than 5% of their squared distance along"):
        why = explain(clf, means[[0]] + 9 * np.eye(12)[[7]])
    assert why.own_share[0] + why.other_share[0] > 0.95
