"""Strength of the logistic regression of the logit methods, on development samples with hidden classes as open.

python studies/logits.py --data-home ../../../shared/data      # frozen MiniLM, nine cases, minutes after features.py
"""

import argparse

import numpy as np
from features import FETCHERS, RATIOS, embedded, known_classes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from skellipsoid.metrics import open_set_f1_score

STRENGTHS = (1, 3, 10, 30, 100)
#: Quantiles of the scores that are tried as thresholds.
SHARES = np.linspace(0.02, 0.9, 45)


def best_f1(truth, scores, labels, classes):
    """Macro F1 at the best threshold."""
    answers = [np.where(scores < threshold, "open", labels) for threshold in np.quantile(scores, SHARES)]
    return max(open_set_f1_score(truth, given, labels=classes, open_label="open") for given in answers)


def figures(name, ratio, strength, data_home):
    """F1 of softmax at 0.5, best F1 and AUROC of softmax, the same of the largest logit, in per cent."""
    train, dev = (embedded(name, part, data_home) for part in ("train", "dev"))
    known = known_classes(name, ratio, 0, data_home)
    is_known = np.isin(train.target, known)
    X, new = normalize(train.embeddings[is_known]).astype(float), normalize(dev.embeddings).astype(float)
    mean = X.mean(axis=0)
    unit = np.sqrt(np.square(X - mean).sum(axis=1).mean())
    model = LogisticRegression(C=strength, max_iter=1000).fit((X - mean) / unit, train.target[is_known])
    truth = np.where(np.isin(dev.target, known), dev.target, "open")
    logits = model.decision_function((new - mean) / unit)
    probability = model.predict_proba((new - mean) / unit).max(axis=1)
    labels = model.classes_[logits.argmax(axis=1)]
    answers = np.where(probability < 0.5, "open", labels)
    found = [open_set_f1_score(truth, answers, labels=model.classes_, open_label="open")]
    for scores in (probability, (logits - logits.mean(axis=1, keepdims=True)).max(axis=1)):
        found += [best_f1(truth, scores, labels, model.classes_), roc_auc_score(truth != "open", scores)]
    return 100 * np.array(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    options = parser.parse_args()
    print("C     softmax at 0.5, best F1, AUROC; largest logit: best F1, AUROC (means of nine cases)")
    for strength in STRENGTHS:
        cases = [figures(name, ratio, strength, options.data_home) for name in FETCHERS for ratio in RATIOS]
        print(f"{strength:<5}", *(f"{mean:.1f}" for mean in np.mean(cases, axis=0)), flush=True)
