"""Whether the text encoders of the literature are better than their untrained start, on development rows.

Banking77, 25 % of the classes known, seed 0. Four of the 19 known classes are held out as open. Development rows of the
19 classes tell how good the features are, before and after training: the accuracy of the nearest class mean, and the
AUROC of the distance to it. Each encoder is trained on the other 15 classes in two ways:

head: the frozen text model with a trained layer, all training texts, 100 epochs, other settings as published.
full: the whole text model, 20 texts of each class, 5 epochs in batches of 16 at the rate 1e-4. So few texts and
epochs do not move a text model at the published rate; it is what a CPU does in minutes.

    python studies/literature.py --data-home ../../../shared/data     # half an hour on one core; resumes
    python studies/literature.py --report > results/literature.rst

``--pipelines`` prints what ``skellipsoid-bench run --plan literature.toml`` has measured, beside the paper's Table 1.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from duplicates import table
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score

from skellipsoid import SupConTextEncoder
from skellipsoid._encoders.torch.backbone import ACTIVATIONS
from skellipsoid_bench import datasets, literature, paper_figures
from skellipsoid_bench._data import DataSpec, load_data
from skellipsoid_bench._encoders import EncoderSpec, FeatureSource
from skellipsoid_bench._runner import CACHE

NAMES_OF_DATA = {"banking": "Banking77", "oos": "CLINC150", "stackoverflow": "StackOverflow"}
RESULTS = Path(__file__).parents[1] / "results" / "literature_starts.jsonl"
NAMES = ("CrossEntropyTextEncoder", "DAADBTextEncoder", "MOGBTextEncoder", "KNNCLTextEncoder", "CLABTextEncoder")
SEED, HELD_OUT = 0, 4
#: Texts of each class, and settings, by what is trained.
WAYS = {
    "head": (10_000, {"max_iter": 100}),
    "full": (20, {"max_iter": 5, "batch_size": 16, "learning_rate": 1e-4}),
}


def main():
    """Run what is not there yet, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--report", action="store_true", help="print the table of what is there")
    parser.add_argument("--pipelines", metavar="FILE", help="print the table of a benchmark's results")
    options = parser.parse_args()
    if options.pipelines:
        pipelines(options.pipelines)
        return
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    found = [json.loads(line) for line in lines]
    if options.report:
        report(found)
        return
    done = {(row["encoder"], row["finetune"]) for row in found}
    pooled = embedded(options.data_home)
    for finetune, (size, settings) in WAYS.items():
        texts, labels, new, truth = draw(options.data_home, size)
        for name in NAMES:
            if (name, finetune) not in done:
                line = {"encoder": name, "finetune": finetune}
                line |= run_case(name, finetune, settings, pooled, texts, labels, new, truth)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def draw(data_home, size):
    """Training texts and labels, and development texts and labels, "open" for those of held-out classes."""
    train, dev = (datasets.fetch_banking77(subset=subset, data_home=data_home) for subset in ("train", "dev"))
    y, y_dev = np.asarray(train.target), np.asarray(dev.target)
    names = np.unique(y)
    known = np.random.RandomState(SEED).choice(names, round(len(names) / 4), replace=False)
    classes, rng = known[HELD_OUT:], np.random.default_rng(SEED)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == name))[:size] for name in classes])
    watched = np.flatnonzero(np.isin(y_dev, known))
    truth = np.where(np.isin(y_dev[watched], classes), y_dev[watched], "open")
    return [train.data[i] for i in rows], y[rows], [dev.data[i] for i in watched], truth


def embedded(data_home):
    """Mean token vectors of the text model as it is, by text; from the benchmark's cache if they are there."""
    data = load_data(DataSpec("banking"), data_home)
    encoder = EncoderSpec("raw", SupConTextEncoder(finetune="none", layers="last", normalize=False))
    source = FeatureSource(data, encoder, CACHE.expanduser(), "cpu")
    rows = np.arange(len(data.rows))
    return dict(zip(data.rows.tolist(), source.features(rows, rows[:0], SEED).train, strict=True))


