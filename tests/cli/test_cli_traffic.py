"""The command that reads a log without labels."""

import json
import os
import re
import shutil

import numpy as np
import pytest

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    OpenShareMonitor,
    discover_classes,
    load,
    save,
    set_operating_point,
)
from skellipsoid._after_fit.traffic.held import HeldOutScores
from skellipsoid._before_fit.text_files.delimited import find_table
from skellipsoid.cli import _traffic, main
from skellipsoid.cli._traffic import describe
from skellipsoid.datasets import make_open_blobs
from skellipsoid.persistence._folder import read_manifest


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


def test_labels_that_are_filled_in_meanwhile_are_not_overwritten(
    saved, texts, tmp_path, capsys, give_input, monkeypatch
):
    path = tmp_path / "groups.tsv"
    labelled = "group\tlabel\n0\tdonate\n"

    def group_meanwhile(log, group=_traffic.group_open):
        path.write_text(labelled, encoding="utf-8")
        return group(log)

    monkeypatch.setattr(_traffic, "group_open", group_meanwhile)
    give_input("\n".join(texts))
    assert main(["traffic", "--model", str(saved), "--save", str(path)]) == 2
    assert "holds 1 label, which --save would overwrite" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == labelled


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


# set-line


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be changed."""
    shutil.copytree(saved, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def log(texts, open_texts, tmp_path):
    """A log with more than 50 different texts, most of them known."""
    path = tmp_path / "log.txt"
    lines = [f"{text} {word}" for word in ("please", "now", "") for text in texts] + open_texts
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("option", ["--data", "--open-share", "--rejection-rate"])
def test_the_line_is_that_of_python_and_can_be_undone(folder, log, texts, capsys, option):
    model, lines = load(folder), log.read_text(encoding="utf-8").splitlines()
    provenance = read_manifest(folder)[0]["provenance"]
    before = np.mean(model.predict(lines) == "-1")
    if option == "--data":
        value, wanted = str(log), set_operating_point(model, lines)[-1].offset_
    elif option == "--open-share":
        value, wanted = "0.6", set_operating_point(model, open_share=0.6)[-1].offset_
    else:
        value, wanted = "0.25", np.sort(model[-1].held_out_scores_)[len(texts) // 4 - 1]
    set_operating_point(model, open_share=0.01)
    model[-1].offset_ = -0.5
    save(model, folder, overwrite=True, provenance=provenance)
    assert main(["set-line", "--model", str(folder), option, value, "--quiet"]) == 0
    found = load(folder)
    assert found[-1].offset_ == pytest.approx(wanted, abs=1e-12)
    assert read_manifest(folder)[0]["provenance"] == provenance
    (told,) = capsys.readouterr().out.splitlines()
    fitted = " (as fitted)" if wanted == 0 else ""
    assert told.startswith(f"The limit moves from -0.500 to {wanted:.3f}{fitted}: ")
    share = 100 * np.mean(found.predict(lines) == "-1")
    if option == "--data":
        former = 100 * np.mean(model.predict(lines) == "-1")
        assert told.endswith(f": {share:.1f} % of these texts are answered open instead of {former:.1f} %.")
    else:
        rows = found[-1].held_out_
        rejected = 100 * np.average(rows.score < wanted, weights=rows.weight * ~rows.is_open)
        noticed = 100 * np.average(rows.score < wanted, weights=rows.weight * rows.is_open)
        numbers = [float(number) for number in re.findall(r" (\d+) instead", told)]
        assert numbers == pytest.approx([rejected, noticed], abs=0.5)
    assert main(["set-line", "--model", str(folder), "--undo"]) == 0
    assert np.mean(load(folder).predict(lines) == "-1") == before


def test_a_line_that_stays_is_said_and_nothing_is_written(folder, capsys):
    content = (folder / "skellipsoid.json").read_bytes()
    (folder.parent / "few.txt").write_text("wake me up", encoding="utf-8")
    for option in (["--undo"], ["--data", str(folder.parent / "few.txt")]):
        assert main(["set-line", "--model", str(folder), *option]) == 0
        out, err = capsys.readouterr()
        assert out == "The limit stays 0.000 (as fitted); nothing is written.\n"
        assert ("too few" in err) is (option[0] == "--data")
    assert (folder / "skellipsoid.json").read_bytes() == content


@pytest.mark.parametrize("options", [[], ["--undo", "--open-share", "0.2"], ["--open-share", "20"]])
def test_one_line_is_asked_for(folder, capsys, options):
    with pytest.raises(SystemExit, match="2"):
        main(["set-line", "--model", str(folder), *options])
    assert "set-line: error: " in capsys.readouterr().err


# monitor


def watch(folder, path, *options):
    return main(["monitor", "--model", str(folder), "--data", str(path), "--quiet", *map(str, options)])


def test_a_monitor_goes_on_from_call_to_call(folder, log, texts, open_texts, tmp_path, capsys):
    lines = log.read_text(encoding="utf-8").splitlines()
    state = tmp_path / "model.monitor.json"
    reference = OpenShareMonitor(load(folder)).fit(lines)
    assert watch(folder, log) == 0
    assert capsys.readouterr().out == f"These {len(lines)} texts are the reference; it is in {state}.\n"
    day = tmp_path / "day.txt"
    day.write_text("\n".join(texts), encoding="utf-8")
    for _ in range(2):  # the second time it is known already
        assert watch(folder, day) == 0
    reference.update(texts)
    shares = [100 * reference.reference_open_share_, 100 * reference.open_share_]
    evidence = f"{10**reference.log10_evidence_:.2g}"
    known = f"{shares[0]:.0f} % of the reference are answered open, {shares[1]:.0f} % of the {len(texts)} texts since"
    assert (
        capsys.readouterr().out.splitlines() == [f"No alarm (evidence {evidence}, an alarm from 20 on): {known}."] * 2
    )
    assert main(["monitor", "--model", str(folder), "--data", str(day)]) == 0
    assert "given at the last call already, and is not counted again" in capsys.readouterr().err
    other = [f"{text} {i}" for i in range(40) for text in open_texts]
    day.write_text("\n".join(other), encoding="utf-8")
    assert reference.update(other).alarm_
    assert watch(folder, day) == 3
    told = capsys.readouterr().out
    assert told.startswith(f"Alarm since text {reference.alarm_at_}: ")
    assert told.count("\n") == 1
    day.write_text("", encoding="utf-8")
    assert watch(folder, day) == 3  # until the state is removed
    # The limit alone is no other model; its shares are those of the present one.
    assert main(["set-line", "--model", str(folder), "--rejection-rate", "0.9", "--quiet"]) == 0
    share = 100 * np.mean(load(folder).predict(lines) == "-1")
    capsys.readouterr()
    assert watch(folder, day) == 3
    assert f": {share:.0f} % of the reference" in capsys.readouterr().out


def test_an_interrupted_monitor_loses_nothing(folder, log, texts, tmp_path, capsys, monkeypatch):
    state, day = tmp_path / "new" / "state.json", tmp_path / "day.txt"
    assert watch(folder, log, "--state", state) == 0
    day.write_text("\n".join(texts), encoding="utf-8")
    before = state.read_bytes()

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupt)
        assert watch(folder, day, "--state", state) == 130
    assert state.read_bytes() == before
    assert [*state.parent.iterdir()] == [state]
    assert watch(folder, day, "--state", state) == 0
    assert f"of the {len(texts)} texts since" in capsys.readouterr().out


def test_a_state_that_does_not_fit_is_one_sentence(folder, log, texts, tmp_path, capsys):
    state = tmp_path / "model.monitor.json"
    assert watch(folder, log) == 0
    whole = state.read_text()
    sizes = json.loads(whole)
    sizes["state"]["n_reference_"] = 7
    for content in (
        whole[:-40],
        "",
        "[" * 100_000,
        '{"state": {}}',
        whole.replace('"shape": [5, 24]', '"shape": [6, 20]'),
        sizes,
    ):
        assert content != whole
        state.write_text(content if isinstance(content, str) else json.dumps(content))
        capsys.readouterr()
        assert watch(folder, log) == 2
        assert "is no state of monitor, or it is damaged; remove it, or pass" in capsys.readouterr().err
    state.write_text(whole)
    assert main(["remove", "--model", str(folder), "--labels", "light", "--quiet"]) == 0
    assert watch(folder, log) == 2
    assert "is of another model, or of another fit of this one, so that scores cannot be" in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    assert watch(folder, tmp_path / "empty.txt", "--state", tmp_path / "other.json") == 2
    assert "There is no text to be the reference" in capsys.readouterr().err
