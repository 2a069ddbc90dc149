"""The command ``train``: check the texts, fit encoder and classifier, test, forecast and save."""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, filterwarnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._core.pipelines import duplicate_groups, read_estimator
from .._core.spelling import refuse_lookalikes
from .._core.warn import warn
from .._data_check.text_check import find_problems
from .._ellipsoid.classifier import EllipsoidOpenSetClassifier
from .._encoders.supcon import SupConTextEncoder
from .._encoders.text_features import embedding_once
from .._held_out.kept import held_out_rows
from .._samples.folds import validation_rows
from .._text_files.read import LabelledTexts, read_table
from .._torch.progress import progress_line
from .._traffic.operating_point.offsets import rejection_offset, warn_of_few
from ..persistence._save import save_changed
from ._ahead import check_folder
from ._beside import warn_of_stale_export
from ._evaluate import metrics, report
from ._given import read_by
from ._intents import intents
from ._options import OPEN_LABEL
from ._report_page import Judged, save_report
from ._split import Split, split_table
from ._trade_off import MEMBERS, forecasts, held_out_trade_off, tested_rows, tested_trade_off, traffic_forecast
from ._use import explained

#: Proportion of each intent's texts that sets the threshold of ``--rejection-rate``.
_TUNING_PROPORTION = 0.2
#: The kind of finding that needs nothing to be done: equal texts count once.
_COPIES = "exact_duplicates"
#: Findings of one kind that are printed at most.
_MOST_SHOWN = 5


class Tested(NamedTuple):
    """Predictions for the test texts of a split, the report on them, other thresholds, and the seconds of training."""

    predicted: NDArray[Any]
    report: str
    trade_off: str | None
    seconds: float | None
    classifier: Any
    #: Labels, predictions and scores; ``None`` without known and open texts.
    rows: dict[str, Any] | None


@embedding_once()
def train(options: argparse.Namespace) -> None:
    """Train on all texts of a user's file, and keep the model."""
    replaced = check_folder(options.save, overwrite=options.overwrite)
    _check_text_model(options.model_name)
    (texts, labels), facts, findings = read(options)
    trade_off = tested = split = None
    if options.report:
        split = split_table(texts, labels, options.open_label, options.seed)
        print(split.note, *split.gaps, sep="\n", flush=True)
        tested = run_test(split, options, facts)
        print_report(tested)
        trade_off = tested and tested.trade_off
    progress_line(f"Training on all {len(texts)} texts.", not options.quiet)
    pipeline = fit(texts, labels, options)
    if options.report and (table := intents(pipeline["clf"])):
        print(f"\n{table}", flush=True)
    # What was tested is not estimated as well.
    estimated = held_out_trade_off(pipeline["clf"])
    trade_off = trade_off or estimated
    if trade_off and not options.quiet:
        print(f"\n{trade_off}", flush=True)
        if estimated:  # what is forecast needs held-out texts, too
            print(f"\n{traffic_forecast(pipeline['clf'])}", flush=True)
    if options.save_report is not None:
        _save_report(options, pipeline["clf"], len(texts), findings, split, tested)
    keep(pipeline, options, facts, replaced)


def _save_report(
    options: argparse.Namespace,
    classifier: Any,
    n_texts: int,
    findings: list[str],
    split: Split | None,
    tested: Tested | None,
) -> None:
    """Write the report: on the test texts where there are some, else on what the fit held out."""
    try:
        rows, expected = held_out_rows(classifier, "train"), forecasts(classifier)
    except ValueError:  # a single intent, or one text of each
        rows, expected = None, {}
    facts = [("data", options.data.name), ("texts", str(n_texts)), ("intents", str(len(classifier.classes_)))]
    judged = Judged(classifier, rows, *[np.empty(0, dtype=object)] * 3)
    if split is not None and tested is not None:
        facts.append(("tested on", f"{len(split.test)} texts that a first model was trained without"))
        judged = Judged(tested.classifier, tested.rows, split.test, split.test_labels, tested.predicted)
    save_report(options.save_report, f"Report on {options.data.name}", facts, judged, expected, findings)
    print(f"\nThe report is in {options.save_report}")


def _check_text_model(name: str | None) -> None:
    """Refuse an embedding model that cannot be used, before anything is read or trained."""
    if name is not None:
        with catch_warnings(), explained(f"The embedding model {name!r}", OSError, ValueError):
            simplefilter("ignore")  # the training repeats them
            SupConTextEncoder(name, finetune="none", device="cpu").fit(["the first text"])


