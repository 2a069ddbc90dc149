"""Write the files of a month at a help desk, from the corpus that ships with the package: always the same ones."""

import csv

import numpy as np

from skellipsoid.datasets import load_assistant_intents

#: Intents that nobody knows of when the model is trained.
LATER = ["report_lost_card", "return_item", "translate_phrase"]
#: Intents of the export.
KNOWN = ["check_balance", "control_lights", "find_recipe", "order_food", "set_alarm", "track_parcel"]
KNOWN += ["book_flight", "check_weather", "play_music", "send_message", "set_timer", "transfer_money"]

rng = np.random.default_rng(0)
corpus = load_assistant_intents(subset="all")
texts, intents, part = corpus.data, corpus.target, corpus.split
is_known, is_new, is_open = np.isin(intents, KNOWN), np.isin(intents, LATER), intents == "-1"


def write(name, rows, *, labelled=False):
    """Write a table as a help desk exports it; without labels, as its log is."""
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "received", "message", *(["category"] if labelled else [])])
        for i, row in enumerate(rng.permutation(rows)):
            received = f"2026-{'03' if labelled else '04'}-{1 + i * 28 // len(rows):02d}"
            writer.writerow([1000 + i, received, texts[row], *([intents[row]] if labelled else [])])


write("export.csv", np.flatnonzero(is_known & (part == "train")), labelled=True)
live, other = np.flatnonzero(is_known & (part != "train")), np.flatnonzero(is_open)
rng.shuffle(live)
rng.shuffle(other)
write("week1.csv", np.concatenate([live[:96], other[:20]]))
write("week2.csv", np.concatenate([live[96:], other[20:40], np.flatnonzero(is_new)]))
