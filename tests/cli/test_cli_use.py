"""The commands that use a model, the words of the command line, and one sentence for everything that goes wrong."""

import contextlib
import errno
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest
import safetensors.numpy
from safetensors import SafetensorError
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, __version__, explain, load, predict_set, save
from skellipsoid.baselines import KNNOpenSetClassifier
from skellipsoid.cli import main
from skellipsoid.metrics import asking_report, open_set_report

RUN = "import sys; from skellipsoid.cli import main; sys.exit(main(sys.argv[1:]))"


def test_version_is_told_without_loading_anything_heavy(fresh_python):
    script = (
        "import sys\nfrom skellipsoid.cli import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    print([name for name in ('numpy', 'sklearn', 'torch', 'transformers') if name in sys.modules])"
    )
    answer = fresh_python(script)
    assert answer.stdout.splitlines() == [__version__, "[]"]
    assert answer.returncode == 0


# predict


def test_predict_labels_lines_from_standard_input(saved, texts, open_texts, warm_python):
    lines = [*texts, *open_texts, "", "  two  spaces\there", "ünïcödé 左"]
    done = warm_python(RUN, "predict", "--model", saved, stdin="\ufeff" + "\n".join(lines) + "\r\n")
    assert done.returncode == 0
    assert done.stderr.endswith(" are open, such as '  two  spaces\\there', 'ünïcödé 左'.\n")  # not the empty one
    assert done.stderr.count("\n") == 1
    expected = [f"{label}\t{line}" for label, line in zip(load(saved).predict(lines), lines, strict=True)]
    assert done.stdout.split("\n") == [*expected, ""]


def test_predict_speaks_utf_8_whatever_the_locale(saved, fresh_environment):
    environment = {**fresh_environment(), "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, "predict", "--model", str(saved)],
        input="ünïcödé 左\n".encode(),
        capture_output=True,
        env=environment,
        check=True,
    )
    assert done.stdout.decode().endswith("\tünïcödé 左\n")


