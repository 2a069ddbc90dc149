"""
============================================================
A classifier, an outlier detector and an open-set classifier
============================================================

New samples often belong to none of the classes of the training data. This example compares three kinds of model on the
same data with two features. A classifier assigns every sample to a class. An outlier detector (novelty detection) finds
new samples, but has no classes. An open-set classifier does both.
"""

# %%
# Data
# ----
# There are three known classes. The open samples belong to none of them. They are not used in training.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from skellipsoid import EllipsoidOpenSetClassifier

COLOURS = ["#0072B2", "#E69F00", "#009E73"]  # Okabe and Ito: safe for colour-blind readers
MARKERS = ["o", "s", "^"]
OPEN = -1

rng = np.random.default_rng(3)
shapes = [[[2.2, 1.4], [0.0, 0.6]], [[0.7, 0.0], [0.5, 1.7]], [[1.8, -0.9], [0.2, 0.6]]]
centres = [[-4.5, 3.0], [4.8, 2.6], [0.5, -4.6]]
X = np.concatenate([rng.normal(size=(80, 2)) @ shape + centre for shape, centre in zip(shapes, centres, strict=True)])
y = np.repeat([0, 1, 2], 80)
open_samples = np.concatenate([rng.normal([0, 1.2], 0.9, (18, 2)), rng.normal([-6.3, -5.6], 0.9, (18, 2))])
X_new = np.concatenate(
    [rng.normal(size=(80, 2)) @ shape + centre for shape, centre in zip(shapes, centres, strict=True)]
)

# %%
# Three models
# ------------
# Each model is fitted in one line, with its defaults.

classifier = LogisticRegression().fit(X, y)
detector = IsolationForest(random_state=0).fit(X)
open_set = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)

# %%
# Three answers
# -------------
# In white regions a model answers *open* or *outlier*. Crosses are open samples. The classifier has no white region.
# The detector has one grey region for all training data. The open-set classifier has one region for each class.

FRAME = 10.0
ticks = np.linspace(-FRAME, FRAME, 500)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
panels = {
    "classifier": np.asarray(classifier.predict(grid)),
    "outlier detector": np.where(detector.predict(grid) == 1, 3, OPEN),
    "skellipsoid": open_set.predict(grid),
}

fig, axes = plt.subplots(1, 3, figsize=(12, 4.5), layout="constrained")
for ax, (title, answers) in zip(axes, panels.items(), strict=True):
    image = answers.reshape(len(ticks), len(ticks))
    colours = ListedColormap(["#FFFFFF", *COLOURS, "#777777"])
    ax.pcolormesh(ticks, ticks, image, cmap=colours, vmin=-1, vmax=3, alpha=0.35, rasterized=True)
    for k, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        shown = "#555555" if title == "outlier detector" else colour
        ax.plot(*X[y == k].T, marker, markersize=4, color=shown, markeredgecolor="white", markeredgewidth=0.4)
    ax.plot(*open_samples.T, "x", markersize=7, markeredgewidth=1.8, color="black")
    ax.set(xlim=(-FRAME, FRAME), ylim=(-FRAME, FRAME), xticks=[], yticks=[], aspect="equal")
    ax.set_title(title, fontsize=22)
plt.show()

# %%
# In numbers
# ----------
# The table shows the share of the open samples that are rejected, the share of the new known samples that are accepted,
# and the share of the new known samples that get the right class. The detector has no classes.

rejected = {
    "classifier": np.zeros(len(open_samples), dtype=bool),
    "outlier detector": detector.predict(open_samples) == -1,
    "skellipsoid": open_set.predict(open_samples) == open_set.open_label_,
}
accepted = {
    "classifier": np.ones(len(X_new), dtype=bool),
    "outlier detector": detector.predict(X_new) == 1,
    "skellipsoid": open_set.predict(X_new) != open_set.open_label_,
}
right = {
    "classifier": f"{np.mean(classifier.predict(X_new) == y):.0%}",
    "outlier detector": "-",
    "skellipsoid": f"{np.mean(open_set.predict(X_new) == y):.0%}",
}
print(f"{'':17} {'open rejected':>14} {'known accepted':>15} {'known, right class':>19}")
for name in panels:
    print(f"{name:17} {rejected[name].mean():14.0%} {accepted[name].mean():15.0%} {right[name]:>19}")
