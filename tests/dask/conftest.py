"""A real cluster on this machine, and data for it."""

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

from skellipsoid import EllipsoidOpenSetClassifier


@pytest.fixture(scope="session")
def start_cluster():
    """Start worker processes of one thread each, and a client: Dask's scheduler inside ``with start_cluster(2)``."""
    distributed, dask = map(pytest.importorskip, ("distributed", "dask"))

    # Idle processes look at themselves a hundred times a second otherwise.
    quiet = {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "10s"}

    @contextmanager
    def start(n_workers):
        options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
        with (
            dask.config.set(quiet),
            distributed.LocalCluster(n_workers=n_workers, **options) as started,
            distributed.Client(started) as client,
        ):
            client.wait_for_workers(n_workers, timeout=300)
            yield client

    return start


@pytest.fixture(scope="package")
def cluster(start_cluster):
    """A cluster of one worker, another process than that of the tests, until this folder's tests end."""
    with start_cluster(1) as client:
        yield client


@pytest.fixture(scope="session")
def samples():
    """Twelve classes of unlike sizes in 12 dimensions, and open samples: rows, labels, groups."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(60, 400, 12)
    labels = np.repeat([f"class {k:02}" for k in range(12)], sizes)
    centres = 3 * rng.normal(size=(12, 12))
    rows = np.repeat(centres, sizes, axis=0) + rng.normal(size=(len(labels), 12)) @ (0.6 * rng.normal(size=(12, 12)))
    order = rng.permutation(len(labels))
    labels = labels[order]
    labels[:30] = "-1"
    return rows[order].astype(np.float32), labels, np.arange(len(labels)) // 3


@pytest.fixture(scope="session")
def large_classifier():
    """A classifier that can be fitted to partitions."""
    return EllipsoidOpenSetClassifier(duplicates="off", outliers="keep", keep_samples=False, random_state=0)


@pytest.fixture(scope="session")
def fitted(samples, large_classifier):
    """A classifier that was fitted in memory."""
    return clone(large_classifier).fit(samples[0], samples[1])
