"""The command: its report, its model, its lines, its prompt, and one sentence for everything that goes wrong."""

import contextlib
import functools
import io
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, __version__, cli, explain, load, save
from skellipsoid.cli import main, read_table, split_table

RUN = "import sys; from skellipsoid.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def table(tmp_path, texts, labels):
    """A user's file of 32 requests of four intents."""
    path = tmp_path / "requests.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)), encoding="utf-8")
    return path


@pytest.fixture
def tiny_command(tiny_model, monkeypatch):
    """The command with the tiny text model in place of the default one."""
    monkeypatch.setattr(cli, "SupConTextEncoder", functools.partial(cli.SupConTextEncoder, tiny_model))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return main


@pytest.fixture(scope="module")
def saved(tiny_model, texts, labels, tmp_path_factory):
    """What ``demo --save`` writes."""
    folder = tmp_path_factory.mktemp("cli") / "model"
    pipeline = cli.Pipeline(
        [
            ("enc", cli.SupConTextEncoder(tiny_model, max_iter=3, random_state=0)),
            ("clf", EllipsoidOpenSetClassifier(max_iter=3, random_state=0)),
        ]
    )
    save(pipeline.fit(texts, labels), folder)
    return folder


class Terminal(io.StringIO):
    def isatty(self):
        return True


# Reading a table


def read(tmp_path, content):
    path = tmp_path / "table.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    texts, labels = read_table(path)
    assert texts.dtype == object
    assert labels.dtype.kind == "U"
    return list(zip(texts.tolist(), labels.tolist(), strict=True))


ROWS = [("wake me", "alarm"), ("lights öff", "light")]
TABLES = {
    "plain": "wake me\talarm\nlights öff\tlight\n",
    "no last newline": "wake me\talarm\nlights öff\tlight",
    "header": "text\tlabel\nwake me\talarm\nlights öff\tlight\n",
    "header in capitals": "Text\tLABEL\nwake me\talarm\nlights öff\tlight\n",
    "Windows": b"\xef\xbb\xbfText\tLabel\r\nwake me\talarm\r\nlights \xc3\xb6ff\tlight\r\n",
    "old Macintosh": "wake me\talarm\rlights öff\tlight\r",
    "blank lines and spaces": "\n  \n  wake me \t alarm \nlights öff\tlight\n\n",
}


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
def test_tables_are_read_however_an_editor_wrote_them(tmp_path, content):
    assert read(tmp_path, content) == ROWS


def test_a_header_is_one_on_the_first_line_alone(tmp_path):
    assert read(tmp_path, "wake me\talarm\ntext\tlabel\n") == [("wake me", "alarm"), ("text", "label")]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_what_unicode_calls_a_line_may_lie_within_a_text(tmp_path, separator):
    assert read(tmp_path, f"wake me{separator}please\talarm\n") == [(f"wake me{separator}please", "alarm")]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ("wake me\talarm\nlights off\n", 2),
        ("wake me\talarm\n\n\nlights\toff\tlight\n", 4),
        ("wake me\t\n", 1),
        ("text\tlabel\n\twake me\n", 2),
        ("wake me\x85please\talarm\nlights off\n", 2),
    ],
)
def test_a_bad_line_is_given_by_its_number(tmp_path, content, number):
    line = content.split("\n")[number - 1]
    with pytest.raises(ValueError, match=f"Line {number} of '.*table.tsv' is ") as caught:
        read(tmp_path, content)
    assert repr(line) in str(caught.value)
    assert "every line must be a text, one tab and a label" in str(caught.value)


@pytest.mark.parametrize("content", ["wake me\talarm\nöff\tlight\n".encode("latin-1"), "a\tb\n".encode("utf-16")])
def test_a_table_that_is_not_utf_8_is_named(tmp_path, content):
    with pytest.raises(ValueError, match=r"table.tsv' is not UTF-8 text \(.* at byte \d+\); save it as UTF-8"):
        read(tmp_path, content)


