"""What a comparison of two models counts: every change of an answer, and no change of a mere name."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, compare
from skellipsoid.datasets import make_open_blobs


@pytest.fixture(scope="module")
def data():
    X, y = make_open_blobs(900, 4, n_known=4, open_share=0.2, random_state=0)
    return X, np.where(y == -1, "open", np.char.add("class ", y.astype(str))).astype(str)


def fit(X, y, classes, **parameters):
    rows = np.isin(y, classes)
    return EllipsoidOpenSetClassifier(random_state=0, **parameters).fit(X[rows], y[rows])


def test_every_changed_answer_is_counted_once(data):
    X, y = data
    before, after = fit(X, y, ["class 0", "class 1", "class 2"]), fit(X, y, ["class 1", "class 2", "class 3"])
    found = compare(before, after, X)
    old, new = before.predict(X), after.predict(X)
    rows = np.flatnonzero(old != new)
    np.testing.assert_array_equal(np.sort(found.changed.row), rows)
    np.testing.assert_array_equal(found.changed.before, old[found.changed.row])
    np.testing.assert_array_equal(found.changed.after, new[found.changed.row])
    assert found.pairs["count"].sum() == found.n_changed == len(rows)
    assert found.share_changed == len(rows) / len(X)
    table = dict(zip(found.classes.label, zip(*list(found.classes.values())[1:], strict=True), strict=True))
    for label in {*old, *new}:
        wanted = (old == label, new == label, (old == label) & (old != new), (new == label) & (old != new))
        assert table[label] == tuple(part.sum() for part in wanted)
    pairs = {*zip(found.pairs.before, found.pairs.after, strict=True)}
    assert pairs >= {("class 0", "-1"), ("-1", "class 3")}
    assert "class 0 -> -1" in str(found)
    # Margins are on the side of the line that the answer says, and the surest changes come first.
    np.testing.assert_array_equal(found.changed.margin_before < 0, found.changed.before == "-1")
    sureness = np.minimum(np.abs(found.changed.margin_before), np.abs(found.changed.margin_after))
    assert (np.diff(sureness) <= 0).all()


def test_repeats_say_what_chance_changes(data):
    X, y = data
    before, after = fit(X, y, ["class 0", "class 1"]), fit(X[::2], y[::2], ["class 0", "class 1"])
    found = compare(before, after, X, repeats=[before, after])
    assert found.repeat_shares == [0.0, found.share_changed]
    assert "other seeds changes 0.00% to" in str(found)


def test_bad_input_is_one_sentence(data):
    X, y = data
    clf = fit(X, y, ["class 0", "class 1"])
    numbers = EllipsoidOpenSetClassifier(random_state=0).fit(X[:100], np.arange(100) % 2)
    with pytest.raises(ValueError, match="convert one of them"):
        compare(clf, numbers, X)
    with pytest.raises(ValueError, match="'class 7', which is no class of before"):
        compare(clf, clf, X, rename={"class 7": "class 0"})
    with pytest.raises(ValueError, match="'class 7', which is no class of after"):
        compare(clf, clf, X, rename={"class 0": "class 7"})
    with pytest.raises(TypeError, match="compare, as after, needs predict_known"):
        compare(clf, StandardScaler().fit(X), X)
