"""What word counts give where no text model can run: F1 on the shipped corpus, of letters and words, dense and sparse.

Run ``python studies/word_counts.py``; it prints the table of ``results/word_counts.csv`` in a few minutes on one core.
"""

import csv
import sys
import time

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.baselines import SoftmaxOpenSetClassifier
from skellipsoid.datasets import load_assistant_intents

WAYS = {"words": {}, "letters": {"analyzer": "char_wb", "ngram_range": (2, 4)}}


def methods():
    """Give the compared methods by their names."""
    dense = FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
    for name, options in WAYS.items():
        vectors = TfidfVectorizer(**options)
        for n_directions in (50, 100, 300):
            step = TruncatedSVD(n_directions, random_state=0)
            yield (
                f"tf-idf of {name}, {n_directions} directions",
                make_pipeline(vectors, step, EllipsoidOpenSetClassifier(random_state=0)),
            )
        yield f"tf-idf of {name}, dense", make_pipeline(vectors, dense, EllipsoidOpenSetClassifier(random_state=0))
        logistic = make_pipeline(vectors, LogisticRegression(C=10, max_iter=1000))
        yield (
            f"logistic regression of tf-idf of {name}, threshold='auto'",
            SoftmaxOpenSetClassifier(logistic, threshold="auto"),
        )
    encoder = SupConTextEncoder(finetune="none", random_state=0)
    yield "SupConTextEncoder(finetune='none')", make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0))


def main() -> None:
    """Print F1, the share of known texts that are right, and of open ones that are detected."""
    texts, labels = load_assistant_intents(return_X_y=True)
    test = load_assistant_intents(subset="test")
    known = np.isin(test.target, np.unique(labels))
    truth = np.where(known, test.target, "-1")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["method", "f1", "right", "detected", "seconds"])
    for name, method in methods():
        start = time.perf_counter()
        found = method.fit(texts, labels).predict(test.data)
        right, detected = (found == truth)[known].mean(), (found == "-1")[~known].mean()
        f1 = f1_score(truth, found, average="macro")
        row = [name, *(f"{100 * value:.1f}" for value in (f1, right, detected)), f"{time.perf_counter() - start:.1f}"]
        table.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