def test_an_empty_table_has_no_rows(tmp_path):
    assert read(tmp_path, "") == []


# Splitting it


def rows_of(**counts):
    labels = np.repeat(list(counts), list(counts.values()))
    return np.array([f"{label} {i}" for i, label in enumerate(labels)], dtype=object), labels


@pytest.mark.parametrize("seed", range(5))
def test_without_open_rows_a_fifth_of_the_intents_is_held_out(seed):
    texts, labels = rows_of(**{f"intent{i}": 8 for i in range(10)})
    corpus = split_table(texts, labels, "-1", seed)
    known = set(corpus.train_labels)
    assert len(known) == 8
    # Every row trains or tests, none does both, and rows of the two intents that are held out do not train.
    assert not set(corpus.train) & set(corpus.test)
    held_out = [label for label in np.unique(labels) if label not in known]
    assert len(corpus.train) == 8 * 6
    assert len(corpus.test) == 10 * 2
    for text, label in zip(corpus.test, corpus.test_labels, strict=True):
        true = text.split()[0]
        assert label == ("-1" if true in held_out else true)
    counts, _, named = corpus.note.partition("; held out as open: ")
    assert counts == "8 known intents, 48 training texts, 20 test texts (4 open)"
    assert sorted(named.split(", ")) == held_out


def test_open_rows_are_used_as_such_and_every_label_is_tested():
    texts, labels = rows_of(a=4, b=9, c=2, oos=8)
    corpus = split_table(texts, labels, "oos", 0)
    assert dict(zip(*np.unique(corpus.train_labels, return_counts=True), strict=True)) == {
        "a": 3,
        "b": 7,
        "c": 1,
        "oos": 6,
    }
    assert dict(zip(*np.unique(corpus.test_labels, return_counts=True), strict=True)) == {
        "a": 1,
        "b": 2,
        "c": 1,
        "oos": 2,
    }
    assert sorted([*corpus.train, *corpus.test]) == sorted(texts)
    assert corpus.note == "3 known intents, 17 training texts, 6 test texts (2 open); open rows are labelled 'oos'"


def test_an_open_label_longer_than_every_intent_is_not_cut():
    texts, labels = rows_of(a=4, b=4, c=4)
    assert "none of these" in split_table(texts, labels, "none of these", 0).test_labels


def test_one_seed_one_split():
    texts, labels = rows_of(**{f"intent{i}": 8 for i in range(10)})
    splits = [split_table(texts, labels, "-1", seed) for seed in [0, 0, 1]]
    assert splits[0].test.tolist() == splits[1].test.tolist() != splits[2].test.tolist()


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "The file has 0 intents; a report needs at least 3 intents of at least 2 rows"),
        ({"a": 5, "b": 5}, r"has 2 intents, the smallest \('a'\) with 5 rows; a report needs at least 3"),
        ({"a": 5, "b": 5, "c": 1}, r"has 3 intents, the smallest \('c'\) with 1 rows"),
        ({"a": 5, "-1": 5}, "has 1 intents, .* at least 2 intents"),
        ({"-1": 5}, "has 0 intents; a report needs at least 2 intents"),
    ],
)
def test_too_few_intents_are_refused(counts, sentence):
    with pytest.raises(ValueError, match=sentence):
        split_table(*rows_of(**counts), "-1", 0)


# demo


