"""What people use today, beside the package, on the same texts and the same embeddings.

Each case takes a share of the classes of a data set as known, and some training texts of each. A method sees these
texts and labels, and nothing else. The test rows, those of other classes open, judge it; they are read for the final
table only. Embeddings are those of all-MiniLM-L6-v2, of unit length, for every method that takes some.

A method that has only a score gets the threshold that rejects a share of its known training texts, each scored by
a model without its fold (five folds). ``choose`` compares shares and settings on development rows, the open ones among
them, and SHARES keeps the best: open texts that a user does not have helped the others, not the package.

    python benchmarks/features.py --data-home ../shared/data
    python benchmarks/today.py choose --data-home ../shared/data
    python benchmarks/today.py sklearn --data-home ../shared/data
    python benchmarks/today.py report > benchmarks/results/today.rst

In place of ``sklearn``: ``skellipsoid``, ``detectors``, ``router``, ``setfit``. The last three run in environments of
their own: ``pip install -c constraints.txt -e . -r
benchmarks/environments/NAME.txt``. An interrupted run goes on.
"""

import argparse
import contextlib
import functools
import itertools
import json
import re
import tempfile
import time
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from duplicates import table
from features import MODEL, embedded, known_classes, read
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.preprocessing import normalize
from sklearn.svm import OneClassSVM

import skellipsoid
from skellipsoid._encoders.torch.backbone import packaged_model
from skellipsoid.metrics import open_set_auroc, open_set_f1_score

RESULTS = Path(__file__).parent / "results" / "today.jsonl"
SETS = {"banking": "Banking77", "stackoverflow": "StackOverflow", "assistant": "Shipped corpus"}
RATIOS = (0.25, 0.5)
SIZES = (5, 10, 24, 50, 100)
#: Training texts of each class that the shipped corpus has.
MOST = {"assistant": 24}
FOLDS = 5
TRIED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
#: Draws of the runs, and the one that chooses shares and settings.
SEEDS, CHOICE = (0, 1, 2), 3
OPEN = -1
#: Texts that are answered one by one, for the time of an answer. Times are of the processor: the machine was busy.
TIMED = 30


class Texts(NamedTuple):
    """Texts, and their embeddings of unit length."""

    words: np.ndarray
    vectors: np.ndarray

    def take(self, rows):
        return Texts(self.words[rows], self.vectors[rows])


class Logistic:
    """Logistic regression and its largest probability."""

    #: Strength, the best of 1, 10 and 100 on development rows.
    C = 10

    def fit(self, texts, y):
        self.model = LogisticRegression(C=self.C, max_iter=1000).fit(texts.vectors, y)
        return self

    def answers(self, texts):
        found = self.model.predict_proba(texts.vectors)
        return found.argmax(axis=1), found.max(axis=1)


class Neighbours:
    """Vote of the five nearest neighbours, and the mean similarity to them."""

    def fit(self, texts, y):
        self.model = KNeighborsClassifier(min(5, len(y)), metric="cosine").fit(texts.vectors, y)
        return self

    def answers(self, texts):
        return self.model.predict(texts.vectors), -self.model.kneighbors(texts.vectors)[0].mean(axis=1)


class Beside:
    """One detector over all known texts, and a logistic regression for the class."""

    def __init__(self, detector):
        self.detector = detector

    def fit(self, texts, y):
        self.classifier, self.fitted = Logistic().fit(texts, y), self.detector(len(y)).fit(texts.vectors)
        return self

    def answers(self, texts):
        return self.classifier.answers(texts)[0], self.fitted.score_samples(texts.vectors)


class PerClass:
    """One detector for each class; the answer is the class whose detector is surest."""

    def __init__(self, detector):
        self.detector = detector

    def fit(self, texts, y):
        of_classes = [texts.vectors[y == label] for label in np.unique(y)]
        self.fitted = [self.detector(len(rows)).fit(rows) for rows in of_classes]
        return self

    def answers(self, texts):
        found = np.stack([fitted.decision_function(texts.vectors) for fitted in self.fitted])
        return found.argmax(axis=0), found.max(axis=0)


