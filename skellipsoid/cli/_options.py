"""The options of all commands. An invalid option raises an error with its name, before anything is loaded."""

import argparse
from pathlib import Path

from .._version import __version__
from ._file_options import add_columns, add_encoding, add_lines, add_text_column
from ._parser import Parser
from ._values import Commands, ReadProportion, count, page_file, plot_file, proportion, seed

#: The default open label of a file.
OPEN_LABEL = "-1"
#: What a file of ``--data`` and a folder of ``--model`` can be, for the help.
_TABLE = (
    "a workbook (.xlsx, .xls, .ods), CSV or tab-separated text, JSON lines or parquet, with a column of texts and one "
    "of labels; or what a bot was trained on: Rasa, Dialogflow, LUIS, fastText, a folder of classes"
)
_MODEL = "a folder that train --save or skellipsoid.save wrote"
_HUB = "or the name user/name of a model on the Hugging Face hub"


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser: argparse.ArgumentParser = Parser(
        prog="skellipsoid",
        description="Open-set classification of text.",
        epilog="First: skellipsoid train --data FILE --save MODEL. Then predict labels files, and skellipsoid-serve "
        "--model MODEL --log LOG --log-texts answers over HTTP. review and learn adapt the model to users' messages.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_demo(commands)
    _add_train(commands)
    _add_evaluate(commands)
    _add_predict(commands)
    _add_traffic(commands)
    _add_set_threshold(commands)
    _add_review(commands)
    _add_learn(commands)
    _add_monitor(commands)
    _add_changes(commands)
    _add_compare(commands)
    _add_export(commands)
    commands.metavar = " | ".join(commands.choices)
    for command in commands.choices.values():
        command.add_argument(
            "--quiet", action="store_true", help="no progress bars, and of the notes only those on what is left out"
        )
    return parser


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser("demo", help="train on a corpus, report on a test set, classify sentences")
    demo.add_argument("sentences", nargs="*", metavar="SENTENCE", help="classify these, instead of a few of our own")
    demo.add_argument("--data", type=Path, metavar="FILE", help=f"your own corpus, {_TABLE}")
    add_columns(demo)
    demo.add_argument(
        "--report", action="store_true", help="also print how it was tested, and the results for each intent"
    )
    demo.add_argument("--save", type=Path, metavar="FOLDER", help="keep the model in a new folder")
    _add_training(demo)
    demo.set_defaults(finetune="auto", model_name=None, rejection_rate=None, keep_texts=False)


def _add_train(commands: Commands) -> None:
    train = commands.add_parser(
        "train",
        help="train on your own file and keep the model",
        description="Train on all texts of a file, and keep the model in a new folder. An interrupted run leaves no "
        "folder, or the model that was there.",
    )
    _add_table(train, _TABLE)
    train.add_argument("--save", type=Path, required=True, metavar="FOLDER", help="a new folder for the model")
    train.add_argument(
        "--report",
        action="store_true",
        help="first train without a quarter of the texts, and report on these; takes twice as long",
    )
    _add_report_page(train)
    train.add_argument(
        "--rejection-rate",
        type=proportion,
        metavar="PROPORTION",
        help="proportion of new texts of known intents that may be predicted open, such as 0.05; the threshold is set "
        "on a fifth of the texts that a first model is trained without, and kept by the model that is trained on all; "
        "takes twice as long (default: the threshold as it is fitted)",
    )
    train.add_argument(
        "--finetune",
        choices=("auto", "none", "head", "full"),
        default="auto",
        help="what is trained: nothing, a linear layer on the embedding model, or the embedding model too; auto is "
        "none or head, by the texts per intent (default: auto)",
    )
    train.add_argument(
        "--keep-texts",
        action="store_true",
        help="keep the training texts in the model, for predict --explain; whoever has the model can read them",
    )
    train.add_argument("--model-name", metavar="MODEL", help="folder or name of another embedding model")
    _add_training(train)


def _add_report_page(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--save-report",
        type=page_file,
        metavar="FILE.html",
        help="also write the figures to a page with pictures",
    )


def _add_table(command: argparse.ArgumentParser, help_of_data: str) -> None:
    command.add_argument("--data", type=Path, required=True, metavar="FILE", help=help_of_data)
    add_columns(command)


def _add_training(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the model that was saved in the folder, when the new one is complete",
    )
    command.add_argument(
        "--open-label", default=OPEN_LABEL, metavar="LABEL", help="the label of open texts (default: -1)"
    )
    command.add_argument(
        "--seed", type=seed, default=0, metavar="NUMBER", help="seed of the split and of the training (default: 0)"
    )


def _add_evaluate(commands: Commands) -> None:
    evaluate = commands.add_parser("evaluate", help="report the metrics of a model on the texts of a file")
    _add_model(evaluate)
    _add_table(evaluate, f"{_TABLE}; labels that the model does not know are open")
    _add_report_page(evaluate)
    evaluate.add_argument(
        "--plot", type=plot_file, metavar="FILE.png", help="draw the confusion matrix (or .pdf, .svg)"
    )


def _add_predict(commands: Commands) -> None:
    predict = commands.add_parser(
        "predict", help="label texts, or lines from standard input: label<TAB>text on standard output, in UTF-8"
    )
    predict.add_argument("texts", nargs="*", metavar="TEXT", help="label these, instead of standard input")
    _add_model(predict)
    add_lines(predict, "label the texts of a file instead: a line for each row of it")
    predict.add_argument(
        "--scores",
        action="store_true",
        help="label, nearest class, margin (negative: predicted open), conformal p-value, runner-up, text",
    )
    predict.add_argument(
        "--ask",
        action="store_true",
        help="before the text also what to do with it (answer, ask or open), and up to three candidates to ask about",
    )
    predict.add_argument(
        "--explain",
        action="store_true",
        help="before the text also the two nearest training texts, each with its label; for a model of train "
        "--keep-texts",
    )
    predict.add_argument("--json", action="store_true", help="one JSON object a line, instead of tabs")
    predict.add_argument(
        "--keep-columns",
        action="store_true",
        help="write the rows of --data in its format, CSV for CSV, with the columns answer, margin, p_value, "
        "nearest_class, and the nearest training text if the model keeps them",
    )
    predict.add_argument(
        "--save",
        type=Path,
        metavar="FILE.xlsx",
        help="write the rows of --data with these columns to a workbook, whatever the format of --data",
    )
    predict.add_argument("--open-only", action="store_true", help="write the texts alone that are predicted open")
    predict.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write the predictions for each file of --data, which may be a pattern in quotes, to a folder; a run "
        "that was interrupted goes on with the files that have none",
    )


