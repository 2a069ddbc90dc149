"""The runner: what trains, what is searched, what is run again and what is not."""

import shutil
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skellipsoid import SupConTextEncoder
from skellipsoid.metrics import open_set_auroc, open_set_f1_score
from skellipsoid_bench import BenchmarkError, read_results, run

TIMES = ("fit_seconds", "predict_seconds", "encode_seconds", "peak_memory_mb", "started", "threads")


class Recorder(LogisticRegression):
    """Classifier that keeps what it is given."""

    fits: ClassVar[list] = []
    asked: ClassVar[list] = []

    def fit(self, X, y):
        self.fits.append((np.array(X), np.array(y)))
        return super().fit(X, y)

    def predict(self, X):
        self.asked.append(X)
        return super().predict(X)


class Constant(DummyClassifier):
    """Classifier that always answers one class, and gives no score."""

    predict_proba = property()


class Failing(GaussianNB):
    """Classifier that cannot be fitted while it is told so."""

    fails = True

    def fit(self, X, y):
        if self.fails:
            raise ValueError("the matrix is singular")
        return super().fit(X, y)


class Warned(GaussianNB):
    """Classifier that warns of what differs from run to run."""

    def fit(self, X, y):
        warnings.warn(f"{len(X)} samples, the first class is '{min(y)}'", UserWarning, stacklevel=2)
        return super().fit(X, y)


@pytest.fixture
def recorder():
    Recorder.fits, Recorder.asked = [], []
    return Recorder


@pytest.fixture
def encoder_calls(monkeypatch):
    """What encoders learned from and transformed, in order: ``(kind, texts, labels)``."""
    calls = []
    fit, transform = SupConTextEncoder.fit_transform, SupConTextEncoder.transform

    def fit_transform(self, X, y=None, *, groups=None):
        calls.append((self.finetune, list(X), None if y is None else list(y)))
        return fit(self, X, y, groups=groups)

    def only_transform(self, X):
        calls.append(("transform", list(X), None))
        return transform(self, X)

    monkeypatch.setattr(SupConTextEncoder, "fit_transform", fit_transform)
    monkeypatch.setattr(SupConTextEncoder, "transform", only_transform)
    return calls


@pytest.fixture
def text_plan(intents_folder, tiny_model, tmp_path):
    """A plan on the folder of four intents, two of them known."""
    return {
        "data": [{"path": intents_folder, "open_label": "oos"}],
        "ratios": [0.5],
        "seeds": [0],
        "encoders": [{"name": "head", "model_name": tiny_model, "max_iter": 2}],
        "cache": tmp_path / "cache",
    }


