"""What ``skellipsoid compare`` prints and writes."""

import csv

import pytest
from command_helpers import done

from skellipsoid import load, save, set_operating_point


@pytest.fixture
def stricter(saved, texts, tmp_path):
    """The saved model with another operating point."""
    save(set_operating_point(load(saved), texts, rejection_rate=0.5), tmp_path / "stricter")
    return tmp_path / "stricter"


def test_changed_answers_are_reported_and_written(saved, stricter, texts, tmp_path, give_input, capsys):
    before, after = (load(folder).predict(texts).tolist() for folder in (saved, stricter))
    changed = [(old, new, text) for old, new, text in zip(before, after, texts, strict=True) if old != new]
    assert changed
    give_input("\n".join([*texts, ""]))
    file = tmp_path / "changed.tsv"
    out = done(capsys, "compare", "--before", saved, "--after", stricter, "--save", file)
    assert out.startswith(f"{len(changed)} of {len(texts)} predictions changed")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    assert sorted((row["before"], row["after"], row["text"]) for row in rows) == sorted(changed)
    assert all(float(row["margin_after"]) < 0 for row in rows)


def test_a_model_changes_nothing_against_itself(saved, table, capsys):
    out = done(capsys, "compare", "--before", saved, "--after", saved, "--data", table, "--quiet")
    assert out == "0 of 32 predictions changed (0.00%).\n"