def _add_model(command: argparse.ArgumentParser) -> None:
    """Add the model of a command that leaves it as it is."""
    command.add_argument("--model", type=Path, required=True, metavar="FOLDER", help=f"{_MODEL}, {_HUB}")
    command.add_argument(
        "--revision",
        metavar="COMMIT",
        help="the commit, branch or tag of a model on the hub (default: its main branch)",
    )


def _add_changed_model(command: argparse.ArgumentParser) -> None:
    """Add the model that a command changes, and where the changed one goes."""
    command.add_argument("--model", type=Path, required=True, metavar="FOLDER", help=_MODEL)
    command.add_argument(
        "--save",
        type=Path,
        metavar="OTHER",
        help="a new folder for the changed model (default: it replaces the model, all at once)",
    )


def _add_traffic(commands: Commands) -> None:
    traffic = commands.add_parser("traffic", help="estimate how much of a log is open; lines from standard input")
    _add_model(traffic)
    add_lines(traffic, "read the texts of a file instead")
    _add_labels(traffic)
    traffic.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="group the texts that are predicted open; write a line for each group, to be labelled, to a .xlsx, with "
        "the texts on a second sheet, or a .tsv or .csv, with FILE-members beside it, or a .html, a page with "
        "all of them",
    )


def _add_labels(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--label-column",
        metavar="COLUMN",
        help="the column of labels in --data, empty where nobody has labelled; thirty labels of texts drawn at random "
        "are enough",
    )


def _add_set_threshold(commands: Commands) -> None:
    threshold = commands.add_parser(
        "set-threshold",
        help="move the threshold of a model: for a log, a proportion of open texts, or of known ones",
        description="Print what another threshold changes, and save the model with it. The training stays.",
    )
    _add_changed_model(threshold)
    add_lines(threshold, "the threshold for this log; needs --label-column or --open-share")
    _add_labels(threshold)
    threshold.add_argument(
        "--open-share",
        type=proportion,
        nargs="+",
        action=ReadProportion,
        metavar="PROPORTION",
        help="the threshold for this proportion of open texts, such as 0.05, or for an interval, such as 0.02 0.1",
    )
    threshold.add_argument(
        "--rejection-rate",
        type=proportion,
        metavar="PROPORTION",
        help="the threshold that rejects this proportion of the known texts that the training held out, such as 0.05",
    )
    threshold.add_argument(
        "--miss-rate",
        type=proportion,
        metavar="PROPORTION",
        help="at most this proportion of known texts, such as 0.05, gets neither the right label nor a question that "
        "offers it (predict --ask); alone it leaves the threshold as it is",
    )
    threshold.add_argument(
        "--undo",
        action="store_true",
        help="back to the threshold of the training or of the last learn; one of train --rejection-rate is dropped",
    )