class Ours:
    """The package: encoder and boundaries. Texts were embedded before, as for the others."""

    def __init__(self, finetune, seed):
        self.finetune, self.seed = finetune, seed

    def fit(self, texts, y):
        from skellipsoid.benchmark._encoders import _LookedUp

        self.vectors = dict(zip(texts.words, texts.vectors, strict=True))
        self.encoder = _LookedUp.using(self.vectors)(finetune=self.finetune, random_state=self.seed)
        features = self.encoder.fit_transform(texts.words, y)
        self.boundaries = skellipsoid.EllipsoidOpenSetClassifier(random_state=self.seed).fit(features, y)
        return self

    def answers(self, texts):
        self.vectors |= dict(zip(texts.words, texts.vectors, strict=True))
        features = self.encoder.transform(texts.words)
        return self.boundaries.predict_known(features), self.boundaries.score_samples(features)


class Detector:
    """A detector of PyOD or cleanlab under scikit-learn's names."""

    def __init__(self, kind):
        self.kind = kind

    def fit(self, X):
        if self.kind == "cleanlab":
            from cleanlab.outlier import OutOfDistribution

            self.model = OutOfDistribution({"k": min(10, len(X) - 1)})
            self.model.fit(features=X, verbose=False)
        else:
            from pyod.models.ecod import ECOD
            from pyod.models.knn import KNN

            self.model = {"ECOD": ECOD, "KNN": KNN}[self.kind]().fit(X)
        return self

    def score_samples(self, X):
        return self.model.score(features=X) if self.kind == "cleanlab" else -self.model.decision_function(X)


class Fallback(Logistic):
    """scikit-fallback around a logistic regression, with its own cross-validated threshold."""

    def __init__(self, share):
        self.share = share

    def fit(self, texts, y):
        from skfb.estimators import RateFallbackClassifierCV

        model = LogisticRegression(C=self.C, max_iter=1000)
        self.rejecting = RateFallbackClassifierCV(model, fallback_rate=self.share, cv=FOLDS, fallback_mode="return")
        self.rejecting.fit(texts.vectors, y)
        return self

    def answers(self, texts):
        labels, probability = self.rejecting.predict(texts.vectors), self.rejecting.predict_proba(texts.vectors)
        # Its rejections, and its probabilities relative to the threshold.
        score = np.asarray(probability).max(axis=1) - self.rejecting.threshold_
        known = np.asarray(probability).argmax(axis=1)
        assert np.array_equal(np.asarray(labels) == OPEN, score < 0)  # noqa: S101
        return known, score


class Router:
    """semantic-router; with open examples its own ``fit`` makes probabilities, and 0.5 is the threshold."""

    def __init__(self, foreign=None):
        self.foreign = foreign

    def fit(self, texts, y):
        self.vectors = dict(zip(texts.words, texts.vectors.tolist(), strict=True))
        calibrator = None
        if self.foreign is not None:
            self.vectors |= dict(zip(self.foreign.words, self.foreign.vectors.tolist(), strict=True))
            rows, held_out = next(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y))
            new = self.foreign.words[: len(held_out)].tolist()
            first = self._router(texts.words[rows], y[rows])
            first.fit([*texts.words[held_out], *new], [*map(str, y[held_out]), *[None] * len(new)])
            calibrator = first.calibrator
        self.router = self._router(texts.words, y, calibrator)
        return self

    def _router(self, words, y, calibrator=None):
        from semantic_router import IndexedRouter, Route
        from semantic_router.encoders import DenseEncoder

        vectors = self.vectors

        class LookedUp(DenseEncoder):
            def __call__(self, docs):
                return [vectors[text] for text in docs]

        routes = [Route(name=str(label), utterances=words[y == label].tolist()) for label in np.unique(y)]
        return IndexedRouter(LookedUp(name=MODEL), routes, calibrator=calibrator)

    def answers(self, texts):
        self.vectors |= dict(zip(texts.words, texts.vectors.tolist(), strict=True))
        found = [self.router(text, threshold=0.0) for text in texts.words]
        scores = np.array([choice.confidence for choice in found])
        return np.array([int(choice.name) for choice in found]), scores - (0.5 if self.foreign is not None else 0)


