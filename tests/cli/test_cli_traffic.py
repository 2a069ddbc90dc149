"""The commands that read a log."""

import csv
import io
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from skellipsoid import (
    EllipsoidOpenSetClassifier,
    OpenShareMonitor,
    SupConTextEncoder,
    discover_classes,
    estimate_open_share,
    load,
    save,
    set_operating_point,
)
from skellipsoid._ellipsoid.changes.learned import find_trained
from skellipsoid.cli import main


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
        assert out[-1] == f"No group was found among the 0 texts that are predicted open; {path} has none"
    else:
        found = (
            f"{(wanted.labels >= 0).sum()} of the {len(log)} texts that are predicted open are in {wanted.n_groups} "
        )
        assert out[-2].startswith(found)
        assert out[-1] == f"Label the groups in {path}, a line for each; add reads it"
    (tmp_path / "other").mkdir()
    wanted.to_tsv(tmp_path / "other" / "groups.tsv")
    for name in ("groups.tsv", "groups-members.tsv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "header", "row", "expected"),
    [
        ("log.txt", "", "m{i}\t{text}\t{label}", {"column_1": "m{i}"}),
        ("log.csv", "id,id,message,label", "{i},x{i},{text},{label}", {"id": "{i}", "id_2": "x{i}"}),
        (
            "log.csv",
            "text,message,log_text,label",
            "a{i},{text},b{i},{label}",
            {"log_text": "b{i}", "log_text_2": "a{i}"},
        ),
    ],
    ids=["no header", "twice", "taken"],
)
def test_columns_of_any_log_get_names_of_their_own(saved, texts, open_texts, tmp_path, name, header, row, expected):
    model = load(saved)
    model[-1].offset_ = 1e9
    save(model, tmp_path / "model")
    log = [f"{text} {word}" for text in [*texts, *open_texts] for word in ("please", "now", "in the hall", "early")]
    log = [text.replace(",", "") for text in log]
    lines = [row.format(i=i, text=text, label="-1" if i % 9 == 0 else "") for i, text in enumerate(log)]
    (tmp_path / name).write_text("\n".join([header, *(line.rstrip("\t") for line in lines)]).lstrip("\n"))
    command = ["traffic", "--model", str(tmp_path / "model"), "--data", str(tmp_path / name)]
    command += ["--text-column", "message" if header else "2", "--label-column", "label" if header else "3"]
    assert main([*command, "--save", str(tmp_path / "groups.tsv")]) == 0
    with (tmp_path / "groups-members.tsv").open(newline="") as file:
        members = list(csv.DictReader(file, delimiter="\t"))
    assert len(members) > 20
    for member in members:
        i = log.index(member["text"])
        assert {column: member[column] for column in expected} == {k: v.format(i=i) for k, v in expected.items()}


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


def test_labels_that_are_filled_in_meanwhile_are_not_overwritten(saved, texts, tmp_path, capsys, monkeypatch):
    path = tmp_path / "groups.tsv"
    labelled = "group\tlabel\n0\tdonate\n"

    class Typed(io.BytesIO):
        def __next__(self):
            path.write_text(labelled, encoding="utf-8")
            return super().__next__()

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Typed("\n".join(texts).encode()), encoding="utf-8"))
    assert main(["traffic", "--model", str(saved), "--save", str(path)]) == 2
    assert "holds 1 label, which --save would overwrite" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == labelled


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
        f"skellipsoid: The input is a table of {table} between them, and each line is predicted as one"
    )


