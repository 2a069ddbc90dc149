"""One run: features, search, fit and figures of a case. Test samples are read once, at the end."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from skellipsoid._base import resolve_device
from skellipsoid._core.files import write_table
from skellipsoid._core.pipelines import duplicate_groups
from skellipsoid.metrics import open_set_f1_score
from skellipsoid.model_selection import OpenSetKFold

from ._data import OPEN, Case, DataSet, DataSpec, draw_case, load_data
from ._encoders import EncoderSpec, Features, FeatureSource, SentenceModel, takes_dev
from ._identity import answers_of, by_value, content_key, has_settings, name_of_class, sources_of
from ._judge import Answers, judge, read_answers
from ._measure import measured, processor, versions
from ._methods import MethodSpec
from ._store import NAMES, Record, naming
from ._text_classifier import TextOpenSetClassifier

#: Parameters of an encoder that a run sets.
_OF_THE_RUN = ("device", "open_label", "random_state", "verbose")
#: What stands for the encoder where the rows are features already.
NO_ENCODER = "features"


class Task(NamedTuple):
    """One case and one encoder: what all methods share."""

    data: DataSpec
    data_home: str | None
    ratio: float
    seed: int
    encoder: EncoderSpec | None
    n_splits: int
    cache: str
    device: str
    predictions: str | None = None
    needs_dev: bool = False  # whether a method or the encoder takes development samples

    @property
    def encoder_name(self) -> str:
        """Name of the encoder in the tables."""
        return NO_ENCODER if self.encoder is None else self.encoder.name

    def load(self) -> DataSet:
        """Load the rows, once in each process."""
        return load_data(self.data, self.data_home)

    def draw(self) -> Case:
        """Draw the known classes."""
        return draw_case(self.load(), self.ratio, self.seed)

    def source(self, verbose: int = 0) -> FeatureSource:
        """Make the source of features."""
        return FeatureSource(self.load(), self.encoder, Path(self.cache), self.device, verbose)


class Run(NamedTuple):
    """One method on one case."""

    task: Task
    method: MethodSpec

    @property
    def name(self) -> tuple[str, float, int, str, str]:
        """Tell which run this is."""
        task = self.task
        return task.data.name, task.ratio, task.seed, task.encoder_name, self.method.name

    def difference(self, record: Record) -> str | None:
        """Say in what a result of this name differs; ``None`` if it is of this data, encoder and method."""
        task, method = self.task, self.method
        searched = by_value(list(ParameterGrid(dict(method.search)))) if method.search else None
        stored = record["search"] and [score["params"] for score in record["search"]["scores"]]
        if record["data_sha256"] != task.load().sha256:
            return "other data"
        if record["estimator"] != method.path or not has_settings(method.estimator, record["params"]):
            return "other parameters of the method"
        if searched != stored or (stored and record["search"]["n_splits"] != min(task.n_splits, record["n_classes"])):
            return "another search of the method"
        if not self._has_text_model(record["encoder_params"]):
            return "another text model"
        return None if self._has_encoder(record["encoder_params"]) else "other parameters of the encoder"

    def _has_text_model(self, stored: Mapping[str, Any] | None) -> bool:
        now = _encoder_params(self.task)
        return now is None or stored is None or now.get("model_sha256") == stored.get("model_sha256")

    def _has_encoder(self, stored: Mapping[str, Any] | None) -> bool:
        encoder, now = self.task.encoder, _encoder_params(self.task)
        if encoder is None or now is None or stored is None:
            return encoder is None and stored is None
        if now.get("estimator") != stored.get("estimator"):
            return False
        if isinstance(encoder.estimator, SentenceModel):
            return True
        # The files say which text model it is, and the run sets the others.
        unread = () if encoder.is_own else ("model_name", *_OF_THE_RUN)
        estimator = self.task.source().estimator
        return has_settings(estimator, {**stored, **{name: getattr(estimator, name) for name in unread}})

    @property
    def answers(self) -> dict[str, int]:
        """Versions of the answers of method and encoder, where they are not 1."""
        return answers_of(self.method.estimator, self.task.encoder and self.task.encoder.estimator)

    @property
    def sources(self) -> dict[str, str]:
        """Hashes of the source of own code in method and encoder."""
        return sources_of(self.method.estimator, self.task.encoder and self.task.encoder.estimator)


def forget() -> None:
    """Keep nothing in memory: files may change between two benchmarks of one process."""
    load_data.cache_clear()
    case_features.cache_clear()


def run_method(run: Run) -> Record:
    """Run one method on one case."""
    task, method, started = run.task, run.method, datetime.now(UTC).isoformat(timespec="seconds")
    data, case = task.load(), task.draw()
    labels = data.labels[case.train]
    found = _search(task, method) if method.search else None
    estimator = method.build(task.seed, task.device, found["chosen"] if found else {})
    # After everything that is chosen: the test samples' features are read here, and nowhere before.
    features, device = case_features(task), resolve_device(task.device)
    watched = {} if features.dev is None else {"X_val": features.dev, "y_val": data.labels[case.dev]}
    watched = watched if takes_dev(estimator) else {}
    estimator, fit_seconds, fit_memory = measured(lambda: estimator.fit(features.train, labels, **watched), device)
    predicted, predict_seconds, predict_memory = measured(lambda: estimator.predict(features.other), device)
    memory = [each for each in (fit_memory, predict_memory) if each is not None]
    classes = np.unique(labels)
    answers = read_answers(estimator, features.other, predicted, classes)
    return {
        **dict(zip(NAMES, run.name, strict=True)),
        **judge(answers, case.truth, classes),
        "n_classes": len(classes),
        "n_train": len(case.train),
        "n_test": len(case.test),
        "n_open": int((case.truth == OPEN).sum()),
        "fit_seconds": round(fit_seconds, 4),
        "predict_seconds": round(predict_seconds, 4),
        "encode_seconds": round(features.seconds, 2),
        **_training_of(estimator, features),
        "peak_memory_mb": max(memory, default=None),
        "estimator": method.path,
        "params": method.params,
        "search": by_value(found),
        "encoder_params": _encoder_params(task),
        "device": str(device),
        "encoder_device": features.device,
        "threads": torch.get_num_threads(),
        "cpu": processor(),
        "predictions": _save_predictions(run, answers, data.labels[case.test], case.truth),
        "data_sha256": data.sha256,
        "started": started,
        "versions": versions(),
        **({"answers_version": run.answers} if run.answers else {}),
        **({"sources": run.sources} if run.sources else {}),
    }


def _training_of(estimator: Any, features: Features) -> dict[str, Any]:
    """Epochs of the text model's training, and why it ended; a method that takes texts trains one itself."""
    epochs, stop = features.epochs, features.stop
    if isinstance(estimator, TextOpenSetClassifier):
        epochs, stop = getattr(estimator, "n_iter_", None), getattr(estimator, "stop_reason_", None)
    return {"encoder_epochs": epochs, "encoder_stop": stop}


