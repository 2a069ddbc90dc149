"""
==================================================
A classifier, an outlier detector, and both in one
==================================================

New samples often belong to none of the classes of the training data. This example shows what three kinds of model
answer then, on the same data in two dimensions: a classifier gives every point to a class, an outlier detector
recognises what is new and knows no classes, and an open-set classifier does both.
"""

# %%
# Data
# ----
# Three known classes for training. The crosses are open samples: the models never see them in training.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from skellipsoid import EllipsoidOpenSetClassifier

COLOURS = ["#0072B2", "#E69F00", "#009E73"]  # of Okabe and Ito, which colour-blind readers can tell apart
MARKERS = ["o", "s", "^"]
OPEN = -1

rng = np.random.default_rng(3)
shapes = [[[2.2, 1.4], [0.0, 0.6]], [[0.7, 0.0], [0.5, 1.7]], [[1.8, -0.9], [0.2, 0.6]]]
centres = [[-4.5, 3.0], [4.8, 2.6], [0.5, -4.6]]
X = np.concatenate([rng.normal(size=(80, 2)) @ shape + centre for shape, centre in zip(shapes, centres, strict=True)])
y = np.repeat([0, 1, 2], 80)
open_samples = np.concatenate([rng.normal([0, 1.2], 0.9, (18, 2)), rng.normal([-6.3, -5.6], 0.9, (18, 2))])

# %%
# Three models
# ------------
# Each fits in one line, with the defaults.

classifier = LogisticRegression().fit(X, y)
detector = IsolationForest(random_state=0).fit(X)
open_set = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)

# %%
# Three answers
# -------------
# White is where a model answers *open*, or *outlier*. The classifier has no white at all. The detector has one region
# for everything that it has seen. The open-set classifier has one region for each class.

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
# The share of the open samples that each model recognises, and whether it names the classes of known samples.

is_new = {
    "classifier": np.zeros(len(open_samples), dtype=bool),
    "outlier detector": detector.predict(open_samples) == -1,
    "skellipsoid": open_set.predict(open_samples) == open_set.open_label_,
}
for name, found in is_new.items():
    print(f"{name:17} {found.mean():4.0%} of the open samples recognised")
