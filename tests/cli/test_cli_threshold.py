"""The commands ``set-threshold`` and ``monitor``, by a log of messages."""

import json
import os
import re

import numpy as np
import pytest
from command_helpers import done, fails, refuses
from file_helpers import write, written

from skellipsoid import OpenShareMonitor, load, save, set_operating_point
from skellipsoid._ellipsoid.changes.learned import find_trained
from skellipsoid.cli import main


@pytest.fixture
def log(texts, open_texts, tmp_path):
    """A log with more than 50 different texts, most of them known."""
    lines = [f"{text} {word}" for word in ("please", "now", "") for text in texts] + open_texts
    return write(tmp_path, "\n".join([*lines, ""]), "log.txt")


@pytest.fixture
def labelled_log(log, texts, open_texts, tmp_path):
    """The log as a table, with a label for each seventh message."""
    lines, rng = log.read_text(encoding="utf-8").splitlines(), np.random.default_rng(0)
    y = np.array(["-1" if line in open_texts else "" for line in lines], dtype=object)
    order = rng.permutation(len(lines))
    y = [(y[row] or "donate") if i % 7 == 0 else "" for i, row in enumerate(order)]
    lines = [lines[row] for row in order]
    path = write(tmp_path, written([("text", "label"), *zip(lines, y, strict=True)], "\t"), "labelled.tsv")
    return path, lines, [label or None for label in y]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_training_texts_in_a_log_are_said(fit_model, texts, labels, open_texts, tmp_path, capsys):
    fitted = fit_model(finetune="none")
    save(fitted, tmp_path / "model")
    lines = [*texts, *(f"{text} please" for text in texts), *open_texts]
    n, n_trained = len(lines), sum(find_trained(fitted[-1], fitted[:-1].transform(lines)) >= 0)
    assert len(texts) <= n_trained < n
    said = "messages are training samples: they count as labelled there, and say nothing of the others."
    path, model = write(tmp_path, "\n".join(["text", *lines])), ["--model", tmp_path / "model"]
    assert f"{n_trained} of {n} {said}" in done(capsys, "traffic", *model, "--data", path)
    assert f"{n_trained} of {n} {said}" in done(capsys, "set-threshold", *model, "--data", path, "--open-share", 0.2)
    rows = zip(lines, [*labels, *labels, *["-1"] * len(open_texts)], strict=True)
    out = done(capsys, "learn", *model, "--data", write(tmp_path, written([("message", "label"), *rows])), "--yes")
    assert f"{n_trained} {said}" in out
    assert "% of the other messages are open." in out


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("option", ["labels", "--data", "interval", "--rejection-rate"])
def test_the_line_is_that_of_python_and_can_be_undone(folder, labelled_log, texts, capsys, option):
    path, lines, y = labelled_log
    model = load(folder)
    y = [label if label in (None, *model[-1].classes_) else "-1" for label in y]
    before = np.mean(model.predict(lines) == "-1")
    data = ["--data", str(path), "--text-column", "text"]
    options, wanted = {
        "labels": ([*data, "--label-column", "label"], lambda: set_operating_point(model, lines, y)),
        "--data": ([*data, "--open-share", "0.1"], lambda: set_operating_point(model, lines, open_share=0.1)),
        "interval": (["--open-share", "0.1", "0.3"], lambda: set_operating_point(model, open_share=(0.1, 0.3))),
        "--rejection-rate": (["--rejection-rate", "0.25"], None),
    }[option]
    if wanted is None:
        offset, learned = np.sort(model[-1].held_out_scores_)[len(texts) // 4 - 1], None
    else:
        offset, learned = (clf := wanted()[-1]).offset_, clf.traffic_
    set_operating_point(model)
    model[-1].offset_ = -0.5
    save(model, folder, overwrite=True)
    said = done(capsys, "set-threshold", "--model", folder, *options, "--quiet").splitlines()
    found = load(folder)
    assert found[-1].offset_ == pytest.approx(offset, abs=1e-12)
    assert found[-1].traffic_ == learned
    told, both, asked, *training = said[option == "labels" :]  # the first is of labels that are no class
    assert told.startswith(f"The threshold moves from -0.500 to {offset:.3f}")
    assert (asked.count(" ± "), both.count(" ± ")) == (4, 8)  # before and now
    assert len(training) == ("--data" not in options)
    if "--data" in options:
        shares = [100 * np.mean(each.predict(lines) == "-1") for each in (found, model)]
        assert ": {:.1f} % of these texts are predicted open instead of {:.1f} %.".format(*shares) in told
    else:
        rows = found[-1].held_out_
        rejected = 100 * np.average(rows.score < offset, weights=rows.weight * ~rows.is_open)
        detected = 100 * np.average(rows.score < offset, weights=rows.weight * rows.is_open)
        numbers = [float(number) for number in re.findall(r" (\d+) instead", training[0])]
        assert numbers == pytest.approx([rejected, detected], abs=0.5)
    if option == "labels":
        limits = f" Between {100 * learned['low']:.0f} and {100 * learned['high']:.0f} % are open"
        n_labels = sum(label is not None for label in y)
        assert told.endswith(f".{limits}, by {n_labels} label{'s' * (n_labels > 1)} and the log.")
    done(capsys, "set-threshold", "--model", folder, "--undo")
    assert np.mean(load(folder).predict(lines) == "-1") == before
    assert load(folder)[-1].traffic_ is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_rate_of_misses_keeps_the_limit_and_with_undo_goes_back(folder, capsys):
    model = set_operating_point(load(folder), open_share=0.6)
    save(model, folder, overwrite=True)
    learned = model[-1].traffic_
    said = done(capsys, "set-threshold", "--model", folder, "--miss-rate", 0.5)
    assert said.startswith(f"The threshold stays {model[-1].offset_:.3f}. Of known texts about ")
    assert said.count("\n") == 3  # and the forecast
    found = load(folder)[-1]
    assert (found.offset_, found.traffic_) == (model[-1].offset_, learned)
    assert found.asking_["miss_rate"] == 0.5
    assert "to 0.000 (as fitted)" in done(capsys, "set-threshold", "--model", folder, "--undo", "--miss-rate", 0.5)
    found = load(folder)[-1]
    assert (found.offset_, found.traffic_, found.asking_["miss_rate"]) == (0, None, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "set-threshold sets one threshold; pass --data with a log"),
        (["--data", "log.txt", "--rejection-rate", "0.2"], "set-threshold sets one threshold"),
        (["--data", "log.txt"], "A log without labels does not say where the threshold belongs"),
        (["--open-share", "0.3", "0.1"], "; use a number from 0 to 1, or two"),
    ],
)
def test_one_line_is_asked_for(folder, capsys, options, message):
    assert message in refuses(capsys, folder, "set-threshold", "--model", folder, *options)


