"""
===================================
From texts to intents, or to *open*
===================================

A pipeline of :class:`~skellipsoid.SupConTextEncoder` and :class:`~skellipsoid.EllipsoidOpenSetClassifier` takes texts.
It predicts an intent or *open*. This example uses the corpus that comes with the package, and the embedding model
that the extra ``[offline]`` installs. Nothing is downloaded.
"""

# %%
# Train
# -----
# The training part has requests of 28 intents and no open text. With ``finetune="head"`` the embedding model is frozen
# and embeds each text once. Only a linear layer is trained.

import tempfile
import textwrap
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, explain
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_scorer, open_set_report
from skellipsoid.model_selection import OpenSetKFold

train = load_assistant_intents(subset="train")
pipe = Pipeline(
    [("enc", SupConTextEncoder(finetune="head", random_state=0)), ("clf", EllipsoidOpenSetClassifier(random_state=0))]
)
pipe.fit(train.data, train.target)
print(pipe.predict(["wake me at half past six", "how many moons does Jupiter have"]))

# %%
# Report
# ------
# The test part has 168 open texts. Half of them are *near*: requests of the same domains as the known intents, but for
# something else. The other half are *far*: small talk, general knowledge, noise. *F1* in the literature is the f1-score
# of the line "macro avg": each known intent and open have the same weight.
#
# ``pipe.predict(test.data)`` gives the same labels. Here the texts are embedded once, because the features are used
# again below.

test = load_assistant_intents(subset="test")
features = pipe[:-1].transform(test.data)
predicted = pipe[-1].predict(features)
print(open_set_report(test.target, predicted, labels=pipe.classes_))

# %%
# Margins of known and open texts
# -------------------------------
# The margin of a text is 1 at the centre of its nearest intent, 0 on the boundary, and negative outside. Far texts are
# easy to reject. The margins of near texts and known texts overlap. So no size of the boundaries separates near from
# known texts completely.

margins = pipe[-1].score_samples(features)
groups = {
    "known": (margins[test.open_kind == ""], "#0072B2", ""),
    "open, near": (margins[test.open_kind == "near"], "#E69F00", "//"),
    "open, far": (margins[test.open_kind == "far"], "#009E73", ".."),
}

fig, axes = plt.subplots(3, 1, figsize=(7, 6.5), sharex=True, sharey=True, layout="constrained")
edges = np.arange(np.floor(margins.min() * 10) / 10, 1.01, 0.1)
for ax, (name, (values, colour, hatch)) in zip(axes, groups.items(), strict=True):
    share = np.full(len(values), 100 / len(values))
    ax.hist(values, bins=edges, weights=share, color=colour, hatch=hatch, edgecolor="white")
    ax.axvline(0, color="black", linewidth=2)
    ax.set_title(f"{name}: {np.mean(values < 0):.0%} of {len(values)} texts are open", loc="left")
    ax.set(ylabel="% of the texts", xlim=(edges[0], 1))
axes[-1].set_xlabel("margin of the nearest intent (left of 0: open)")
plt.suptitle("Scores of known and of open texts")
plt.show()

# %%
# Why is a text rejected?
# -----------------------
# :func:`~skellipsoid.explain` gives the nearest intent, the margin, the p-value and the nearest training text. The
# p-value is the proportion of held-out known texts with the same or a lower margin. A text with a near training text
# can still be open: the margin also depends on the direction from the centre to the text.

is_open, is_rejected = test.target == "-1", predicted == "-1"
order = np.argsort(-margins)
shown = {
    "Known, rejected": order[(~is_open & is_rejected)[order]],
    "Open, accepted": order[(is_open & ~is_rejected)[order]],
    "Open, rejected": order[(is_open & is_rejected)[order]],
}
for title, rows in shown.items():
    spread = rows[np.linspace(0, len(rows) - 1, 3).astype(int)]
    why = explain(pipe, test.data[spread], n_neighbors=1, reference=train.data)
    print(f"{title}\n{'-' * len(title)}")
    for i, row in enumerate(spread):
        print(f"{textwrap.shorten(why.text[i], 90)!r} ({'open' if is_open[row] else test.target[row]})")
        print(f"    nearest: {why.nearest_class[i]}, margin {why.margin[i]:+.2f}, p-value {why.p_value[i]:.2f}")
        print(f"    nearest training text: {textwrap.shorten(why.neighbor_1[i], 80)!r}")
    print()

# %%
# Choose beta and alpha
# ---------------------
# ``GridSearchCV`` works with the pipeline. Three points need care.
#
# *Folds.* Folds of ordinary cross-validation have no open texts, so a larger boundary never has a lower score.
# :class:`~skellipsoid.model_selection.OpenSetKFold` removes some classes from the training part of each fold. For the
# scorer these classes are open. To save time, this example uses eight intents.
#
# *Candidates.* ``beta`` changes the size of all boundaries: a larger ``beta`` makes them smaller, and more texts are
# open. ``alpha`` sets where the synthetic classes lie between two known classes. They help to choose the size.
# (``trainer=EliDecide()``, the training of the paper, needs more texts than these.)
#
# *Time.* The fitted encoder does not depend on these parameters, and ``memory`` stores it. So the encoder is fitted
# once in each fold. The test part is embedded again for each candidate.

some = np.isin(train.target, train.target_names[:8])
candidates = {"clf__beta": [0.35, 0.5, 0.7], "clf__alpha": [0.6, 2.0]}
folds = OpenSetKFold(2, shuffle=True, random_state=0)
with tempfile.TemporaryDirectory() as cache:
    search = GridSearchCV(Pipeline(pipe.steps, memory=cache), candidates, cv=folds, scoring=open_set_f1_scorer)
    start = time.perf_counter()
    search.fit(train.data[some], train.target[some])
    seconds = time.perf_counter() - start

# With few texts, small differences are not significant.
print("beta  alpha     F1")
results = search.cv_results_
for params, f1 in zip(results["params"], results["mean_test_score"], strict=True):
    print(f"{params['clf__beta']:4}  {params['clf__alpha']:5}  {f1:.3f}")
print(f"\nbest: {search.best_params_}\n{len(results['params']) * 2 + 1} fits in {seconds:.0f} s")
