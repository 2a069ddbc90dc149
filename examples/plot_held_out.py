"""
========================================
How the size is chosen, step by step
========================================

A boundary must be tested with samples that it has not seen. There are no open samples to test it with, and no known
samples to spare. So the classifier makes its own tests from the training samples. This example draws them in two
dimensions.
"""

# %%
# Data
# ----
# There are five known classes with 15 samples each. The classes are elongated.

import matplotlib.pyplot as plt
import numpy as np

from skellipsoid import EllipsoidOpenSetClassifier

# Okabe and Ito: safe for colour-blind readers. Every class also has its own marker.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]
MARKERS = ["o", "s", "^", "D", "v"]
CIRCLE = np.stack([np.cos(t := np.linspace(0, 2 * np.pi, 200)), np.sin(t)], axis=1)
plt.rcParams.update({"font.size": 17, "axes.titlesize": 19})

rng = np.random.default_rng(4)
means = np.array([[-5.0, 2.5], [4.5, 5.0], [5.0, -3.0], [-4.0, -5.5], [0.0, 0.0]])
stretch = np.array([[1.5, 0.5], [0.0, 0.6]])
X = np.concatenate([mean + rng.normal(size=(15, 2)) @ stretch for mean in means])
y = np.repeat(np.arange(5), 15)
clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)


def outline(clf, label):
    k = list(clf.classes_).index(label)
    directions, lengths = clf.ellipsoid_axes(label)
    return clf.centers_[k] + CIRCLE * lengths @ directions


def draw(title, faint=()):
    _, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
    for k, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        opacity = 0.25 if k in faint else 1
        ax.plot(*X[y == k].T, marker, markersize=8, color=colour, markeredgecolor="white", alpha=opacity)
    ax.set(xlim=(-10, 10), ylim=(-9, 8.5), xticks=[], yticks=[], aspect="equal", title=title)
    return ax


# %%
# Step 1: hold one sample out
# ---------------------------
# The boundary is computed without the sample. The dashed line is the boundary with it. A sample draws the boundary
# towards itself, so a boundary that has seen the sample says little about new samples. The test is repeated for every
# training sample. Each of them **should be accepted**.

of_class = np.flatnonzero(y == 4)
left_out = of_class[np.argmin(clf.score_samples(X[of_class]))]  # the outermost sample
rest = np.arange(len(X)) != left_out
without = EllipsoidOpenSetClassifier(random_state=0).fit(X[rest], y[rest])

ax = draw("1. One sample is held out", faint=(0, 1, 2, 3))
ax.plot(*outline(clf, 4).T, "--", linewidth=2, color="black", label="with the sample")
ax.plot(*outline(without, 4).T, linewidth=3, color=COLOURS[4], label="without it")
ax.plot(*X[left_out], "o", markersize=20, markerfacecolor="none", markeredgecolor="black", markeredgewidth=2.5)
ax.legend(loc="lower right")
plt.show()

# %%
# Nothing is fitted again for this. Without one sample, the means and the covariances change in a known way. So the new
# distance follows from the old fit.
#
# Step 2: hold one class out
# --------------------------
# Without its class, a sample belongs to no class that the classifier knows. Each of these samples is compared with the
# nearest other class and **should be rejected**.

rest = y != 4
without = EllipsoidOpenSetClassifier(random_state=0).fit(X[rest], y[rest])

ax = draw("2. One class is held out", faint=(4,))
for label in without.classes_:
    ax.plot(*outline(without, label).T, linewidth=3, color=COLOURS[label])
ax.plot(*X[y == 4].T, "x", markersize=9, markeredgewidth=2.5, color="black")
plt.show()

# %%
# Step 3: make a synthetic class
# ------------------------------
# An unknown class may lie between two known classes. So a mean is drawn between two class means, nearer to one of
# them. The samples of the synthetic class lie about it as those of the nearer class lie about theirs. Each of these
# samples **should be rejected**, too.


def make_up_class(k, other, weight):
    return X[y == k] + (1 - weight) * (clf.centroids_[other] - clf.centroids_[k])


made_up = make_up_class(0, 3, weight=0.55)
ax = draw("3. A synthetic class is made")
ax.plot(*clf.centroids_[[0, 3]].T, ":", linewidth=2.5, color="black")
ax.plot(*made_up.T, "x", markersize=9, markeredgewidth=2.5, color="black")
for label in clf.classes_:
    ax.plot(*outline(clf, label).T, linewidth=3, color=COLOURS[label])
plt.show()

# %%
# Step 4: try many sizes
# ----------------------
# All ellipsoids are scaled by one factor. A large factor accepts more known samples, and rejects fewer samples of
# held-out and synthetic classes. Every factor gets a grade, the *expected F1*: the mean F1 over what may come, known
# samples a little farther out and different proportions of open ones. The factors with a good grade are averaged. Here
# this result is the size 1.

weights = rng.dirichlet([clf.alpha] * 2, size=200).max(axis=1)
pairs = [rng.choice(5, 2, replace=False) for _ in weights]
made_up = np.concatenate([make_up_class(*pair, weight) for pair, weight in zip(pairs, weights, strict=True)])
left_out_class = [
    EllipsoidOpenSetClassifier(random_state=0).fit(X[y != k], y[y != k]).score_samples(X[y == k]) for k in range(5)
]
# 1 minus the score is the distance to the centre in units of the radius: the size that just reaches the sample.
known, opened, synthetic = 1 - clf.held_out_scores_, 1 - np.concatenate(left_out_class), 1 - clf.score_samples(made_up)
sizes = np.linspace(0.2, 3, 200)

fig, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
shares = {
    "held-out samples accepted": (known[:, np.newaxis] <= sizes, "#0072B2", "-"),
    "held-out classes rejected": (opened[:, np.newaxis] > sizes, "#D55E00", "--"),
    "synthetic classes rejected": (synthetic[:, np.newaxis] > sizes, "#222222", ":"),
}
for name, (share, colour, style) in shares.items():
    ax.plot(sizes, 100 * share.mean(axis=0), style, linewidth=3, color=colour, label=name)
ax.axvline(1, linewidth=6, color="#999999", alpha=0.5, zorder=0)
ax.set(title="4. Every size is tested", xlabel="size (1 is chosen)", ylabel="percent of the samples", ylim=(0, 103))
fig.legend(loc="outside lower center")
plt.show()
