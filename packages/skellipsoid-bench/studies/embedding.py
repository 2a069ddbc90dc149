"""A frozen text model by three libraries and in other numbers: bfloat16, and 8-bit integers. Speed, and what F1 costs.

Texts per second of the training texts, in turns, with one and with two threads. Macro F1 on development rows with
classes held out as open, boundaries fitted to features of the same kind, as the difference from the first kind. The
encoder and its export give the mean of three layers, sentence-transformers the last one alone.
``torch.compile`` is left out: it hardly gains (TRIED.md).

    python studies/embedding.py --data-home ../../../shared/data > results/embedding.rst
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from features import FETCHERS, known_classes
from runtime import table
from sentence_transformers import SentenceTransformer
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, export_onnx
from skellipsoid._encoders.torch.model_lookup import packaged_model
from skellipsoid._torch import machine
from skellipsoid.metrics import open_set_f1_score
from skellipsoid_runtime import OnnxPipeline

RATIOS, SEEDS, PER_CLASS, TIMED, REPEATS = (0.25, 0.5, 0.75), range(5), 40, 1000, 5
#: Without AMX bfloat16 takes several times as long, and is left out.
KINDS = ("SupConTextEncoder, float32", "sentence-transformers, float32", "onnxruntime, float32", "onnxruntime, int8")
if machine.instructions().get("amx_bf16"):
    KINDS += ("SupConTextEncoder, bfloat16", "sentence-transformers, bfloat16")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="*", choices=FETCHERS, default=[*FETCHERS], help="(default: all)")
    options = parser.parse_args()
    speeds = {(kind, n): [] for kind in KINDS for n in (1, 2)}
    changes = {kind: [] for kind in KINDS}
    for data in options.data:
        parts = [FETCHERS[data](subset=subset, data_home=options.data_home) for subset in ("train", "dev")]
        texts, labels = (
            np.array([*parts[0].data, *parts[1].data], dtype=object),
            np.concatenate([p.target for p in parts]),
        )
        is_dev = np.arange(len(texts)) >= len(parts[0].data)
        with tempfile.TemporaryDirectory() as folder:
            works = embedders(Path(folder), texts[:TIMED], labels[:TIMED])
            for n_threads in (1, 2):
                for kind, values in timed(works, texts[:TIMED], n_threads).items():
                    speeds[kind, n_threads] += values
            features = {kind: work(texts, 2) for kind, work in works.items()}
        for ratio in RATIOS:
            for seed in SEEDS:
                known = known_classes(data, ratio, seed, options.data_home)
                f1 = {kind: score(rows, labels, is_dev, known, seed) for kind, rows in features.items()}
                for kind in KINDS:
                    changes[kind].append(f1[kind] - f1[KINDS[0]])
        print(data, {kind: round(float(np.mean(found)), 2) for kind, found in changes.items()}, file=sys.stderr)
    rows = []
    for kind, found in changes.items():
        cells = [f"{statistics.median(speeds[kind, n]):,.0f}" for n in (1, 2)]
        ratio = statistics.median(a / b for a, b in zip(speeds[kind, 1], speeds[KINDS[0], 1], strict=True))
        error = np.std(found, ddof=1) / len(found) ** 0.5
        rows.append([kind, *cells, f"{ratio:.1f}", f"{np.mean(found):+.2f} ± {error:.2f}", f"{min(found):+.1f}"])
    table(
        f"all-MiniLM-L6-v2, frozen; F1 of {len(found)} cases, {PER_CLASS} training texts a class",
        ["Computed by, with", "Texts/s, one thread", "Two threads", "Times the first", "F1, change", "Worst case"],
        rows,
    )


def embedders(folder, texts, labels):
    """Functions of texts and a number of threads, by kind."""
    encoder = SupConTextEncoder(finetune="none", keep_texts=True)
    pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0)).fit(texts, labels)
    works = {KINDS[0]: by_torch(encoder)}
    for kind in KINDS:
        if kind == "SupConTextEncoder, bfloat16":
            works[kind] = by_torch(SupConTextEncoder(finetune="none", dtype="bfloat16").fit(texts))
        elif kind.startswith("sentence-transformers"):
            library = SentenceTransformer(str(packaged_model(encoder.model_name)), device="cpu")
            works[kind] = by_library(library.to(getattr(torch, kind.rpartition(" ")[2])))
    for kind, quantize in (("onnxruntime, float32", False), ("onnxruntime, int8", True)):
        start = time.perf_counter()
        export_onnx(pipe, folder / kind, quantize=quantize)
        print(f"export of {kind}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
        models = {n: OnnxPipeline(folder / kind, n_threads=n) for n in (1, 2)}
        works[kind] = lambda texts, n, models=models: models[n].answers(texts)["features"]
    return works


def by_torch(encoder):
    """Embed with this encoder and so many threads of torch."""

    def work(texts, n_threads):
        torch.set_num_threads(n_threads)
        return encoder.transform(texts)

    return work


def by_library(model):
    """Embed with a model of sentence-transformers and so many threads of torch."""

    def work(texts, n_threads):
        torch.set_num_threads(n_threads)
        return model.encode(texts, convert_to_tensor=True, show_progress_bar=False).float().numpy()

    return work


def timed(works, texts, n_threads):
    """Texts per second of each kind, in turns."""
    found = {kind: [] for kind in works}
    for repeat in range(REPEATS + 1):
        for kind, work in works.items():
            start = time.perf_counter()
            work(texts, n_threads)
            if repeat:
                found[kind].append(len(texts) / (time.perf_counter() - start))
    return found


def score(rows, labels, is_dev, known, seed):
    """F1 in percent on the development rows, of boundaries of a few training rows of each known class."""
    trains = np.concatenate([np.flatnonzero(~is_dev & (labels == label))[:PER_CLASS] for label in known])
    classifier = EllipsoidOpenSetClassifier(random_state=seed).fit(rows[trains], labels[trains])
    truth = np.where(np.isin(labels[is_dev], known), labels[is_dev], "-1")
    return 100 * open_set_f1_score(truth, classifier.predict(rows[is_dev]), labels=known, zero_division=0)


if __name__ == "__main__":
    main()
