"""Promise: a worker that is killed, and a search on workers, change no result."""

import multiprocessing
import os
import signal

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skellipsoid
from skellipsoid.metrics import open_set_f1_scorer
from skellipsoid.model_selection import OpenSetKFold

da = pytest.importorskip("dask.array")


def killing(block, folder, block_id=(0,)):
    """Give a block as it is; the process that gives the second block for the second time is killed instead."""
    if block_id[0] == 1:
        number = len(os.listdir(folder)) + 1
        (folder / str(number)).touch()
        if number == 2:
            if multiprocessing.parent_process() is None:
                pytest.fail("this call was to be made in a worker, not in the process of the tests")
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def blocks(rows):
    return da.from_array(rows, chunks=(400,) + (-1,) * (rows.ndim - 1))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_pass_of_the_fit(start_cluster, samples, large_classifier, tmp_path):
    X, y, groups = samples
    labels = blocks(y).map_blocks(killing, tmp_path, dtype=y.dtype, meta=y[:0])
    given = {"groups": blocks(groups), "samples_per_class": 50}
    with start_cluster(2):
        found = skellipsoid.dask.fit(large_classifier, blocks(X), labels, **given)
        wanted = skellipsoid.dask.fit(large_classifier, blocks(X), blocks(y), **given)
    assert found._boundaries.moments.counts.tolist() == [np.sum(y == label) for label in found.classes_]
    assert found.groups_.tolist() == wanted.groups_.tolist()
    np.testing.assert_allclose(found.class_margins(X), wanted.class_margins(X), atol=1e-5)
    np.testing.assert_allclose(found.held_out_scores_, wanted.held_out_scores_, atol=1e-6)
    assert len(os.listdir(tmp_path)) > 2  # a worker was killed, and its work was done again


@pytest.mark.slow
def test_a_search_on_a_cluster_is_the_plain_one(start_cluster, samples):
    X, y, _ = samples
    X, y = X[y != "-1"][::3], y[y != "-1"][::3]
    clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0)
    grid = {"beta": [0.25, 0.5, 1.0]}
    search = GridSearchCV(clf, grid, cv=OpenSetKFold(2), scoring=open_set_f1_scorer, refit=False)
    wanted = clone(search).fit(X, y).cv_results_["mean_test_score"]
    with start_cluster(2), joblib.parallel_config("dask", wait_for_workers_timeout=30):
        found = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, wanted)
