"""Data that no memory holds: seconds and memory of a fit and of scores on a Dask cluster of this machine.

$ python studies/large_data.py make --rows 5000000 --folder DATA
$ python studies/large_data.py fit --folder DATA --model MODEL
$ python studies/large_data.py score --folder DATA --model MODEL
$ python studies/large_data.py agree --rows 20000
$ python studies/large_data.py memory
$ python studies/large_data.py search
"""

import argparse
import json
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import clone

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.metrics import make_open_set_scorer, open_set_f1_score
from skellipsoid.model_selection import OpenSetKFold

N_FEATURES, N_CLASSES, ROWS_OF_FILE = 384, 100, 25_000
CLASSIFIER = EllipsoidOpenSetClassifier(duplicates="off", outliers="keep", keep_samples=False, random_state=0)


class Source:
    """Unit vectors of classes of unlike sizes, the smallest a twentieth of the largest, and a tenth of open ones.

    Within a class they vary along 40 directions of its own and 40 that all classes share, and a little along all.
    """

    def __init__(self):
        rng = np.random.default_rng(0)
        self.means = rng.normal(size=(N_CLASSES + 20, N_FEATURES)).astype(np.float32)
        self.own = rng.normal(size=(N_CLASSES + 20, 40, N_FEATURES)).astype(np.float32) / 6
        self.shared = rng.normal(size=(40, N_FEATURES)).astype(np.float32) / 4
        sizes = np.geomspace(1, 20, N_CLASSES)
        self.shares = np.append(0.9 * sizes / sizes.sum(), np.full(20, 0.1 / 20))

    def rows(self, n_rows, seed):
        """Rows and their labels; -1 are those of the last twenty classes."""
        rng = np.random.default_rng([1, seed])
        labels = rng.choice(len(self.shares), n_rows, p=self.shares)
        X = self.means[labels] + rng.standard_normal((n_rows, 40), dtype=np.float32) @ self.shared
        X += 0.3 * rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
        for label in range(len(self.shares)):
            mine = np.flatnonzero(labels == label)
            X[mine] += rng.standard_normal((len(mine), 40), dtype=np.float32) @ self.own[label]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, np.where(labels < N_CLASSES, labels, -1)


def make(options):
    """Write parquet files: a column of vectors, and one of labels."""
    source, folder = Source(), Path(options.folder)
    folder.mkdir(parents=True)
    for i in range(-(-options.rows // ROWS_OF_FILE)):
        X, y = source.rows(min(ROWS_OF_FILE, options.rows - i * ROWS_OF_FILE), i)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), N_FEATURES)
        table = pa.table({"embedding": vectors, "label": y})
        pq.write_table(table, folder / f"part-{i:05}.parquet", compression="none")


@contextmanager
def watched(what, **more):
    """Print seconds, processor seconds of this process, and the largest memory of it and its children together."""
    most, ended = [0.0, 0.0], threading.Event()

    def watch():
        while not ended.wait(1.0):
            own, *children = sizes()
            most[0], most[1] = max(most[0], own + sum(children)), max(most[1], own)

    thread = threading.Thread(target=watch)
    thread.start()
    begin, used = time.perf_counter(), time.process_time()
    try:
        yield
        more |= {"seconds": round(time.perf_counter() - begin, 1), "processor": round(time.process_time() - used, 2)}
    finally:
        ended.set()
        thread.join()
    print(json.dumps({"what": what, "peak_gib": round(most[0], 2), **more}), flush=True)


def sizes():
    """Memory of this process and of each child, in GiB; shared pages count by their share."""
    found = []
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            found.append(process.memory_full_info().pss / 2**30)
        except psutil.Error:
            found.append(0.0)
    return found


