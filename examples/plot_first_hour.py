"""
=============================
The first hour: thirty labels
=============================

A classifier goes into service. Its users word their messages unlike the texts that it was trained on, so that it
rejects more of them than it forecasts. Somebody labels thirty messages of the log, and
:func:`~skellipsoid.learn_from_traffic` gives a better classifier. Nothing is downloaded.
"""

# %%
# Training texts and messages
# ---------------------------
# The corpus that comes with the package has short and long texts. Here the short half of each intent's texts is what
# somebody wrote for the training, and the long half is what users write. Ten percent of the log are texts of no intent.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, choose_to_label, learn_from_traffic
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score
from skellipsoid.plotting import ScoreHistogramDisplay

corpus = load_assistant_intents(subset="all")
texts, intents = corpus.data, corpus.target
lengths = np.array([len(text) for text in texts])
is_open, is_short = intents == "-1", np.zeros(len(texts), dtype=bool)
for intent in np.unique(intents[~is_open]):
    rows = np.flatnonzero(intents == intent)
    is_short[rows[np.argsort(lengths[rows], kind="stable")[: len(rows) // 2]]] = True
pipe = make_pipeline(SupConTextEncoder(finetune="none"), EllipsoidOpenSetClassifier(random_state=0))
pipe.fit(texts[is_short], intents[is_short])

rng = np.random.default_rng(0)
long = np.flatnonzero(~is_short & ~is_open)
log = rng.permutation(np.append(long, np.flatnonzero(is_open)[: len(long) // 9]))
log, later = log[: len(log) // 2], log[len(log) // 2 :]
forecast = np.mean(pipe[-1].held_out_scores_ < 0)
rejected = np.mean(pipe.predict(texts[later[~is_open[later]]]) == "-1")
print(f"Of 100 known messages {100 * forecast:.0f} should be rejected by the forecast, and {100 * rejected:.0f} are.")

# %%
# Thirty labels
# -------------
# ``choose_to_label`` says which messages to label, and what each of them counts. All others have no label.

chosen = choose_to_label(pipe, texts[log], n=30)
labels, weights = np.full(len(log), None, dtype=object), np.ones(len(log))
labels[chosen.rows], weights[chosen.rows] = intents[log[chosen.rows]], chosen.weights
learned = learn_from_traffic(pipe, texts[log], labels, sample_weight=weights)
told = learned[-1].changes_[-1]
print(f"Of the labelled known messages {100 * told['rejected']:.0f} % were rejected.")
for when in ("before", "after"):
    rate, error = told[when]["rejected"]
    print(f"Forecast for messages to come, {when} learning: {100 * rate:.0f} % ± {100 * error:.0f} rejected.")

# %%
# Before and after
# ----------------
# The scores of messages that come later, and the threshold below which they are predicted open.

fig, axes = plt.subplots(2, 1, figsize=(7, 7.4), layout="constrained", sharex=True)
for ax, model, name in zip(axes, (pipe, learned), ("As fitted", "After thirty labels"), strict=True):
    ScoreHistogramDisplay.from_estimator(model, texts[later], intents[later], ax=ax)
    f1 = open_set_f1_score(intents[later], model.predict(texts[later]), zero_division=0)
    ax.set_title(f"{name}: F1 {100 * f1:.0f} %", loc="right")
plt.suptitle("Scores of later messages, before and after thirty labels")
plt.show()
