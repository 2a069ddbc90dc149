"""Whether learning adds to the closed form: the paper's two losses on the lengths of the axes that all classes share.

In the coordinates of the closed form one factor for each axis, shared by all classes, is learned by Adam from the
expansion of left-out samples (eq. 13) and the contraction of samples of synthetic classes (eq. 15), with a penalty that
draws the logarithms of the factors to 0. Whole classes that trained nothing, as open, say after how many steps to stop.
The development rows then judge both, each at its best threshold (oracle F1) and by AUROC. No test row is read.

    python studies/features.py --data-home ../../../shared/data
    python studies/learned_lengths.py --data-home ../../../shared/data > results/learned_lengths.rst
"""

import argparse

import numpy as np
import torch
from features import FETCHERS, RATIOS, embedded, known_classes
from sklearn.preprocessing import normalize

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid.axes import component
from skellipsoid._ellipsoid.math.mixtures import draw_synthetic_classes
from skellipsoid._torch.losses import contraction_loss, expansion_loss
from skellipsoid.metrics import open_set_auroc, open_set_f1_score
from skellipsoid_bench import paired_test

N_STEPS, EVERY, RATE = 60, 5, 0.02
BETA, ALPHA = 0.5, 0.6


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    found = []
    rule = "=================  ====  =============  =============  ====="
    print(f"{rule}\ndata, known        seed  closed form    learned        steps\n{rule}")
    for seed in options.seeds:
        for name in FETCHERS:
            for ratio in RATIOS:
                closed, learned, steps = one_case(name, ratio, seed, options.data_home)
                found.append((closed, learned))
                texts = ["{:.2f} / {:.2f}".format(*scores) for scores in (closed, learned)]
                print(f"{f'{name} {ratio:.0%}':17}  {seed:<4}  {texts[0]:13}  {texts[1]:13}  {steps}", flush=True)
    table = np.array(found)
    texts = ["{:.2f} / {:.2f}".format(*scores) for scores in table.mean(axis=0)]
    print(f"{'mean':17}        {texts[0]:13}  {texts[1]:13}")
    print(f"{rule}\n")
    gain, p_value = np.diff(table[:, :, 0]).mean(), paired_test(table[:, 1, 0], table[:, 0, 0]).t_pvalue
    print("Oracle F1 / AUROC on development rows, frozen features. ", end="")
    print(f"Learned less closed form: {gain:+.2f} F1, paired t-test p = {p_value:.2g}.")


def one_case(name, ratio, seed, data_home):
    """Oracle F1 and AUROC of the closed form and of the learned lengths, and the steps that were taken."""
    parts = [embedded(name, subset, data_home) for subset in ("train", "dev")]
    (X, y), (dev, truth) = [(normalize(part.embeddings).astype(np.float64), part.target) for part in parts]
    known = known_classes(name, ratio, seed, data_home)
    X, y = X[np.isin(y, known)], y[np.isin(y, known)]
    truth = np.where(np.isin(truth, known), truth, "-1")
    # A fifth of the classes, and a fifth of the rows of the others, say when to stop.
    rng = np.random.default_rng(seed)
    unknown = rng.choice(known, max(1, len(known) // 5), replace=False)
    judging = np.isin(y, unknown) | (rng.random(len(y)) < 0.2)
    trial = Lengths(X[~judging], y[~judging], seed)
    held_truth = np.where(np.isin(y[judging], unknown), "-1", y[judging])
    scores = []
    for step in range(N_STEPS + 1):
        if step % EVERY == 0:
            scores.append(trial.judge(X[judging], held_truth)[0])
        trial.step()
    steps = EVERY * int(np.argmax(scores))
    final = Lengths(X, y, seed)
    closed = final.judge(dev, truth)
    for _ in range(steps):
        final.step()
    return closed, final.judge(dev, truth), steps


class Lengths:
    """Factors of the squared lengths along the shared coordinates of a fitted classifier."""

    def __init__(self, X, y, seed):
        self.clf = EllipsoidOpenSetClassifier(random_state=seed).fit(X, y)
        codes = np.searchsorted(self.clf.classes_, y)
        # Five folds make rows that their boundaries were made without.
        folds = np.random.default_rng(seed).integers(5, size=len(y))
        squares = []
        for fold in range(5):
            kept = folds != fold
            clf = EllipsoidOpenSetClassifier(random_state=seed).fit(X[kept], y[kept])
            rows = X[~kept]
            nearest = np.searchsorted(clf.classes_, clf.predict_known(rows))
            classes = codes[~kept]
            rng, weights = np.random.default_rng(seed), np.ones(len(rows))
            means, sources = draw_synthetic_classes(classes, len(rows), ALPHA, rng, weights)
            between = means.of(torch.from_numpy(clf.centroids_)).numpy() + (rows - clf.centroids_[classes])[sources]
            of_between = np.searchsorted(clf.classes_, clf.predict_known(between))
            squares.append([self.squares(clf, *scored) for scored in ((rows, nearest), (between, of_between))])
        self.known, self.between = (torch.from_numpy(np.concatenate(part)) for part in zip(*squares, strict=True))
        self.logs = torch.zeros(self.known.shape[1], dtype=torch.float64, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.logs], lr=RATE)

    def squares(self, clf, rows, assigned):
        """Split squared distances, in units of the radius, by the coordinates of the fit to all rows."""
        ours = self.clf._boundaries.shapes.metric.axes.astype(np.float64) / self.clf.scale_
        found = np.zeros((len(rows), ours.shape[1]))
        for k in np.unique(assigned):
            mine = assigned == k
            offsets, matrix = rows[mine] - clf.centers_[k], component(clf._boundaries, k) / clf.radii_[k]
            gradient = offsets @ matrix.T @ matrix
            found[mine] = (offsets @ ours) * np.linalg.solve(ours, gradient.T).T
        return found

    def step(self):
        """Take one step of Adam on the mean losses."""
        self.optimizer.zero_grad()
        factors, one = self.logs.exp(), torch.ones(1, dtype=torch.float64)
        known, between = ((part @ factors).clamp_min(1e-9).sqrt() for part in (self.known, self.between))
        loss = expansion_loss(known, one).mean() + contraction_loss(between, one, BETA).mean()
        (loss + 0.01 * self.logs.square().mean()).backward()
        self.optimizer.step()

    def judge(self, X, truth):
        """Best F1 of 99 thresholds, and AUROC, in percent."""
        nearest = self.clf.predict_known(X)
        squares = self.squares(self.clf, X, np.searchsorted(self.clf.classes_, nearest))
        scores = -np.sqrt(np.maximum(squares @ self.logs.detach().exp().numpy(), 0))
        labels = self.clf.classes_
        offsets = np.quantile(scores, np.linspace(0.01, 0.99, 99))
        answers = (np.where(scores >= offset, nearest, "-1") for offset in offsets)
        f1 = max(open_set_f1_score(truth, answer, labels=labels, zero_division=0) for answer in answers)
        return 100 * f1, 100 * open_set_auroc(truth, scores, labels=labels)


if __name__ == "__main__":
    main()
