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

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_scorer, open_set_report

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

margins, nearest = pipe[-1].score_samples(features), pipe[-1].predict_known(features)
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
# Three questions help: which intent is nearest, by how much is the text outside, and which training text of that intent
# comes closest? A close training text alone does not make a text known: the margin also depends on the direction in
# which the text lies from the centroid.


def show(title, rows):
    print(f"{title}\n{'-' * len(title)}")
    for i in rows:
        of_nearest = np.flatnonzero(train.target == nearest[i])
        similarity = pipe[:-1].transform(train.data[of_nearest]) @ features[i]
        closest = train.data[of_nearest[similarity.argmax()]]
        print(f"{textwrap.shorten(test.data[i], 90)!r} ({'open' if test.open_kind[i] else test.target[i]})")
        print(f"    nearest: {nearest[i]}, margin {margins[i]:+.2f}")
        print(f"    its closest training text: {textwrap.shorten(closest, 80)!r}, cosine {similarity.max():.2f}")
    print()


def spread(rows, n=3):
    """A few of the rows, from the largest margin to the smallest."""
    ordered = rows[np.argsort(-margins[rows])]
    return ordered[np.linspace(0, len(ordered) - 1, n).astype(int)]


is_open, is_rejected = test.target == "-1", predicted == "-1"
show("Known, rejected", spread(np.flatnonzero(~is_open & is_rejected)))
show("Open, accepted", spread(np.flatnonzero(is_open & ~is_rejected)))
show("Open, rejected", spread(np.flatnonzero(is_open & is_rejected)))

# %%
# Choose alpha and beta
# ---------------------
# ``GridSearchCV`` works on the pipeline. Two things need care.
#
# *Rows.* Folds of the training texts hold no open text, so that a larger boundary never looks worse. Here the corpus
# has development texts, open ones among them, which become the one fold to be judged on; six intents are enough to show
# it. ``refit=False``, because a refit would train on the development texts as well.
#
# *Time.* ``memory`` keeps the fitted encoder, which none of these parameters concerns: the first candidate pays for it.

dev = load_assistant_intents(subset="dev")
intents = train.target_names[:6]
chosen = np.isin(train.target, intents)
judged = np.isin(dev.target, intents) | (dev.open_kind == "near") & (np.arange(len(dev.data)) % 2 == 0)
texts = np.concatenate([train.data[chosen], dev.data[judged]])
labels = np.concatenate([train.target[chosen], dev.target[judged]])
fold = (np.arange(chosen.sum()), np.arange(chosen.sum(), len(texts)))


with tempfile.TemporaryDirectory() as cache:
    search = GridSearchCV(
        Pipeline(pipe.steps, memory=cache),
        {"clf__alpha": [0.3, 0.6], "clf__beta": [0.1, 0.5]},
        scoring=open_set_f1_scorer,
        cv=[fold],
        refit=False,
    )
    search.fit(texts, labels)

# On so few texts, small differences mean little.
print("alpha  beta     F1   seconds to fit")
results = search.cv_results_
for params, f1, seconds in zip(results["params"], results["mean_test_score"], results["mean_fit_time"], strict=True):
    print(f"{params['clf__alpha']:5} {params['clf__beta']:5} {f1:6.3f} {seconds:8.1f}")
print(f"\nbest: {search.best_params_}")