def _save_predictions(run: Run, answers: Answers, labels: NDArray[np.str_], truth: NDArray[np.str_]) -> str | None:
    """Write label, truth, score and answer of each test sample, and give the name of the file."""
    if run.task.predictions is None:
        return None
    # Letters that every file system has, whatever the locale.
    readable = re.sub(r"[^\w.]+", "-", "_".join(map(str, run.name)), flags=re.ASCII).strip("-")
    path = Path(run.task.predictions, f"{readable}_{content_key(*run.name)[:8]}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    scores = [""] * len(truth) if answers.score is None else [repr(score) for score in answers.score.tolist()]
    rows = zip(labels.tolist(), truth.tolist(), scores, answers.predicted.tolist(), strict=True)
    with naming(path):
        write_table(path, ["label", "truth", "score", "answer"], rows, delimiter=",")
    return path.name


@lru_cache(maxsize=1)
def case_features(task: Task) -> Features:
    """Features of the training and the test samples, kept for the next method."""
    case = task.draw()
    dev = case.dev if task.needs_dev and len(case.dev) else None
    return task.source().features(case.train, case.test, task.seed, dev)


def _encoder_params(task: Task) -> dict[str, Any] | None:
    """Give the encoder's parameters and the SHA-256 of the text model's files."""
    if task.encoder is None:
        return None
    source = task.source()
    estimator, model = source.estimator, {"model_sha256": source.model}
    if not task.encoder.is_own:
        return {**{name: value for name, value in estimator.get_params().items() if name not in _OF_THE_RUN}, **model}
    found = {"estimator": name_of_class(type(estimator)), **by_value(estimator.get_params(deep=False))}
    return {**found, **model} if isinstance(estimator, SentenceModel) else found


def _search(task: Task, method: MethodSpec) -> dict[str, Any]:
    """Choose parameters on train and dev samples: folds leave whole classes out, of the encoder's training too."""
    data, case, source = task.load(), task.draw(), task.source()
    rows = np.concatenate([case.train, case.dev])
    labels = data.labels[rows]
    groups = duplicate_groups(data.rows[rows], np.zeros(len(rows)))
    splits = min(task.n_splits, len(np.unique(labels)))
    candidates = list(ParameterGrid(dict(method.search)))
    table = []  # F1 of each candidate on each fold, in percent
    for train, test in OpenSetKFold(splits, shuffle=True, random_state=task.seed).split(rows, labels, groups):
        features, known = source.features(rows[train], rows[test], task.seed), np.unique(labels[train])
        truth = np.where(np.isin(labels[test], known), labels[test], OPEN)
        scores = []
        for params in candidates:
            estimator = method.build(task.seed, task.device, params).fit(features.train, labels[train])
            answers = np.asarray(estimator.predict(features.other)).astype(np.str_)
            scores.append(100 * open_set_f1_score(truth, answers, labels=known, open_label=OPEN, zero_division=0))
        table.append(scores)
    means = np.mean(table, axis=0)
    return {
        "chosen": candidates[int(means.argmax())],
        "n_splits": splits,
        "scores": [{"params": params, "f1": float(f1)} for params, f1 in zip(candidates, means, strict=True)],
    }
