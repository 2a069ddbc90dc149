"""
========================================================================
Why boundaries of training rows are too small, and what makes them right
========================================================================

A boundary that is as large as its training rows ask for rejects many new rows of its class. This example shows how far
out training rows lie, how far out new ones do, and how the classifier finds a size without seeing any open row.
"""

# %%
# Data
# ----
# The corpus that ships with the package, as features of the frozen text model: nothing was tuned on these texts. The
# test part has new texts of the 28 known intents, and open ones.

import matplotlib.pyplot as plt
import numpy as np

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score

train, test = load_assistant_intents(subset="train"), load_assistant_intents(subset="test")
encoder = SupConTextEncoder(finetune="none").fit(train.data)
X_train, X_test = encoder.transform(train.data), encoder.transform(test.data)
is_open = test.target == "-1"

# %%
# How far out rows lie
# --------------------
# The distance of a row to the centre of its ellipsoid, as a multiple of the radius, is 1 minus its score. Training rows
# seem to lie near the centre: each of them has drawn the centroid and the shape towards itself. ``held_out_scores_``
# are the scores of the same rows, each by its class *without* it. The curve of those is the curve of new rows.

clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, train.target)
reaches = {
    "training rows": 1 - clf.score_samples(X_train),
    "training rows, each by its class without it": 1 - clf.held_out_scores_,
    "new known rows": 1 - clf.score_samples(X_test[~is_open]),
    "open rows": 1 - clf.score_samples(X_test[is_open]),
}

fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
styles = {"color": ["#0072B2", "#E69F00", "#009E73", "#000000"], "linestyle": [":", "--", "-", "-."]}
for (name, values), colour, style in zip(reaches.items(), styles["color"], styles["linestyle"], strict=True):
    ax.ecdf(values, color=colour, linestyle=style, linewidth=2, label=name)
    print(f"{name:45} {np.mean(values <= 1):4.0%} inside")
ax.axvline(1, color="#888888", linewidth=1)
ax.set(xlim=(0.5, 1.3), xlabel="distance to the centre, in radii", ylabel="share of rows within it")
ax.set_title("Training rows lie nearer than new ones")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
plt.show()

# %%
# Which size
# ----------
# Multiplying all radii by s is setting the offset to 1 - s. The paper's size is the mean distance of the training rows:
# about half of the new rows of each class lie farther out. The rule takes the left-out rows as known. Two kinds of rows
# stand in for open ones: the same rows for the nearest other class, their own left aside, and rows of imaginary classes
# between two known ones. The sizes at which it expects a good F1 are those at which the F1 on the test rows is good.

sizes = np.linspace(0.7, 1.3, 121)
scores, nearest = clf.score_samples(X_test), clf.predict_known(X_test)


def f1_at(size):
    return open_set_f1_score(test.target, np.where(scores >= 1 - size, nearest, "-1"), zero_division=0)


paper = EllipsoidOpenSetClassifier(recalibrate=False, random_state=0).fit(X_train, train.target)
mean_distance = paper.radii_[0] / clf.radii_[0]
f1 = np.array([f1_at(size) for size in sizes])
fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
ax.plot(sizes, f1, color="#0072B2", linewidth=2)
for size, name, marker in (
    (mean_distance, "mean distance of the rows", "s"),
    (1.0, "the rule's size", "o"),
    (sizes[f1.argmax()], "the best on the test rows", "^"),
):
    label = f"{name}: F1 {f1_at(size):.3f}"
    look = {"markersize": 10, "linestyle": "none", "color": "black", "fillstyle": "none"}
    ax.plot(size, f1_at(size), marker=marker, label=label, **look)
    print(f"{name:28} size {size:.2f}: F1 {f1_at(size):.3f}")
ax.set(xlabel="size: factor on all radii", ylabel="macro F1 over known classes and open")
ax.set_title("F1 on the test rows by size")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=1, frameon=False)
plt.show()

# %%
# What it costs
# -------------
# Leaving a row out changes the covariance of its class by a rank-one term, so that all rows are judged by one
# decomposition of each class. Nothing is fitted again.