def test_labels_of_a_log_are_read_where_they_are(saved, texts, open_texts, tmp_path, capsys):
    path = tmp_path / "log.tsv"
    labels = load(saved).predict(texts)
    rows = [f"{text}\t{label if i % 2 else ''}" for i, (text, label) in enumerate(zip(texts, labels, strict=True))]
    rows += [f"{open_texts[0]}\tsmall_talk", f"{open_texts[1]}\t-1"]
    path.write_text("\n".join(["message\tintent", *rows]), encoding="utf-8")
    assert main(["traffic", "--model", str(saved), "--data", str(path), "--label-column", "intent", "--quiet"]) == 0
    said, *told = capsys.readouterr().out.splitlines()
    assert said == (
        f"{len(texts) // 2 + 2} labels, 2 of them open, because the model does not know the labels 'small_talk' (1), "
        "'-1' (1)"
    )
    y = [*(label if i % 2 else None for i, label in enumerate(labels)), "-1", "-1"]
    found = estimate_open_share(load(saved), [*texts, *open_texts[:2]], y)
    numbers = [100 * found[name] for name in ("low", "share", "high")]
    assert told[1] == "Open: at least {:.0f} %, about {:.0f} %, at most {:.0f} %".format(*numbers)
    assert found.note is None or told[2] == found.note
    path.write_text("message\tintent\nwake me\t\n", encoding="utf-8")
    assert main(["traffic", "--model", str(saved), "--data", str(path), "--label-column", "intent"]) == 2
    assert "holds no label; label about 30 texts that are drawn at random" in capsys.readouterr().err
    assert main(["traffic", "--model", str(saved), "--label-column", "intent"]) == 2
    assert "--label-column names a column of the file of --data" in capsys.readouterr().err


# set-threshold


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
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


@pytest.fixture
def labelled_log(log, texts, open_texts, tmp_path):
    """The log as a table, with a label for each seventh message."""
    lines, rng = log.read_text(encoding="utf-8").splitlines(), np.random.default_rng(0)
    y = np.array(["-1" if line in open_texts else "" for line in lines], dtype=object)
    order = rng.permutation(len(lines))
    y = [(y[row] or "donate") if i % 7 == 0 else "" for i, row in enumerate(order)]
    path = tmp_path / "labelled.tsv"
    rows = [f"{lines[row]}\t{label}" for row, label in zip(order, y, strict=True)]
    path.write_text("\n".join(["text\tlabel", *rows]), encoding="utf-8")
    return path, [lines[row] for row in order], [label or None for label in y]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_texts_in_a_log_are_said(tiny_model, texts, labels, open_texts, tmp_path, capsys):
    steps = [("enc", SupConTextEncoder(tiny_model, finetune="none")), ("clf", EllipsoidOpenSetClassifier())]
    save(Pipeline(steps).fit(texts, labels), tmp_path / "model")
    path, sheet = tmp_path / "log.csv", tmp_path / "sheet.csv"
    lines = [*texts, *(f"{text} please" for text in texts), *open_texts]
    n, n_trained = len(lines), sum(find_trained_texts(tmp_path / "model", lines))
    assert len(texts) <= n_trained < n
    said = "messages are training samples: they count as labelled there, and say nothing of the others."
    path.write_text("\n".join(["text", *lines]), encoding="utf-8")
    model = ["--model", str(tmp_path / "model")]
    assert main(["traffic", *model, "--data", str(path)]) == 0
    assert f"{n_trained} of {n} {said}" in capsys.readouterr().out
    assert main(["set-threshold", *model, "--data", str(path), "--open-share", "0.2"]) == 0
    assert f"{n_trained} of {n} {said}" in capsys.readouterr().out
    rows = [f"{line},{label}" for line, label in zip(lines, [*labels, *labels, *["-1"] * len(open_texts)], strict=True)]
    sheet.write_text("\n".join(["message,label", *rows]), encoding="utf-8")
    assert main(["learn", *model, "--data", str(sheet), "--yes"]) == 0
    out = capsys.readouterr().out
    assert f"{n_trained} {said}" in out
    assert "% of the other messages are open." in out
    # A limit beyond all scores is finite, and is named in words.
    beyond = load(tmp_path / "model")
    learned = beyond[-1].offset_
    beyond = set_operating_point(beyond, texts, rejection_rate=1.0)
    assert beyond.predict(texts).tolist() == ["-1"] * len(texts)
    save(beyond, tmp_path / "model", overwrite=True)
    assert main(["set-threshold", *model, "--undo"]) == 0
    assert f"The threshold moves from where every message is open to {learned:.3f}.\n" in capsys.readouterr().out


