"""The benchmark data as features: every text is embedded once by the frozen text model and kept.

python benchmarks/features.py --data-home ../shared/data                      # MiniLM, about 4 minutes
python benchmarks/features.py --data-home ../shared/data --model FOLDER       # any other text model
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.preprocessing import normalize

from skellipsoid import SupConTextEncoder, datasets
from skellipsoid._engine.contrastive import FrozenRows, cross_fit, start_projection, train_projection
from skellipsoid.model_selection import KnownClassSplit

FETCHERS = {
    "banking": datasets.fetch_banking77,
    "oos": datasets.fetch_clinc_oos,
    "stackoverflow": datasets.fetch_stackoverflow,
}
RATIOS = (0.25, 0.5, 0.75)
SEEDS = tuple(range(5))
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
#: Frozen, the default head, a head whose training rows are not cross-fitted, and the whole text model tuned.
MODES = ("frozen", "head", "head-plain", "full")
CACHE = Path(__file__).parent / "_cache"


class Rows(NamedTuple):
    """Mean token vectors of texts, before normalisation, and labels."""

    embeddings: np.ndarray  # (n_texts, width)
    target: np.ndarray


def embedded(name, subset, data_home=None, model=MODEL):
    """Embed one part of a data set, or read it from the cache.

    Parameters
    ----------
    name : {"banking", "oos", "stackoverflow"}
    subset : {"train", "dev", "test"}
    data_home : str, default=None
    model : str
        A text model's name or folder.

    Returns
    -------
    Rows
    """
    bunch = FETCHERS[name](subset=subset, data_home=data_home)
    kept = CACHE / Path(model).name / f"{name}-{subset}.npy"
    if not kept.exists():
        encoder = SupConTextEncoder(str(model), finetune="none", normalize=False, verbose=1)
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".part.npy")
        np.save(partial, encoder.fit_transform(bunch.data))
        partial.replace(kept)
    return Rows(np.load(kept), np.asarray(bunch.target))


def known_classes(name, ratio, seed, data_home=None):
    """Known classes of one case of the literature's protocol."""
    target = np.asarray(FETCHERS[name](subset="train", data_home=data_home).target)
    return KnownClassSplit(ratio, seed).known_classes(target)


def case_features(case, data_home=None, model=MODEL):
    """Features of one case; those that were tuned for it are kept in the cache.

    Delete them there (``head-*``, ``full-*``) after a change of the encoder.

    Parameters
    ----------
    case : dict
        ``data``, ``ratio``, ``seed`` and ``mode``, one of ``MODES``.
    data_home : str, default=None
    model : str
        A text model's name or folder.

    Returns
    -------
    train, target : ndarray
        Rows of the known classes.
    test, truth : ndarray
        All test rows; -1 is open.
    """
    train, test = (FETCHERS[case["data"]](subset=subset, data_home=data_home) for subset in ("train", "test"))
    known = known_classes(case["data"], case["ratio"], case["seed"], data_home)
    rows = np.isin(train.target, known)
    target, truth = train.target[rows], np.where(np.isin(test.target, known), test.target, "-1")
    kept = CACHE / Path(model).name / "{mode}-{data}-{ratio}-{seed}.npz".format(**case)
    if kept.exists():
        features = np.load(kept)
        return features["train"], target, features["test"], truth
    kept.parent.mkdir(parents=True, exist_ok=True)
    if case["mode"] == "full":
        encoder = SupConTextEncoder(str(model), finetune="full", random_state=case["seed"])
        features = encoder.fit_transform(train.data[rows], target), encoder.transform(test.data)
    else:
        embeddings = [embedded(case["data"], subset, data_home, model).embeddings for subset in ("train", "test")]
        texts = train.data[rows].tolist()
        features = _through_head(embeddings[0][rows], texts, target, embeddings[1], case["mode"], case["seed"])
    if case["mode"] != "frozen":
        partial = kept.with_suffix(".part.npz")
        np.savez(partial, train=features[0], test=features[1])
        partial.replace(kept)
    return features[0], target, features[1], truth


def _through_head(train, texts, target, test, mode, seed):
    """Features as ``SupConTextEncoder`` makes them of embeddings that are there already."""
    if mode != "frozen":
        classes, codes = np.unique(target, return_inverse=True)
        projection = start_projection(train.shape[1], train.shape[1], seed)
        encoder, embeddings = SupConTextEncoder(finetune="head"), torch.from_numpy(train)
        training, settings = encoder._training_texts(texts, codes, None, embeddings), encoder._settings()
        learns, blocks = training.learns, training.blocks
        rows = FrozenRows(embeddings[torch.from_numpy(learns)])
        train_projection(rows, codes[learns], len(classes), projection, settings, seed, blocks[learns])
        with torch.no_grad():
            train, test = (projection(torch.from_numpy(part)).numpy() for part in (train, test))
        if mode == "head":
            final = torch.from_numpy(normalize(train))
            train = cross_fit(embeddings, codes, len(classes), final, settings, seed, learns, blocks).numpy()
    return normalize(train), normalize(test)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--model", default=MODEL, help="name or folder of a text model")
    options = parser.parse_args()
    for name in FETCHERS:
        for subset in ("train", "dev", "test"):
            rows = embedded(name, subset, options.data_home, options.model)
            print(name, subset, rows.embeddings.shape, flush=True)