def rows_of(folder, part):
    lines = (folder / f"{part}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(line.split("\t")) for line in lines]


# What trains


def test_no_open_row_reaches_training(text_plan, intents_folder, tmp_path, recorder, encoder_calls):
    (record,) = run(tmp_path / "r.jsonl", **text_plan, methods=[recorder()])
    known = np.random.RandomState(0).choice(["alarm", "balance", "light", "weather"], 2, replace=False)
    wanted = [(text, label) for text, label in rows_of(intents_folder, "train") if label in known]
    assert len(wanted) == 10
    (frozen, _, no_labels), (trained, *trained_on), transformed = encoder_calls
    # The frozen text model embeds every text and learns nothing.
    assert (frozen, no_labels, trained) == ("none", None, "head")
    assert list(zip(*trained_on, strict=True)) == wanted
    ((features, y),) = recorder.fits
    assert y.tolist() == [label for _, label in wanted]
    assert features.shape == (10, 32)
    assert transformed[1] == [text for text, _ in rows_of(intents_folder, "test")]
    truth = [label if label in known else "-1" for _, label in rows_of(intents_folder, "test")]
    assert (record["n_train"], record["n_test"], record["n_open"]) == (10, len(truth), 6)
    assert truth.count("-1") == 6


def test_a_search_sees_neither_test_rows_nor_the_classes_that_a_fold_holds_out(
    text_plan, intents_folder, tmp_path, recorder, encoder_calls
):
    methods = [{"estimator": recorder(), "search": {"C": [0.1, 1.0, 10.0]}}]
    (record,) = run(tmp_path / "r.jsonl", **{**text_plan, "ratios": [1.0]}, methods=methods, n_splits=2)
    test = {text for text, _ in rows_of(intents_folder, "test")}
    searched = {row for part in ("train", "dev") for row in rows_of(intents_folder, part) if row[1] != "oos"}
    fits = [call for call in encoder_calls if call[0] == "head"]
    assert len(fits) == 3  # two folds, then the case itself
    for (_, texts, labels), (_, y) in zip(fits[:2], (recorder.fits[0], recorder.fits[3]), strict=True):
        assert {*zip(texts, labels, strict=True)} < searched
        assert len({*labels}) == 2  # the other two classes are open in this fold, for encoder and boundary alike
        assert y.tolist() == labels
    # Six fits of three values on two folds, then one on the training rows alone.
    assert len(recorder.fits) == 7
    wanted = [label for _, label in rows_of(intents_folder, "train") if label != "oos"]
    assert recorder.fits[6][1].tolist() == wanted
    # The test rows are read once, after everything is chosen.
    transformed = [texts for kind, texts, _ in encoder_calls if kind == "transform"]
    assert [bool(test & {*texts}) for texts in transformed] == [False, False, True]
    assert {*transformed[2]} == test
    assert len(recorder.asked) == 7
    assert record["search"]["chosen"] in [{"C": 0.1}, {"C": 1.0}, {"C": 10.0}]
    assert [score["params"]["C"] for score in record["search"]["scores"]] == [0.1, 1.0, 10.0]


# Figures


@pytest.mark.parametrize(("finetune", "layers"), [("none", "auto"), ("head", "last"), ("full", "auto")])
def test_kept_features_are_those_of_the_encoder(
    finetune, layers, text_plan, intents_folder, tiny_model, tmp_path, recorder
):
    params = {"finetune": finetune, "layers": layers, "model_name": tiny_model}
    params |= {} if finetune == "none" else {"max_iter": 1}
    text_plan["encoders"] = [{"name": "e", **params}]
    for name in ("made", "kept"):
        run(tmp_path / f"{name}.jsonl", **text_plan, methods=[recorder()])
    known = np.random.RandomState(0).choice(["alarm", "balance", "light", "weather"], 2, replace=False)
    X, y = zip(*[row for row in rows_of(intents_folder, "train") if row[1] in known], strict=True)
    encoder = SupConTextEncoder(random_state=0, device="cpu", **params)
    train = encoder.fit_transform(X, y)
    test = encoder.transform([text for text, _ in rows_of(intents_folder, "test")])
    assert len(recorder.fits) == len(recorder.asked) == 2
    for (fitted, _), asked in zip(recorder.fits, recorder.asked, strict=True):
        np.testing.assert_allclose(fitted, train, atol=2e-5)
        np.testing.assert_allclose(asked, test, atol=2e-5)


# What is run again


def test_runs_that_fail_leave_the_others_and_are_tried_again(blobs_plan, tmp_path, monkeypatch):
    said = r"^2 of 4 runs failed, start .* the first is blobs 50% known, seed 0, features, Failing: ValueError: the"
    with pytest.raises(BenchmarkError, match=said):
        run(tmp_path / "r.jsonl", **blobs_plan, methods=[Failing(), GaussianNB()])
    kept = read_results(tmp_path / "r.jsonl")
    assert [record["method"] for record in kept] == ["GaussianNB", "GaussianNB"]
    monkeypatch.setattr(Failing, "fails", False)
    records = run(tmp_path / "r.jsonl", **blobs_plan, methods=[Failing(), GaussianNB()])
    assert records[1::2] == kept
    monkeypatch.setattr(Failing, "fails", True)
    with pytest.raises(ValueError, match=r"^the matrix is singular$"):
        run(tmp_path / "d.jsonl", **blobs_plan, methods=[Failing()], debug=True)


@pytest.mark.slow
def test_several_processes_give_the_same_results(text_plan, blobs_plan, tmp_path, monkeypatch):
    both = {**blobs_plan, "data": [*blobs_plan["data"], *text_plan["data"]], "encoders": text_plan["encoders"]}
    both |= {"seeds": [0], "methods": ["ellipsoid", Warned()]}
    with pytest.warns(UserWarning, match="the first class") as said:
        alone = run(tmp_path / "one.jsonl", **both)
    assert sum("the first class" in str(each.message) for each in said) == 2
    assert {record["threads"] for record in alone} == {torch.get_num_threads()}
    assert all(record["cpu"] for record in alone)
    both["methods"] += [Failing()]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with (
        pytest.warns(UserWarning, match=r"the first class is .* of other runs, are not shown") as said,
        pytest.raises(BenchmarkError, match=r"^2 of 6 runs failed"),
    ):
        run(tmp_path / "two.jsonl", **{**both, "cache": tmp_path / "other"}, n_jobs=2)
    assert ["the first class" in str(each.message) for each in said].count(True) == 1
    assert len(said) == 2  # the other is of few samples
    assert {each.filename for each in said} == {__file__}
    together = {(record["data"], record["method"]): record for record in read_results(tmp_path / "two.jsonl")}
    assert len(together) == 4
    assert {record["threads"] for record in together.values()} == {1}
    for record in alone:
        other = together[record["data"], record["method"]]
        for name, value in record.items():
            if name not in TIMES:
                assert other[name] == (pytest.approx(value, abs=1e-3) if isinstance(value, float) else value)


# Encoders and development samples


class WatchingClassifier(GaussianNB):
    seen: ClassVar[list] = []

    def fit(self, X, y, X_val=None, y_val=None):
        self.seen.append(X_val)
        return super().fit(X, y)


def test_pipelines_and_folders_of_sentence_transformers_are_encoders(
    text_plan, intents_folder, tiny_model, tmp_path, recorder
):
    from sentence_transformers import SentenceTransformer

    pipeline = make_pipeline(TfidfVectorizer(), TruncatedSVD(3))
    folder = tmp_path / "small"
    SentenceTransformer(str(tiny_model), device="cpu").save(str(folder))
    text_plan["encoders"] = [{"name": "svd", "estimator": pipeline}, str(folder)]
    records = run(tmp_path / "r.jsonl", **text_plan, methods=[recorder()])
    assert [record["encoder"] for record in records] == ["svd", "small"]
    assert len(records[1]["encoder_params"]["model_sha256"]) == 64
    texts = [text for text, _ in rows_of(intents_folder, "test")]
    wanted = SentenceTransformer(str(folder), device="cpu").encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(recorder.asked[1], wanted, atol=1e-5)
    text_plan["encoders"] = [TfidfVectorizer()]
    with pytest.raises(BenchmarkError, match="TfidfVectorizer gives a sparse matrix; let it end in TruncatedSVD"):
        run(tmp_path / "sparse.jsonl", **text_plan, methods=[GaussianNB()])


# What is recorded


def test_predictions_are_kept_one_file_for_each_run(blobs_plan, tmp_path, blobs_file):
    folder, path = tmp_path / "kept", tmp_path / "r.jsonl"
    methods = [{"name": "naïve / Bayes", "estimator": GaussianNB()}, Constant()]
    records = run(path, **blobs_plan, methods=methods, save_predictions=folder)
    assert {record["predictions"] for record in records} == {file.name for file in folder.iterdir()}
    first, constant, *_ = records
    rows = pd.read_csv(folder / first["predictions"], dtype={"label": str, "truth": str, "answer": str})
    with np.load(blobs_file) as stored:
        assert rows.label.tolist() == stored["y_test"].astype(str).tolist()
    assert (rows.truth == "-1").sum() == first["n_open"]
    known = sorted({*rows.truth} - {"-1"})
    assert first["f1"] == round(100 * open_set_f1_score(rows.truth, rows.answer, labels=known, zero_division=0), 4)
    assert first["auroc"] == round(100 * open_set_auroc(rows.truth, rows.score, labels=known), 4)
    title, row, *_ = (folder / constant["predictions"]).read_text(encoding="utf-8").splitlines()
    assert title == "label,truth,score,answer"
    assert ",," in row
    assert run(path, **blobs_plan, methods=methods, save_predictions=folder) == records
    run(tmp_path / "without.jsonl", **blobs_plan, methods=methods)
    with pytest.warns(UserWarning, match=r"^Results without predictions, since .* without save_predictions: 4;"):
        run(tmp_path / "without.jsonl", **blobs_plan, methods=methods, save_predictions=folder)


# What is kept


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ("\nrain\t", "\nwill it rain\t", ["none", "head", "transform"]),
        ("\nrain\tweather\n", "\nrain\talarm\n", ["head", "transform"]),
    ],
)
def test_nothing_kept_is_taken_for_something_else(old, new, kinds, text_plan, intents_folder, tmp_path, encoder_calls):
    text_plan["ratios"] = [1.0]
    run(tmp_path / "a.jsonl", **text_plan, methods=[GaussianNB()])
    folder = shutil.copytree(intents_folder, tmp_path / "intents")
    content = (folder / "train.tsv").read_text(encoding="utf-8")
    assert old in content
    (folder / "train.tsv").write_text(content.replace(old, new), encoding="utf-8")
    n_calls = len(encoder_calls)
    text_plan["data"] = [{"path": folder, "open_label": "oos"}]
    run(tmp_path / "b.jsonl", **text_plan, methods=[GaussianNB()])
    assert [call[0] for call in encoder_calls[n_calls:]] == kinds