def test_no_line_is_lost_after_one_that_is_not_utf_8(saved, texts, warm_python):
    lines = [(texts * 47)[i].encode() for i in range(1502)]
    lines[3], lines[1025] = b"caf\xe9", b"half a surrogate \xed\xa0\x80"
    done = warm_python(RUN, "predict", "--model", saved, stdin=b"\n".join(lines), text=False)
    assert done.returncode == 0
    answered = done.stdout.decode().splitlines()
    assert [answer.split("\t")[1] for answer in answered] == [line.decode(errors="replace") for line in lines]
    assert answered[3].endswith("\tcaf\ufffd")
    notes = done.stderr.decode().splitlines()
    assert len(notes) == 3
    assert notes[0] == "skellipsoid: Line 4 is not UTF-8; what cannot be read in it is replaced by \ufffd."
    assert notes[1].endswith(" are open, such as 'caf\ufffd'.")
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
    assert main(["predict", "--model", str(folder), *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_scores_stand_beside_the_label(saved, texts, open_texts, give_input, capsys):
    lines = [*texts[:3], *open_texts, "a\ttab"]
    why = explain(load(saved), lines, n_axes=0)
    found = predicted(saved, lines, give_input, capsys, "--scores")
    assert len(found) == len(lines)
    for i, line in enumerate(found):
        label, nearest, margin, p_value, runner_up, text = line.split("\t", maxsplit=5)
        assert (label, nearest, runner_up, text) == (why.answer[i], why.nearest_class[i], why.runner_up[i], lines[i])
        assert float(margin) == pytest.approx(why.margin[i], abs=5e-5)
        assert float(p_value) == pytest.approx(why.p_value[i], abs=5e-5)


def test_json_lines(saved, texts, give_input, capsys):
    lines = [*texts[:3], 'a "quote"\tand a tab', "左"]
    why = explain(load(saved), lines, n_axes=0)
    found = [json.loads(line) for line in predicted(saved, lines, give_input, capsys, "--scores", "--json")]
    assert [list(record) for record in found] == [
        ["label", "nearest_class", "margin", "p_value", "runner_up", "unread", "text"]
    ] * len(lines)
    assert [record["text"] for record in found] == lines
    assert [record["label"] for record in found] == why.answer.tolist()
    assert [record["unread"] for record in found] == why.unread.tolist() == [False] * 4 + [True]
    assert [record["margin"] for record in found] == pytest.approx(why.margin.tolist(), abs=5e-5)
    short = predicted(saved, lines, give_input, capsys, "--json")
    assert [json.loads(line) for line in short] == [
        {"label": record["label"], "text": record["text"]} for record in found
    ]
    assert short[-1].endswith('"text": "左"}')


def test_messages_that_cannot_be_read_are_named(saved, texts, give_input, capsys):
    give_input("\n".join([texts[0], "?!", "左", "?!"]))
    assert main(["predict", "--model", str(saved)]) == 0
    said = capsys.readouterr().err
    assert said.count("the embedding model reads nothing") == 1
    assert "such as '?!', '左'." in said


def test_the_nearest_training_texts_are_the_reason(tiny_model, table, texts, labels, tmp_path, give_input, capsys):
    folder, lines = tmp_path / "with texts", [texts[5].upper(), "rain\ttomorrow"]
    words = ["--data", table, "--model-name", tiny_model, "--save", folder, "--keep-texts", "--quiet"]
    assert main(["train", *map(str, words)]) == 0
    capsys.readouterr()
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
    from sklearn.pipeline import make_pipeline

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
    path = tmp_path / "test.tsv"
    path.write_text("".join(f"{text}\t{code}\n" for text, code in zip(texts, codes, strict=True)) + "a joke\t9\n")
    assert main(["evaluate", "--model", str(tmp_path / "model"), "--data", str(path), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "33 texts, 1 of them open, because the model does not know the label '9' (1)" in out
    truth = np.append(codes, -1)
    report = open_set_report(truth, pipeline.predict([*texts, "a joke"]), labels=range(4), zero_division=np.nan)
    assert report in out


@pytest.mark.skipif(os.name != "posix", reason="pipes break differently there")
@pytest.mark.parametrize("n_lines", [3, 20_000])
def test_a_reader_that_has_seen_enough_is_no_error(saved, warm_server, n_lines):
    (given, stdin), (stdout, answers) = ((os.fdopen(a, "rb"), os.fdopen(b, "wb")) for a, b in (os.pipe(), os.pipe()))
    with tempfile.TemporaryFile() as stderr:
        with given, answers:
            process = warm_server.start(RUN, ["predict", "--model", saved], [given, answers, stderr])
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        if n_lines == 3:
            # Gone before the first line.
            stdout.close()
        # One group of lines, whose answers fit into the pipe.
        stdin.write(b"wake me at six\n" * min(n_lines, 1024))
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            stdin.flush()
            if n_lines > 3:
                assert stdout.readline().endswith(b"\twake me at six\n")
                stdout.close()
                stdin.write(b"wake me at six\n" * (n_lines - 1024))
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        assert process.wait() == 0
        stderr.seek(0)
        assert stderr.read() == b""
        watchdog.cancel()


# evaluate


@pytest.fixture
def test_table(tmp_path, texts, labels, open_texts):
    path = tmp_path / "test.tsv"
    rows = [*zip(texts, labels, strict=True), *((text, "joke") for text in open_texts[:2])]
    rows += [(text, "-1") for text in open_texts[2:]]
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


def test_a_model_of_another_method_answers_but_has_no_scores(
    saved, test_table, texts, labels, give_input, capsys, tmp_path
):
    encoder = load(saved)[0]
    features = encoder.transform(texts)
    other = KNNOpenSetClassifier(n_neighbors=2).fit(features, labels)
    save(Pipeline([("enc", encoder), ("clf", other)]), tmp_path / "model")
    give_input("\n".join(texts))
    assert main(["predict", "--model", str(tmp_path / "model")]) == 0
    answers = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert answers == other.predict(features).tolist()
    assert main(["evaluate", "--model", str(tmp_path / "model"), "--data", str(test_table)]) == 0
    capsys.readouterr()
    sentence = "--scores explains ellipsoids, but the model in .* ends in a KNNOpenSetClassifier; leave --scores out."
    assert re.search(sentence, fails(capsys, "predict", "--scores", "--model", tmp_path / "model"))


def test_evaluate_reports_on_a_file(saved, test_table, texts, labels, open_texts, capsys):
    assert main(["evaluate", "--model", str(saved), "--data", str(test_table)]) == 0
    out, err = capsys.readouterr()
    counts, _, report = out.partition("\n\n")
    expected = "38 texts, 6 of them open, because the model does not know the labels '-1' (4), 'joke' (2)"
    assert counts == expected
    predicted = load(saved).predict([*texts, *open_texts])
    report, _, costs = report.partition("\n\nOther thresholds on these texts")
    report, _, asked = report.partition("\n\nWith questions (predict --ask):\n")
    truth = np.array([*labels, *["-1"] * 6])
    known, opened = (list(map(int, re.findall(r"\d+", line.partition("100")[2]))) for line in asked.splitlines())
    told = asking_report(truth, predict_set(load(saved), [*texts, *open_texts]))
    names = ("served", "wrong", "asked")
    assert known[:3] == [round(100 * told[name]) for name in names]
    assert known[3] == pytest.approx(100 * (1 - told["missed"] - told["served"]), abs=0.51)
    assert known[0] + known[1] + known[2] + known[4] == pytest.approx(100, abs=2)
    assert opened[:2] == [round(100 * told[name]) for name in ("open_answered", "open_asked")]
    assert report == open_set_report([*labels, *["-1"] * 6], predicted, zero_division=np.nan)
    (present,) = [row for row in costs.splitlines() if row.endswith("<- this model")]
    known = predicted[: len(labels)]
    counts = [np.mean(known == labels), np.mean((known != labels) & (known != "-1")), np.mean(known == "-1")]
    wanted = 100 * np.array([*counts, np.mean(predicted[len(labels) :] == "-1")])
    assert list(map(int, present[19:].split()[:4])) == pytest.approx(wanted, abs=1)
    assert err == ""


def test_evaluate_draws_the_confusion_matrix(saved, test_table, tmp_path, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")  # what other tests left
    picture = tmp_path / "confusion.png"
    assert main(["evaluate", "--model", str(saved), "--data", str(test_table), "--plot", str(picture)]) == 0
    assert f"The confusion matrix is in {picture}" in capsys.readouterr().out
    pixels = plt.imread(picture)
    assert min(pixels.shape[:2]) > 300
    assert pixels.std() > 0.05
    assert plt.get_fignums() == []


# What goes wrong


def fails(capsys, *arguments):
    """Run, expect status 2, and give the one sentence on standard error."""
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("skellipsoid: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["demo", "train", "evaluate"])
def test_a_table_that_cannot_be_used_is_one_sentence(tmp_path, saved, capsys, command):
    more = {"demo": [], "train": ["--save", tmp_path / "model"], "evaluate": ["--model", saved]}[command]
    sentence = f"{str(tmp_path / 'missing.tsv')!r} cannot be read ({os.strerror(errno.ENOENT)})"
    assert sentence in fails(capsys, command, "--data", tmp_path / "missing.tsv", *more)
    said = fails(capsys, command, "--data", tmp_path, *more)
    assert f"{str(tmp_path)!r} holds no training texts of a kind that" in said
    path = tmp_path / "table.tsv"
    for content, sentence in [
        (b"wake me\talarm\nlights off\n", f"Line 2 of {str(path)!r} is 'lights off' with 1 field, but line 1"),
        ("wake me\talarm\n".encode("utf-16") + b"x", f"{str(path)!r} begins as UTF-16 text, but is damaged"),
        (b"", f"{str(path)!r} holds no row with both a text and a label; give it texts"),
    ]:
        path.write_bytes(content)
        assert sentence in fails(capsys, command, "--data", path, *more)
    if command != "evaluate":
        path.write_bytes(b"wake me\t-1\n")
        assert "holds 1 texts, all labelled '-1'; give it texts of at" in fails(capsys, command, "--data", path, *more)


@pytest.mark.parametrize("command", ["demo", "train"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_trained(
    tmp_path, table, capsys, command, monkeypatch
):
    monkeypatch.setattr(SupConTextEncoder, "fit", lambda *given: pytest.fail("trained"))
    existing = f"{str(tmp_path)!r} exists; pass --overwrite to replace a model that was saved there, or another folder."
    assert existing in fails(capsys, command, "--data", table, "--save", tmp_path)
    below = table / "model"
    assert f"--save {str(below)!r} cannot be written" in fails(capsys, command, "--data", table, "--save", below)
    assert list(tmp_path.iterdir()) == [table]


def test_a_model_that_cannot_be_used_is_one_sentence(tmp_path, saved, table, capsys):
    assert fails(capsys, "predict", "--model", tmp_path / "missing").startswith("skellipsoid: There is no folder")
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
        (
            SafetensorError("header too small"),
            "The model in {} cannot be used (SafetensorError: header too small); take",
        ),
        (OSError("no file named x.\nSee below."), "The model in {} cannot be used (OSError: no file named x); take"),
        (OSError(errno.ENOSPC, "No space left"), "[Errno 28] No space left"),
        (MemoryError("not enough memory for 3 texts"), "not enough memory for 3 texts"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_the_first_use_of_a_model_is_explained(saved, monkeypatch, give_input, capsys, error, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(SupConTextEncoder, "transform", fail)
    give_input()
    assert fails(capsys, "predict", "--model", saved).startswith(f"skellipsoid: {sentence.format(repr(str(saved)))}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "skellipsoid: error: a command is missing\n"),
        (["teach"], "skellipsoid: error: there is no command 'teach'\n"),
        (["lear"], "skellipsoid: error: there is no command 'lear'; did you mean learn?\n"),
        (["train"], "the following arguments are required: --data, --save"),
        (["evaluate", "--model", "m"], "the following arguments are required: --data"),
        (["demo", "--data"], "argument --data: expected one argument"),
        (["predict"], "the following arguments are required: --model"),
        *(
            (
                [command, "--data", "d", "--save", "s", "--seed", seed],
                f"argument --seed: '{seed}' is not a seed; use a whole number from 0 to 4294967295",
            )
            for command in ("demo", "train")
            for seed in ("-1", "x", "1.5", "4294967296")
        ),
        *(
            (
                ["train", "--data", "d", "--save", "s", "--rejection-rate", rate],
                f"argument --rejection-rate: '{rate}' is not a proportion; use a number from 0 to below 1",
            )
            for rate in ("2", "1", "-0.1", "nan", "5%")
        ),
        (["train", "--data", "d", "--save", "s", "--finetune", "all"], "argument --finetune: invalid choice: 'all'"),
        (
            ["evaluate", "--model", "m", "--data", "d", "--plot", "x.doc"],
            "argument --plot: 'x.doc' names no format; use a name that ends in .pdf, .png, .svg",
        ),
        (
            ["evaluate", "--model", "m", "--data", "d", "--plot", "no/such/x.png"],
            "argument --plot: there is no folder 'no/such' for 'no/such/x.png'; create it, or use another",
        ),
    ],
)
def test_a_wrong_command_line_names_the_option(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: skellipsoid")
    assert sentence in err
    assert err.count("monitor") <= 1  # the list of commands, in the usage


def test_labels_that_a_terminal_would_obey_are_printed_harmless(saved, table, tmp_path, give_input, capsys):
    pipeline = load(saved)
    pipeline[-1].classes_ = np.array([f"\x1b[2J{label}\u2028" for label in pipeline[-1].classes_])
    save(pipeline, tmp_path / "model")
    give_input("wake me at six\n")
    assert main(["predict", "--model", str(tmp_path / "model"), "--scores"]) == 0
    assert main(["evaluate", "--model", str(tmp_path / "model"), "--data", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "[2Jalarm" in printed
    assert "\x1b" not in printed
    assert "\u2028" not in printed


#: What a terminal obeys, or writes from the right; and what it does not.
OBEYED = "wake\x1b[2J me\x9b2J\x07\x00\x7f at \u202exis\u2066\u200f\u061c\u2028"
HARMLESS = "\u00a0nbsp a\u200db \U0001f469\u200d\U0001f4bb \ue000 ü"
#: As JSON writes them.
ESCAPED = r"wake\u001b[2J me\u009b2J\u0007\u0000\u007f at \u202exis\u2066\u200f\u061c\u2028"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_texts_that_a_terminal_would_obey_are_escaped_there_alone(saved, give_input, capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    given = f"{OBEYED}\t{HARMLESS}"
    shown = f"{ESCAPED}\t{HARMLESS}" if is_terminal else given
    give_input(given)
    assert main(["predict", "--model", str(saved)]) == 0
    assert capsys.readouterr().out.partition("\t")[2] == f"{shown}\n"
    give_input(given)
    assert main(["predict", "--model", str(saved), "--json"]) == 0
    line = capsys.readouterr().out
    assert json.loads(line)["text"] == given
    assert ("\x9b" in line) == ("\u202e" in line) == (not is_terminal)


def test_reports_escape_texts_and_labels_everywhere(saved, tmp_path, texts, labels, tiny_command, give_input, capsys):
    path = tmp_path / "mine.jsonl"
    rows = [
        {"text": f"{text} {OBEYED}", "label": f"{label}\x1b[2J\u202e"}
        for text, label in zip(texts, labels, strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    printed = []
    for words in (
        ["train", "--data", path, "--save", tmp_path / "model", "--report", "--finetune", "none"],
        ["demo", OBEYED, "--data", path, "--report"],
        ["evaluate", "--model", saved, "--data", path],
        ["compare", "--before", saved, "--after", tmp_path / "model", "--data", path],
        ["traffic", "--model", tmp_path / "model", "--data", path, "--save", tmp_path / "groups.tsv"],
        ["merge", "--model", tmp_path / "model", "--labels", "alarm\x1b[2J\u202e", "--into", "\x1b[2J\u202ewake"],
        ["remove", "--model", tmp_path / "model", "--labels", "light\x1b[2J\u202e"],
        ["remove", "--model", tmp_path / "model", "--labels", "none \x1b[2J\u202e"],
    ):
        assert tiny_command([str(word) for word in words]) == (2 if str(words[-1]).startswith("none ") else 0), words
        printed.append("".join(capsys.readouterr()))
        assert not {"\x1b", "\x9b", "\u202e", "\u2066"} & set(printed[-1]), words
    assert sum(r"\u001b[2J\u202e" in part for part in printed) >= 5


def test_an_error_of_load_that_is_no_sentence_is_explained(saved, monkeypatch, capsys):
    def fail(content):
        raise EOFError("too short")

    monkeypatch.setattr(safetensors.numpy, "load", fail)
    expected = f"The model in {str(saved)!r} cannot be used (EOFError: too short); take a"
    assert expected in fails(capsys, "predict", "--model", saved)
