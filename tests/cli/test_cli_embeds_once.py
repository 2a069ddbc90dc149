"""Training from a file embeds each text once, for the test, the limit and the model, and says what it does."""

import sys

import pytest
from embedding_helpers import embedded_texts

from skellipsoid import load
from skellipsoid.cli import main


@pytest.mark.parametrize("more", [["--report"], ["--report", "--rejection-rate", "0.1", "--finetune", "head"]])
def test_each_text_is_embedded_once_and_every_step_is_said(
    more, tiny_model, table, texts, tmp_path, monkeypatch, capsys
):
    embedded = embedded_texts(monkeypatch)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command = ["train", "--data", str(table), "--model-name", str(tiny_model), "--save", str(tmp_path / "model"), *more]
    assert main(command) == 0
    assert len(embedded) == len({*embedded}) >= len({*texts})
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("Checking", "Training"))]
    assert said[0] == f"Checking {len(texts)} texts."
    assert any(line.endswith("others.") for line in said)
    assert f"Training on all {len(texts)} texts." in said
    assert any(line.endswith("set the threshold.") for line in said) == ("--rejection-rate" in more)
    assert load(tmp_path / "model").predict(["wake me at six"]).shape == (1,)