# monitor


def watch(folder, path, *options):
    return main(["monitor", "--model", str(folder), "--data", str(path), "--quiet", *map(str, options)])


def test_a_monitor_goes_on_from_call_to_call(folder, log, texts, open_texts, tmp_path, capsys):
    lines = log.read_text(encoding="utf-8").splitlines()
    state = tmp_path / "model.monitor.json"
    reference = OpenShareMonitor(load(folder)).fit(lines)
    assert watch(folder, log) == 0
    assert capsys.readouterr().out == f"These {len(lines)} texts are the reference; it is in {state}.\n"
    day = write(tmp_path, "\n".join([*texts, ""]), "day.txt")
    for _ in range(2):  # the second time it is known already
        assert watch(folder, day) == 0
    reference.update(texts)
    shares = [100 * reference.reference_open_share_, 100 * reference.open_share_]
    evidence = f"{10**reference.log10_evidence_:.2g}"
    known = f"{shares[0]:.0f} % of the reference are predicted open, {shares[1]:.0f} % of the {len(texts)} texts since"
    said = f"No alarm (evidence {evidence}, an alarm from 20 on): {known}.\n"
    assert capsys.readouterr().out == 2 * said
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
    done(capsys, "set-threshold", "--model", folder, "--rejection-rate", 0.9, "--quiet")
    share = 100 * np.mean(load(folder).predict(lines) == "-1")
    assert watch(folder, day) == 3
    assert f": {share:.0f} % of the reference" in capsys.readouterr().out


def test_a_state_that_does_not_fit_is_one_sentence(folder, log, texts, tmp_path, capsys):
    state = tmp_path / "model.monitor.json"
    assert watch(folder, log) == 0
    whole = state.read_text()
    sizes = json.loads(whole)
    sizes["state"]["n_reference_"] = 7
    other_shape = whole.replace('"shape": [5, 24]', '"shape": [6, 20]')
    words = ["monitor", "--quiet", "--model", folder, "--data"]
    for content in (whole[:-40], "[" * 100_000, other_shape, json.dumps(sizes)):
        assert content != whole
        state.write_text(content)
        assert "is no state of monitor, or it is damaged; remove it, or pass" in fails(capsys, *words, log)
    state.write_text(whole)
    done(capsys, "remove", "--model", folder, "--labels", "light", "--quiet")
    assert "is of another model, or of another fit of this one, so that scores cannot be" in fails(capsys, *words, log)
    said = fails(capsys, *words, write(tmp_path, "", "empty.txt"), "--state", tmp_path / "other.json")
    assert "There is no text to be the reference" in said


def test_an_interrupted_monitor_loses_nothing(folder, log, texts, tmp_path, capsys, monkeypatch):
    state, day = tmp_path / "new" / "state.json", write(tmp_path, "\n".join([*texts, ""]), "day.txt")
    assert watch(folder, log, "--state", state) == 0
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
