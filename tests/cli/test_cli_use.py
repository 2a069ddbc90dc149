"""The commands that use a model, the words of the command line, and one sentence for everything that goes wrong."""

import errno
import io
import json
import sys

import numpy as np
import pytest
import safetensors.numpy
from command_helpers import done, fails
from file_helpers import write, written
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, __version__, explain, load, save
from skellipsoid.cli import main
from skellipsoid.metrics import open_set_report

RUN = "import sys; from skellipsoid.cli import main; sys.exit(main(sys.argv[1:]))"


def test_version_is_told_without_loading_anything_heavy(fresh_python):
    script = (
        "import sys\nfrom skellipsoid.cli import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    print([name for name in ('numpy', 'sklearn', 'torch', 'transformers') if name in sys.modules])"
    )
    assert fresh_python(script).stdout.splitlines() == [__version__, "[]"]


# predict


def test_no_line_is_lost_after_one_that_is_not_utf_8(saved, texts, warm_python):
    lines = ["", "  two  spaces\there", "ünïcödé 左", *((texts * 47)[i] for i in range(1500))]
    lines = [*map(str.encode, lines)]
    lines[3], lines[1025] = b"caf\xe9", b"half a surrogate \xed\xa0\x80"
    stdin = b"\xef\xbb\xbf" + b"\n".join(lines) + b"\r\n"
    process = warm_python(RUN, "predict", "--model", saved, stdin=stdin, text=False)
    assert process.returncode == 0
    read = [line.decode(errors="replace") for line in lines]
    expected = [f"{label}\t{line}" for label, line in zip(load(saved).predict(read), read, strict=True)]
    assert process.stdout.decode().split("\n") == [*expected, ""]
    notes = process.stderr.decode().splitlines()
    assert len(notes) == 3
    assert notes[0] == "skellipsoid: Line 4 is not UTF-8; what cannot be read in it is replaced by \ufffd."
    assert " are open, such as '  two  spaces\\there', 'ünïcödé 左'" in notes[1]  # not the empty one
    assert notes[2].startswith("skellipsoid: Line 1026 is not UTF-8; ")


def test_predict_answers_each_line_at_once_on_a_terminal(saved, capsys, monkeypatch):
    asked = []

    class Typed(io.BytesIO):
        def __next__(self):
            asked.append(capsys.readouterr().out)
            return super().__next__()

    class Terminal(io.StringIO):
        buffer = Typed(b"alarm\nbalance\n")

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["predict", "--model", str(saved)]) == 0
    assert [line.split("\t")[1] for line in asked if line] == ["alarm\n", "balance\n"]


def predicted(folder, lines, give_input, capsys, *options):
    give_input("\n".join(lines))
    return done(capsys, "predict", "--model", folder, *options).splitlines()


def test_scores_stand_beside_the_label(saved, texts, open_texts, give_input, capsys):
    lines = [*texts[:3], *open_texts, 'a "quote"\tand a tab', "左"]
    why = explain(load(saved), lines, n_axes=0)
    rows = predicted(saved, lines, give_input, capsys, "--scores")
    records = [json.loads(line) for line in predicted(saved, lines, give_input, capsys, "--scores", "--json")]
    columns = ["label", "nearest_class", "margin", "p_value", "runner_up", "unread", "text"]
    for i, (row, record) in enumerate(zip(rows, records, strict=True)):
        label, nearest, margin, p_value, runner_up, text = row.split("\t", maxsplit=5)
        assert (label, nearest, runner_up, text) == (why.answer[i], why.nearest_class[i], why.runner_up[i], lines[i])
        assert float(margin) == record["margin"] == pytest.approx(why.margin[i], abs=5e-5)
        assert float(p_value) == record["p_value"] == pytest.approx(why.p_value[i], abs=5e-5)
        assert list(record) == columns
        assert [record[name] for name in ("label", "unread", "text")] == [label, why.unread[i], text]
    short = predicted(saved, lines, give_input, capsys, "--json")
    assert [json.loads(line) for line in short] == [{name: row[name] for name in ("label", "text")} for row in records]
    assert short[-1].endswith('"text": "左"}')


