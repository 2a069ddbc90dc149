"""The command that reads a log without labels."""

import re

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, discover_classes, load, save, set_operating_point
from skellipsoid._text_files import find_table
from skellipsoid._traffic._held import HeldOutScores
from skellipsoid.cli import main
from skellipsoid.cli._traffic import describe
from skellipsoid.datasets import make_open_blobs


def test_few_lines_say_that_the_share_is_not_known(saved, texts, capsys, give_input):
    give_input("\n".join([*texts[:3], "", texts[0]]))
    assert main(["traffic", "--model", str(saved)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "4 texts, 3 of them different"
    assert out[1].startswith("How much is new cannot be known. 4 samples, 3 of them different, are too few; ")
    rejected = (load(saved).predict([*texts[:3], texts[0]]) == "-1").sum()
    assert out[2] == f"The limit of this model rejects {rejected} of 4 texts ({25 * rejected} %)"
    assert len(out) == 3


def test_a_file_is_read_as_standard_input_is(saved, table, texts, capsys, give_input):
    assert main(["traffic", "--model", str(saved), "--data", str(table), "--text-column", "1"]) == 0
    of_file = capsys.readouterr().out
    give_input("\n".join(texts))
    assert main(["traffic", "--model", str(saved)]) == 0
    assert capsys.readouterr().out == of_file


@pytest.mark.parametrize("accepts", [False, True])
def test_texts_that_are_answered_open_are_grouped_in_files(
    saved, texts, open_texts, tmp_path, capsys, give_input, accepts
):
    model = load(saved)
    model[-1].offset_ = -1e9 if accepts else 1e9
    save(model, tmp_path / "model")
    log = [f"{text} {word}" for text in [*texts, *open_texts] for word in ("please", "now", "in the hall", "early")]
    give_input("\n".join(log))
    path = tmp_path / "groups.tsv"
    assert main(["traffic", "--model", str(tmp_path / "model"), "--save", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    wanted = discover_classes(model, log)
    assert (wanted.n_groups == 0) == accepts
    if accepts:
        assert out[-1] == f"No group was found among the 0 texts that are answered open; {path} has none"
    else:
        found = f"{(wanted.labels >= 0).sum()} of the {len(log)} texts that are answered open are in {wanted.n_groups} "
        assert out[-2].startswith(found)
        assert out[-1] == f"Label the groups in {path}, a line for each; add reads it"
    (tmp_path / "other").mkdir()
    wanted.to_tsv(tmp_path / "other" / "groups.tsv")
    for name in ("groups.tsv", "groups-members.tsv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_labels_are_not_overwritten(saved, texts, tmp_path, capsys, give_input):
    path = tmp_path / "groups.tsv"
    words = ["traffic", "--model", str(saved), "--save", str(path)]
    path.write_text("group\tlabel\n0\tdonate\n1\t\n", encoding="utf-8")
    give_input("\n".join(texts))
    assert main(words) == 2
    error = capsys.readouterr().err
    assert (
        error == f"skellipsoid: {str(path)!r} holds 1 label, which --save would overwrite; pass another file to it.\n"
    )
    path.write_text("group\tlabel\n0\t\n1\t\n", encoding="utf-8")
    give_input("\n".join(texts))
    assert main(words) == 0
    assert len(path.read_text(encoding="utf-8").splitlines()[0].split("\t")) > 2


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_log_is_one_sentence(saved, capsys, give_input, content):
    give_input(content)
    assert main(["traffic", "--model", str(saved)]) == 2
    assert capsys.readouterr().err.startswith("skellipsoid: There is no text to read; ")


TICKETS = [f'{i},mail,"wake me, please, at {i}",new' for i in range(12)]


@pytest.mark.parametrize(
    ("lines", "table"),
    [
        (["id,channel,message,status", *TICKETS[:2]], "4 columns with a comma"),
        (TICKETS, "4 columns with a comma"),
        ([f"wake me, please\tat {i}" for i in range(10)], "2 columns with a tab"),
        (["text;label", "wake me;alarm"], "2 columns with a semicolon"),
    ],
)
def test_a_table_on_standard_input_is_noticed(saved, capsys, give_input, lines, table):
    give_input("\n".join(lines))
    assert main(["traffic", "--model", str(saved)]) == 2
    remedy = "pass the table as a file with --data, or only its column of texts."
    sentence = f"skellipsoid: The input is a table of {table} between them, not a text on each line; {remedy}\n"
    assert capsys.readouterr().err == sentence
    give_input("\n".join(lines))
    assert main(["predict", "--model", str(saved)]) == 0
    out, err = capsys.readouterr()
    assert [line.partition("\t")[2] for line in out.splitlines()] == lines
    assert err.startswith(
        f"skellipsoid: The input is a table of {table} between them, and each line is answered as one"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["hello, wake me", "lights, please"] * 20,
        ["text me, later", "message, please, read it", "well", "so, then"],
        ["text;label"],
        [*["a\ttab"] * 3, "none"],
        ["my question is about, well, money", "where; is it", "no"] * 5,
    ],
)
def test_messages_with_commas_are_no_table(lines):
    assert find_table(lines) is None


@pytest.mark.parametrize("n_open", [20, 500])
def test_the_limit_is_that_of_set_operating_point(n_open):
    X, y = make_open_blobs(4000, 6, n_known=6, open_share=0.3, random_state=0)
    train = (y != -1) & (np.arange(len(y)) < 2000)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[train], y[train])
    new = X[2000:][(y[2000:] != -1) | (np.cumsum(y[2000:] == -1) <= n_open)]
    assigned = clf._encode(clf.predict_known(new))
    told = describe(clf, HeldOutScores.of(clf, "test"), clf.score_samples(new), assigned)
    assert re.match(r"New: at least \d+ %, about \d+ %, at most \d+ %$", told[0])
    if n_open == 20:
        set_operating_point(clf, new)
        rejected = (clf.predict(new) == -1).sum()
        assert told[-1].startswith(
            f"The limit for this share, {clf.offset_:.3f}, rejects {rejected} of {len(new)} texts"
        )
    else:
        with pytest.warns(UserWarning, match=re.escape(told[-1])):
            set_operating_point(clf, new)


def test_a_doubtful_share_is_a_sentence():
    X, y = make_open_blobs(3000, 6, n_known=6, open_share=0.0, random_state=0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X[:1500], y[:1500])
    held = HeldOutScores.of(clf, "test")
    for new, is_doubted in ((X[1500:], False), (X[1500:] + 100, True)):
        told = describe(clf, held, clf.score_samples(new), clf._encode(clf.predict_known(new)))
        assert told[1].startswith("Hardly any sample resembles" if is_doubted else "Most frequent intents")