def read(
    options: argparse.Namespace,
) -> tuple[tuple[NDArray[np.object_], NDArray[Any]], dict[str, Any], list[str]]:
    """Read and check a user's file: texts and labels, facts for the saved model, and the findings of the check."""
    how = {"label_column": options.label_column, "language": options.language, **read_by(options)}
    given = read_table(options.data, kept=[options.open_label], **how)
    texts, labels = given.texts, given.labels
    if not (labels != options.open_label).any():
        found = (
            f"{len(labels)} texts, all labelled {options.open_label!r}"
            if len(labels)
            else "no row with both a text and a label"
        )
        raise ValueError(f"{str(options.data)!r} holds {found}; give it texts of at least one intent.")
    refuse_lookalikes(labels, options.open_label)
    counts, findings = _check_texts(given, options)
    n_open = int((labels == options.open_label).sum())
    if n_open and not options.quiet:
        print(
            f"{n_open} texts have the open label {options.open_label!r}: they train no intent. "
            "If this is an intent of yours, pass another --open-label.",
            file=sys.stderr,
        )
    if options.open_label not in (OPEN_LABEL, *labels) and "open_label" not in counts:
        warn(
            f"No text of {str(options.data)!r} has the open label {options.open_label!r}; every label in it is a known "
            "intent."
        )
    return (texts, labels), {"data": options.data.name, "n_texts": len(texts), "data_check": counts}, findings