def test_a_damaged_file_of_the_cache_is_made_anew(text_plan, tmp_path):
    (first,) = run(tmp_path / "a.jsonl", **text_plan)
    files = sorted(text_plan["cache"].iterdir())
    assert len(files) == 2  # embeddings, and features of the trained encoder
    for path in files:
        path.write_bytes(path.read_bytes()[:1000])
    (second,) = run(tmp_path / "b.jsonl", **text_plan)
    assert second["f1"] == first["f1"]
    assert sorted(text_plan["cache"].iterdir()) == files
    assert all(path.stat().st_size > 1000 for path in files)


# Pairs of encoder and method


def test_a_method_is_run_with_the_encoder_that_it_names(text_plan, tiny_model, tmp_path):
    short = {"model_name": tiny_model, "finetune": "head", "max_iter": 3, "batch_size": 8}
    text_plan["encoders"] = [
        {"name": "ours", "estimator": "CLABTextEncoder", "params": {**short, "early_stopping": False}},
        {"name": "stopped", "estimator": "CrossEntropyTextEncoder", "params": {**short, "n_iter_no_change": 1}},
    ]
    methods = [
        {"name": "CLAB", "estimator": "CLABClassifier", "encoder": "ours"},
        {"name": "ADB", "estimator": "ADBClassifier", "encoder": "stopped"},
        "BallClassifier",
    ]
    records = run(tmp_path / "r.jsonl", **text_plan, methods=methods)
    pairs = [(record["encoder"], record["method"]) for record in records]
    assert pairs == [("ours", "CLAB"), ("ours", "BallClassifier"), ("stopped", "ADB"), ("stopped", "BallClassifier")]
    assert (records[0]["encoder_epochs"], records[0]["encoder_stop"]) == (3, "max_iter")
    assert records[2]["encoder_stop"] in ("max_iter", "n_iter_no_change")
    assert records[0]["encoder_params"]["estimator"] == "CLABTextEncoder"
    # Once trained they are there.
    again = run(tmp_path / "other.jsonl", **text_plan, methods=methods[:1])
    assert [record["encoder_epochs"] for record in again] == [3]


