"""
================================
Five pictures of a fitted model
================================

Each display of :mod:`skellipsoid.plotting` answers one question about a fitted open-set classifier. All of them take a
classifier, a pipeline or a search, with test data that hold open samples.
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
    CoverageDisplay,
    EllipsoidDisplay,
    OpenSetConfusionMatrixDisplay,
    OSCRDisplay,
    ScoreHistogramDisplay,
)

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
X_train, y_train = X_train[y_train <= 5], y_train[y_train <= 5]
clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, y_train)

# %%
# Do known and open samples overlap, and where is the cut?
# --------------------------------------------------------
# Samples left of the line are answered *open*. Known samples there are false rejections. Open samples right of it are
# accepted by mistake.

ScoreHistogramDisplay.from_estimator(clf, X_test, y_test)
plt.show()

# %%
# Which classes accept open samples?
# ----------------------------------
# The last row holds the open samples: what stands there outside of the last column was accepted. The last column holds
# what was rejected.

OpenSetConfusionMatrixDisplay.from_estimator(clf, X_test, y_test)
plt.show()

# %%
# What would another cut give?
# ----------------------------
# Each operating point accepts another share of the known samples. The marked one is that of the fitted boundary.

CoverageDisplay.from_estimator(clf, X_test, y_test)
plt.show()

# %%
# Which of two models ranks better?
# ---------------------------------
# The OSCR curve counts known samples that are accepted *and* get the right class, against open samples that are
# accepted. A curve further up is better. The second model is an outlier detector beside a logistic regression.

fig, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
OSCRDisplay.from_estimator(clf, X_test, y_test, name="ellipsoids", ax=ax)
detector = LocalOutlierFactor(novelty=True).fit(X_train)
closed = LogisticRegression(max_iter=2000).fit(X_train / 16, y_train)
OSCRDisplay.from_predictions(
    y_test,
    closed.predict(X_test / 16),
    detector.score_samples(X_test),
    labels=clf.classes_,
    name="outlier detector, logistic regression",
    ax=ax,
)
plt.show()

# %%
# What does a boundary look like?
# -------------------------------
# One class, along two axes that tell the classes apart. Each axis is named by the two classes at its ends. Samples are
# shown by where they lie along these axes alone; the other directions count too, so that a rejected sample may appear
# inside.

EllipsoidDisplay.from_estimator(clf, X_test, y_test, label=3)
plt.show()
