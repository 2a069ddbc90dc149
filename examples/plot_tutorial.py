"""
========================================
From a table to a served model, and back
========================================

.. index:: ! Jupyter notebook, ! Jupyter, ! notebook, ! Colab, ! ipynb, ! Python tutorial

A whole round in Python: a table of labelled requests becomes a model, the model answers over HTTP and logs what users
say, thirty labels of this log make it better, and the server takes the new model while it runs. *A month at a help
desk* (:ref:`month`) does the same in a terminal. It needs ``skellipsoid-runtime[serve]``, and downloads nothing.
"""

# %%
# A table
# -------
# This writes the table that you have: a text and a label in each row, here 24 intents of the shipped corpus. The other
# four intents come later, and nobody knows of them yet.

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents, load_text_file
from skellipsoid.metrics import open_set_report
from skellipsoid.plotting import ScoreHistogramDisplay

folder = Path(tempfile.mkdtemp())
corpus = load_assistant_intents(subset="all")
later = ["order_taxi", "report_lost_card", "return_item", "translate_phrase"]
is_train = (corpus.split == "train") & ~np.isin(corpus.target, later)
rows = [{"message": text, "category": name} for text, name in zip(corpus.data, corpus.target, strict=True)]
with open(folder / "tickets.jsonl", "w", encoding="utf-8") as file:
    file.writelines(json.dumps(row) + "\n" for row, kept in zip(rows, is_train, strict=True) if kept)

# %%
# Train
# -----
# ``load_text_file`` reads CSV files and workbooks, too. ``check_training_texts`` says what is wrong with the texts.

texts, labels = load_text_file(
    folder / "tickets.jsonl", text_column="message", label_column="category", return_X_y=True
)
for finding in skellipsoid.check_training_texts(texts, labels).message:
    print(finding)
pipe = make_pipeline(SupConTextEncoder(finetune="none"), EllipsoidOpenSetClassifier(random_state=0))
pipe.fit(texts, labels)
print(pipe.predict(["wake me at seven", "how do magnets work"]))

# %%
# How good is it?
# ---------------
# The test texts hold requests of no intent, and the four that come later. The report counts all of them as open.

is_test = corpus.split != "train"
predicted = pipe.predict(corpus.data[is_test])
report = open_set_report(corpus.target[is_test], predicted, labels=pipe.classes_)
print("\n".join(report.splitlines()[-6:]))

# %%
# Serve
# -----
# A saved model is a folder without pickle. The server is a process of its own; in a terminal it is
# ``skellipsoid-serve --model model --log log.jsonl --log-texts``.

skellipsoid.save(pipe, folder / "model")
options = ["--model", folder / "model", "--port", "0", "--log", folder / "log.jsonl", "--log-texts"]
notes = open(folder / "server.txt", "w+", encoding="utf-8")  # noqa: SIM115
server = subprocess.Popen([sys.executable, "-m", "skellipsoid_runtime.serve", *map(str, options)], stderr=notes)


def wait_for(condition, seconds=120):
    """Give what the condition gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end and server.poll() is None:
        time.sleep(0.2)
    if not found:
        raise TimeoutError((folder / "server.txt").read_text(encoding="utf-8"))
    return found


def ask(path, **body):
    """Send a request to the server, and read its answer."""
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


pattern = re.compile(r"answering at (\S+)")
address = wait_for(lambda: pattern.search((folder / "server.txt").read_text(encoding="utf-8")))[1]
for answer in ask("/predict", texts=["wake me at seven", "order me a taxi to the station"]):
    print(answer["label"], answer["action"], answer["candidates"])

# %%
# A week of users
# ---------------
# Users write 300 messages. The log has a line for each, with its text.

week = np.random.default_rng(0).permutation(np.flatnonzero(is_test))[:300]
for start in range(0, len(week), 100):
    ask("/predict", texts=corpus.data[week[start : start + 100]].tolist())
log = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
log = np.array([line["text"] for line in log], dtype=object)
print(len(log), "messages in the log")

# %%
# Thirty labels, and back
# -----------------------
# ``choose_to_label`` chooses messages. Here the corpus stands in for the person who labels them; in a terminal
# ``skellipsoid review`` writes a page for it. ``None`` is a message without a label, ``"-1"`` one of no intent.

chosen = skellipsoid.choose_to_label(pipe, log, n=30)
truth = dict(zip(corpus.data, np.where(np.isin(corpus.target, later), "-1", corpus.target), strict=True))
given, weights = np.full(len(log), None, dtype=object), np.ones(len(log))
given[chosen.rows] = [truth.get(text, "-1") for text in log[chosen.rows]]
weights[chosen.rows] = chosen.weights
learned = skellipsoid.learn_from_traffic(pipe, log, given, sample_weight=weights)
for when in ("before", "after"):
    expected = learned[-1].changes_[-1][when]
    print(when, {name: f"{100 * value:.0f} ± {100 * error:.0f} %" for name, (value, error) in expected.items()})

# %%
# The server takes the new model when its folder changes. No request is lost.

old = ask("/model")["version"]
skellipsoid.save(learned, folder / "model", overwrite=True)
wait_for(lambda: ask("/model")["version"] != old)
for answer in ask("/predict", texts=["wake me at seven", "order me a taxi to the station"]):
    print(answer["label"], answer["action"], answer["candidates"])
server.terminate()
server.wait()
notes.close()

# %%
# What changed
# ------------
# Scores of messages that came later, and the threshold below which they are open.

rest = np.setdiff1d(np.flatnonzero(is_test), week)
fig, axes = plt.subplots(2, 1, figsize=(6, 7), layout="constrained", sharex=True)
for ax, model, name in zip(axes, (pipe, learned), ("as trained", "after thirty labels"), strict=True):
    ScoreHistogramDisplay.from_estimator(model, corpus.data[rest], corpus.target[rest], ax=ax)
    ax.set_title(name, loc="right")
plt.suptitle("Scores before and after thirty labels")
plt.show()

# %%
# Next: :ref:`monitoring` says when the traffic changes, :ref:`discovery` finds the new topics, and
# :ref:`changing_classes` adds them.
