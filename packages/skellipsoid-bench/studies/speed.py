"""Speed and memory, each figure beside a plain implementation in the same run (medians of alternating repeats).

python studies/speed.py boundary     # fitting, beside plain autograd
python studies/speed.py predict      # 20,000 rows, 112 classes, beside scikit-learn's detectors
python studies/speed.py growth       # with rows, features and classes; 1,000 classes of 768 features
python studies/speed.py groups       # a fit with groups of samples, beside one without
python studies/speed.py search       # 5 x 5 values of alpha and beta in 5 folds, with and without memory
python studies/speed.py serving      # a saved text model in a new process: memory, latency, batches, threads
python studies/speed.py encoder      # fine-tuning and encoding, against sentence-transformers
python studies/speed.py memory       # peak memory of predict against the number of rows
"""

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from sklearn.covariance import EllipticEnvelope
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import Pipeline
from torch.utils._python_dispatch import TorchDispatchMode

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder, datasets, load, save
from skellipsoid._encoders.torch import backbone as text_engine
from skellipsoid._encoders.torch.contrastive import TokenRows

REPEATS = 5


def main():
    """Run the parts that are asked for."""
    parts = {
        "boundary": boundary,
        "predict": predict,
        "growth": growth,
        "groups": groups,
        "search": search,
        "serving": serving,
        "encoder": encoder,
        "memory": memory,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)} (default: all)")
    options = parser.parse_args()
    for name in options.parts or parts:
        print(f"\n{name}")
        parts[name]()


def alternate(repeats=REPEATS, **works):
    """Run each work once to warm up, then in turns; print medians and their ratio to the first."""
    seconds = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    first = seconds[next(iter(works))]
    for name, values in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(first, values, strict=True))
        print(f"  {name:32} {statistics.median(values):8.2f} s   {ratio:5.1f} times the speed of the first")


#: Classes, features and rows of what is timed; the last ones are CLINC150 at 75 % known, with MiniLM and with MPNet.
SIZES = {"K=19 n=384 2,119 rows": (19, 384, 2119), "K=112 n=384": (112, 384, 11250), "K=112 n=768": (112, 768, 11250)}


def boundary():
    """Fit with the defaults, with the paper's full matrices, and by plain autograd, an epoch each of the last two.

    With many classes plain autograd gets an eighth of the rows: an epoch takes eight times as long.
    """
    for name, size in SIZES.items():
        X, y = class_like_features(*size)
        trained = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=1))
        part = 1 if size[0] < 100 else 8
        few = X[: size[2] // part], y[: size[2] // part]
        works = {
            f"plain, 1/{part} epoch": lambda few=few: plain_fit(*few, n_epochs=1),
            "EliDecide, 1 epoch": lambda X=X, y=y, trained=trained: trained.fit(X, y),
            "defaults, whole fit": lambda X=X, y=y: EllipsoidOpenSetClassifier(random_state=0).fit(X, y),
        }
        print(f"  {name}")
        alternate(repeats=REPEATS if size[0] < 100 else 2, **works)


def predict():
    """Label 20,000 rows by 112 classes of 768 features, beside detectors of scikit-learn that give no label."""
    X, y = class_like_features(112, 768, 11250)
    rows = class_like_features(112, 768, 20_000, seed=1)[0]
    full = EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=1))
    # One fitted envelope stands for those of all classes, whose work is the same: fitting one takes half a minute.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has fewer rows than features
        envelope = EllipticEnvelope(support_fraction=1.0).fit(X[y == 0])
    centroids = full.fit(X, y).centroids_

    def envelopes(rows):
        nearest = pairwise_distances_argmin(rows, centroids)
        return [envelope.predict(rows[nearest == k]) for k in np.unique(nearest)]

    models = {
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True).fit(X).predict,
        "NearestNeighbors, 5": NearestNeighbors(n_neighbors=5).fit(X).kneighbors,
        "EllipticEnvelope per class": envelopes,
        "full matrices": full.predict,
        "defaults": EllipsoidOpenSetClassifier(random_state=0).fit(X, y).predict,
    }
    alternate(**{name: lambda model=model: model(rows) for name, model in models.items()})