@contextmanager
def local_cluster():
    """Two workers of one thread."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="3GiB") as cluster,
        Client(cluster) as client,
    ):
        yield client


def read(folder):
    import dask.dataframe as dd

    return dd.read_parquet(str(Path(folder) / "part-*.parquet"), split_row_groups=False)


def fit(options):
    """Fit to files on two workers."""
    with local_cluster():
        data = read(options.folder)
        with watched("fit", partitions=data.npartitions):
            fitted = skellipsoid.dask.fit(
                CLASSIFIER, data["embedding"], data["label"], samples_per_class=options.samples_per_class
            )
    print(
        int(fitted._boundaries.moments.counts.sum()),
        "rows of",
        len(fitted.classes_),
        "classes;",
        len(fitted.groups_),
        "drawn",
    )
    skellipsoid.save(fitted, options.model, overwrite=True)
    X, y = Source().rows(50_000, 10**6)
    print("F1 of new rows:", round(open_set_f1_score(y, fitted.predict(X)), 4))


def score(options):
    """Score files on two workers."""
    with local_cluster():
        data = read(options.folder)
        with watched("score", partitions=data.npartitions):
            labels = skellipsoid.dask.predict(Path(options.model), data["embedding"])
            counts = labels.value_counts().compute()
    print(int(counts.sum()), "rows")


def agree(options):
    """Compare with fits in memory, by the number of samples that are drawn of each class."""
    import dask.array as da

    source = Source()
    X, y = source.rows(options.rows, 0)
    X_new, y_new = source.rows(50_000, 10**6)
    with watched("fit in memory", rows=len(X)):
        whole = clone(CLASSIFIER).fit(X, y)
    print("F1", round(open_set_f1_score(y_new, whole.predict(X_new)), 4))
    blocks = da.from_array(X, chunks=(ROWS_OF_FILE, -1)), da.from_array(y, chunks=ROWS_OF_FILE)
    for n in (32, 64, 128, 256):
        with watched("fit to partitions", samples_per_class=n):
            found = skellipsoid.dask.fit(CLASSIFIER, *blocks, samples_per_class=n)
        labels = found.predict(X_new)
        print(
            "F1", round(open_set_f1_score(y_new, labels), 4), "equal answers", np.mean(labels == whole.predict(X_new))
        )


def memory(options):
    """Measure fits and scores in memory, for what one machine holds."""
    X_new = Source().rows(20_000, 10**6)[0]
    for n_rows in (5_000, 10_000):
        X, y = Source().rows(n_rows, 0)
        with watched("fit in memory", rows=n_rows):
            fitted = clone(CLASSIFIER).fit(X, y)
        with watched("score in memory", rows=len(X_new), features=N_FEATURES, classes=N_CLASSES):
            fitted.predict(X_new)


def search(options):
    """Search in one process and on two workers, with features computed once for each setting of the encoder."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    from skellipsoid.datasets import load_assistant_intents

    texts, labels = load_assistant_intents(subset="train", return_X_y=True)
    grid = {"enc__pooling": ["mean", "auto"], "clf__beta": [0.25, 0.5, 1.0, 2.0]}

    def run(memory):
        pipe = Pipeline(
            [
                ("enc", SupConTextEncoder(finetune="none", verbose=0)),
                ("clf", EllipsoidOpenSetClassifier(random_state=0)),
            ],
            memory=memory,
        )
        scorer = make_open_set_scorer(open_set_f1_score)
        found = GridSearchCV(pipe, grid, cv=OpenSetKFold(3), scoring=scorer, refit=False).fit(texts, labels)
        return found.cv_results_["mean_test_score"]

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        with watched("search, one process"):
            plain = run(None)
        with watched("search, one process, memory="):
            kept = run(first)
        with local_cluster(), watched("search, two workers, memory="), joblib.parallel_config("dask"):
            spread = run(second)
    print("equal scores:", np.allclose(plain, kept), np.allclose(plain, spread), "of", len(plain), "settings")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "fit", "score", "agree", "memory", "search"))
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--model")
    parser.add_argument("--samples-per-class", type=int, default=256)
    chosen = parser.parse_args()
    globals()[chosen.command](chosen)
