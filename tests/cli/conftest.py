"""A user's file, the tiny text model, and a model that was saved."""

import argparse
import io
import pickle
import re
import shutil
import sys
from pathlib import Path

import pytest
from export_helpers import damage, run
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, cli, load, save
from skellipsoid._onnx import export as _export
from skellipsoid.cli import main
from skellipsoid.cli._options import build_parser


class Bytes(io.TextIOWrapper):
    """Standard input that holds these bytes; a terminal if that is wanted."""

    def __init__(self, content=b"", *, terminal=False):
        super().__init__(io.BytesIO(content.encode() if isinstance(content, str) else content), encoding="utf-8")
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def give_input(monkeypatch):
    """Make bytes or a text the standard input: ``give_input(content, terminal=False)``."""

    def give(content=b"", *, terminal=False):
        monkeypatch.setattr(sys, "stdin", Bytes(content, terminal=terminal))

    return give


@pytest.fixture
def table(tmp_path, texts, labels):
    """A user's file of 32 requests of four intents."""
    path = tmp_path / "requests.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)), encoding="utf-8")
    return path


@pytest.fixture(scope="package")
def fit_model(tiny_model, texts, labels):
    """Fit a Pipeline of the tiny text model to the 32 requests: ``fit_model(**settings)``."""

    def fit(**settings):
        encoder = SupConTextEncoder(tiny_model, random_state=0, **settings)
        return Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))]).fit(texts, labels)

    return fit


@pytest.fixture(scope="package")
def saved(fit_model, tmp_path_factory):
    """What ``train --save`` writes."""
    folder = tmp_path_factory.mktemp("cli") / "model"
    save(fit_model(finetune="head", max_iter=3, verbose=1), folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A model that may be changed."""
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture
def all_open(saved, tmp_path):
    """A model that predicts that every text is open."""
    model = load(saved)
    model[-1].offset_ = 1e9
    save(model, tmp_path / "model")
    return model


@pytest.fixture
def messages(texts, open_texts):
    """Texts of a log."""
    return [f"{text} {word}" for text in [*texts, *open_texts] for word in ("please", "now", "in the hall", "early")]


@pytest.fixture
def tiny_command(tiny_model, tmp_path_factory, monkeypatch, give_input):
    """The command where a folder by the name of the default text model holds the tiny one."""
    place = tmp_path_factory.mktemp("place")
    name = place / SupConTextEncoder().model_name
    name.parent.mkdir()
    name.symlink_to(tiny_model)
    monkeypatch.chdir(place)
    give_input()
    return main


@pytest.fixture(scope="package", autouse=True)
def traced_once():
    """The graph of a model takes seconds, and is the same wherever it is written: each is made once."""
    made, trace, describe = {}, _export.traced, _export._described
    parts = []

    def described(given, **options):
        parts[:] = given
        return describe(given, **options)

    def traced(*given):
        key = pickle.dumps(parts)
        if key not in made:
            made[key] = trace(*given)
        return made[key]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_export, "traced", traced)
        patched.setattr(_export, "_described", described)
        yield


@pytest.fixture(scope="package")
def exported(fit_model, tmp_path_factory, one_registry):
    """A model that keeps its texts, with its export beside it."""
    folder = tmp_path_factory.mktemp("export") / "model"
    save(fit_model(finetune="head", max_iter=3, keep_texts=True), folder)
    assert main(["export", "--model", str(folder)]) == 0
    return folder


@pytest.fixture
def model(exported, tmp_path):
    """A copy of it, to be changed."""
    return Path(shutil.copytree(exported, tmp_path / "model"))


@pytest.fixture
def alone(model, tmp_path):
    """The same model without its export."""
    shutil.copytree(model, tmp_path / "alone", ignore=shutil.ignore_patterns("onnx"))
    return tmp_path / "alone"


@pytest.fixture
def only_export(model, alone):
    """The model, which nothing can load any more, beside what it was: its export alone can answer."""
    damage(model)
    return model


@pytest.fixture
def predict_one(give_input, capsys):
    """Status, output and notes of ``predict`` for one text: ``predict_one(model)``."""

    def predict(model):
        give_input("wake me at six\n")
        return run(capsys, "predict", "--model", model)

    return predict


@pytest.fixture(scope="package")
def options_of():
    """Names of the options of each command."""
    (actions,) = [each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    return {name: {*parser._option_string_actions} for name, parser in actions.choices.items()}


@pytest.fixture(autouse=True)
def only_options_that_there_are(options_of, monkeypatch):
    """What a command says names no option that it lacks, in whichever test it is raised."""
    commands, run, say = [], cli._run, cli._say

    def noted_run(options):
        commands.append(options.command)
        return run(options)

    def checked_say(program, message):
        for other, option in re.findall(r"(?:\b([a-z-]+) )?(?<![\w-])(--[a-z][a-z-]*)", message):
            of = other if other in options_of else commands[-1] if commands else None
            assert of is None or option in options_of[of], f"{of} has no {option}: {message}"
        say(program, message)

    monkeypatch.setattr(cli, "_run", noted_run)
    monkeypatch.setattr(cli, "_say", checked_say)
