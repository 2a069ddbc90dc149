"""Speed and memory, each figure beside a plain implementation in the same run (medians of alternating repeats).

python benchmarks/speed.py boundary     # fitting, 10 epochs: K=19, n=384, 2,119 rows
python benchmarks/speed.py encoder      # fine-tuning and encoding, against sentence-transformers
python benchmarks/speed.py memory       # peak memory of predict against the number of rows
"""

import argparse
import statistics
import time
import tracemalloc

import numpy as np
import torch

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets
from skellipsoid._engine import text as text_engine
from skellipsoid._engine.contrastive import TokenRows

REPEATS = 5


def main():
    """Run the parts that are asked for."""
    parts = {"boundary": boundary, "encoder": encoder, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)} (default: all)")
    for name in parser.parse_args().parts or parts:
        print(f"\n{name}")
        parts[name]()


def alternate(**works):
    """Run each work once to warm up, then in turns; print medians and their ratio to the first."""
    seconds = {name: [] for name in works}
    for repeat in range(REPEATS + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    first = seconds[next(iter(works))]
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(first, values, strict=True))
        print(f"  {name:32} {statistics.median(values):8.2f} s   {ratio:5.1f} times the speed of the first")


def boundary():
    """Fit the boundaries by the package and by plain autograd, both without held-out rows, 10 epochs, batch 128."""
    X, y = class_like_features(19, 384, 2119)
    classifier = EllipsoidOpenSetClassifier(
        max_iter=10, early_stopping=False, recalibrate=False, n_iter_no_change=10, batch_size=128, random_state=0
    )
    alternate(plain=lambda: plain_fit(X, y, n_epochs=10), package=lambda: classifier.fit(X, y))
    alternate(package_10_epochs=lambda: classifier.fit(X, y), defaults=lambda: EllipsoidOpenSetClassifier().fit(X, y))


def class_like_features(n_classes, n_features, n_rows, seed=0):
    """Make unit vectors in classes that are about as tight as contrastive features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_classes, n_features))[y] + 0.6 * rng.normal(size=(n_rows, n_features))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


def plain_fit(X, y, *, n_epochs, learning_rate=2e-3, beta=0.5, alpha=0.6, n_mix=3, batch_size=128):
    """Fit by the paper's equations as one would first write them: autograd over K × n × n matrices."""
    X = (X - X.mean(0)) / np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean())
    features, classes = torch.from_numpy(X), torch.from_numpy(y)
    n_classes = int(classes.max()) + 1
    centroids = torch.stack([features[classes == k].mean(0) for k in range(n_classes)])
    radii = torch.stack([(features[classes == k] - centroids[k]).norm(dim=1).mean() for k in range(n_classes)])
    matrices = torch.eye(X.shape[1]).repeat(n_classes, 1, 1).requires_grad_()
    optimizer = torch.optim.Adam([matrices], lr=learning_rate)
    dirichlet = torch.distributions.Dirichlet(torch.full((n_mix,), alpha))
    for _ in range(n_epochs):
        for rows in torch.randperm(len(features)).split(batch_size):
            z, labels = features[rows], classes[rows]
            negatives = []
            for weights in dirichlet.sample((len(rows),)):
                chosen = {}
                while len(chosen) < n_mix:
                    row = int(torch.randint(len(rows), ()))
                    chosen.setdefault(int(labels[row]), row)
                negatives.append((weights.unsqueeze(1) * z[list(chosen.values())]).sum(0))
            loss = torch.zeros(())
            open_rows = torch.stack(negatives)
            for k in range(n_classes):
                inside = (z[labels == k] - centroids[k]) @ matrices[k].T
                loss = loss + (inside.norm(dim=1) - radii[k]).clamp_min(0).sum()
                norms = ((open_rows - centroids[k]) @ matrices[k].T).norm(dim=1)
                depth = radii[k] - norms
                loss = loss + torch.where(depth > 0, depth + beta, beta * depth.clamp_max(0).exp()).sum()
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
    return matrices.detach()


def encoder():
    """Encode, and take training steps, beside sentence-transformers and beside padding to the batch's longest."""
    texts = list(datasets.load_assistant_intents(subset="train").data)
    fitted = SupConTextEncoder(finetune="none").fit(texts[:1])
    backbone = fitted._backbone
    print(f"  {len(texts)} texts, {np.mean([len(ids) for ids in backbone.tokenize(texts)]):.1f} tokens on average")
    alternate(
        sentence_transformers=lambda: backbone.model.encode(texts, show_progress_bar=False),
        package=lambda: fitted.transform(texts),
    )
    rows = TokenRows(backbone, texts, "mean")
    optimizer = torch.optim.AdamW(rows.parameters(), lr=0.0, fused=True)
    batch = np.random.default_rng(0).permutation(len(texts))[:64]

    def step():
        rows.views(batch).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    def step_in_one_piece():
        pieces = dict(text_engine.PIECE_TOKENS)
        text_engine.PIECE_TOKENS.update(cpu=10**9)
        try:
            step()
        finally:
            text_engine.PIECE_TOKENS.update(pieces)

    print("  a training step of 64 texts, two views each")
    alternate(padded_to_longest=step_in_one_piece, package=step)


def memory():
    """Peak memory that predict takes beyond its input and its answer."""
    X, y = class_like_features(20, 64, 2000)
    classifier = EllipsoidOpenSetClassifier(max_iter=2, random_state=0).fit(X, y)
    for n_rows in (10_000, 100_000, 1_000_000):
        rows = np.resize(X, (n_rows, X.shape[1]))
        tracemalloc.start()
        classifier.score_samples(rows)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        print(f"  {n_rows:9,} rows: {peak:6.1f} MiB of NumPy memory at the peak")


if __name__ == "__main__":
    main()