def test_demo_reports_keeps_the_model_and_classifies(tiny_command, table, tmp_path, capsys):
    folder = tmp_path / "new" / "model"
    sentences = ["wake me at six", "tell a joke"]
    assert tiny_command(["demo", *sentences, "--data", str(table), "--save", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "3 known intents, 18 training texts, 8 test texts (2 open); held out as open:" in out
    assert "Trained in" in out
    for line in ["precision", "open (-1)", "known avg", "macro avg", "accuracy", "false rejection rate"]:
        assert line in out
    assert f"The model is in {folder}; label lines with: skellipsoid predict --model {folder}" in out
    # What is used and kept has seen every intent, those too that the report held out.
    loaded = load(folder)
    assert loaded.classes_.tolist() == ["alarm", "balance", "light", "weather"]
    answers = loaded.predict(sentences)
    margins = loaded.score_samples(sentences)
    classified = out[out.index(repr(sentences[0])) :].splitlines()
    assert len(classified) == 12
    why = explain(loaded, sentences)
    for i, sentence in enumerate(sentences):
        assert classified[6 * i] == f"{sentence!r}: {'open' if answers[i] == '-1' else answers[i]}"
        side = "inside" if margins[i] >= 0 else "outside"
        axes = [f"{why[f'from_{j}'][i]} - {why[f'to_{j}'][i]} {why[f'share_{j}'][i]:.0%}" for j in (1, 2, 3)]
        rest = abs(round(why.shared_share[i] - why.share_1[i] - why.share_2[i] - why.share_3[i], 2))
        assert classified[6 * i + 1 : 6 * i + 6] == [
            f"    nearest class {why.nearest_class[i]}, {abs(margins[i]):.0%} of its radius {side} the boundary",
            f"    as far out as this: {why.p_value[i]:.0%} of the known texts that were held out",
            f"    its distance: {', '.join(axes)}, other axes between intents {rest:.0%},",
            f"    this intent's own spread {why.own_share[i]:.0%}, other directions {why.other_share[i]:.0%}",
            f"    next class {why.runner_up[i]}",
        ]
    # The report trained once, the model that is kept once more, each with its bars.
    assert err.count("encoder: 100%") == 2
    assert (loaded["enc"].verbose, loaded["clf"].verbose) == (0, 0)


def test_demo_with_open_rows_and_a_label_of_ones_own(tiny_command, table, open_texts, capsys):
    with table.open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\tout of scope\n" for text in open_texts)
    assert tiny_command(["demo", "--data", str(table), "--open-label", "out of scope", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "4 known intents" in out
    assert "open rows are labelled 'out of scope'" in out
    assert "open (out of scope)" in out
    # Without sentences of the user it shows some of its own, and there is no terminal to ask on.
    assert all(repr(sentence) in out for sentence in cli._SENTENCES)
    assert "Type a sentence" not in out


def test_demo_repeats_itself(tiny_command, table, capsys):
    shown = []
    for _ in range(2):
        assert tiny_command(["demo", "alarm", "--data", str(table)]) == 0
        shown.append([line for line in capsys.readouterr().out.splitlines() if not line.startswith("Trained in")])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("end", ["\n", ""])
def test_demo_asks_for_more_where_there_is_a_terminal(tiny_command, table, capsys, monkeypatch, end):
    monkeypatch.setattr(sys, "stdin", Terminal(f"  wake me early  \nplay jazz\n{end}never read\n" if end else "x y\n"))
    assert tiny_command(["demo", "--data", str(table)]) == 0
    asked = capsys.readouterr().out.partition("Type a sentence (an empty line ends):")[2]
    for sentence in ["wake me early", "play jazz"] if end else ["x y"]:
        assert f"> {sentence!r}: " in asked
    assert "never read" not in asked


def test_demo_does_not_ask_if_it_was_given_sentences(tiny_command, table, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("wake me early\n"))
    assert tiny_command(["demo", "alarm", "--data", str(table)]) == 0
    assert "Type a sentence" not in capsys.readouterr().out


@pytest.mark.slow
def test_demo_with_the_shipped_corpus_and_the_real_model(minilm, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    start = time.perf_counter()
    assert main(["demo"]) == 0
    assert time.perf_counter() - start < 120
    out = capsys.readouterr().out
    assert "28 known intents, 672 training texts, 448 test texts (168 open)" in out
    rows = {line.split("  ")[0].strip(): line.split() for line in map(str.strip, out.splitlines()) if line}
    # Of 29 answers; K+1 macro F1, and the share of open requests that are recognised.
    assert float(rows["macro avg"][4]) > 0.6
    assert float(rows["open rejection rate"][3]) > 0.7
    assert "'tell me a joke': open\n    nearest class " in out
    assert "'where is my parcel': track_parcel\n    nearest class track_parcel, " in out


# predict


def test_predict_labels_lines_from_standard_input(saved, texts, open_texts, fresh_python):
    lines = [*texts, *open_texts, "", "  two  spaces\there", "ünïcödé 左"]
    done = fresh_python(RUN, "predict", "--model", saved, stdin="\n".join(lines) + "\r\n", encoding="utf-8")
    assert (done.stderr, done.returncode) == ("", 0)
    expected = [f"{label}\t{line}" for label, line in zip(load(saved).predict(lines), lines, strict=True)]
    assert done.stdout.split("\n") == [*expected, ""]


def run_predict(folder, monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    return main(["predict", "--model", str(folder)])


def test_predict_labels_any_number_of_lines_in_groups(saved, texts, capsys, monkeypatch):
    lines = (texts * 5)[:130]
    expected = [f"{label}\t{line}" for label, line in zip(load(saved).predict(lines), lines, strict=True)]
    monkeypatch.setattr(cli, "_LINES", 50)
    assert run_predict(saved, monkeypatch, io.StringIO("\n".join(lines))) == 0
    assert capsys.readouterr().out.splitlines() == expected
    assert run_predict(saved, monkeypatch, io.StringIO()) == 0
    assert capsys.readouterr().out == ""


def test_predict_answers_each_line_at_once_on_a_terminal(saved, capsys, monkeypatch):
    asked = []

    class Lines(Terminal):
        def __next__(self):
            asked.append(capsys.readouterr().out)
            return super().__next__()

    assert run_predict(saved, monkeypatch, Lines("alarm\nbalance\n")) == 0
    assert [line.split("\t")[1] for line in asked if line] == ["alarm\n", "balance\n"]


@pytest.mark.skipif(os.name != "posix", reason="pipes break differently there")
@pytest.mark.parametrize("n_lines", [3, 20_000])
def test_a_reader_that_has_seen_enough_is_no_error(saved, fresh_environment, n_lines):
    command = [sys.executable, "-c", RUN, "predict", "--model", str(saved)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=fresh_environment()
    ) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        if n_lines == 3:
            # Gone before the first line.
            process.stdout.close()
        # One group of lines, whose answers fit into the pipe.
        process.stdin.write(b"wake me at six\n" * min(n_lines, cli._LINES))
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            process.stdin.flush()
            if n_lines > 3:
                assert process.stdout.readline().endswith(b"\twake me at six\n")
                process.stdout.close()
                process.stdin.write(b"wake me at six\n" * (n_lines - cli._LINES))
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
        watchdog.cancel()


# What goes wrong


def fails(capsys, *arguments):
    """Run, expect status 2, and give the one sentence on standard error."""
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("skellipsoid: ")
    assert err.count("\n") == 1
    return err


def test_a_table_that_cannot_be_used_is_one_sentence(tmp_path, capsys):
    missing = tmp_path / "missing.tsv"
    assert "missing.tsv" in fails(capsys, "demo", "--data", missing)
    assert "director" in fails(capsys, "demo", "--data", tmp_path)
    path = tmp_path / "table.tsv"
    for content, sentence in [
        (b"wake me\talarm\nlights off\n", f"Line 2 of {str(path)!r} is 'lights off', but every line must be a text"),
        (b"wake me\talarm\n\xff\tlight\n", f"{str(path)!r} is not UTF-8 text (invalid start byte at byte 14)"),
        (b"", "The file has 0 intents"),
        (b"wake me\talarm\nlights off\tlight\n", "The file has 2 intents, the smallest ('alarm') with 1 rows"),
    ]:
        path.write_bytes(content)
        assert sentence in fails(capsys, "demo", "--data", path)


def test_a_folder_that_exists_is_refused_before_anything_is_trained(tmp_path, table, capsys):
    sentence = f"{str(tmp_path)!r} exists; pass --save a folder that does not."
    start = time.perf_counter()
    assert sentence in fails(capsys, "demo", "--data", table, "--save", tmp_path)
    assert sentence in fails(capsys, "demo", "--save", tmp_path)
    assert time.perf_counter() - start < 2


def test_a_model_that_cannot_be_used_is_one_sentence(tmp_path, saved, capsys):
    assert "There is no folder" in fails(capsys, "predict", "--model", tmp_path / "missing")
    assert "is not a saved model: it holds no skellipsoid.json" in fails(capsys, "predict", "--model", tmp_path)
    X = np.random.default_rng(0).normal(size=(20, 2))
    save(EllipsoidOpenSetClassifier(max_iter=1).fit(X, [0, 1] * 10), tmp_path / "alone")
    assert "does not take texts; save a Pipeline" in fails(capsys, "predict", "--model", tmp_path / "alone")
    save(load(saved)[:-1], tmp_path / "half")
    assert "does not take texts; save a Pipeline" in fails(capsys, "predict", "--model", tmp_path / "half")
    save(load(saved)[-1:], tmp_path / "other half")
    assert "does not take texts; save a Pipeline" in fails(capsys, "predict", "--model", tmp_path / "other half")


def test_lines_that_are_not_utf_8_are_one_sentence(saved, capsys, monkeypatch):
    lines = io.TextIOWrapper(io.BytesIO(b"wake me\n\xff\xfe\n"), encoding="utf-8")
    assert run_predict(saved, monkeypatch, lines) == 2
    err = capsys.readouterr().err
    assert err.startswith("skellipsoid: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [[], ["train"], ["demo", "--data"], ["predict"], ["demo", "--seed", "x"]])
def test_a_wrong_command_line_shows_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: skellipsoid" in capsys.readouterr().err


def test_version_and_help(capsys):
    for arguments, expected in [(["--version"], __version__), (["demo", "--help"], "--open-label")]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert expected in capsys.readouterr().out


# A real terminal

_ON_TERMINAL = """
import functools, sys
from skellipsoid import cli
cli.SupConTextEncoder = functools.partial(cli.SupConTextEncoder, sys.argv[1], max_iter=3)
sys.exit(cli.main(["demo", "--data", sys.argv[2]]))
"""


def test_the_prompt_answers_on_a_terminal_and_control_c_ends_it(tiny_model, table, fresh_environment):
    pty = pytest.importorskip("pty")
    with warnings.catch_warnings():
        # Forking beside threads; the child is replaced by a new program at once.
        warnings.simplefilter("ignore", DeprecationWarning)
        child, terminal = pty.fork()
    if not child:
        # Tests may run where interrupts are ignored, which a new program inherits.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(sys.executable, [sys.executable, "-c", _ON_TERMINAL, tiny_model, str(table)], fresh_environment())
    seen = b""

    def wait_for(*expected):
        nonlocal seen
        deadline = time.monotonic() + 60
        while not all(part in seen for part in expected):
            assert select.select([terminal], [], [], deadline - time.monotonic())[0], seen
            seen += os.read(terminal, 4096)
        read, seen = seen, b""
        return read

    try:
        wait_for(b"Type a sentence (an empty line ends):", b"> ")
        os.write(terminal, b"wake me at six\n")
        answer = wait_for(b"'wake me at six': ", b"nearest class ", b"the boundary", b"> ")
        assert b"Traceback" not in answer
        for tenth in range(600):
            if tenth % 20 == 0:
                # Python misses an interrupt just before it waits for a key: press again, as a user would.
                os.write(terminal, b"\x03")
            time.sleep(0.1)
            if (ended := os.waitpid(child, os.WNOHANG)) != (0, 0):
                break
        assert os.waitstatus_to_exitcode(ended[1]) == 130
        child = 0
    finally:
        os.close(terminal)
        if child:
            os.kill(child, signal.SIGKILL)
