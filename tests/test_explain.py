import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, explain
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def blobs():
    return make_open_blobs(400, 5, n_known=4, random_state=0)


@pytest.fixture(scope="module")
def clf(blobs):
    X, y = blobs
    return EllipsoidOpenSetClassifier(max_iter=10, random_state=0).fit(X[y >= 0], y[y >= 0])


def test_explanation_is_what_the_classifier_says(blobs, clf):
    X = blobs[0]
    why = explain(clf, X, n_axes=5)
    np.testing.assert_array_equal(why.answer, clf.predict(X))
    np.testing.assert_array_equal(why.nearest_class, clf.predict_known(X))
    np.testing.assert_array_equal(why.margin, clf.score_samples(X))
    np.testing.assert_array_equal(why.p_value, clf.known_p_value(X))
    margins = clf.class_margins(X)
    for row in range(len(X)):
        others = {c: margins[row, k] for k, c in enumerate(clf.classes_) if c != why.nearest_class[row]}
        assert why.runner_up[row] == max(others, key=others.get)
        assert why.runner_up_margin[row] == max(others.values())


def test_axes_add_up_to_the_margin(blobs, clf):
    X = blobs[0]
    why = pd.DataFrame(explain(clf, X, n_axes=5))
    shares = why[[f"share_{i}" for i in range(1, 6)]].to_numpy()
    deviations = why[[f"deviation_{i}" for i in range(1, 6)]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (np.diff(shares, axis=1) <= 0).all()
    np.testing.assert_allclose((deviations**2).sum(axis=1), (1 - why["margin"]) ** 2, rtol=1e-4)
    axes = why[[f"axis_{i}" for i in range(1, 6)]].to_numpy()
    assert (np.sort(axes, axis=1) == np.arange(5)).all()


def test_a_row_moved_along_one_axis_is_rejected_by_that_axis(clf):
    label = clf.classes_[0]
    directions, lengths = clf.ellipsoid_axes(label)
    for axis in range(5):
        if np.isfinite(lengths[axis]):
            row = clf.centroids_[0] - 0.5 * lengths[axis] * directions[axis]
            why = explain(clf, [row], n_axes=1)
            if why.nearest_class[0] == label:
                assert why.axis_1[0] == axis
                assert why.share_1[0] == pytest.approx(1, abs=1e-4)
                assert why.deviation_1[0] == pytest.approx(-0.5, rel=1e-3)


def test_neighbours_come_from_the_reference(blobs, clf):
    X = blobs[0]
    why = explain(clf, X[:20], n_axes=0, n_neighbors=2, reference=X[:50])
    np.testing.assert_array_equal(why.neighbor_1, np.arange(20))
    np.testing.assert_allclose(why.neighbor_distance_1, 0, atol=1e-6)
    distances = np.sort(np.linalg.norm(X[:20, None] - X[None, :50], axis=2), axis=1)
    np.testing.assert_allclose(why.neighbor_distance_2, distances[:, 1])
    assert not any(name.startswith("axis") for name in why)


def test_text_pipeline_names_texts(tiny_model, texts, labels):
    model = make_pipeline(
        SupConTextEncoder(tiny_model, finetune="none"), EllipsoidOpenSetClassifier(max_iter=3, random_state=0)
    ).fit(texts, labels)
    why = pd.DataFrame(explain(model, pd.Series(texts[:4]), n_neighbors=1, reference=texts))
    assert why["text"].tolist() == list(texts[:4])
    assert why["neighbor_1"].tolist() == list(texts[:4])
    assert why["answer"].tolist() == model.predict(texts[:4]).tolist()


def test_frames_pipelines_and_single_classes(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), EllipsoidOpenSetClassifier(max_iter=3, random_state=0))
    model.set_output(transform="pandas").fit(frame[y >= 0], y[y >= 0])
    assert "text" not in explain(model, frame)
    single = EllipsoidOpenSetClassifier(
        init="identity", early_stopping=False, recalibrate=False, max_iter=3, random_state=0
    )
    why = explain(single.fit(frame[y == 0], y[y == 0]), frame)
    assert (why.runner_up == 0).all()
    np.testing.assert_array_equal(why.runner_up_margin, why.margin)
    assert "p_value" not in why


def test_errors_are_sentences(blobs, clf):
    X, y = blobs
    with pytest.raises(TypeError, match=r"explain reads .* which LogisticRegression does not have"):
        explain(LogisticRegression().fit(X, y), X)
    with pytest.raises(ValueError, match="n_axes=6 is not possible; use a whole number from 0 to 5"):
        explain(clf, X, n_axes=6)
    with pytest.raises(ValueError, match="n_neighbors=1 needs rows to look in; pass reference"):
        explain(clf, X, n_neighbors=1)
    with pytest.raises(ValueError, match="n_neighbors=9 is not possible"):
        explain(clf, X, n_neighbors=9, reference=X[:3])
