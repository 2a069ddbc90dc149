"""
===========================================
Search beta and alpha with held-out classes
===========================================

A larger ``beta`` makes all boundaries smaller. ``alpha`` sets where the synthetic open samples lie that help to choose
the size. This example searches both with :class:`~sklearn.model_selection.GridSearchCV`. It draws the F1 of every pair,
and the proportions of known and of open samples that are rejected for each ``beta``.
"""

# %%
# Data and search
# ---------------
# The features are those of the frozen embedding model, for the corpus that comes with the package.
# :class:`~skellipsoid.model_selection.OpenSetKFold` removes a third of the classes from the training part of each fold.
# In the test part they are open. Ordinary folds have no open samples, so there a larger boundary never has a lower
# score.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_scorer
from skellipsoid.model_selection import OpenSetKFold

train = load_assistant_intents(subset="train")
X = SupConTextEncoder(finetune="none").fit_transform(train.data)


def rejected(estimator, X, y, *, known):
    """Give the proportion of the known, or of the open, samples that are rejected."""
    rows = np.isin(y, estimator.classes_) == known
    return np.mean(estimator.predict(X[rows]) == estimator.open_label_)


grid = {"beta": [0.0, 0.25, 0.5, 1.0, 2.0], "alpha": [0.2, 0.6, 2.0]}
scoring = {
    "f1": open_set_f1_scorer,
    "known": lambda estimator, X, y: rejected(estimator, X, y, known=True),
    "open": lambda estimator, X, y: rejected(estimator, X, y, known=False),
}
search = GridSearchCV(
    EllipsoidOpenSetClassifier(random_state=0),
    grid,
    cv=OpenSetKFold(3, shuffle=True, random_state=0),
    scoring=scoring,
    refit=False,
).fit(X, train.target)


def table(name):
    """Give a result of the search as (n_alpha, n_beta) percentages."""
    return 100 * search.cv_results_[name].reshape(len(grid["alpha"]), len(grid["beta"]))


# %%
# F1 of every pair
# ----------------
# Each cell is the mean F1 of the three folds ± its standard error. The default (beta 0.5, alpha 0.6) has a frame.
# Differences below the standard error are not significant.

f1, error = table("mean_test_f1"), table("std_test_f1") / np.sqrt(3)
default = grid["alpha"].index(0.6), grid["beta"].index(0.5)
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
image = ax.imshow(f1, cmap="cividis", aspect="auto")
middle = (f1.min() + f1.max()) / 2
for (row, column), value in np.ndenumerate(f1):
    label = f"{value:.1f}\n± {error[row, column]:.1f}"
    ax.text(column, row, label, ha="center", va="center", color="black" if value > middle else "white")
ax.add_patch(plt.Rectangle((default[1] - 0.5, default[0] - 0.5), 1, 1, fill=False, edgecolor="red", linewidth=3))
ax.set(xlabel="beta", ylabel="alpha", title="Macro F1, percent (frame: default)")
ax.set_xticks(range(len(grid["beta"])), grid["beta"])
ax.set_yticks(range(len(grid["alpha"])), grid["alpha"])
fig.colorbar(image, label="macro F1 in percent")
plt.show()

best = np.unravel_index(f1.argmax(), f1.shape)
print(f"default {f1[default]:.1f} ± {error[default]:.1f}, best {f1[best]:.1f} ± {error[best]:.1f}")

# %%
# Rejected known and open samples
# -------------------------------
# A larger ``beta`` makes all boundaries smaller. So more open samples are rejected, and also more known samples. The
# shape of the boundaries does not change.

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(grid["beta"], table("mean_test_open")[default[0]], "o-", color="#0072B2", label="open samples rejected")
ax.plot(grid["beta"], table("mean_test_known")[default[0]], "s--", color="#D55E00", label="known samples rejected")
ax.axvline(0.5, color="#888888", linewidth=1)
ax.annotate("default", (0.5, 2), (4, 0), textcoords="offset points", color="#555555")
ax.set(xlabel="beta (alpha = 0.6)", ylabel="percent of the samples", ylim=(0, 100))
ax.set_title("beta trades one error against the other")
ax.legend(frameon=False)
plt.show()
