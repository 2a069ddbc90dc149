"""
========
Displays
========

Each display of :mod:`skellipsoid.plotting` answers one question. These take a fitted classifier, pipeline or search,
and test data with open samples.
"""

# %%
# Model
# -----
# The digits 0 to 5 are known, 6 to 9 are open.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.plotting import (
    EllipsoidDisplay,
    OpenSetConfusionMatrixDisplay,
    ScoreHistogramDisplay,
    TradeOffDisplay,
)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
X_train, y_train = X_train[y_train <= 5], y_train[y_train <= 5]
clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, y_train)

# %%
# Do known and open samples overlap?
# ----------------------------------
# The line is the threshold. Samples to the left of it are predicted *open*. Known samples to the left are rejected
# by mistake. Open samples to the right are accepted by mistake.

ScoreHistogramDisplay.from_estimator(clf, X_test, y_test)
plt.suptitle("Scores of known and of open samples")
plt.show()

# %%
# Which classes accept open samples?
# ----------------------------------
# The last line has the open samples. Those outside the last column were accepted by mistake. The last column has all
# rejected samples.

OpenSetConfusionMatrixDisplay.from_estimator(clf, X_test, y_test)
plt.suptitle("Who is taken for whom")
plt.show()

# %%
# What is the F1 at other thresholds?
# -----------------------------------
# A larger offset rejects more samples. The dashed line is the fitted threshold, the offset 0.

TradeOffDisplay.from_estimator(clf, X_test, y_test, kind="f1", x="offset")
plt.suptitle("F1 at other thresholds")
plt.show()

# %%
# What does another threshold cost?
# ---------------------------------
# This picture needs no test data. Training samples that were left out of the fit stand in for known samples, and
# training samples whose whole class was left out stand in for open samples. If at most 2 % of the known samples may be
# rejected, more than a quarter of the open samples are accepted.

TradeOffDisplay.from_estimator(clf)
plt.suptitle("What another threshold costs")
plt.show()

# %%
# Which of two models ranks better?
# ---------------------------------
# The OSCR curve shows the proportion of known samples that are accepted *and* get the right class, against the
# proportion of open samples that are accepted. A higher curve is better. The second model is an outlier detector,
# followed by a logistic regression for the class.

display = TradeOffDisplay.from_estimator(clf, X_test, y_test, kind="oscr", name="ellipsoids")
detector = LocalOutlierFactor(novelty=True).fit(X_train)
closed = LogisticRegression(max_iter=2000).fit(X_train / 16, y_train)
TradeOffDisplay.from_predictions(
    y_test,
    closed.predict(X_test / 16),
    detector.score_samples(X_test),
    labels=clf.classes_,
    kind="oscr",
    name="detector and classifier",
    ax=display.ax_,
)
plt.suptitle("Which of two models ranks better")
plt.show()

# %%
# What does a boundary look like?
# -------------------------------
# The figure shows one class along two of the axes that separate the classes. Each axis is named by the two classes at
# its ends. A sample is drawn by its position along these two axes only, but the decision depends on all directions. So
# a rejected sample may appear inside the boundary.

fig, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
EllipsoidDisplay.from_estimator(clf, X_test, y_test, label=3, ax=ax)
plt.suptitle("A boundary along two axes")
plt.show()
