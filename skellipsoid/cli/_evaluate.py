"""The command ``evaluate``: metrics of a model on the labelled texts of a file."""

import argparse
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.characters import printable
from .._core.pipelines import read_estimator, split_estimator
from .._core.spelling import refuse_other_spellings
from .._text_files.read import read_table
from .._traffic.predict_set import predict_set, zones_of
from ..metrics import asking_report, open_set_report
from ..plotting._pictures import require_matplotlib, save_picture
from ._given import read_by
from ._report_page import Judged, save_report
from ._trade_off import MEMBERS, tested_rows, tested_trade_off
from ._use import load_model, open_because

_NO_OPEN = "all of intents that the model knows: open rejection is not measured"


def evaluate(options: argparse.Namespace) -> None:
    """Report on the texts of a file; with ``--plot`` draw the confusion matrix."""
    if options.plot is not None:
        require_matplotlib("--plot")
    pipeline = load_model(options.model, options)[0]
    classifier = split_estimator(pipeline)[1]
    texts, labels = read_labelled(options, classifier)
    if not len(texts):
        raise ValueError(
            f"{str(options.data)!r} holds no row with both a text and a label; give it texts and their labels."
        )
    known = {str(label): label for label in classifier.classes_.tolist()}
    truth = np.array([known.get(label, classifier.open_label_) for label in labels.tolist()])
    others = Counter(label for label in labels.tolist() if label not in known)
    says = f"{others.total()} of them {open_because(others)}" if others else _NO_OPEN
    print(f"{len(texts)} texts, {says}")
    classifier, features = read_estimator(pipeline, texts, MEMBERS, "evaluate")
    predicted = classifier.predict(features)
    print(f"\n{report(classifier, truth, predicted)}")
    if zones_of(classifier) is not None:
        print(f"\n{_asked(classifier, truth, predict_set(classifier, features))}")
    advice = "choose one on other texts than you report on"
    if not options.quiet and (table := tested_trade_off(classifier, features, truth, advice)):
        print(f"\n{table}")
    if options.save_report is not None:
        save_report(
            options.save_report,
            f"Report on {options.data.name}",
            [("model", str(options.model)), ("texts", f"{len(texts)}, {says}")],
            Judged(classifier, tested_rows(classifier, features, truth), texts, truth, predicted),
        )
        print(f"\nThe report is in {options.save_report}")
    if options.plot is not None:
        save_picture(options.plot, lambda: _draw(classifier, truth, predicted))
        print(f"\nThe confusion matrix is in {options.plot}")


def read_labelled(options: argparse.Namespace, classifier: Any) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Read texts and labels of ``--data``; a label of the model never counts as a missing value."""
    kept = {str(label) for label in [*classifier.classes_, classifier.open_label_]}
    how = {"label_column": options.label_column, "language": options.language, **read_by(options)}
    found = read_table(options.data, kept=kept, **how)
    refuse_other_spellings(found.labels, classifier.classes_, classifier.open_label_)
    return found.texts, found.labels


def report(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> str:
    """Format the open-set report; undefined values are nan, and averages leave them out."""
    found = _report(classifier, truth, predicted)
    return "\n".join(map(printable, str(found).split("\n")))  # labels of a model may hold anything


def _asked(classifier: Any, truth: NDArray[Any], found: Any) -> str:
    """Say what becomes of the texts if the bot asks back."""
    figures = asking_report(truth, found, open_label=classifier.open_label_, labels=classifier.classes_)
    percent = {name: 100 * proportion for name, proportion in figures.items()}
    known = truth != classifier.open_label_
    lines = ["With questions (predict --ask):"]
    if known.any():
        helped = abs(100 - percent["missed"] - percent["served"])
        handed_over = 100 - percent["served"] - percent["wrong"] - percent["asked"]
        lines.append(
            f"of 100 known texts {percent['served']:.0f} are right, {percent['wrong']:.0f} wrong, "
            f"{percent['asked']:.0f} asked about ({helped:.0f} with the right label among the candidates), "
            f"{abs(handed_over):.0f} handed over"
        )
    if not known.all():
        handed_over = 100 - percent["open_asked"] - percent["open_answered"]
        lines.append(
            f"of 100 open ones {percent['open_answered']:.0f} get a known label, {percent['open_asked']:.0f} are asked "
            f"about, {abs(handed_over):.0f} are handed over"
        )
    return "\n".join(lines)


def metrics(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, float]:
    """Give the numbers of the report that are not of single classes; undefined ones are left out."""
    found = _report(classifier, truth, predicted, output_dict=True)
    return {name: value for name, value in found.items() if isinstance(value, float) and np.isfinite(value)}


def _report(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any], **options: Any) -> Any:
    named = {"open_label": classifier.open_label_, "labels": classifier.classes_, "zero_division": np.nan}
    return open_set_report(truth, predicted, **named, **options)


def _draw(classifier: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> Any:
    """Draw the confusion matrix."""
    from ..plotting import OpenSetConfusionMatrixDisplay

    display = OpenSetConfusionMatrixDisplay.from_predictions(
        truth, predicted, open_label=classifier.open_label_, labels=classifier.classes_
    )
    return display.figure_.figure
