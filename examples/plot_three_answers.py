"""
=====================================
Why not a classifier and a threshold?
=====================================

New samples often belong to none of the classes of the training data. A softmax is sure of everything that is far from
all classes: a threshold of its probability rejects what lies *between* the classes, and accepts the rest. An open-set
classifier draws a boundary around each class.
"""

# %%
# Data
# ----
# There are three known classes. The open samples belong to none of them: half lie between the classes, half far from
# all. They are not used in training.

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
# The threshold of the logistic regression rejects 5 % of the training samples. The outlier detector is in the table
# below: it finds new samples, but has no classes.

classifier = LogisticRegression().fit(X, y)
threshold = np.quantile(classifier.predict_proba(X).max(axis=1), 0.05)
detector = IsolationForest(random_state=0).fit(X)
open_set = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
print(f"The threshold is a probability of {threshold:.3f}.")


def with_threshold(samples):
    """Predict the class where its probability reaches the threshold, else *open*."""
    return np.where(classifier.predict_proba(samples).max(axis=1) < threshold, OPEN, classifier.predict(samples))


# %%
# Three predictions
# -----------------
# In white regions a model predicts *open*. Crosses are open samples. The classifier has no white region. The threshold
# makes strips between the classes white. The open-set classifier has one region around each class.

FRAME = 10.0
ticks = np.linspace(-FRAME, FRAME, 500)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
panels = {"classifier": classifier.predict, "with a threshold": with_threshold, "skellipsoid": open_set.predict}

fig, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for ax, (title, predict) in zip(axes, panels.items(), strict=True):
    image = predict(grid).reshape(len(ticks), len(ticks))
    colours = ListedColormap(["#FFFFFF", *COLOURS])
    ax.pcolormesh(ticks, ticks, image, cmap=colours, vmin=-1, vmax=2, alpha=0.35, rasterized=True)
    for k, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        ax.plot(*X[y == k].T, marker, markersize=4, color=colour, markeredgecolor="white", markeredgewidth=0.4)
    ax.plot(*open_samples.T, "x", markersize=7, markeredgewidth=1.8, color="black")
    ax.set(xlim=(-FRAME, FRAME), ylim=(-FRAME, FRAME), xticks=[], yticks=[], aspect="equal")
    ax.set_title(title, fontsize=22)
fig.get_layout_engine().set(wspace=0.03)
plt.show()

# %%
# In numbers
# ----------
# Of 100 open samples between the classes and of 100 far from them, how many are rejected? Of 100 new known samples, how
# many get the right class? The detector has no classes.

is_between = np.arange(len(open_samples)) < 18
print(f"{'':17} {'between':>8} {'far':>4} {'known, right class':>19}")
for name, predict in {**panels, "outlier detector": detector.predict}.items():
    rejected = predict(open_samples) == OPEN
    right = "-" if name == "outlier detector" else f"{np.mean(predict(X_new) == y):.0%}"
    print(f"{name:17} {rejected[is_between].mean():8.0%} {rejected[~is_between].mean():4.0%} {right:>19}")
