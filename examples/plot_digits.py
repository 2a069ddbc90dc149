"""
========================================
Images: handwritten digits, some unknown
========================================

The classifier takes any features, not only those of texts. Here the digits 0 to 5 of scikit-learn's images are known.
The test has all ten digits.
"""

# %%
# Data
# ----
# The images have 8 by 8 pixels. The pixels are the features. The digits 6 to 9 are not used in training. In the test
# they keep their labels: a label that is not a known class is open.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid.metrics import open_set_auroc, open_set_f1_score, open_set_report, oscr_score

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
known = y_train <= 5
X_train, y_train = X_train[known], y_train[known]
print(f"{len(X_train)} training images; {len(X_test)} test images, {np.sum(y_test > 5)} of them open")

# %%
# Fit and report
# --------------
# All parameters have their defaults. Some pixels are always 0. This does no harm, because all features are divided by
# one number, ``scale_``, and not by their own standard deviation.

clf = EllipsoidOpenSetClassifier(random_state=0).fit(X_train, y_train)
predicted = clf.predict(X_test)
print(open_set_report(y_test, predicted, labels=clf.classes_))

# %%
# Which open digits are accepted?
# -------------------------------
# Each line is a true digit, each column a prediction. Below the white line are the open digits. There, all images
# outside the last column are open images that were accepted as a known digit.

labels = [*clf.classes_, clf.open_label_]
table = np.array([[np.sum(predicted[y_test == digit] == label) for label in labels] for digit in range(10)])

fig, ax = plt.subplots(figsize=(6.4, 7), layout="constrained")
ax.imshow(table, cmap="cividis", vmin=0, vmax=table.max())
for (row, column), count in np.ndenumerate(table):
    ax.text(column, row, count, ha="center", va="center", color="black" if count > table.max() / 2 else "white")
ax.axhline(5.5, color="white", linewidth=3)
ax.set_xticks(range(7), [*map(str, clf.classes_), "open"])
ax.set_yticks(range(10), [f"{digit}" if digit <= 5 else f"{digit} (open)" for digit in range(10)])
ax.set(xlabel="prediction", ylabel="true digit", title="Test images by true digit and prediction")
plt.show()

# %%
# Accepted and rejected images
# ----------------------------
# Below an image stand its digit, the nearest known one, and its margin: 1 at the centre of the nearest class, 0 on its
# boundary, negative outside. The images of each line are sorted from the largest margin to the smallest.

margins = clf.score_samples(X_test)
nearest = clf.predict_known(X_test)
is_known, is_accepted = y_test <= 5, predicted != clf.open_label_
groups = {
    "known digits,\naccepted": is_known & is_accepted,
    "known digits,\nrejected": is_known & ~is_accepted,
    "open digits,\nrejected": ~is_known & ~is_accepted,
    "open digits,\naccepted": ~is_known & is_accepted,
}

fig, axes = plt.subplots(4, 5, figsize=(7, 7.4), layout="constrained")
for row, (name, members) in zip(axes, groups.items(), strict=True):
    ordered = np.flatnonzero(members)[np.argsort(-margins[members])]
    steps = np.unique(np.linspace(0, len(ordered) - 1, len(row)).astype(int))
    for ax in row:
        ax.set(xticks=[], yticks=[])
        ax.set_frame_on(False)
    for ax, i in zip(row, ordered[steps], strict=False):
        ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
        ax.set_xlabel(f"a {y_test[i]}, nearest {nearest[i]}\n{margins[i]:+.2f}", fontsize=9)
    row[0].set_ylabel(f"{name}\n({members.sum()} images)", fontsize=11)
plt.suptitle("Accepted and rejected images of digits")
plt.show()

# %%
# Other methods
# -------------
# A reject option uses the largest probability of a closed-set classifier as the score. An outlier detector is trained
# on all known digits as one set, and a closed-set classifier gives the digit. These methods need a threshold. So only
# the ranking is compared. *AUROC* measures how well known images are ranked above open images. *OSCR* also requires the
# right digit for known images.


def rank(name, score, closed):
    auroc = open_set_auroc(y_test, score, labels=clf.classes_)
    oscr = oscr_score(y_test, closed, score, labels=clf.classes_)
    print(f"{name:42} {auroc:6.3f} {oscr:6.3f}")


logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X_train, y_train)
digit = logistic.predict(X_test)
print(f"{'':42} {'AUROC':>6} {'OSCR':>6}")
rank("ellipsoids", margins, nearest)
rank("logistic regression, largest probability", logistic.predict_proba(X_test).max(axis=1), digit)
for detector in (IsolationForest(random_state=0), LocalOutlierFactor(novelty=True), OneClassSVM()):
    name = f"{type(detector).__name__}, logistic regression"
    rank(name, detector.fit(X_train).score_samples(X_test), digit)

# %%
# ``LocalOutlierFactor`` is second here. It stores all training images and compares each new image with its neighbours.
# These are results of one data set and one choice of known digits. Compare the methods on your data.
#
# Fewer features
# --------------
# PCA reduces the number of features. It keeps the directions in which images vary most. It removes the directions in
# which known digits hardly vary, and an unknown digit often deviates in these directions. So the AUROC becomes lower.

print(f"{'features':18} {'F1':>6} {'AUROC':>6} {'OSCR':>6} {'closed-set accuracy':>20}")
for n_components in (5, 10, 20, None):
    reduction = "passthrough" if n_components is None else PCA(n_components, random_state=0)
    pipe = make_pipeline(reduction, EllipsoidOpenSetClassifier(random_state=0)).fit(X_train, y_train)
    features = pipe[:-1].transform(X_test)
    score, closed = pipe[-1].score_samples(features), pipe[-1].predict_known(features)
    print(
        f"{'64 pixels' if n_components is None else f'{n_components} components':18} "
        f"{open_set_f1_score(y_test, pipe.predict(X_test), labels=pipe.classes_):6.3f} "
        f"{open_set_auroc(y_test, score, labels=pipe.classes_):6.3f} "
        f"{oscr_score(y_test, closed, score, labels=pipe.classes_):6.3f} "
        f"{np.mean(closed[is_known] == y_test[is_known]):20.3f}"
    )
