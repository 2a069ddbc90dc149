r"""Which estimate of the open share holds on data that nobody tuned it to.

1. ``score``, once for each case: fit on the training rows of the known classes; keep the held-out scores, and the scores
   of the development rows. Test rows are not read.
2. ``streams``: draw streams from the development rows, and compare the estimates on them.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/open_share.py --data-home ../shared/data score
    python benchmarks/open_share.py --data-home ../shared/data score --encoder head --seeds 0 1
"""

import argparse
import itertools
import warnings

import numpy as np
import torch
from features import CACHE, FETCHERS, RATIOS, SEEDS, embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid._traffic._share import score

SCORES = CACHE / "open_share"
OPEN = "open"


def main():
    """Score the cases that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("score",))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--data", nargs="+", choices=list(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--ratios", nargs="+", type=float, default=list(RATIOS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--encoder", choices=("none", "head"), default="none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # outliers
    SCORES.mkdir(parents=True, exist_ok=True)
    for seed, data, ratio in itertools.product(options.seeds, options.data, options.ratios):
        place = SCORES / f"{options.encoder}-{data}-{ratio}-{seed}.npz"
        if not place.exists():
            found = scored(options.encoder, data, ratio, seed, options.data_home)
            partial = place.with_suffix(".part.npz")
            np.savez_compressed(partial, **found)
            partial.replace(place)
            print(place.name, flush=True)


def scored(encoder, data, ratio, seed, data_home):
    """Held-out scores of a fit on the known classes, and scores of the development rows."""
    known = known_classes(data, ratio, seed, data_home)
    train, dev = (embedded(data, subset, data_home) for subset in ("train", "dev"))
    kept = np.isin(train.target, known)
    y, X, new = train.target[kept], normalize(train.embeddings[kept]), normalize(dev.embeddings)
    if encoder == "head":
        texts = [FETCHERS[data](subset=subset, data_home=data_home).data for subset in ("train", "dev")]
        vectors = dict(zip([*texts[0], *texts[1]], [*train.embeddings, *dev.embeddings], strict=True))

        class Looked(SupConTextEncoder):  # each text is embedded once for all cases
            def _pooled(self, texts):
                return torch.from_numpy(np.stack([vectors[text] for text in texts]))

        head = Looked(finetune="head", random_state=seed)
        X, new = head.fit_transform([texts[0][row] for row in np.flatnonzero(kept)], y), head.transform(texts[1])
    clf = EllipsoidOpenSetClassifier(open_label=OPEN, random_state=seed).fit(X, y)
    scores, assigned = score(clf, new)
    truth = clf._encode(np.where(np.isin(dev.target, known), dev.target, OPEN))
    return dict(clf._held_out) | {"dev_scores": scores, "dev_assigned": assigned, "dev_truth": truth}


if __name__ == "__main__":
    main()
