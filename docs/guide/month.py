"""Write the files of a month at a help desk, from the corpus that ships with the package: always the same ones.

With the name of a file of ``skellipsoid review`` it stands for the person who labels the messages.
"""

import csv
import sys

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


def write(name, rows, *, labelled=False):
    """Write a table as a help desk exports it; a log has no labels."""
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "message", *(["category"] if labelled else [])])
        for number, row in enumerate(rows, start=1000):
            writer.writerow([number, texts[row], *([intents[row]] if labelled else [])])


write("export.csv", rng.permutation(export), labelled=True)
# People type, so an export has rows that are of no use or contradict each other.
with open("export.csv", "a", encoding="utf-8") as file:
    file.write(f'1900,,{intents[export[0]]}\n1901,"{texts[export[0]]}",{intents[export[100]]}\n1902,asdf,\n')
week1 = rng.permutation(np.concatenate([known[:240], other[:40]]))
write("week1.csv", week1)
write("week2.csv", rng.permutation(np.concatenate([known[240:], other[40:80], np.flatnonzero(is_new)])))

for name in sys.argv[1:]:
    category = {" ".join(texts[row].split()): intents[row] for row in week1}
    with open(name, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(row | {"label": category[row["message"]]} for row in table)
