"""Promise: if a worker is killed, the result is the same; nothing is lost, and nothing counts twice."""

import multiprocessing
import os
import signal

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import skellipsoid
from skellipsoid.metrics import make_open_set_scorer, open_set_f1_score
from skellipsoid.model_selection import OpenSetKFold

da = pytest.importorskip("dask.array")


def killing(block, folder, at, block_id=(0,)):
    """Give a block as it is; the process that gives the second block for the ``at``-th time is killed instead."""
    if block_id[0] == 1:
        count(folder, at)
    return block


def count(folder, at):
    """Count calls in all processes, and kill the worker process of the ``at``-th one."""
    number = len(os.listdir(folder)) + 1
    (folder / str(number)).touch()
    if number == at:
        if multiprocessing.parent_process() is None:
            pytest.fail("this call was to be made in a worker, not in the process of the tests")
        os.kill(os.getpid(), signal.SIGKILL)


def check_killed(folder, at):
    """Make sure that a worker was killed, and that its work was done again."""
    assert len(os.listdir(folder)) > at


@pytest.fixture
def cluster(start_cluster):
    """A cluster for each test: a killed worker may come back late or never, and with one alone joblib works here."""
    with start_cluster() as client:
        yield client


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


def blocks(rows, folder=None, at=1):
    found = da.from_array(rows, chunks=(400,) + (-1,) * (rows.ndim - 1))
    if folder is None:
        return found
    return found.map_blocks(killing, folder, at, dtype=rows.dtype, meta=rows[:0])


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_pass_of_the_fit(cluster, samples, large_classifier, calls):
    X, y, groups = samples
    at = 2
    labels = blocks(y, calls, at)
    found = skellipsoid.dask.fit(large_classifier, blocks(X), labels, groups=blocks(groups), samples_per_class=50)
    wanted = skellipsoid.dask.fit(large_classifier, blocks(X), blocks(y), groups=blocks(groups), samples_per_class=50)
    assert found._boundaries.moments.counts.tolist() == [np.sum(y == label) for label in found.classes_]
    assert found.groups_.tolist() == wanted.groups_.tolist()
    np.testing.assert_allclose(found.class_margins(X), wanted.class_margins(X), atol=1e-5)
    np.testing.assert_allclose(found.held_out_scores_, wanted.held_out_scores_, atol=1e-6)
    check_killed(calls, at)


class Counting(TransformerMixin, BaseEstimator):
    """Features that take long: counts how often it is fitted, and kills the process of one of these fits."""

    def __init__(self, folder, at=0, size=1.0):
        self.folder, self.at, self.size = folder, at, size

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def fit_transform(self, X, y=None):
        count(self.folder, self.at)
        return self.fit(X, y).transform(X)

    def transform(self, X):
        return X * self.size


def search(folder, at, memory):
    pipe = Pipeline(
        [
            ("enc", Counting(folder, at)),
            ("clf", skellipsoid.EllipsoidOpenSetClassifier(random_state=0)),
        ],
        memory=memory,
    )
    grid = {"enc__size": [1.0, 2.0], "clf__beta": [0.25, 0.5, 1.0]}
    scorer = make_open_set_scorer(open_set_f1_score)
    return GridSearchCV(pipe, grid, cv=OpenSetKFold(2), scoring=scorer, refit=False)


@pytest.mark.slow
def test_a_search_on_a_cluster_is_the_plain_one_also_if_a_worker_is_killed(cluster, samples, calls, tmp_path):
    X, y, _ = samples
    X, y = X[y != "-1"][::3], y[y != "-1"][::3]
    others = tmp_path / "others"
    others.mkdir()
    wanted = search(others, 0, None).fit(X, y).cv_results_["mean_test_score"]
    assert len(os.listdir(others)) == 12  # settings of the encoder and of the classifier, folds
    with joblib.parallel_config("dask", wait_for_workers_timeout=30):
        found = clone(search(calls, 2, str(tmp_path / "memory"))).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, wanted)
    # Of each setting of the encoder and each fold once; once more, since a worker was killed, or two began together.
    assert 5 <= len(os.listdir(calls)) <= 9