def find_trained_texts(folder, lines):
    model = load(folder)
    return find_trained(model[-1], model[:-1].transform(lines)) >= 0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("option", ["labels", "--data", "interval", "--open-share", "--rejection-rate"])
def test_the_line_is_that_of_python_and_can_be_undone(folder, labelled_log, texts, capsys, option):
    path, lines, y = labelled_log
    model = load(folder)
    y = [label if label in (None, *model[-1].classes_) else "-1" for label in y]
    provenance = json.loads((folder / "skellipsoid.json").read_bytes())["provenance"]
    before = np.mean(model.predict(lines) == "-1")
    data = ["--data", str(path), "--text-column", "text"]
    options, wanted = {
        "labels": ([*data, "--label-column", "label"], lambda: set_operating_point(model, lines, y)),
        "--data": ([*data, "--open-share", "0.1"], lambda: set_operating_point(model, lines, open_share=0.1)),
        "interval": (["--open-share", "0.1", "0.3"], lambda: set_operating_point(model, open_share=(0.1, 0.3))),
        "--open-share": (["--open-share", "0.6"], lambda: set_operating_point(model, open_share=0.6)),
        "--rejection-rate": (["--rejection-rate", "0.25"], None),
    }[option]
    if wanted is None:
        offset = np.sort(model[-1].held_out_scores_)[len(texts) // 4 - 1]
    else:
        offset = wanted()[-1].offset_
    learned = None if wanted is None else wanted()[-1].traffic_
    set_operating_point(model)
    model[-1].offset_ = -0.5
    save(model, folder, overwrite=True, provenance=provenance)
    assert main(["set-threshold", "--model", str(folder), *options, "--quiet"]) == 0
    found = load(folder)
    assert found[-1].offset_ == pytest.approx(offset, abs=1e-12)
    assert found[-1].traffic_ == learned
    assert json.loads((folder / "skellipsoid.json").read_bytes())["provenance"] == provenance
    said = capsys.readouterr().out.splitlines()
    if option == "labels":
        said.pop(0)  # of labels that are no class
    told, both, asked, *training = said  # every limit is told by the forecast of the traffic
    assert asked.startswith("With predict --ask, known asked: ")
    assert asked.count(" ± ") == 4
    assert both.startswith("Of 100 known messages to come (± a standard deviation), right: ")
    assert both.count(" ± ") == 8  # of right, wrong, handed over and detected, before and now
    fitted = " (as fitted)" if offset == 0 else ""
    assert told.startswith(f"The threshold moves from -0.500 to {offset:.3f}{fitted}")
    if option == "labels":
        limits = f" Between {100 * learned['low']:.0f} and {100 * learned['high']:.0f} % are open"
        n_labels = sum(label is not None for label in y)
        assert told.endswith(f".{limits}, by {n_labels} label{'s' * (n_labels > 1)} and the log.")
    else:
        assert "are open, by" not in told  # it was told
    assert len(training) == ("--data" not in options)
    if "--data" in options:
        shares = [100 * np.mean(each.predict(lines) == "-1") for each in (found, model)]
        assert ": {:.1f} % of these texts are predicted open instead of {:.1f} %.".format(*shares) in told
    else:
        rows = found[-1].held_out_
        rejected = 100 * np.average(rows.score < offset, weights=rows.weight * ~rows.is_open)
        detected = 100 * np.average(rows.score < offset, weights=rows.weight * rows.is_open)
        assert training[0].startswith("Of 100 held-out training texts ")
        numbers = [float(number) for number in re.findall(r" (\d+) instead", training[0])]
        assert numbers == pytest.approx([rejected, detected], abs=0.5)
    assert main(["set-threshold", "--model", str(folder), "--undo"]) == 0
    assert np.mean(load(folder).predict(lines) == "-1") == before
    assert load(folder)[-1].traffic_ is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_rate_of_misses_keeps_the_limit_and_with_undo_goes_back(folder, capsys):
    model = set_operating_point(load(folder), open_share=0.6)
    save(model, folder, overwrite=True)
    assert main(["set-threshold", "--model", str(folder), "--miss-rate", "0.5"]) == 0
    learned = model[-1].traffic_
    said = capsys.readouterr().out
    assert said.startswith(f"The threshold stays {model[-1].offset_:.3f}. Of known texts about ")
    assert said.count("\n") == 3  # and the forecast
    found = load(folder)[-1]
    assert (found.offset_, found.traffic_) == (model[-1].offset_, learned)
    assert found.asking_["miss_rate"] == 0.5
    assert main(["set-threshold", "--model", str(folder), "--undo", "--miss-rate", "0.5"]) == 0
    assert "to 0.000 (as fitted)" in capsys.readouterr().out
    found = load(folder)[-1]
    assert (found.offset_, found.traffic_, found.asking_["miss_rate"]) == (0, None, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "set-threshold sets one threshold; pass --data with a log"),
        (["--undo", "--open-share", "0.2"], "set-threshold sets one threshold"),
        (["--data", "log.txt", "--rejection-rate", "0.2"], "set-threshold sets one threshold"),
        (["--data", "log.txt"], "A log without labels does not say where the threshold belongs"),
        (["--open-share", "0.3", "0.1"], "; use a number from 0 to 1, or two"),
        (["--open-share", "0.3", "--label-column", "label"], "--label-column names a column of the file of --data"),
    ],
)
def test_one_line_is_asked_for(folder, capsys, options, message):
    content = (folder / "skellipsoid.json").read_bytes()
    assert main(["set-threshold", "--model", str(folder), *options]) == 2
    assert message in capsys.readouterr().err
    assert (folder / "skellipsoid.json").read_bytes() == content


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
    day.write_text("\n".join([*texts, ""]), encoding="utf-8")
    for _ in range(2):  # the second time it is known already
        assert watch(folder, day) == 0
    reference.update(texts)
    shares = [100 * reference.reference_open_share_, 100 * reference.open_share_]
    evidence = f"{10**reference.log10_evidence_:.2g}"
    known = f"{shares[0]:.0f} % of the reference are predicted open, {shares[1]:.0f} % of the {len(texts)} texts since"
    assert (
        capsys.readouterr().out.splitlines() == [f"No alarm (evidence {evidence}, an alarm from 20 on): {known}."] * 2
    )
    assert main(["monitor", "--model", str(folder), "--data", str(day)]) == 0
    assert "given at the last call already, and is not counted again" in capsys.readouterr().err
    other = [f"{text} {i}" for i in range(40) for text in open_texts]
    day.write_text("\n".join([*other, ""]), encoding="utf-8")
    assert reference.update(other).alarm_
    assert watch(folder, day) == 3
    told = capsys.readouterr().out
    assert told.startswith(f"Alarm since text {reference.alarm_at_}: ")
    assert told.count("\n") == 1
    day.write_text("", encoding="utf-8")
    assert watch(folder, day) == 3  # until the state is removed
    # The limit alone is no other model; its shares are those of the present one.
    assert main(["set-threshold", "--model", str(folder), "--rejection-rate", "0.9", "--quiet"]) == 0
    share = 100 * np.mean(load(folder).predict(lines) == "-1")
    capsys.readouterr()
    assert watch(folder, day) == 3
    assert f": {share:.0f} % of the reference" in capsys.readouterr().out


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_device_is_no_state(folder, log, capsys):
    assert main(["monitor", "--model", str(folder), "--data", str(log), "--state", "/dev/full"]) == 2
    assert "'/dev/full' is a device or a pipe, where a file is to be written; name a file." in capsys.readouterr().err


@pytest.mark.parametrize("share", [["20"], ["0.1", "0.2", "0.3"], []])
def test_shares_of_the_command_are_one_or_two(folder, capsys, share):
    with pytest.raises(SystemExit, match="2"):
        main(["set-threshold", "--model", str(folder), "--open-share", *share])
    assert "set-threshold: error: argument --open-share: " in capsys.readouterr().err


def test_an_interrupted_monitor_loses_nothing(folder, log, texts, tmp_path, capsys, monkeypatch):
    state, day = tmp_path / "new" / "state.json", tmp_path / "day.txt"
    assert watch(folder, log, "--state", state) == 0
    day.write_text("\n".join([*texts, ""]), encoding="utf-8")
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