class Operators(TorchDispatchMode):
    """Counts operators by name. With some, with Boolean masks and with copies to the host, it waits for a GPU."""

    def __init__(self):
        super().__init__()
        self.names, self.n_masks, self.n_to_host = Counter(), 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, kwargs = function._schema.name.removeprefix("aten::"), kwargs or {}
        self.names[name] += 1
        self.n_to_host += name in ("_to_copy", "to") and kwargs.get("device") == torch.device("cpu")
        has_indices = name.startswith("index") and isinstance(args[1], list | tuple)
        self.n_masks += has_indices and any(index is not None and index.dtype == torch.bool for index in args[1])
        return function(*args, **kwargs)

    @property
    def n_reads(self):
        """Values that are read, without copies."""
        return self.n_masks + sum(self.names[name] for name in ("_local_scalar_dense", "nonzero", "bincount"))


def growth():
    """How the time of a whole fit grows, each figure beside the one before."""
    for what, sizes in {
        "rows": [(20, 256, 2000), (20, 256, 8000), (20, 256, 32000)],
        "features": [(20, 256, 2000), (20, 1024, 2000), (20, 4096, 2000)],
        "classes": [(20, 256, 2000), (80, 256, 8000), (320, 256, 32000)],
    }.items():
        print(f"  {what}")
        for size in sizes:
            X, y = class_like_features(*size)
            start = time.perf_counter()
            EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
            print(
                f"    {size[0]:4} classes, {size[1]:5} features, {size[2]:6} rows {time.perf_counter() - start:8.2f} s"
            )
    X, y = class_like_features(1000, 768, 50_000)
    start = time.perf_counter()
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    print(f"  1,000 classes, 768 features, 50,000 rows: {time.perf_counter() - start:.1f} s")
    print(f"  peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")
    start = time.perf_counter()
    classifier.predict(X)
    print(f"  predict on them: {len(X) / (time.perf_counter() - start):,.0f} rows/s")


