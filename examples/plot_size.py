"""
===================================================
How held-out samples set the size of the boundaries
===================================================

A boundary that fits its training samples rejects many new samples of its class. This example compares the distances of
training samples and of new samples. Then it shows how the classifier chooses the size without open samples.
"""

# %%
# Data
# ----
# The features are those of the frozen embedding model, for the corpus that comes with the package. The embedding model
# was not trained on these texts. The test part has new texts of the 28 known intents, and open texts.

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
# Distances to the centre
# -----------------------
# The distance of a sample to the centre of its ellipsoid, divided by the radius, is 1 minus its score. Training samples
# lie near the centre, because the class mean and the shape were computed from them. ``held_out_scores_`` are the scores
# of the same samples when each is held out: the boundary is computed without it. The curve of held-out samples is
# nearly the curve of new known samples.

clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, train.target)
distances = {
    "training samples": 1 - clf.score_samples(X_train),
    "training samples, held out": 1 - clf.held_out_scores_,
    "new known samples": 1 - clf.score_samples(X_test[~is_open]),
    "open samples": 1 - clf.score_samples(X_test[is_open]),
}

fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
styles = {"color": ["#0072B2", "#E69F00", "#009E73", "#000000"], "linestyle": [":", "--", "-", "-."]}
for (name, values), colour, style in zip(distances.items(), styles["color"], styles["linestyle"], strict=True):
    ax.ecdf(values, color=colour, linestyle=style, linewidth=2, label=name)
    print(f"{name:27} {np.mean(values <= 1):4.0%} inside the boundary")
ax.axvline(1, color="#888888", linewidth=1)
ax.annotate("boundary", (1, 0.02), (4, 0), textcoords="offset points", color="#555555")
ax.set(xlim=(0, 1.05 * distances["open samples"].max()), xlabel="distance to the centre, in radii")
ax.set(ylim=(0, 1), ylabel="proportion of samples within this distance")
ax.set_title("Training samples lie nearer than new ones")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
plt.show()

# %%
# The radius scale
# ----------------
# All radii are multiplied by one radius scale s. For a fitted classifier, this is the same as an offset of 1 - s. With
# the mean distance of the held-out samples as radius, about half of the new samples of a class lie farther out. So the
# classifier chooses the radius scale by the expected F1 on the traffic to come. Held-out samples say where known
# samples lie, samples of held-out classes and of synthetic classes between two known ones where open samples do. The
# figure shows the F1 on the test samples.

scales = np.linspace(0.5, 1.5, 201)
scores, nearest = clf.score_samples(X_test), clf.predict_known(X_test)


def f1_at(scale):
    return open_set_f1_score(test.target, np.where(scores >= 1 - scale, nearest, "-1"), zero_division=0)


# A score is 1 - distance / radius, so this is the mean distance of the held-out samples in units of the radius.
mean_distance = 1 - clf.held_out_scores_.mean()
f1 = np.array([f1_at(scale) for scale in scales])
fig, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
ax.plot(scales, f1, color="#0072B2", linewidth=2)
for scale, name, marker in (
    (mean_distance, "mean distance", "s"),
    (1.0, "chosen radius scale", "o"),
    (scales[f1.argmax()], "best on the test samples", "^"),
):
    label = f"{name}: F1 {f1_at(scale):.3f}"
    look = {"markersize": 10, "linestyle": "none", "color": "black", "fillstyle": "none"}
    ax.plot(scale, f1_at(scale), marker=marker, label=label, **look)
    print(f"{name:25} radius scale {scale:.2f}: F1 {f1_at(scale):.3f}")
ax.set(xlim=(0.5, 1.5), xlabel="radius scale (1: chosen)", ylim=(0, 1), ylabel="macro F1 over known classes and open")
ax.set_title("F1 on the test samples by radius scale")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=1, frameon=False)
plt.show()

# %%
# Cost
# ----
# Without a sample, the covariance of its class changes by a matrix of rank one. So one decomposition of each class
# gives the distances of all held-out samples. Nothing is fitted again.