class SetFit:
    """SetFit, 60 steps of 16 pairs, with a logistic or a differentiable head."""

    STEPS = 60

    def __init__(self, differentiable):
        self.differentiable = differentiable

    def fit(self, texts, y):
        from setfit import SetFitHead, SetFitModel

        self.body = tuned(tuple(texts.words), tuple(map(int, y)))  # for both heads
        start = time.process_time()
        width = self.body.model.get_embedding_dimension()
        head = SetFitHead(width, len(np.unique(y))) if self.differentiable else LogisticRegression(max_iter=1000)
        self.model = SetFitModel(self.body.model, head)
        settings = {"num_epochs": 16, "batch_size": 2, "head_learning_rate": 1e-2, "l2_weight": 1e-2}  # its defaults
        self.model.fit(list(texts.words), list(map(int, y)), show_progress_bar=False, **settings)
        self.head_seconds = time.process_time() - start
        return self

    @property
    def seconds(self):
        """What the fit would take alone: the text model is trained once for both heads."""
        return self.body.seconds + self.head_seconds

    def answers(self, texts):
        import torch

        vectors = self.body.encode(texts.words)
        with torch.inference_mode():
            found = self.model.model_head.predict_proba(torch.tensor(vectors) if self.differentiable else vectors)
        return np.asarray(found).argmax(axis=1), np.asarray(found).max(axis=1)


class Body:
    """A text model that SetFit has tuned. It reads each text once."""

    def __init__(self, words, labels):
        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments

        start = time.process_time()
        model = SetFitModel.from_pretrained(str(packaged_model(MODEL)))
        settings = {"batch_size": 16, "max_steps": SetFit.STEPS, "seed": 0, "report_to": "none"}
        settings |= {"save_strategy": "no", "show_progress_bar": False}
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(output_dir=folder, **settings)
            rows = Dataset.from_dict({"text": words, "label": labels})
            trainer = Trainer(model=model, args=arguments, train_dataset=rows)
            trainer.train_embeddings(list(words), list(labels), args=arguments)
        self.model, self.seconds, self.read = model.model_body, time.process_time() - start, {}

    def encode(self, words):
        new = [word for word in dict.fromkeys(words) if word not in self.read]
        if new:
            self.read |= dict(zip(new, self.model.encode(new, show_progress_bar=False), strict=True))
        return np.stack([self.read[word] for word in words])


tuned = functools.lru_cache(maxsize=2)(Body)


class Case(NamedTuple):
    """What a method may need beside the training texts."""

    seed: int
    size: int
    #: Open examples, of another data set.
    other: Texts


class Method(NamedTuple):
    """How a method is made, and what it is installed with."""

    make: Any  # of a Case
    group: str
    packages: tuple[str, ...] = ("scikit-learn",)
    #: "share" of the known training texts that its threshold rejects, or the threshold itself.
    threshold: Any = "share"


class Svm(OneClassSVM):
    """One-class SVM whose scores do not grow with the number of rows, so that those of folds foretell those of all."""

    def decision_function(self, X):
        return super().decision_function(X) / self.offset_

    def score_samples(self, X):
        return self.decision_function(X)


def svm(_):
    return Svm(nu=0.1)


def forest(_):
    return IsolationForest(random_state=0)


def lof(n_rows):
    return LocalOutlierFactor(min(20, n_rows - 1), novelty=True)


def pyod(kind):
    return Method(lambda case: Beside(lambda n: Detector(kind)), "detectors", ("pyod",))