def test_messages_that_cannot_be_read_are_named(saved, texts, give_input, capsys):
    give_input("\n".join([texts[0], "?!", "左", "?!"]))
    assert main(["predict", "--model", str(saved)]) == 0
    said = capsys.readouterr().err
    assert said.count("the embedding model reads nothing") == 1
    assert "such as '?!', '左'." in said


def test_the_nearest_training_texts_are_the_reason(tiny_model, table, texts, labels, tmp_path, give_input, capsys):
    folder, lines = tmp_path / "with texts", [texts[5].upper(), "rain\ttomorrow"]
    done(capsys, "train", "--data", table, "--model-name", tiny_model, "--save", folder, "--keep-texts", "--quiet")
    why = explain(load(folder), lines, n_axes=0, n_neighbors=2)
    assert why.neighbor_1[0] == texts[5]
    for line, text, i in zip(predicted(folder, lines, give_input, capsys, "--explain"), lines, (0, 1), strict=True):
        reasons = [why.neighbor_1[i], why.neighbor_label_1[i], why.neighbor_2[i], why.neighbor_label_2[i]]
        assert line == "\t".join([why.answer[i], *reasons, text])
    assert why.neighbor_label_1[0] == labels[5]
    record = json.loads(predicted(folder, lines, give_input, capsys, "--explain", "--scores", "--json")[1])
    names = ["neighbor_1", "neighbor_label_1", "neighbor_2", "neighbor_label_2"]
    assert list(record) == ["label", "nearest_class", "margin", "p_value", "runner_up", "unread", *names, "text"]
    assert [record[name] for name in names] == reasons


@pytest.mark.filterwarnings("ignore:Classes without spread")
def test_scores_of_a_model_that_held_nothing_out_and_has_numbers_for_classes(
    tiny_model, texts, labels, tmp_path, give_input, capsys
):
    # Two copies of one text for each class: of no class a text can be left out.
    codes = np.unique(labels, return_inverse=True)[1]
    firsts = np.repeat(np.unique(codes, return_index=True)[1], 2)
    pipeline = make_pipeline(SupConTextEncoder(tiny_model, finetune="none"), EllipsoidOpenSetClassifier())
    pipeline.fit([texts[first] for first in firsts], codes[firsts])
    save(pipeline, tmp_path / "model")
    record = json.loads(predicted(tmp_path / "model", ["alarm"], give_input, capsys, "--scores", "--json")[0])
    assert record["p_value"] is None
    assert record["nearest_class"] in range(4)
    fields = predicted(tmp_path / "model", ["alarm"], give_input, capsys, "--scores")[0].split("\t")
    assert (len(fields), fields[3]) == (6, "")
    # The labels of a file are text, those of this model numbers.
    path = write(tmp_path, written([*zip(texts, codes, strict=True), ("a joke", 9)], "\t"), "test.tsv")
    out = done(capsys, "evaluate", "--model", tmp_path / "model", "--data", path, "--quiet")
    assert "33 texts, 1 of them open, because the model does not know the label '9' (1)" in out
    truth = np.append(codes, -1)
    report = open_set_report(truth, pipeline.predict([*texts, "a joke"]), labels=range(4), zero_division=np.nan)
    assert report in out


# What goes wrong


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_table_that_cannot_be_used_is_one_sentence(tmp_path, saved, capsys, command):
    more = {"train": ["--save", tmp_path / "model"], "evaluate": ["--model", saved]}[command]
    said = fails(capsys, command, "--data", tmp_path, *more)
    assert f"{str(tmp_path)!r} holds no training texts of a kind that" in said
    said = fails(capsys, command, "--data", write(tmp_path, ""), *more)
    assert "mine.csv' holds no row with both a text and a label; give it texts" in said
    if command != "evaluate":
        said = fails(capsys, command, "--data", write(tmp_path, "wake me\t-1\n", "open.tsv"), *more)
        assert "holds 1 texts, all labelled '-1'; give it texts of at" in said


