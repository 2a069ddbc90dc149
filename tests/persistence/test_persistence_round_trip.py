"""Promise: a saved model comes back with the same answers to the last bit, without pickle."""

import dataclasses

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, load, save
from skellipsoid._held_out.state import HELD_OUT


def plain(value):
    """Dataclasses and tuples as mappings and lists."""
    if dataclasses.is_dataclass(value):
        return {column.name: plain(getattr(value, column.name)) for column in dataclasses.fields(value)}
    return [type(value).__name__, *map(plain, value)] if isinstance(value, tuple) else value


def assert_same_state(first, second):
    """Every attribute with its type."""
    assert type(first) is type(second)
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        found = vars(second)[name]
        if name == "_held_out":
            value, found = HELD_OUT.saved(value), HELD_OUT.saved(found)
        elif isinstance(value, np.ndarray):
            assert found.dtype == value.dtype.newbyteorder("=")
        else:
            assert type(found) is type(value)
        np.testing.assert_equal(plain(found), plain(value))


KINDS = {
    "int8": [-5, 7],
    "bool": [False, True],
    ">i4": [1, 2],
    "U": ["left", "right-hand side"],
    "O": ["left", "größer, 左"],
}


@pytest.mark.filterwarnings("ignore:y holds booleans")
@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_comes_back_with_labels_of_every_kind(blobs, tmp_path, kind):
    X, codes = blobs
    y = np.array(KINDS[kind], dtype=None if kind == "U" else kind)[codes]
    open_share = {"U": 0.3, "O": (0.2, 0.5)}.get(kind)
    classifier = EllipsoidOpenSetClassifier(open_share=open_share, random_state=0).fit(X, y)
    save(classifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_state(classifier, loaded)
    probes = np.concatenate([X, X + 50])
    answers = loaded.predict(probes)
    assert answers.dtype == classifier.predict(probes).dtype
    assert answers.tolist() == classifier.predict(probes).tolist()
    assert loaded.open_label_ in answers.tolist()
    np.testing.assert_array_equal(loaded.decision_function(probes), classifier.decision_function(probes))