OURS, ROUTER, SETFIT = ("skellipsoid",), ("semantic-router",), ("setfit",)
LOGISTIC = "logistic regression"
METHODS = {
    LOGISTIC: Method(lambda case: Logistic(), "sklearn"),
    "logistic regression, 5 %": Method(lambda case: Logistic(), "sklearn"),
    "logistic regression, 0.5": Method(lambda case: Logistic(), "sklearn", threshold=0.5),
    "k nearest neighbours": Method(lambda case: Neighbours(), "sklearn"),
    "OneClassSVM, all": Method(lambda case: Beside(svm), "sklearn"),
    "OneClassSVM, per class": Method(lambda case: PerClass(svm), "sklearn"),
    "IsolationForest, all": Method(lambda case: Beside(forest), "sklearn"),
    "IsolationForest, per class": Method(lambda case: PerClass(forest), "sklearn"),
    "LocalOutlierFactor, all": Method(lambda case: Beside(lof), "sklearn"),
    "LocalOutlierFactor, per class": Method(lambda case: PerClass(lof), "sklearn"),
    "skellipsoid, frozen": Method(lambda case: Ours("none", case.seed), "skellipsoid", OURS, 0),
    "skellipsoid, head": Method(lambda case: Ours("head", case.seed), "skellipsoid", OURS, 0),
    "PyOD ECOD": pyod("ECOD"),
    "PyOD KNN": pyod("KNN"),
    "cleanlab": pyod("cleanlab")._replace(packages=("cleanlab",)),
    "scikit-fallback": Method(
        lambda case: Fallback(share_of(LOGISTIC, case.size)), "detectors", ("scikit-fallback",), 0
    ),
    "semantic-router": Method(lambda case: Router(), "router", ROUTER),
    "semantic-router, fit": Method(lambda case: Router(case.other), "router", ROUTER, 0),
    "SetFit, logistic head": Method(lambda case: SetFit(False), "setfit", SETFIT),
    "SetFit, differentiable head": Method(lambda case: SetFit(True), "setfit", SETFIT),
}
#: Share of the known texts that the threshold of each method rejects, by ``choose``, for each of SIZES.
SHARES = {
    LOGISTIC: (0.4, 0.4, 0.3, 0.3, 0.3),
    "logistic regression, 5 %": (0.05,) * 5,
    "k nearest neighbours": (0.4, 0.3, 0.3, 0.2, 0.2),
    "OneClassSVM, all": (0.3, 0.3, 0.2, 0.2, 0.2),
    "OneClassSVM, per class": (0.5, 0.4, 0.4, 0.3, 0.2),
    "LocalOutlierFactor, all": (0.1, 0.1, 0.2, 0.2, 0.2),
    "LocalOutlierFactor, per class": (0.1, 0.2, 0.1, 0.2, 0.2),
    "IsolationForest, all": (0.3, 0.3, 0.3, 0.3, 0.3),
    "semantic-router": (0.3, 0.4, 0.4, 0.3, 0.3),
    "cleanlab": (0.2, 0.2, 0.3, 0.2, 0.2),
    "PyOD KNN": (0.3, 0.3, 0.4, 0.3, 0.3),
    "PyOD ECOD": (0.05, 0.05, 0.2, 0.2, 0.2),
}


def share_of(method, size):
    """Share that a method rejects; SetFit, for which none was chosen, takes that of the logistic regression."""
    chosen = SHARES.get(LOGISTIC if METHODS[method].group == "setfit" else method)
    return None if chosen is None else chosen[SIZES.index(size)]


def texts_of(name, subset, data_home):
    """Texts and labels of one part of a data set."""
    words = np.asarray(read(name, subset, data_home).data, dtype=object)
    vectors, target = embedded(name, subset, data_home)
    return Texts(words, normalize(vectors)), np.asarray(target)


def run_case(method, train, new, draw, other, shares):
    """Fit a method to some texts of the known classes, and judge it on new texts, at each share.

    Parameters
    ----------
    method : str
    train, new : (Texts, labels)
    draw : (known classes, texts of each class, seed)
    other : Texts
        Open examples, of another data set.
    shares : sequence of float

    Returns
    -------
    list of dict
    """
    (texts, y), (new_texts, y_new) = train, new
    known, size, seed = draw
    known = np.sort(known)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:size] for label in known])
    texts, codes = texts.take(rows), np.searchsorted(known, y[rows])
    truth = np.where(np.isin(y_new, known), np.searchsorted(known, y_new).clip(max=len(known) - 1), OPEN)
    spec, case = METHODS[method], Case(seed, size, other)
    start = time.process_time()
    model = spec.make(case).fit(texts, codes)
    held_out = None
    if spec.threshold == "share":
        folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(codes, codes))
        # SetFit takes minutes a model: a fifth of the texts stands for all.
        folds = folds[:1] if spec.group == "setfit" else folds
        parts = [spec.make(case).fit(texts.take(rest), codes[rest]) for rest, _ in folds]
        of_folds = zip(parts, folds, strict=True)
        held_out = np.concatenate([part.answers(texts.take(left))[1] for part, (_, left) in of_folds])
    seconds = time.process_time() - start
    if spec.group == "setfit":
        seconds = model.seconds + sum(part.seconds for part in parts)
    labels, scores = model.answers(new_texts)
    start = time.process_time()
    for row in range(TIMED):
        model.answers(new_texts.take([row]))
    alone = (time.process_time() - start) / TIMED
    found = {"n_train": len(rows), "seconds": round(seconds, 3), "ms": round(1000 * alone, 3)}
    lines = []
    for share in shares if spec.threshold == "share" else [None]:
        threshold = spec.threshold if held_out is None else float(np.quantile(held_out, share))
        lines.append(judge(labels, scores, threshold, truth, np.arange(len(known))) | {"share": share} | found)
    return lines