def _add_review(commands: Commands) -> None:
    review = commands.add_parser(
        "review",
        help="choose messages of a log to label, and write them to a file with what the model proposes",
        description="Thirty labelled messages tell where the threshold belongs. They are drawn along the score. The "
        "column weight, in thousandths, says for how many messages of the log each one stands; leave it as it is.",
    )
    _add_model(review)
    add_lines(review, "read the texts of a file instead of lines from standard input; its other columns are kept")
    review.add_argument("-n", type=count, default=30, metavar="NUMBER", help="number of messages (default: 30)")
    review.add_argument(
        "--save",
        type=Path,
        required=True,
        metavar="FILE",
        help="the .xlsx, .tsv or .csv, with an empty column label to fill in, or a .html, a page to label in a browser",
    )
    review.add_argument(
        "--no-neighbours", action="store_true", help="leave out the training texts that are nearest to each message"
    )


def _add_learn(commands: Commands) -> None:
    learn = commands.add_parser(
        "learn",
        help="learn from labelled messages, without training the embedding model again",
        description="Known messages join the training, names that the model does not know become intents where five "
        "messages have them, and the threshold is placed for the log.",
    )
    learn.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help="the file of review, with its column label filled in"
    )
    learn.add_argument("--log", type=Path, metavar="FILE", help="the log that was reviewed; its other messages count")
    add_encoding(learn, "--log")
    add_text_column(learn, "--log")
    _add_changed_model(learn)
    learn.add_argument(
        "--picks",
        action="store_true",
        help="users picked the labels when they were asked (predict --ask, or the server): only such messages have one",
    )
    learn.add_argument(
        "--yes",
        action="store_true",
        help="go on although a label is nearly the name of another class, or seems to say that there is none",
    )


def _add_monitor(commands: Commands) -> None:
    monitor = commands.add_parser(
        "monitor",
        help="test whether more of a log looks open than of the first one; the exit code is 3 on alarm",
        description="The first log is the reference. Give each later one once: the texts since the last call, in their "
        "order. What was read is kept in a file.",
    )
    monitor.add_argument("--model", type=Path, required=True, metavar="FOLDER", help=_MODEL)
    add_lines(monitor, "read the texts of a file instead of lines from standard input")
    monitor.add_argument(
        "--state", type=Path, metavar="FILE", help="where it is kept (default: FOLDER.monitor.json, beside the model)"
    )


def _add_changes(commands: Commands) -> None:
    add = commands.add_parser(
        "add",
        help="add the labelled texts of a file to a model, without training it again",
        description="Add new intents, and more texts of known ones, to a model of train. Its encoder stays. Rows "
        "without a label are left out. In the groups of traffic --save, a label is given to all texts of the group.",
    )
    remove = commands.add_parser("remove", help="remove intents from a model, without training it again")
    merge = commands.add_parser("merge", help="merge intents of a model into one, or rename one")
    for command in (add, remove, merge):
        _add_changed_model(command)
        command.add_argument(
            "--refresh", action="store_true", help="also choose shrinkage and size of the boundaries anew"
        )
    _add_table(add, _TABLE)
    add.add_argument(
        "--yes",
        action="store_true",
        help="go on although a label is nearly the name of another class or seems to say that there is none, or groups "
        "are labelled in part",
    )
    for command in (remove, merge):
        command.add_argument("--labels", nargs="+", required=True, metavar="LABEL", help="known intents")
    merge.add_argument("--into", required=True, metavar="LABEL", help="the label of the merged intent")


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser(
        "compare", help="report which predictions for lines from standard input change from one model to the next"
    )
    for name, what in (("before", "the present model"), ("after", "the model that is to replace it")):
        compare.add_argument(f"--{name}", type=Path, required=True, metavar="FOLDER", help=f"{what}: {_MODEL}, {_HUB}")
    add_lines(compare, "take the texts of a file instead")
    compare.add_argument(
        "--save", type=Path, metavar="FILE.tsv", help="write the changed predictions with margins and texts to a file"
    )


def _add_export(commands: Commands) -> None:
    export = commands.add_parser(
        "export",
        help="write a model as one ONNX graph, with which predict starts without torch, with equal predictions",
        description="Without --out the export is written beside the model, in its folder onnx, and replaces an "
        "earlier one of this command when it is complete. predict uses it where onnxruntime is installed.",
    )
    _add_model(export)
    export.add_argument(
        "--out", type=Path, metavar="FOLDER", help="a new folder, for skellipsoid-serve and for machines without torch"
    )
    export.add_argument(
        "--quantize",
        action="store_true",
        help="INT8 quantization: faster and smaller, but predictions change a little; for --out and a model of train "
        "--keep-texts",
    )
    export.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the export in the folder of --out, when the new one is complete",
    )