def test_de_tunes_its_own_text_model(text_plan, tiny_model, tmp_path):
    text_plan["encoders"] = ["texts"]
    params = {"model_name": tiny_model, "max_iter": 2, "n_neighbors": 2, "learning_rate": 1e-3}
    (record,) = run(tmp_path / "r.jsonl", **text_plan, methods=[{"estimator": "DEClassifier", "params": params}])
    assert (record["encoder"], record["method"]) == ("texts", "DEClassifier")
    assert (record["encoder_epochs"], record["encoder_stop"]) == (2, "max_iter")
    assert record["auroc"] is None
    assert 0 <= record["f1"] <= 100


def test_an_encoder_that_fails_fails_all_its_methods(text_plan, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("no room on the device")

    monkeypatch.setattr(SupConTextEncoder, "fit_transform", broken)
    with pytest.raises(BenchmarkError, match=r"2 of 2 runs failed.*RuntimeError: no room on the device"):
        run(tmp_path / "r.jsonl", **text_plan, methods=["ellipsoid", "paper"])


def test_features_without_development_rows_are_made_anew_with_them(text_plan, tmp_path):
    run(tmp_path / "a.jsonl", **text_plan, methods=[GaussianNB()])
    run(tmp_path / "b.jsonl", **text_plan, methods=[WatchingClassifier(var_smoothing=0.1)])
    assert WatchingClassifier.seen[0].shape == (2, 32)