def judge(labels, scores, threshold, truth, classes):
    """Figures of one fit, in percent."""
    answers, is_open = np.where(scores < threshold, OPEN, labels), truth == OPEN
    wrong = (answers != truth) & (answers != OPEN)
    shares = {
        "f1": open_set_f1_score(truth, answers, labels=classes, zero_division=0),
        "auroc": open_set_auroc(truth, scores, labels=classes),
        "rejected": np.mean(answers[~is_open] == OPEN),
        "wrong": np.mean(wrong[~is_open]),
        "noticed": np.mean(answers[is_open] == OPEN),
    }
    return {name: round(100 * float(share), 2) for name, share in shares.items()}


def cases(names, sizes, ratios, data_home, subset):
    """Every case without its seed: the data set, its parts, and open examples of another one."""
    parts = {name: [texts_of(name, part, data_home) for part in ("train", subset)] for name in SETS}
    foreign = {name: parts["banking" if name == "assistant" else "assistant"][0][0] for name in SETS}
    order = np.random.default_rng(0).permutation
    foreign = {name: texts.take(order(len(texts.words))) for name, texts in foreign.items()}
    for size, name, ratio in itertools.product(sizes, names, ratios):
        if size <= MOST.get(name, size):
            yield name, ratio, size, *parts[name], foreign[name]


def known_of(name, ratio, seed, train, data_home):
    """Known classes: those of the literature's protocol where there is one."""
    if name in ("banking", "stackoverflow"):
        return known_classes(name, ratio, seed, data_home)
    labels = np.unique(train[1])
    return np.random.RandomState(seed).choice(labels, round(len(labels) * ratio), replace=False)


def choose(options):
    """Print the mean F1 on development rows of every share, by method and texts per class."""
    methods = options.methods or [name for name, spec in METHODS.items() if spec.group in options.groups]
    print(f"{'shares':30}", *TRIED)
    for size in options.sizes:
        found = {method: [] for method in methods}
        for name, ratio, _, train, dev, other in cases(SETS, [size], RATIOS, options.data_home, "dev"):
            draw = (known_of(name, ratio, CHOICE, train, options.data_home), size, CHOICE)
            for method in methods:
                found[method].append([line["f1"] for line in run_case(method, train, dev, draw, other, TRIED)])
        for method, figures in found.items():
            print(f"{method:30}", size, *(f"{mean:.1f}" for mean in np.mean(figures, axis=0)), flush=True)


def run(options):
    """Append every case of a group of methods that is not there yet."""
    found = read_lines()
    done = {(*case_of(row), row["method"]) for row in found}
    methods = options.methods or [name for name, spec in METHODS.items() if spec.group == options.task]
    for seed in options.seeds:
        for case in cases(options.sets, options.sizes, options.ratios, options.data_home, "test"):
            name, ratio, size, train, test, other = case
            draw = (known_of(name, ratio, seed, train, options.data_home), size, seed)
            for method in methods:
                if (name, ratio, size, seed, method) in done:
                    continue
                share = share_of(method, size)
                line = {"data": name, "ratio": ratio, "size": size, "seed": seed, "method": method}
                line |= run_case(method, train, test, draw, other, [share])[0]
                line["mib"] = round(installed_mib((*METHODS[method].packages, "sentence-transformers")))
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


@functools.cache
def installed_mib(packages):
    """MiB on the disk of packages and of all that they require."""
    seen, waiting, total = set(), list(packages), 0
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        total += sum(path.stat().st_size for path in _files(found))
        needed = [line for line in found.requires or [] if "extra ==" not in line]
        waiting += [re.match(r"[\w.-]+", line).group() for line in needed]
    return total / 2**20


def _files(found):
    if found.name == "skellipsoid":  # it may be an editable installation
        return list(Path(skellipsoid.__file__).parent.rglob("*.*"))
    paths = (Path(path.locate()) for path in found.files or [])
    return [path for path in paths if path.is_file()]


def read_lines():
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return [json.loads(line) for line in lines]


