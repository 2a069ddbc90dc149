"""Scoring where the data are: operators and host reads of a call, tensors on the device, and the kept tensors."""

import copy
import gc
import pickle
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from operator_helpers import Operators
from sklearn.base import clone

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.math import geometry, tiles
from skellipsoid._torch import devices

METHODS = ("predict", "predict_known", "score_samples", "class_margins", "decision_function", "known_p_value")
TOLERANCE = {np.dtype("f4"): 1e-6, np.dtype("f8"): 1e-12}


def operators(call):
    """Operators and host reads of a call, after one that makes the tensors of the model."""
    call()
    n_read = 0

    def counted(read):
        def count(tensor):
            nonlocal n_read
            n_read += 1
            return read(tensor)

        return count

    with pytest.MonkeyPatch.context() as patch, Operators() as found:
        for name in ("cpu", "tolist"):  # what is on a CPU already is not copied: there is no operator
            patch.setattr(torch.Tensor, name, counted(getattr(torch.Tensor, name)))
        call()
    return found.total, n_read + found.reads.total()


def classes_of_unlike_size(n_classes, n_features=12, seed=0, sizes=(4, 7)):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), rng.integers(*sizes, size=n_classes))
    X = 3 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(len(y), n_features))
    return X.astype(np.float32), y


def fitted(n_classes, **parameters):
    X, y = classes_of_unlike_size(n_classes)
    return EllipsoidOpenSetClassifier(random_state=0, device="cpu", **parameters).fit(X, y)


@pytest.fixture(scope="module")
def clf():
    return fitted(20)


@pytest.fixture(scope="module")
def rows():
    return classes_of_unlike_size(20, seed=1, sizes=(20, 30))[0]


@pytest.fixture
def gpu(monkeypatch):
    """Compute on the CPU as on a GPU with much memory: nothing is read that a GPU would wait for."""
    monkeypatch.setattr(tiles, "reads_are_free", lambda device: False)
    monkeypatch.setattr(geometry, "CACHE_BYTES", 2**60)
    monkeypatch.setattr(devices, "chunk_bytes", lambda device: 2**60)


# Operators.


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("method", ["predict", "decision_function", "known_p_value"])
def test_operators_and_reads_do_not_depend_on_the_number_of_classes_or_rows(method):
    found = {}
    for n_classes in (20, 100):
        clf = fitted(n_classes)
        for n_rows in (1_000, 5_000):
            given = torch.from_numpy(np.resize(classes_of_unlike_size(n_classes, seed=1)[0], (n_rows, 12)))
            found[n_classes, n_rows] = operators(lambda given=given, clf=clf: getattr(clf, method)(given))
    (count, reads), *others = found.values()
    assert all(other == (count, reads) for other in others)
    assert count < 110
    assert reads == 1  # the results


# Tensors on the device.


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("trainer", [None, EliDecide(max_iter=2)])
@pytest.mark.parametrize("n_rows", [1, 3, 400])
def test_a_tensor_is_scored_as_the_array_and_as_on_a_gpu(trainer, dtype, n_rows, rows, request):
    clf, given = fitted(20, trainer=trainer), rows[:n_rows].astype(dtype)
    expected = [getattr(clf, method)(given) for method in METHODS]
    for tensor in (torch.from_numpy(given), torch.from_numpy(given).requires_grad_()):
        for method, values in zip(METHODS, expected, strict=True):
            np.testing.assert_array_equal(getattr(clf, method)(tensor), values)
            assert getattr(clf, method)(tensor).dtype == values.dtype
    request.getfixturevalue("gpu")
    for method, values in zip(METHODS, expected, strict=True):
        found = getattr(clf, method)(torch.from_numpy(given))
        np.testing.assert_allclose(found, values, rtol=0, atol=TOLERANCE[given.dtype])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", METHODS)
def test_rows_of_a_tensor_that_are_not_finite_are_named(clf, rows, value, method):
    given = torch.from_numpy(rows.copy())
    given[7, 3] = given[9, 0] = value
    with pytest.raises(ValueError, match=r"in rows 7, 9; .* these rows"):
        getattr(clf, method)(given)


def test_a_tensor_warns_of_norms_and_of_feature_names(rows):
    X, y = classes_of_unlike_size(20)
    clf = EllipsoidOpenSetClassifier(random_state=0, device="cpu").fit(pd.DataFrame(X).rename(columns=str), y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.predict(torch.from_numpy(100 * rows))
    assert [str(warning.message)[:11] for warning in caught] == ["X does not ", "New samples"]


# The tensors of a model.


def kept(clf):
    return clf._boundaries._ready if hasattr(clf, "_boundaries") else {}


def test_tensors_do_not_travel_and_go_with_the_model(rows):
    clf = fitted(20)
    without = pickle.dumps(clf)
    expected = clf.score_samples(rows)
    assert kept(clf)
    assert pickle.dumps(clf) == without
    for other in (pickle.loads(without), copy.deepcopy(clf), clone(clf)):
        assert not kept(other)
    np.testing.assert_array_equal(pickle.loads(without).score_samples(rows), expected)
    mean = weakref.ref(next(iter(kept(clf).values())).mean)
    del clf, other
    gc.collect()
    assert mean() is None


@pytest.mark.parametrize("name", ["radii_", "centers_", "centroids_", "scale_", "shared_share_"])
def test_what_a_fit_found_cannot_be_replaced(name):
    with pytest.raises(AttributeError, match="setter"):
        setattr(fitted(20), name, 1.0)


def test_threads_share_a_model(rows):
    clf = fitted(20)
    expected = copy.deepcopy(clf).predict(rows)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: clf.predict(rows), range(40)):
            np.testing.assert_array_equal(found, expected)


def test_prediction_needs_a_bounded_amount_of_memory(fresh_python):
    pytest.importorskip("resource")
    script = """
import resource, sys
import numpy as np
from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, explain
from skellipsoid._torch import devices

devices.CHUNK_BYTES = 2**20
rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 32))  # 49 MiB
clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[:100], np.arange(100) % 3)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
clf.predict(X[:100])
before = peak()
clf.predict(X)
print((peak() - before) / 2**20)
"""
    answer = fresh_python(script)
    assert answer.stderr == ""
    # The chosen classes and scores of all rows take about 5 MiB; one copy of the rows would take 49.
    assert float(answer.stdout) < 25


@pytest.mark.parametrize(
    "given",
    [torch.zeros(3), torch.zeros(0, 12), torch.zeros(2, 5), torch.zeros(2, 12).to_sparse(), torch.zeros(2, 12) * 1j],
)
def test_a_tensor_that_is_no_table_is_an_error(clf, given):
    with pytest.raises((ValueError, TypeError)):
        clf.predict(given)
