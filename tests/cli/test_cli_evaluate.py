"""The command ``evaluate``: its report is that of Python, on models of all methods."""

import re

import numpy as np
import pytest
from command_helpers import done, fails
from file_helpers import write, written
from sklearn.pipeline import Pipeline

from skellipsoid import load, predict_set, save
from skellipsoid.baselines import KNNOpenSetClassifier
from skellipsoid.cli import main
from skellipsoid.metrics import asking_report, open_set_report


@pytest.fixture
def test_table(tmp_path, texts, labels, open_texts):
    rows = [*zip(texts, labels, strict=True), *((text, "joke") for text in open_texts[:2])]
    rows += [(text, "-1") for text in open_texts[2:]]
    return write(tmp_path, written([("text", "label"), *rows], "\t"), "test.tsv")


def test_a_model_of_another_method_answers_but_has_no_scores(
    saved, test_table, texts, labels, give_input, capsys, tmp_path
):
    encoder = load(saved)[0]
    features = encoder.transform(texts)
    other = KNNOpenSetClassifier(n_neighbors=2).fit(features, labels)
    save(Pipeline([("enc", encoder), ("clf", other)]), tmp_path / "model")
    give_input("\n".join(texts))
    lines = done(capsys, "predict", "--model", tmp_path / "model").splitlines()
    assert [line.split("\t")[0] for line in lines] == other.predict(features).tolist()
    done(capsys, "evaluate", "--model", tmp_path / "model", "--data", test_table)
    sentence = "--scores explains ellipsoids, but the model in .* ends in a KNNOpenSetClassifier; leave --scores out."
    assert re.search(sentence, fails(capsys, "predict", "--scores", "--model", tmp_path / "model"))


def test_evaluate_reports_on_a_file(saved, test_table, texts, labels, open_texts, capsys):
    assert main(["evaluate", "--model", str(saved), "--data", str(test_table)]) == 0
    out, err = capsys.readouterr()
    counts, _, report = out.partition("\n\n")
    assert counts == "38 texts, 6 of them open, because the model does not know the labels '-1' (4), 'joke' (2)"
    report, _, costs = report.partition("\n\nOther thresholds on these texts")
    report, _, asked = report.partition("\n\nWith questions (predict --ask):\n")
    truth, predicted = np.array([*labels, *["-1"] * 6]), load(saved).predict([*texts, *open_texts])
    assert report == open_set_report(truth, predicted, zero_division=np.nan)
    known, opened = (list(map(int, re.findall(r"\d+", line.partition("100")[2]))) for line in asked.splitlines())
    told = asking_report(truth, predict_set(load(saved), [*texts, *open_texts]))
    assert known[:3] == [round(100 * told[name]) for name in ("served", "wrong", "asked")]
    assert opened[:2] == [round(100 * told[name]) for name in ("open_answered", "open_asked")]
    (present,) = [row for row in costs.splitlines() if row.endswith("<- this model")]
    right, detected = (np.mean((predicted == truth)[part]) for part in (slice(len(labels)), slice(len(labels), None)))
    figures = list(map(int, present[19:].split()[:4]))  # right wrong rejected detected
    assert figures[::3] == pytest.approx([100 * right, 100 * detected], abs=1)
    assert err == ""


def test_evaluate_draws_the_confusion_matrix(saved, test_table, tmp_path, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")  # what other tests left
    picture = tmp_path / "confusion.png"
    said = done(capsys, "evaluate", "--model", saved, "--data", test_table, "--plot", picture)
    assert f"The confusion matrix is in {picture}" in said
    pixels = plt.imread(picture)
    assert min(pixels.shape[:2]) > 300
    assert pixels.std() > 0.05
    assert plt.get_fignums() == []
