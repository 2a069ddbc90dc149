"""Projections that were fitted to the training samples, before the classifier.

Classes of the corpus of the package, all-MiniLM-L6-v2; tested on all its other texts of these classes and on its
open ones.

    python studies/projections.py > results/projections.rst
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, TunedOperatingPointCV
from skellipsoid._samples.projections import projection_left_out
from skellipsoid.datasets import load_assistant_intents

SIZES = (28, 24), (12, 24), (8, 24), (28, 8)
TRANSFORMERS = {
    "none": None,
    "PCA(0.95)": PCA(0.95),
    "PCA(64)": PCA(64, random_state=0),
    "TruncatedSVD(64)": TruncatedSVD(64, random_state=0),
    "KernelPCA(64)": KernelPCA(64, kernel="rbf"),
    "FactorAnalysis(32)": FactorAnalysis(32),
    "PCA(64, whiten)": PCA(64, whiten=True, random_state=0),
    "FastICA(32)": FastICA(32, random_state=0),
    "LDA": LinearDiscriminantAnalysis(),
    "LDA, shrunk": LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    "StandardScaler": StandardScaler(),
    "QuantileTransformer": QuantileTransformer(n_quantiles=100),
}


def measure(X, y, new, truth, transformer):
    """F1 as fitted, with shapes alone left out, and tuned around the Pipeline, and the best; recall of open of each."""
    classifier = EllipsoidOpenSetClassifier(random_state=0)
    before, after = X, new
    if transformer is not None:
        transformer = clone(transformer).fit(X, y)
        before, after = transformer.transform(X), transformer.transform(new)
        classifier_of_all = make_pipeline(clone(transformer), classifier)
    fitted = clone(classifier).fit(before, y)
    scores, nearest = fitted.score_samples(after), fitted.predict_known(after).astype(str)

    def at(limit):
        answers = np.where(scores < limit, "-1", nearest)
        return 100 * f1_score(truth, answers, average="macro"), (answers[truth == "-1"] == "-1").mean()

    with projection_left_out():
        shapes_alone = clone(classifier).fit(before, y)
    answers = shapes_alone.predict(after)
    alone = 100 * f1_score(truth, answers, average="macro"), (answers[truth == "-1"] == "-1").mean()
    tuned = TunedOperatingPointCV(classifier if transformer is None else classifier_of_all).fit(X, y).predict(new)
    around = 100 * f1_score(truth, tuned, average="macro"), (tuned[truth == "-1"] == "-1").mean()
    best = max(at(limit)[0] for limit in np.quantile(scores, np.linspace(0, 0.98, 99)))
    return [*(f"{f1:.1f} {noticed:.2f}" for f1, noticed in (alone, at(0), around)), f"{best:.1f}"]


def main():
    """Print a table for each number of classes and texts."""
    warnings.simplefilter("ignore")  # few samples, whitening
    print("Projections", "===========", "", __doc__.split("\n\n")[1], "", sep="\n")
    print("F1 in percent and recall of open: with samples and classes left out of the shapes alone, as the fit is, and")
    print("with the threshold of TunedOperatingPointCV around the Pipeline; F1 with the best threshold.")
    corpus = load_assistant_intents(subset="all")
    split, labels = np.asarray(corpus.split), np.asarray(corpus.target)
    encoder = SupConTextEncoder(finetune="none").fit(*load_assistant_intents(return_X_y=True))
    features = encoder.transform(list(corpus.data))
    for n_classes, per_class in SIZES:
        drawn = np.random.RandomState(0).permutation(sorted(set(labels[split == "train"]) - {"-1"}))[:n_classes]
        rows = np.concatenate([np.flatnonzero((labels == k) & (split == "train"))[:per_class] for k in drawn])
        test = (split != "train") & (np.isin(labels, drawn) | (labels == "-1"))
        print(f"\n{n_classes} classes of {per_class} texts, {np.mean(labels[test] == '-1'):.0%} open::\n")
        print(f"    {'':22}{'shapes alone':>16}{'as fitted':>16}{'tuned around':>16}{'best':>8}")
        for name, transformer in TRANSFORMERS.items():
            alone, fitted, around, best = measure(
                features[rows], labels[rows], features[test], labels[test], transformer
            )
            print(f"    {name:22}{alone:>16}{fitted:>16}{around:>16}{best:>8}", flush=True)


if __name__ == "__main__":
    main()