def groups(repeats=3):
    """CPU seconds of a fit with groups of one class, of two, and of all, relative to one without, in turns."""
    for n_classes, n_features, n_rows in ((10, 384, 2000), (20, 384, 4000), (4, 384, 4000)):
        rng, place = np.random.default_rng(0), np.arange(n_rows)
        n_of_class = n_rows // n_classes
        y, place_in_class = place // n_of_class, place % n_of_class
        X = (0.6 * rng.normal(size=(n_classes, n_features)))[y] + rng.normal(size=(n_rows, n_features))
        sizes = [size for size in (2, 5, 20, 50, 100, 200, 500) if 2 * size <= n_of_class]
        kinds = {f"{size} of a class": place // size for size in sizes}
        for size in (20, 100, 200):
            kinds[f"{size} of two classes"] = y // 2 * n_rows + place_in_class // (size // 2)
        kinds |= {f"{n_rows // n} of all classes": place % n for n in (n_rows // 50, n_rows // 200, 10)}
        print(f"  {n_classes} classes, {n_features} features, {n_rows:,} rows")
        fit_seconds(X, y)
        for name, numbers in kinds.items():
            pairs = [(fit_seconds(X, y), fit_seconds(X, y, numbers)) for _ in range(repeats)]
            without, with_groups = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            print(
                f"    groups of {name:20} {without:6.2f} s without, {with_groups:6.2f} s with, x {ratio:.1f}",
                flush=True,
            )


def search():
    """CPU seconds of a search over alpha and beta, with and without a folder for what does not depend on them."""
    grid = {"alpha": [0.3, 0.6, 1, 2, 4], "beta": [0.25, 0.5, 1, 2, 4]}
    X, y = class_like_features(20, 384, 1000)
    seconds = []
    for is_kept in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            classifier = EllipsoidOpenSetClassifier(random_state=0, memory=folder if is_kept else None)
            start = time.process_time()
            GridSearchCV(classifier, grid, cv=5, scoring="accuracy", refit=False).fit(X, y)
            seconds.append(time.process_time() - start)
    plain, kept = seconds
    print(f"  1,000 x 384, 20 classes: {plain:.1f} s without, {kept:.1f} s with memory, x {plain / kept:.1f}")


def fit_seconds(X, y, numbers=None):
    """CPU seconds of a fit with such groups; too few groups of a class are no matter here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*groups of")
        start = time.process_time()
        EllipsoidOpenSetClassifier(random_state=0).fit(X.astype(np.float32), y, groups=numbers)
    return time.process_time() - start


def save_text_model(folder):
    """Fit the default Pipeline on the shipped intents and save it."""
    train = datasets.load_assistant_intents(subset="train")
    pipe = Pipeline(
        [
            ("enc", SupConTextEncoder(finetune="head", random_state=0)),
            ("clf", EllipsoidOpenSetClassifier(random_state=0)),
        ]
    )
    save(pipe.fit(train.data, train.target), folder)


def serving():
    """Memory, latency and throughput of a saved text model in a new process, as a server has it."""
    with tempfile.TemporaryDirectory() as parent:
        save_text_model(parent + "/model")
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(parent + "/model",))
        process.start()
        process.join()


def serve(folder):
    """Load a model and time what a server does with it."""
    texts = datasets.load_assistant_intents(subset="test").data.tolist()

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    print(f"  {resident():6.0f} MiB resident before load")
    start = time.perf_counter()
    model = load(folder)
    print(f"  {resident():6.0f} MiB after load, {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    model.predict(texts[:1])
    print(f"  {resident():6.0f} MiB after the first predict, {time.perf_counter() - start:.2f} s")
    n_default = torch.get_num_threads()
    for n_threads, sizes in ((1, (1, 8, 32, 256)), (n_default, (1,))):
        torch.set_num_threads(n_threads)
        model.predict(texts[:32])
        print(f"  torch.set_num_threads({n_threads})")
        for n_texts in sizes:
            seconds = []
            for first in range(200 if n_texts == 1 else 20):
                batch = [texts[(first * n_texts + i) % len(texts)] for i in range(n_texts)]
                start = time.perf_counter()
                model.predict(batch)
                seconds.append(time.perf_counter() - start)
            middle, late = 1000 * statistics.median(seconds), 1000 * np.quantile(seconds, 0.95)
            rate = 1000 * n_texts / middle
            print(f"    {n_texts:4} texts: median {middle:6.1f} ms, 95 % within {late:6.1f} ms, {rate:6.0f} a second")
        start = time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda text: model.predict([text]), texts[:200]))
        print(f"    8 threads, one text each: {200 / (time.perf_counter() - start):6.0f} a second")
    print(f"  {resident():6.0f} MiB at the end")


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
            for k, matrix in enumerate(matrices.unbind()):
                inside = (z[labels == k] - centroids[k]) @ matrix.T
                loss = loss + (inside.norm(dim=1) - radii[k]).clamp_min(0).sum()
                norms = ((open_rows - centroids[k]) @ matrix.T).norm(dim=1)
                depth = radii[k] - norms
                loss = loss + torch.where(depth > 0, depth + beta, beta * depth.clamp_max(0).exp()).sum()
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
    return matrices.detach()


def encoder():
    """Encode, and take training steps, beside sentence-transformers and beside padding to the batch's longest."""
    from sentence_transformers import SentenceTransformer

    texts = list(datasets.load_assistant_intents(subset="train").data)
    fitted = SupConTextEncoder(finetune="none").fit(texts[:1])
    backbone = fitted._backbone
    with tempfile.TemporaryDirectory() as folder:
        fitted.export(folder)
        library = SentenceTransformer(folder, device="cpu")
    print(f"  {len(texts)} texts, {np.mean([len(ids) for ids in backbone.tokenize(texts)]):.1f} tokens on average")
    alternate(
        sentence_transformers=lambda: library.encode(texts, show_progress_bar=False),
        package=lambda: fitted.transform(texts),
    )
    rows = TokenRows(backbone, texts)
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