def _check_texts(given: LabelledTexts, options: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    """Print the findings of the check, one sentence a line; gives their counts by kind, and the sentences."""
    progress_line(f"Checking {len(given.texts)} texts.", not options.quiet)
    found = find_problems(
        given.texts, given.labels, _encoder(options), options.open_label, given.numbers.tolist(), given.unit
    )
    counts = dict(Counter(found.kind.tolist()))
    lines = [f"Look at these texts of {str(options.data)!r}:"] if counts.keys() - {_COPIES} else []
    for kind, count in counts.items():
        if kind != _COPIES:
            lines += found.message[found.kind == kind][:_MOST_SHOWN].tolist()
            if count > _MOST_SHOWN:
                more = count - _MOST_SHOWN
                lines.append(f"({more} more of this kind; skellipsoid.check_training_texts gives all.)")
    if copies := counts.get(_COPIES, 0):
        whose = "1 label has" if copies == 1 else f"{copies} labels have"
        lines.append(f"{whose} equal texts, each of which counts once: nothing to do.")
    if lines and not options.quiet:
        print(*lines, sep="\n", file=sys.stderr, flush=True)
    return counts, found.message.tolist()


def run_test(
    split: Split, options: argparse.Namespace, facts: dict[str, Any], pipeline: Pipeline | None = None
) -> Tested | None:
    """Predict the test texts, with a model of the training part if none is given; ``None`` without test texts.

    The report and its metrics are added to ``facts``.
    """
    if not len(split.test):
        return None
    start, is_given = time.perf_counter(), pipeline is not None
    if pipeline is None:
        what = f"Training on {len(split.train)} texts, to test the model on {len(split.test)} others."
        progress_line(what, not options.quiet)
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # the training on all texts gives these warnings
            pipeline = fit(split.train, split.train_labels, options, says=False)
    seconds = None if is_given else time.perf_counter() - start
    classifier, features = read_estimator(pipeline, split.test, MEMBERS, "train")
    predicted = classifier.predict(features)
    facts["report"] = report(classifier, split.test_labels, predicted)
    facts["metrics"] = metrics(classifier, split.test_labels, predicted)
    trade_off = tested_trade_off(classifier, features, split.test_labels, "--rejection-rate sets the threshold")
    rows = tested_rows(classifier, features, split.test_labels)
    return Tested(predicted, facts["report"], trade_off, seconds, classifier, rows)


def print_report(tested: Tested | None) -> None:
    """Print the report of a test, or that there is none."""
    if tested is None:
        print("There is no report, because no text is left to test.")
        return
    trained = "" if tested.seconds is None else f"Trained in {tested.seconds:.0f} s. "
    print(f"\n{trained}On the in-distribution test set:\n\n{tested.report}", flush=True)


def fit(
    texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace, *, says: bool = True
) -> Pipeline:
    """Fit encoder and classifier as the options say; ``says``: print how the threshold was set.

    With ``--rejection-rate`` it is set on texts that were held out. Without training of the encoder these are all
    texts, which the fit leaves out one at a time. An encoder that is trained has seen them; then a first model without
    some of the texts scores these.
    """
    if options.rejection_rate is None:
        return fit_with_features(texts, labels, options)[0]
    codes, is_known = np.unique(labels, return_inverse=True)[1], labels != options.open_label
    copies = duplicate_groups(texts, np.zeros(len(texts)))
    held_out = validation_rows(codes, _TUNING_PROPORTION, np.random.default_rng(options.seed), copies)
    if not (held_out & is_known).any():
        raise ValueError(
            f"--rejection-rate {options.rejection_rate} needs texts to hold out, but every intent has a single text; "
            "gather more, or leave it out."
        )
    pipeline = fit_with_features(texts, labels, options)[0]
    scores, how = pipeline["clf"].held_out_scores_, "that were left out one at a time"
    if scores is None or pipeline["enc"].finetune_ != "none":
        progress_line(f"Training without {held_out.sum()} texts, whose scores set the threshold.", not options.quiet)
        with catch_warnings():
            simplefilter("ignore", UserWarning)  # it is trained on a part of the same texts
            first = fit_with_features(texts[~held_out], labels[~held_out], options)[0]
        scores, how = first.score_samples(texts[held_out & is_known]), "that a first model was trained without"
    warn_of_few("--rejection-rate", options.rejection_rate, len(scores))
    offset = pipeline["clf"].offset_ = rejection_offset(scores, options.rejection_rate)
    rejected = np.mean(scores < offset)
    if says:
        print(f"Threshold: of {len(scores)} known texts {how}, {rejected:.1%} are predicted open.")
    return pipeline


def fit_with_features(
    texts: NDArray[np.object_], labels: NDArray[Any], options: argparse.Namespace
) -> tuple[Pipeline, NDArray[Any]]:
    """Fit encoder and classifier, and give the features of the texts too, which a Pipeline computes and drops."""
    how = {"open_label": options.open_label, "random_state": options.seed, "verbose": int(not options.quiet)}
    classifier = EllipsoidOpenSetClassifier(**how)
    pipeline = Pipeline([("enc", _encoder(options)), ("clf", classifier)])
    with catch_warnings():
        filterwarnings("ignore", "y has classes with usual names")  # the check of the texts reports it
        features = pipeline["enc"].fit_transform(texts, labels)
        pipeline["clf"].fit(features, labels)
    return pipeline.set_params(enc__verbose=0, clf__verbose=0), features


def _encoder(options: argparse.Namespace) -> SupConTextEncoder:
    named = {} if options.model_name is None else {"model_name": options.model_name}
    return SupConTextEncoder(
        finetune=options.finetune,
        keep_texts=options.keep_texts,
        open_label=options.open_label,
        random_state=options.seed,
        verbose=int(not options.quiet),
        **named,
    )


def keep(pipeline: Pipeline, options: argparse.Namespace, facts: dict[str, Any], replaced: str | None) -> None:
    """Save the model; beside the folder if another program has made or changed what is there since ``check_folder``."""
    folder = options.save
    try:
        save_changed(pipeline, folder, replaced, facts)
    except (FileExistsError, NotADirectoryError) as error:
        happened = "appeared" if replaced is None else "was changed"
        beside = _save_beside(pipeline, folder if folder.name else folder.absolute(), facts)
        raise FileExistsError(
            f"{str(folder)!r} {happened} during the training and is left alone; the model is in {str(beside)!r} "
            "instead, use it there or move it."
        ) from error
    warn_of_stale_export(folder)
    print(f"\nThe model is in {folder}; label lines with: skellipsoid predict --model {folder}")


def _save_beside(pipeline: Pipeline, folder: Path, facts: dict[str, Any]) -> Path:
    """Save under the first free name with a number, so that the training is not lost."""
    number = 2
    while True:
        beside = folder.with_name(f"{folder.name}-{number}")
        try:
            save_changed(pipeline, beside, None, facts)
        except (FileExistsError, NotADirectoryError):
            if not os.path.lexists(beside):
                raise
            number += 1
        else:
            return beside
