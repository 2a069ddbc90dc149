"""What a GPU gives: rows and texts per second, and seconds of a fit, on the GPU and on the CPU of one machine.

``python studies/gpu.py --data-home ../../../shared/data``; ``--device cpu`` runs the same on a machine without a GPU.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder

#: Classes, features and samples of each class.
SIZES = [(112, 384, 100), (112, 768, 100), (1000, 512, 20)]


def seconds(work: Callable[[], object], n_runs: int = 3) -> float:
    """Median of some runs after a first one; what the GPU has still to do is waited for."""
    taken = []
    for _ in range(1 + n_runs):
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def report(**figures: object) -> None:
    print(json.dumps(figures), flush=True)


def boundary(device: str, n_rows: int) -> None:
    for n_classes, n_features, n_each in SIZES:
        generator = torch.Generator().manual_seed(0)
        means = torch.randn(n_classes, n_features, generator=generator)
        y = torch.arange(n_classes).repeat_interleave(n_each)
        X = means[y] + 1.5 * torch.randn(len(y), n_features, generator=generator)
        clf = EllipsoidOpenSetClassifier(device=device, random_state=0, duplicates="off", keep_samples=False)
        fit = seconds(lambda clf=clf, X=X, y=y: clf.fit(X.numpy(), y.numpy()), 1)
        new = np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(np.float32)
        there = torch.as_tensor(new, device=device)
        report(
            what="boundary",
            device=device,
            size=(n_classes, n_features, n_each),
            fit_seconds=round(fit, 2),
            rows_per_second_from_host=round(n_rows / seconds(lambda clf=clf, new=new: clf.predict(new))),
            rows_per_second_on_device=round(n_rows / seconds(lambda clf=clf, there=there: clf.predict(there))),
        )


def encoder(device: str, data_home: Path) -> None:
    lines = (data_home / "banking" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts, labels = zip(*(line.split("\t") for line in lines if line.count("\t") == 1), strict=True)
    settings = {"device": device, "random_state": 0, "duplicates": "off", "cross_fit": False, "batch_size": 128}

    def tune(n_epochs: int) -> SupConTextEncoder:
        return SupConTextEncoder(finetune="full", max_iter=n_epochs, **settings).fit(texts, labels)

    epochs = seconds(lambda: tune(4), 1) - seconds(lambda: tune(1), 1)
    report(what="tune the whole model", device=device, texts_per_second=round(3 * len(texts) / epochs))
    frozen = SupConTextEncoder(finetune="none", **settings).fit(texts, labels)
    report(
        what="transform", device=device, texts_per_second=round(len(texts) / seconds(lambda: frozen.transform(texts)))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    boundary(options.device, 200_000 if options.device != "cpu" else 20_000)
    encoder(options.device, options.data_home)


if __name__ == "__main__":
    main()
