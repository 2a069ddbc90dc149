"""What people use today, as methods of ``today.py``: each is fitted to texts, and answers with a class and a score."""

import functools
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
from features import MODEL
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.svm import OneClassSVM

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._encoders.torch.model_lookup import packaged_model

#: Training texts of each class, for each of which ``SHARES`` has a share.
SIZES = (5, 10, 24, 50, 100)
FOLDS = 5
OPEN = -1


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
        from skellipsoid_bench._encoders import _LookedUp

        self.vectors = dict(zip(texts.words, texts.vectors, strict=True))
        self.encoder = _LookedUp.using(self.vectors)(finetune=self.finetune, layers="last", random_state=self.seed)
        features = self.encoder.fit_transform(texts.words, y)
        self.boundaries = EllipsoidOpenSetClassifier(random_state=self.seed).fit(features, y)
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
