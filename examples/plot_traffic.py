"""
=================
A log in pictures
=================

A model is in service, and its log is all that you see: which messages does it answer, ask about, or leave open? How
much of the traffic is unknown, and is it more than before? The data are those of :ref:`month`: a first week with 14 %
unknown messages, and a second one with 58 %, since four new kinds of requests come.
"""

# %%
# Two weeks
# ---------
# The model knows 24 intents of the shipped corpus. All texts are embedded once.

import matplotlib.pyplot as plt
import numpy as np

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    OpenShareMonitor,
    SupConTextEncoder,
    choose_to_label,
    estimate_open_share,
    learn_from_traffic,
    predict_set,
    set_operating_point,
)
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.plotting import MonitorDisplay

corpus = load_assistant_intents(subset="all")
is_new = np.isin(corpus.target, ["order_taxi", "report_lost_card", "return_item", "translate_phrase"])
is_open, is_train = corpus.target == "-1", corpus.split == "train"
train = np.flatnonzero(is_train & ~is_new)
encoder = SupConTextEncoder(finetune="none").fit(corpus.data[train], corpus.target[train])
X = encoder.transform(corpus.data)
y = np.where(is_new, "-1", corpus.target)
clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])

rng = np.random.default_rng(0)
known, other = rng.permutation(np.flatnonzero(~is_train & ~is_new & ~is_open)), rng.permutation(np.flatnonzero(is_open))
week_1 = rng.permutation(np.concatenate([known[:240], other[:40]]))
week_2 = rng.permutation(np.concatenate([known[240:], other[40:80], np.flatnonzero(is_new)]))
for name, week in (("first", week_1), ("second", week_2)):
    print(f"{name} week: {len(week)} messages, {np.mean(y[week] == '-1'):.0%} of them unknown")

# %%
# Answer, ask or leave open
# -------------------------
# Three numbers divide the plane: below ``low`` a message is open; from ``high`` on it is answered if the ``gap``
# between its two best classes is large enough; all else is asked about. :ref:`asking_back` says what places them.

costs = {"wrong": 8, "person": 3}  # a wrong answer is worse than eight questions
zones = set_operating_point(clf, open_share=0.15, ask_costs=costs).asking_
low, high, gap = (float(zones[name]) for name in ("low", "high", "gap"))
scores, actions = clf.score_samples(X[week_1]), predict_set(clf, X[week_1]).action
two = np.sort(clf.decision_function(X[week_1]), axis=1)[:, -2:]
gaps, is_known = two[:, 1] - two[:, 0], y[week_1] != "-1"
right = is_known & (clf.predict_known(X[week_1]) == y[week_1])
print({str(action): round(float(np.mean(actions == action)), 2) for action in ("answer", "ask", "open")})

fig, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
left, end, top = -0.25, 0.45, 0.85
for (x, width, bottom), colour, name, place in (
    ((left, low - left, 0), "#E4E4E4", "open", (left + 0.01, 0.79)),
    ((low, end - low, 0), "#FFF1C4", "ask", (end - 0.07, 0.03)),
    ((high, end - high, gap), "#D6ECFF", "answer", (end - 0.12, 0.79)),
):
    ax.add_patch(plt.Rectangle((x, bottom), width, top - bottom, color=colour, zorder=0))
    ax.text(*place, name, weight="bold")
parts = {"right class": (right, "o", "#0072B2"), "wrong class": (is_known & ~right, "s", "#D55E00")}
for name, (part, marker, colour) in {**parts, "unknown": (~is_known, "x", "#222222")}.items():
    ax.plot(scores[part].clip(left, end), gaps[part].clip(0, top), marker, ms=6, color=colour, alpha=0.7, label=name)
for place, name, side in ((low, "low", "right"), (high, "high", "left")):
    ax.axvline(place, color="#222222", linestyle="--", linewidth=1.5)
    ax.text(place + (-0.01 if side == "right" else 0.01), 0.68, f"{name}\n{place:.2f}", ha=side, va="center")
ax.hlines(gap, high, end, color="#222222", linestyle="--", linewidth=1.5)
ax.text(end - 0.01, gap + 0.02, f"gap {gap:.2f}", ha="right")
ax.set(xlim=(left, end), ylim=(0, top), xlabel="score of the best class", ylabel="gap to the second class")
ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.45, 1), ncols=3, handletextpad=0.1, columnspacing=0.8)
plt.suptitle("Answer, ask, or leave open")
plt.show()

# %%
# How much is unknown?
# --------------------
# Thirty labelled messages of a week narrow the interval for this week. They do not carry over to the next one: in the
# second week the unknown messages are worded like known ones, and the model that learned from the first week expects
# another such week. Its interval misses the truth. Label thirty messages again after an alarm of the monitor.


def label(week):
    """Label the thirty messages that are worth it, and weigh them."""
    chosen = choose_to_label(clf, X[week], n=30)
    labels, weights = np.full(len(week), None, dtype=object), np.ones(len(week))
    labels[chosen.rows], weights[chosen.rows] = y[week][chosen.rows], chosen.weights
    return {"y": labels, "sample_weight": weights}


set_operating_point(clf)  # as fitted
learned = learn_from_traffic(clf, X[week_1], **label(week_1))
rows = {
    "week 1,\nno labels": (estimate_open_share(clf, X[week_1]), week_1),
    "week 1,\n30 labels": (estimate_open_share(clf, X[week_1], **label(week_1)), week_1),
    "week 2, labels\nof week 1": (estimate_open_share(learned, X[week_2]), week_2),
    "week 2,\n30 labels": (estimate_open_share(clf, X[week_2], **label(week_2)), week_2),
}

fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
for place, (name, (found, week)) in enumerate(rows.items()):
    truth = np.mean(y[week] == "-1")
    told = f"{found.low:.0%} to {found.high:.0%}, about {found.share:.0%}"
    print(f"{' '.join(name.split())}: {told}; in truth {truth:.0%}")
    ax.plot([found.low, found.high], [place, place], color="#0072B2", linewidth=5, alpha=0.4, label="interval")
    ax.plot(found.share, place, "o", color="#0072B2", markersize=9, label="estimate")
    ax.plot(truth, place, "D", color="#D55E00", markersize=8, label="truth")
ax.set_yticks(range(len(rows)), list(rows))
ax.set(xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xlabel="proportion of unknown messages")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(*(part[:3] for part in ax.get_legend_handles_labels()), frameon=False, loc="upper right")
plt.suptitle("How much is unknown: estimate and truth")
plt.show()

# %%
# Is it more than before?
# -----------------------
# The reference of the monitor is most of the first week. It sees the rest of that week, then the second one. Its
# evidence crosses the line of the alarm after the change. The steps say how many messages were left open.

monitor = OpenShareMonitor(clf).fit(X[week_1[:200]])
stream = np.concatenate([week_1[200:], week_2])
for start in range(0, len(stream), 20):
    monitor = monitor.update(X[stream[start : start + 20]])
print(f"the second week begins after 80 messages, the alarm comes after {monitor.alarm_at_}")
display = MonitorDisplay.from_monitor(monitor)
display.ax_.axvline(80, color="#009E73", linestyle="-.")
display.ax_.text(84, 3.2, "second\nweek", color="#009E73")
plt.suptitle("Evidence that more is unknown")
plt.show()
