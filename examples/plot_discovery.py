"""
=================
A week of traffic
=================

A classifier is in use, and its log has requests that it was not trained for. :func:`~skellipsoid.discover_classes`
groups what it predicts *open*, and :func:`~skellipsoid.add_classes` adds the groups that a person has named. This
example hides some intents of the corpus that comes with the package, finds them again, and adds them. Nothing is
downloaded.
"""

# %%
# Classifier and log
# ------------------
# Five of the 28 intents are hidden from the training. The log has texts of all intents, and texts of no intent. Some
# texts are repeated, as in a real log.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, add_classes, discover_classes, refresh
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score
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
plt.suptitle("Groups of unknown messages, the largest first")
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
# Large groups of high coherence are the first to read. Each is shown with the proportion of texts of hidden intents.

share = [np.isin(intents[found.labels == group], hidden).mean() for group in range(found.n_groups)]
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
points = ax.scatter(found.distinct_sizes, found.coherence, c=share, s=80, cmap="cividis", vmin=0, vmax=1, edgecolor="k")
for group in range(min(6, found.n_groups)):
    where = found.distinct_sizes[group], found.coherence[group]
    ax.annotate(found.names[group], where, xytext=(-8, 8), textcoords="offset points", ha="right", fontsize=8)
fig.colorbar(points, label="proportion of texts of hidden intents")
ax.margins(y=0.12)
ax.set(xlabel="different texts of the group", ylabel="coherence")
plt.suptitle("Coherence and size of each group")
plt.show()

# %%
# The loop closed
# ---------------
# A person reads the ten largest groups and gives their texts labels (here, the true intents). ``add_classes`` adds
# them: the encoder and the other intents stay, nothing is trained again. ``refresh`` chooses the size of the boundaries
# anew. In a terminal the same is ``skellipsoid traffic --save groups.tsv``, a spreadsheet, and ``skellipsoid add --data
# groups.tsv --refresh``.

labelled = np.isin(found.labels, range(10)) & np.isin(intents, hidden)
later = refresh(add_classes(pipe, texts[labelled], intents[labelled]))

# %%
# F1 over all intents and *open*, on texts of their own: before, with the new intents, and after a training from the
# start on the same texts. The last line knew all texts of the hidden intents.

test = load_assistant_intents(subset="test")


def f1(model):
    """F1 where all intents of the corpus count as known."""
    labels = np.unique(train.target)
    return open_set_f1_score(test.target, model.predict(test.data), labels=labels, zero_division=0)


seen = np.append(train.data[~is_hidden], texts[labelled]), np.append(train.target[~is_hidden], intents[labelled])
again = clone(pipe).fit(*seen)
everything = clone(pipe).fit(train.data, train.target)
for name, model in (("before", pipe), ("added", later), ("trained again", again), ("knew all", everything)):
    print(f"{name:14} F1 {f1(model):.3f}, {len(model.classes_)} intents")
