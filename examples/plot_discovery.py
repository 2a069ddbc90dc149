"""
=================
A week of traffic
=================

A classifier is in use, and its log has requests that it was not trained for. :func:`~skellipsoid.discover_classes`
groups what it answers *open*. This example hides some intents of the corpus that comes with the package, and finds them
again. Nothing is downloaded.
"""

# %%
# Classifier and log
# ------------------
# Five of the 28 intents are hidden from the training. The log has texts of all intents, and texts of no intent. Some
# texts are repeated, as in a real log.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, discover_classes
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.plotting import DiscoveryDisplay

train, dev = load_assistant_intents(subset="train"), load_assistant_intents(subset="dev")
hidden = ["book_flight", "check_traffic", "find_recipe", "return_item", "transfer_money"]
is_hidden = np.isin(train.target, hidden)
pipe = make_pipeline(SupConTextEncoder(finetune="none", random_state=0), EllipsoidOpenSetClassifier(random_state=0))
pipe.fit(train.data[~is_hidden], train.target[~is_hidden])

texts = np.concatenate([train.data[is_hidden], dev.data])
intents = np.concatenate([train.target[is_hidden], dev.target])
repeated = np.random.default_rng(0).integers(len(texts), size=60)
texts, intents = np.append(texts, texts[repeated]), np.append(intents, intents[repeated])

# %%
# Groups
# ------
# The bars are the groups that were found, the largest at the top. Repeated texts are drawn pale. They do not count when
# groups are formed. Beside each bar are the coherence of the group and more of its words.

found = discover_classes(pipe, texts)
print(found)
DiscoveryDisplay.from_result(found, n_groups=12)
plt.show()

# %%
# Are they the hidden intents?
# ----------------------------
# Here the true intents are known, so each group can be checked. The groups of hidden intents are among the largest, and
# have the highest coherence. The groups of low coherence hold texts of many kinds.

for group in range(min(10, found.n_groups)):
    truth = Counter(intents[found.labels == group]).most_common(1)[0]
    example = texts[found.representatives[group][0]]
    print(f"{found.names[group]!r}: {truth[1]} of {found.sizes[group]} are {truth[0]}, coherence ", end="")
    print(f"{found.coherence[group]:.2f}\n    nearest intent: {found.nearest_class[group]}; typical: {example!r}")

# %%
# Coherence and size
# ------------------
# Large groups of high coherence are the first to read. Each is shown with the share of its most frequent hidden intent.

share = [np.isin(intents[found.labels == group], hidden).mean() for group in range(found.n_groups)]
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
points = ax.scatter(found.distinct_sizes, found.coherence, c=share, s=80, cmap="cividis", vmin=0, vmax=1, edgecolor="k")
for group in range(min(6, found.n_groups)):
    where = found.distinct_sizes[group], found.coherence[group]
    ax.annotate(found.names[group], where, xytext=(-8, 8), textcoords="offset points", ha="right", fontsize=8)
fig.colorbar(points, label="share of texts of hidden intents")
ax.margins(y=0.12)
ax.set(xlabel="different texts of the group", ylabel="coherence")
plt.show()

# %%
# ``found.to_tsv("groups.tsv")`` writes the texts of all groups with an empty column ``label``. Fill it in, and train
# again with the new intents.
