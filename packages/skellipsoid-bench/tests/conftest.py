"""Tiny data sets: a folder of texts, a file of features, and records that were made by hand."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
import pytest

from skellipsoid.datasets import make_open_blobs

#: Of each intent: texts that train, one of development, the others test.
N_TRAIN, N_DEV = 5, 1


@pytest.fixture(scope="session")
def intents_folder(tmp_path_factory, texts, labels, open_texts):
    """Four intents as train.tsv, dev.tsv and test.tsv; out-of-scope rows are in all three."""
    folder = tmp_path_factory.mktemp("data") / "intents"
    folder.mkdir()
    ends = {"train": range(N_TRAIN), "dev": range(N_TRAIN, N_TRAIN + N_DEV), "test": range(N_TRAIN + N_DEV, 8)}
    for turn, (part, which) in enumerate(ends.items()):
        rows = [(text, label) for i, (text, label) in enumerate(zip(texts, labels, strict=True)) if i // 4 in which]
        rows += [(text, "oos") for text in open_texts[2 * turn : 2 * turn + 2]]
        lines = "".join(f"{text}\t{label}\n" for text, label in rows)
        (folder / f"{part}.tsv").write_text(f"text\tlabel\n{lines}", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def blobs_file(tmp_path_factory):
    """Eight classes of features in four dimensions, test rows of all of them and open ones."""
    X, y = make_open_blobs(480, 4, n_known=8, open_share=0.1, random_state=0)
    part = np.arange(len(X)) % 3
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    arrays = {
        f"{kind}_{name}": rows[part == i]
        for i, name in enumerate(("train", "dev", "test"))
        for kind, rows in (("X", X), ("y", y))
    }
    np.savez(path, **arrays)
    return path


@pytest.fixture
def blobs_plan(blobs_file, tmp_path):
    return {"data": [blobs_file], "ratios": [0.5], "seeds": [0, 1], "cache": tmp_path / "cache"}


@pytest.fixture
def make_record():
    """Make a result: ``make_record(data, ratio, seed, method, f1, **more)``."""

    def make(data="banking", ratio=0.25, seed=0, method="ellipsoid", f1=50.0, **more):
        return {
            "data": data,
            "ratio": ratio,
            "seed": seed,
            "encoder": "head",
            "method": method,
            "f1": f1,
            "accuracy": f1 + 10,
            "f1_known": f1,
            "f1_open": f1,
            "auroc": None,
            "oracle_f1": f1,
            "n_test": 500,
            "fit_seconds": 1.5,
            "predict_seconds": 0.002,
            "peak_memory_mb": 50.0,
            "coarse": [[6, 1, 3], [0, 2, 8]],
            "estimator": "EllipsoidOpenSetClassifier",
            "params": {"beta": 0.5},
            "encoder_params": {"finetune": "head"},
            "search": None,
            **more,
        }

    return make