def run_case(name, finetune, settings, pooled, texts, labels, new, truth):
    """Accuracy and AUROC before and after training, and what training took."""
    kind = getattr(literature, name)
    start = [at_start(kind, np.stack([pooled[text] for text in part])) for part in (texts, new)]
    if finetune == "head":  # each text is embedded once for all encoders

        def look_up(self, texts, layers=(), *, verbose=0):
            return torch.from_numpy(np.stack([pooled[text] for text in texts]))

        kind = type(name, (kind,), {"_pooled": look_up})
    encoder = kind(finetune=finetune, early_stopping=False, random_state=SEED, device="cpu", **settings)
    began, processor = time.perf_counter(), time.process_time()
    encoder.fit(texts, labels)
    seconds = [round(time.perf_counter() - began, 1), round(time.process_time() - processor, 1)]
    trained = [encoder.transform(part) for part in (texts, new)]
    return {
        "start": judge(*start, labels, truth),
        "trained": judge(*trained, labels, truth),
        "loss": [encoder.loss_curve_[0], encoder.loss_curve_[-1]],
        "epochs": encoder.n_iter_,
        "stop": encoder.stop_reason_,
        "seconds": seconds,
        "texts": len(texts),
        "dev_texts": len(new),
    }


def at_start(kind, pooled):
    """Features of an encoder whose W is the identity."""
    features = ACTIVATIONS[kind._settings.activation]()(torch.from_numpy(pooled)).numpy()
    return features / np.linalg.norm(features, axis=1, keepdims=True) if kind.normalize else features


def judge(features, new, labels, truth):
    """Accuracy of the nearest class mean, and AUROC of the distance to it, in percent."""
    classes = np.unique(labels)
    means = np.stack([features[labels == name].mean(axis=0) for name in classes])
    distances = cdist(new, means)
    known = truth != "open"
    accuracy = (classes[distances.argmin(axis=1)] == truth)[known].mean()
    return [100 * float(accuracy), 100 * float(roc_auc_score(known, -distances.min(axis=1)))]


def pipelines(path):
    """Print the pipelines of a benchmark beside the paper's figures, data set by data set."""
    paper = {(row.data, row.ratio, row.method): row for row in paper_figures()}
    found = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for data, ratio in sorted({(row["data"], row["ratio"]) for row in found}):
        print(f"{NAMES_OF_DATA[data]}, {ratio:.0%} known:\n")
        rows = []
        for row in (row for row in found if (row["data"], row["ratio"]) == (data, ratio)):
            method = row["method"].partition(",")[0]
            published = paper[data, ratio, {"MSP": "Softmax-MSP"}.get(method, method)]
            seconds = row["encode_seconds"] if row["encoder"] != "texts" else row["fit_seconds"]
            auroc = row["auroc"]
            rows.append(
                [
                    method,
                    f"{row['f1']:.2f} / {row['accuracy']:.2f}",
                    "–" if auroc is None else f"{auroc:.1f}",
                    f"{row['encoder_epochs']}" + "*" * (row["encoder_stop"] == "max_iter"),
                    f"{seconds / 60:.0f}",
                    f"{published.f1:.2f} / {published.accuracy:.2f}",
                ]
            )
        table(["Method", "F1 / accuracy", "AUROC", "Epochs", "Minutes", "Paper, BERT"], rows)


def report(found):
    """Print the table."""
    rows = [
        [
            row["encoder"],
            row["finetune"],
            *(f"{before:.1f} to {after:.1f}" for before, after in zip(row["start"], row["trained"], strict=True)),
            "{:.3f} to {:.3f}".format(*row["loss"]),
            f"{row['seconds'][-1]:.0f}",
        ]
        for row in found
    ]
    table(["Encoder", "Trained", "Accuracy", "AUROC", "Loss", "Seconds"], rows)


if __name__ == "__main__":
    main()