def report(found):
    """Print the tables: every case, the cases that SetFit has, by texts per class, and by data set."""
    found = with_auto(found)
    every = cases_of(found, AUTO)
    of_all = [name for name in (*METHODS, AUTO) if cases_of(found, name) >= every]
    draws = len({seed for *_, seed in every})
    print(f"Means of {len(every)} cases ({draws} draw{'s' * (draws > 1)} of the known classes).\n")
    print_means(found, of_all, every)
    for head in ("logistic", "differentiable"):
        few = cases_of(found, f"SetFit, {head} head")
        sizes = ", ".join(map(str, sorted({size for _, _, size, _ in few})))
        print(f"Means of the {len(few)} cases that SetFit has with its {head} head, of {sizes} texts per class:\n")
        print_means(found, [name for name in (*METHODS, AUTO) if cases_of(found, name) >= few], few)
    kept = [row for row in found if case_of(row) in every]
    print("F1 by texts per class; the shipped corpus has no more than 24.\n")
    by(kept, of_all, "size", {size: str(size) for size in SIZES})
    print("F1 by data set and known share.\n")
    places = itertools.product(SETS, RATIOS)
    by(kept, of_all, ("data", "ratio"), {place: f"{SETS[place[0]]} {place[1]:.0%}" for place in places})


AUTO = "skellipsoid, auto"


def with_auto(found):
    """All rows, and those of ``finetune="auto"``: frozen up to 24 texts of each class, from 25 on the head."""
    chosen = [row for row in found if row["method"] == f"skellipsoid, {'frozen' if row['size'] < 25 else 'head'}"]
    return found + [row | {"method": AUTO} for row in chosen]


def case_of(row):
    return row["data"], row["ratio"], row["size"], row["seed"]


def cases_of(found, method):
    return {case_of(row) for row in found if row["method"] == method}


def print_means(found, methods, kept):
    """Print each method's figures over some cases, the best F1 first, and in how many its F1 is above that of auto."""
    rows = [row for row in found if case_of(row) in kept]
    of_method = {name: [row for row in rows if row["method"] == name] for name in methods}
    f1 = {name: {case_of(row): row["f1"] for row in of_method[name]} for name in methods}
    lines = []
    for name in sorted(methods, key=lambda name: -np.mean([row["f1"] for row in of_method[name]])):
        mean = {key: np.mean([row[key] for row in of_method[name]]) for key in ("rejected", "wrong", "noticed")}
        mean |= {key: np.mean([row[key] for row in of_method[name]]) for key in ("f1", "auroc")}
        median = [np.median([row[key] for row in of_method[name]]) for key in ("seconds", "ms")]
        above = np.mean([value > f1[AUTO][case] for case, value in f1[name].items()])
        lines.append([name, *(f"{value:.1f}" for value in mean.values())])
        lines[-1] += [f"{100 * above:.0f} %", *(f"{value:.1f}" for value in median), str(of_method[name][0]["mib"])]
    heads = ["method", "known rejected", "wrong class", "open noticed", "F1", "AUROC", "better than auto"]
    table([*heads, "fit, s", "answer, ms", "installed, MiB"], lines)


def by(found, methods, keys, places):
    """Print the F1 of each method by one or two keys of a case."""
    keys = (keys,) if isinstance(keys, str) else keys
    lines = []
    for name in methods:
        cells = {place: [] for place in places}
        for row in found:
            place = tuple(row[key] for key in keys)
            if row["method"] == name:
                cells[place if len(keys) > 1 else place[0]].append(row["f1"])
        lines.append((np.mean([np.mean(values) for values in cells.values()]), name, cells))
    lines.sort(reverse=True, key=lambda line: line[0])
    rows = [[name, *(f"{np.mean(values):.1f}" for values in cells.values())] for _, name, cells in lines]
    table(["method", *places.values()], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = list(dict.fromkeys(spec.group for spec in METHODS.values()))
    parser.add_argument("task", choices=("choose", "report", *groups))
    parser.add_argument("--data-home", default=None, help="folder that holds banking/train.tsv (default: the cache)")
    parser.add_argument("--groups", nargs="+", default=["sklearn"], choices=groups, help="of choose")
    parser.add_argument("--methods", nargs="+", default=None, choices=METHODS)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, type=int)
    parser.add_argument("--ratios", nargs="+", default=RATIOS, type=float)
    parser.add_argument("--seeds", nargs="+", default=SEEDS, type=int)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".* have fewer than 10 different samples")
    {"choose": choose, "report": lambda _: report(read_lines())}.get(options.task, run)(options)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
