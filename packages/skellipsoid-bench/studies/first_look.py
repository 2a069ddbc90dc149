"""Draw three messages, and what a logistic regression with a threshold and this package do with each, for the README.

Run: python studies/first_look.py ../../docs/images/first_look.png. Both get the same embeddings of the shipped corpus.
The threshold of the regression rejects 5 % of the training texts, each scored by a fold without it.
"""

import sys
import textwrap

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, predict_set
from skellipsoid.datasets import load_assistant_intents

MESSAGES = ["call a cab", "turn it off", "How does a diesel engine differ from a petrol one?"]
GOOD, POOR, ASKS = "#D6F0E4", "#FBDDD3", "#FFF1CC"  # with words beside them: no meaning hangs on the colour


def of_regression(X, y, X_new):
    """Labels of a logistic regression, open below its threshold, and the probabilities."""
    model = LogisticRegression(C=10, max_iter=1000)
    threshold = np.quantile(cross_val_predict(model, X, y, method="predict_proba").max(axis=1), 0.05)
    found = model.fit(X, y).predict_proba(X_new)
    return np.where(found.max(axis=1) < threshold, "-1", model.classes_[found.argmax(axis=1)]), found.max(axis=1)


def words(action, classes):
    """Say what a bot says for one row of ``predict_set``."""
    names = [str(name) for name in classes if name != "-1"]
    said = {"ask": ",\n".join(names) + ",\nor none of these?", "open": "none of them:\na person answers"}
    return names[0] if action == "answer" else said[action]


def draw(path, rows, counts):
    """Draw a row for each message, and one for all test texts, in three columns."""
    figure, ax = plt.subplots(figsize=(7.2, 5.2), layout="constrained")
    ax.set(xlim=(0, 3), ylim=(-1.05, 3.3))
    ax.axis("off")
    columns = (0.42, 1.36, 2.45)
    for x, title in zip(columns, ("Message", "Logistic regression\nand a threshold", "skellipsoid"), strict=True):
        ax.text(x, 3.0, title, ha="center", va="center", fontsize=14, weight="bold")
    for y, (message, *cells) in zip((2.2, 1.3, 0.4), rows, strict=True):
        ax.text(columns[0], y, textwrap.fill(message, 16), ha="center", va="center", fontsize=13)
        for x, (text, colour) in zip(columns[1:], cells, strict=True):
            box = {"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": "0.4"}
            ax.text(x, y, text, ha="center", va="center", fontsize=13, bbox=box)
    ax.axhline(-0.15, color="0.7")
    for x, text in zip(columns, ("All 448 test texts\nof the corpus", *counts), strict=True):
        ax.text(x, -0.6, text, ha="center", va="center", fontsize=13)
    figure.savefig(path, dpi=200)


def main():
    texts, intents = load_assistant_intents(return_X_y=True)
    test, truth = load_assistant_intents(subset="test", return_X_y=True)
    encoder = SupConTextEncoder(finetune="none", random_state=0)
    X = encoder.fit_transform(texts)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, intents)
    X_new, X_test = encoder.transform(MESSAGES), encoder.transform(test)
    labels, sure = of_regression(X, intents, X_new)
    found = predict_set(clf, X_new)
    rows = []
    for i, message in enumerate(MESSAGES):
        its = (f"{labels[i]}\n({100 * sure[i]:.0f} % sure)", GOOD if found.action[i] == "answer" else POOR)
        ours = (words(found.action[i], found.classes[i]), ASKS if found.action[i] == "ask" else GOOD)
        rows.append((message, its, ours))
    is_open = truth == "-1"
    counts = [
        f"{100 * np.mean(said[~is_open] == truth[~is_open]):.0f} of 100 known right,\n"
        f"{100 * np.mean(said[is_open] == '-1'):.0f} of 100 unknown\ndetected"
        for said in (of_regression(X, intents, X_test)[0], clf.predict(X_test))
    ]
    draw(sys.argv[1], rows, counts)


if __name__ == "__main__":
    main()
