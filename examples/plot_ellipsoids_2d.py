"""
====================
Ellipsoids and balls
====================

Most classes are not spherical. A small ball around an elongated class rejects samples of the class. A large ball
accepts open samples beside the class. An ellipsoid avoids both errors. This example draws balls and ellipsoids in two
dimensions, and compares their results.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# Data
# ----
# :func:`~skellipsoid.datasets.make_open_blobs` draws elongated Gaussian classes and open samples with a large variance.
# Its distribution gives the Bayes rule: no classifier has a higher expected accuracy. Training uses known samples only.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from scipy.stats import multivariate_normal
from sklearn.model_selection import train_test_split

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.datasets import make_open_blobs
from skellipsoid.metrics import open_set_auroc, open_set_f1_score

OPEN, OPEN_SHARE = -1, 0.5


class BayesRule:
    """The most probable label, and the log ratios of the classes' and the open samples' weighted densities."""

    def __init__(self, distribution):
        self.centers, self.covariances = distribution.centers, distribution.covariances
        self.open_covariance = distribution.open_variance * np.eye(2)

    def log_ratios(self, X):
        known = [multivariate_normal(c, s).logpdf(X) for c, s in zip(self.centers, self.covariances, strict=True)]
        open_ = multivariate_normal([0, 0], self.open_covariance).logpdf(X) + np.log(OPEN_SHARE)
        return np.stack(known, axis=-1) + np.log((1 - OPEN_SHARE) / len(self.centers)) - open_[..., np.newaxis]

    def predict(self, X):
        ratios = self.log_ratios(X)
        return np.where(ratios.max(axis=1) >= 0, ratios.argmax(axis=1), OPEN)

    def score_samples(self, X):
        return np.logaddexp.reduce(self.log_ratios(X), axis=1)


def draw_data(seed):
    X, y, distribution = make_open_blobs(
        4000,
        n_known=4,
        open_share=OPEN_SHARE,
        class_sep=8,
        anisotropy=6,
        open_scale=1.2,
        random_state=seed,
        return_distribution=True,
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.75, stratify=y, random_state=0)
    known = y_train != OPEN
    return X_train[known], y_train[known], X_test, y_test, BayesRule(distribution)


X_train, y_train, X_test, y_test, rule = draw_data(seed=1)
print(f"{len(X_train)} training samples of {len(np.unique(y_train))} known classes")
print(f"{len(X_test)} test samples, {np.sum(y_test == OPEN)} of them open")

# %%
# Ellipsoids
# ----------
# All parameters have their defaults. The shapes follow from covariances, and held-out samples choose the size.

clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, y_train)
for label in clf.classes_:
    lengths = clf.ellipsoid_axes(label)[1]
    print(f"class {label}: semi-axes {lengths[0]:.1f} and {lengths[1]:.1f}")

# %%
# Balls
# -----
# There are two kinds of balls. Their centres are the class means, and the assignment to classes is the same as for the
# ellipsoids.
#
# - *Mean radius*: the radius is the mean distance of the samples to the class mean. This is the initialisation of the
#   paper.
# - *Equal coverage*: the ball covers the same proportion of the training samples of its class as the ellipsoid does. So
#   only the shape is different.


class Balls:
    """Balls around the centroids of a fitted classifier."""

    def __init__(self, clf, radii):
        self.clf, self.radii_ = clf, np.asarray(radii)

    def score_samples(self, X):
        k = np.searchsorted(self.clf.classes_, self.clf.predict_known(X))
        return 1 - np.linalg.norm(X - self.clf.centroids_[k], axis=1) / self.radii_[k]

    def predict(self, X):
        return np.where(self.score_samples(X) < 0, OPEN, self.clf.predict_known(X))


def make_balls(clf, X, y):
    """Balls of mean radius, and balls that cover as much as the ellipsoids."""
    mean_radii, equal_radii = [], []
    for k, label in enumerate(clf.classes_):
        distances = np.linalg.norm(X[y == label] - clf.centroids_[k], axis=1)
        covered = np.mean(clf.class_margins(X[y == label])[:, k] >= 0)
        mean_radii.append(distances.mean())
        equal_radii.append(np.quantile(distances, covered))
    return Balls(clf, mean_radii), Balls(clf, equal_radii)


mean_balls, equal_balls = make_balls(clf, X_train, y_train)

# %%
# The regions
# -----------
# White is open. In coloured regions samples are accepted. Where two shapes overlap, the likeliest class is
# taken (Mahalanobis distance with the covariance within classes). The panels show 400 test samples: known samples in
# colour, open samples as crosses.

# Okabe and Ito: safe for colour-blind readers. Every class also has its own marker.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]
MARKERS = ["o", "s", "^", "D"]
FRAME = 14.0


def shade_regions(ax, model):
    ticks = np.linspace(-FRAME, FRAME, 400)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    answers = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    colours = ListedColormap(["#FFFFFF", *COLOURS])
    ax.pcolormesh(ticks, ticks, answers, cmap=colours, vmin=-1, vmax=3, alpha=0.35, rasterized=True)


def draw_samples(ax, X, y, n_samples=400):
    X, y = X[:n_samples], y[:n_samples]
    ax.scatter(*X[y == OPEN].T, marker="x", s=14, linewidths=0.9, color="#444444")
    for label, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        ax.scatter(*X[y == label].T, marker=marker, s=14, color=colour, edgecolors="white", linewidths=0.3)


ticks = np.linspace(-FRAME, FRAME, 400)
best = rule.log_ratios(np.stack(np.meshgrid(ticks, ticks), axis=-1))  # 0 on the outline of a class
circle = np.stack([np.cos(t := np.linspace(0, 2 * np.pi, 200)), np.sin(t)], axis=1)
models = {"Balls of mean radius": mean_balls, "Balls of equal coverage": equal_balls, "Ellipsoids": clf}

fig, axes = plt.subplots(2, 2, figsize=(7, 8), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=False):
    shade_regions(ax, model)
    draw_samples(ax, X_test, y_test)
    for k, label in enumerate(clf.classes_):
        if isinstance(model, Balls):
            outline = clf.centroids_[k] + model.radii_[k] * circle
        else:
            directions, lengths = clf.ellipsoid_axes(label)
            outline = clf.centers_[k] + circle * lengths @ directions
            ax.contour(ticks, ticks, best[..., label], levels=[0], colors="black", linestyles="--", linewidths=1.2)
        ax.plot(*np.vstack([outline, outline[:1]]).T, color=COLOURS[k], linewidth=2)
    predicted = model.predict(X_test)
    accepted = np.mean(predicted[y_test != OPEN] != OPEN)
    rejected = np.mean(predicted[y_test == OPEN] == OPEN)
    ax.set_title(f"{name}\n{accepted:.0%} of known accepted\n{rejected:.0%} of open rejected", fontsize=16)
    ax.set(xticks=[], yticks=[], xlim=(-FRAME, FRAME), ylim=(-FRAME, FRAME), aspect="equal")
handles = [
    *(
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=f"known class {label}")
        for label, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True))
    ),
    Line2D([], [], color="#444444", marker="x", linestyle="none", label="open sample"),
    Line2D([], [], color="black", linestyle="--", label="Bayes rule"),
]
axes[1, 1].axis("off")
axes[1, 1].legend(handles=handles, loc="center", fontsize=17, frameon=False)
plt.show()

# %%
# Balls of mean radius are too small: they reject many known samples. Balls of equal coverage are too large: they accept
# many open samples beside the classes. The ellipsoids are narrow like the classes. They are close to the Bayes rule,
# although training had no open samples.
#
# In numbers
# ----------
# These are means over five draws of the data. *F1* is the macro F1 over the four classes and open. *AUROC* measures how
# well the score ranks known above open samples. A common factor on all radii does not change the AUROC.


def measure(predicted, score, y):
    return (
        open_set_f1_score(y, predicted),
        np.mean(predicted[y != OPEN] != OPEN),
        np.mean(predicted[y == OPEN] == OPEN),
        open_set_auroc(y, score),
    )


results = {name: [] for name in [*models, "Bayes rule"]}
for seed in range(5):
    X_train, y_train, X_test, y_test, rule = draw_data(seed)
    fitted = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, y_train)
    for name, model in zip(models, (*make_balls(fitted, X_train, y_train), fitted), strict=True):
        results[name].append(measure(model.predict(X_test), model.score_samples(X_test), y_test))
    results["Bayes rule"].append(measure(rule.predict(X_test), rule.score_samples(X_test), y_test))

print(f"{'':24} {'F1':>6} {'accepted':>9} {'rejected':>9} {'AUROC':>6}")
for name, values in results.items():
    f1, accepted, rejected, auroc = np.mean(values, axis=0)
    print(f"{name:24} {f1:6.3f} {accepted:9.1%} {rejected:9.1%} {auroc:6.3f}")

# %%
# Margins
# -------
# ``score_samples`` is the margin of the class that a sample is assigned to: 1 at the centre, 0 on the boundary,
# negative outside. It has no unit. In each class the contours are ellipses of one shape. The arrows are the semi-axes
# from ``ellipsoid_axes``.

grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
margins = clf.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])

plt.rcParams.update({"font.size": 15})
fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
levels = np.linspace(-4, 1, 11)
filled = ax.contourf(ticks, ticks, margins, levels=levels, cmap="cividis", extend="min")
ax.contour(ticks, ticks, margins, levels=[0], colors="white", linewidths=2.5)
for k, label in enumerate(clf.classes_):
    directions, lengths = clf.ellipsoid_axes(label)
    for axis in directions * lengths[:, np.newaxis]:
        ax.quiver(*clf.centers_[k], *axis, angles="xy", scale_units="xy", scale=1, width=0.006)
bar = fig.colorbar(filled, ax=ax, label="margin of the assigned class", ticks=np.arange(-4, 2))
bar.ax.axhline(0, color="white", linewidth=2.5)
ax.set(title="Margins; the white line is the boundary", xlabel="feature 1", ylabel="feature 2", aspect="equal")
ax.set(xlim=(-FRAME, FRAME), ylim=(-FRAME, FRAME))
plt.show()