@pytest.mark.parametrize("command", ["demo", "train"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_trained(
    tmp_path, table, capsys, command, monkeypatch
):
    monkeypatch.setattr(SupConTextEncoder, "fit", lambda *given: pytest.fail("trained"))
    below = table / "model"
    assert f"--save {str(below)!r} cannot be written" in fails(capsys, command, "--data", table, "--save", below)
    assert list(tmp_path.iterdir()) == [table]


def test_a_model_that_cannot_be_used_is_one_sentence(tmp_path, saved, table, capsys):
    assert "There is no folder" in fails(capsys, "evaluate", "--model", tmp_path / "missing", "--data", table)
    assert "is not a saved model: it holds no skellipsoid.json" in fails(capsys, "predict", "--model", tmp_path)
    X = np.random.default_rng(0).normal(size=(20, 2))
    save(EllipsoidOpenSetClassifier().fit(X, [0, 1] * 10), tmp_path / "alone")
    save(load(saved)[:-1], tmp_path / "half")
    save(load(saved)[-1:], tmp_path / "other half")
    for name in ["alone", "half", "other half"]:
        assert "does not take texts; save a Pipeline" in fails(capsys, "predict", "--model", tmp_path / name)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError("no file named x.\nSee below."), "The model in {} cannot be used (OSError: no file named x); take"),
        (OSError(errno.ENOSPC, "No space left"), "[Errno 28] No space left"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_the_first_use_of_a_model_is_explained(saved, monkeypatch, give_input, capsys, error, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(SupConTextEncoder, "transform", fail)
    give_input()
    assert fails(capsys, "predict", "--model", saved).startswith(f"skellipsoid: {sentence.format(repr(str(saved)))}")


NO_RATE = "argument --rejection-rate: '{}' is not a proportion; use a number from 0 to below 1"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "skellipsoid: error: a command is missing\n"),
        ("teach", "skellipsoid: error: there is no command 'teach'\n"),
        ("lear", "skellipsoid: error: there is no command 'lear'; did you mean learn?\n"),
        ("set-limit", "it is now set-threshold"),
        ("train --dta x", "there is no option --dta; did you mean --data?"),
        ("train --over", "there is no option --over; did you mean --overwrite?"),  # no abbreviation
        ("train --zzz", "there is no option --zzz\n"),
        ("train", "the following arguments are required: --data, --save"),
        ("demo --data", "argument --data: expected one argument"),
        ("demo --seed 1.5", "argument --seed: '1.5' is not a seed; use a whole number from 0 to 4294967295"),
        ("demo --seed 4294967296", "argument --seed: '4294967296' is not a seed"),
        *((f"train --rejection-rate {rate}", NO_RATE.format(rate)) for rate in ("1", "nan", "5%")),
        ("set-threshold --model m --open-share 20", "argument --open-share: "),
        ("train --finetune all", "argument --finetune: invalid choice: 'all'"),
        ("train --finetune haed", "did you mean head?"),
        ("evaluate --plot x.doc", "argument --plot: 'x.doc' names no format; use a name that ends in .pdf, .png, .svg"),
        ("evaluate --plot no/such/x.png", "argument --plot: there is no folder 'no/such' for 'no/such/x.png'; create"),
    ],
)
def test_a_wrong_command_line_names_the_option(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments.split())
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: skellipsoid")
    assert sentence in err
    assert err.count("monitor") <= 1  # the list of commands, in the usage


def test_an_error_of_load_that_is_no_sentence_is_explained(saved, monkeypatch, capsys):
    def fail(content):
        raise EOFError("too short")

    monkeypatch.setattr(safetensors.numpy, "load", fail)
    expected = f"The model in {str(saved)!r} cannot be used (EOFError: too short); take a"
    assert expected in fails(capsys, "predict", "--model", saved)
