"""Write the files of a month at a help desk, from the corpus that ships with the package: always the same ones."""

import csv

import numpy as np

from skellipsoid.datasets import load_assistant_intents

#: Intents that nobody knows of when the model is trained.
LATER = ["order_taxi", "report_lost_card", "return_item", "translate_phrase"]

rng = np.random.default_rng(0)
corpus = load_assistant_intents(subset="all")
texts, intents = corpus.data, corpus.target
is_open, is_new, is_train = intents == "-1", np.isin(intents, LATER), corpus.split == "train"
export = np.flatnonzero(is_train & ~is_new)
known = rng.permutation(np.flatnonzero(~is_train & ~is_new & ~is_open))
other = rng.permutation(np.flatnonzero(is_open))


def write(name, rows, n_labels=None):
    """Write a table as a help desk exports it; a log has no column of labels, or one for its first messages."""
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "message", *([] if n_labels is None else ["category"])])
        for i, row in enumerate(rows):
            label = [] if n_labels is None else [intents[row] if i < n_labels else ""]
            writer.writerow([1000 + i, texts[row], *label])


write("export.csv", rng.permutation(export), len(export))
# People type, so an export has rows that are of no use or contradict each other.
with open("export.csv", "a", encoding="utf-8") as file:
    file.write(f'1900,,{intents[export[0]]}\n1901,"{texts[export[0]]}",{intents[export[100]]}\n1902,asdf,\n')
week1 = rng.permutation(np.concatenate([known[:240], other[:40]]))
write("week1.csv", week1)
# Somebody reads the first thirty messages, and labels them; they are in no order.
write("week1-labelled.csv", week1, 30)
write("week2.csv", rng.permutation(np.concatenate([known[240:], other[40:80], np.flatnonzero(is_new)])))
