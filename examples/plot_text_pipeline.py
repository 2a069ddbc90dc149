"""
================================
From raw text to labels, or open
================================

A pipeline of :class:`~skellipsoid.SupConTextEncoder` and :class:`~skellipsoid.EllipsoidOpenSetClassifier` takes
sentences and answers with an intent, or open. It learns the corpus that ships with the package, with the small text
model that the extra ``[offline]`` installs, so that nothing is downloaded.
"""

# %%
# Train
# -----
# The training part holds requests of 28 intents and no open text. With ``finetune="head"``, the default, the text model
# is frozen and embeds each text once; one linear layer learns.

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
# The test part has 168 open texts. Half of them are *near*, requests of the same domains for something else, and half
# are *far*. *F1* of the literature is the f1-score of the row "macro avg": known intents and open weigh alike.
#
# ``pipe.predict(test.data)`` would do. Here the texts are embedded once, and the features used again further down.

test = load_assistant_intents(subset="test")
features = pipe[:-1].transform(test.data)
predicted = pipe[-1].predict(features)
print(open_set_report(test.target, predicted, labels=pipe.classes_))

# %%
# How far in, how far out
# -----------------------
# The margin of a text is 1 at the centroid of its nearest intent, 0 on that intent's boundary, and negative outside.
# Far texts are easy. Near ones overlap with the known texts, so that no size of the boundaries parts them all.

margins = pipe[-1].score_samples(features)
groups = {
    "known": (margins[test.open_kind == ""], "#0072B2", ""),
    "open, near": (margins[test.open_kind == "near"], "#E69F00", "//"),
    "open, far": (margins[test.open_kind == "far"], "#009E73", ".."),
}

fig, axes = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
edges = np.arange(np.floor(margins.min() * 5) / 5, 1.01, 0.1)
for ax, (name, (values, colour, hatch)) in zip(axes, groups.items(), strict=True):
    ax.hist(values, bins=edges, color=colour, hatch=hatch, edgecolor="white")
    ax.axvline(0, color="black", linewidth=2)
    ax.set_title(f"{name}: {np.mean(values < 0):.0%} of {len(values)} texts are answered open", fontsize=11, loc="left")
    ax.set_ylabel("texts")
axes[-1].set_xlabel("margin of the nearest intent (left of the line: open)")
plt.show()

# %%
# Why is a text rejected?
# -----------------------
# :func:`~skellipsoid.explain` says which intent is nearest, by how much a text is outside, how many known texts lie as
# far out, and which training text comes closest. A close training text alone does not make a text known: the margin
# also depends on the direction in which the text lies from the centroid.

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
        print(f"    its closest training text: {textwrap.shorten(why.neighbor_1[i], 80)!r}")
    print()

# %%
# Choose beta and alpha
# ---------------------
# ``GridSearchCV`` works on the pipeline. Three things need care.
#
# *Rows.* Folds of ordinary cross-validation hold no open text, so that a larger boundary never looks worse.
# :class:`~skellipsoid.model_selection.OpenSetKFold` leaves classes out of the training part of each fold, and the
# scorer reads them as open. Eight intents are enough to show it.
#
# *Candidates.* ``beta`` moves the size of all boundaries: a larger one makes them smaller, so that more texts are open.
# ``alpha`` says where, between two known ones, the imaginary classes lie that help to judge the size.
#
# *Time.* ``memory`` keeps the fitted encoder, which none of these parameters concerns: in each fold the first candidate
# pays for it. Scoring embeds the test part anew each time.

some = np.isin(train.target, train.target_names[:8])
candidates = [
    {"clf__init": ["covariance"], "clf__alpha": [0.6, 2.0]},
    {"clf__init": ["identity"], "clf__alpha": [0.6, 2.0], "clf__beta": [0.1, 0.5]},
]
folds = OpenSetKFold(2, shuffle=True, random_state=0)
with tempfile.TemporaryDirectory() as cache:
    search = GridSearchCV(Pipeline(pipe.steps, memory=cache), candidates, cv=folds, scoring=open_set_f1_scorer)
    start = time.perf_counter()
    search.fit(train.data[some], train.target[some])
    seconds = time.perf_counter() - start

# On so few texts, small differences mean little.
print("init        alpha  beta     F1   seconds to fit")
results = search.cv_results_
for params, f1, fit in zip(results["params"], results["mean_test_score"], results["mean_fit_time"], strict=True):
    print(f"{params['clf__init']:11} {params['clf__alpha']:5} {params.get('clf__beta', ''):5} {f1:6.3f} {fit:8.1f}")
print(f"\nbest: {search.best_params_}; {len(results['params']) * 2 + 1} fits in {seconds:.0f} s")
