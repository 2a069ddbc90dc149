"""The benchmark data as features of the frozen text model, for the studies in this folder.

python studies/features.py --data-home ../../../shared/data                      # MiniLM, about 4 minutes
python studies/features.py --data-home ../../../shared/data --model FOLDER       # any other text model
"""

import argparse
import ast
import functools
import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

import skellipsoid
from skellipsoid import SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.model_selection import KnownClassSplit
from skellipsoid_bench import datasets
from skellipsoid_bench._encoders import model_identity

FETCHERS = {
    "banking": datasets.fetch_banking77,
    "oos": datasets.fetch_clinc_oos,
    "stackoverflow": datasets.fetch_stackoverflow,
}
RATIOS = (0.25, 0.5, 0.75)
SEEDS = tuple(range(5))
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
CACHE = Path(__file__).parents[1] / "_cache"


class Rows(NamedTuple):
    """Mean token vectors of texts, before normalisation, and labels."""

    embeddings: np.ndarray  # (n_texts, width)
    target: np.ndarray


def read(name, subset, data_home=None):
    """Texts and labels of one part of a data set."""
    if name == "assistant":
        return load_assistant_intents(subset=subset)
    return FETCHERS[name](subset=subset, data_home=data_home)


def embedded(name, subset, data_home=None, model=MODEL):
    """Embed one part of a data set, or read it from the cache.

    Parameters
    ----------
    name : {"assistant", "banking", "oos", "stackoverflow"}
        "assistant" is the corpus that ships with the package.
    subset : {"train", "dev", "test"}
    data_home : str, default=None
    model : str
        A text model's name or folder.

    Returns
    -------
    Rows
    """
    bunch = read(name, subset, data_home)
    kept = CACHE / Path(model).name / f"{name}-{subset}.npy"
    if not kept.exists():
        encoder = SupConTextEncoder(str(model), finetune="none", layers="last", normalize=False, verbose=1)
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".part.npy")
        np.save(partial, encoder.fit_transform(bunch.data))
        partial.replace(kept)
    return Rows(np.load(kept), np.asarray(bunch.target))


@functools.cache
def features_key(model=MODEL):
    """Hash a text model and the sources of the encoders, without comments: features of others are not found."""
    digest, folder = hashlib.sha256(model_identity(model).encode()), Path(skellipsoid.__file__).parent
    for place in sorted((folder / "_encoders").rglob("*.py")):
        digest.update(f"{place.relative_to(folder).as_posix()}:{ast.dump(ast.parse(place.read_bytes()))}".encode())
    return digest.hexdigest()[:12]


def known_classes(name, ratio, seed, data_home=None):
    """Known classes of one case of the literature's protocol."""
    target = np.asarray(read(name, "train", data_home).target)
    return KnownClassSplit(ratio, seed).known_classes(target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--model", default=MODEL, help="name or folder of a text model")
    options = parser.parse_args()
    for name in FETCHERS:
        for subset in ("train", "dev", "test"):
            rows = embedded(name, subset, options.data_home, options.model)
            print(name, subset, rows.embeddings.shape, flush=True)
