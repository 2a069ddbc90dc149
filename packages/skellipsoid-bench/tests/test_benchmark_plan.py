"""Plans: from arguments, from TOML, and what is refused before anything is run."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import SupConTextEncoder, baselines
from skellipsoid_bench import run
from skellipsoid_bench._case import Run, Task
from skellipsoid_bench._data import DataSpec, load_data
from skellipsoid_bench._identity import changed_params
from skellipsoid_bench._plan import make_plan

PLAN = """
data = ["mine", "banking", { name = "again", path = "mine", open_label = "oos" }]
ratios = [0.5, 1]
seeds = [3]
encoders = ["none", "head:tiny", "full:some/model", { name = "softmax", loss = "softmax", model_name = "tiny" }]
n_splits = 3
data_home = "texts"

[[methods]]
estimator = "ellipsoid"

[[methods]]
name = "searched"
estimator = "sklearn.linear_model:LogisticRegression"
params = { max_iter = 500 }
search = { C = [0.1, 1.0] }
"""


def read(path, open_label="-1"):
    """Read a data set that may have changed."""
    load_data.cache_clear()
    name = DataSpec("assistant") if path == "assistant" else DataSpec("mine", str(path), open_label)
    return load_data(name, None)


def test_entries_of_a_plan_are_chosen_by_name(tmp_path, intents_folder):
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "mine").symlink_to(intents_folder)
    (tmp_path / "tiny").mkdir()
    chosen = {"data": ["again"], "encoders": ["softmax", "none"], "methods": ["searched"]}
    some, everything = make_plan(tmp_path / "plan.toml", **chosen), make_plan(tmp_path / "plan.toml")
    assert [*some.data] == [everything.data[2]]
    found, wanted = (
        [(spec.name, changed_params(spec.estimator)) for spec in specs]
        for specs in ([*some.encoders, *some.methods], [*everything.encoders[3::-3], everything.methods[1]])
    )
    assert found == wanted
    assert some.methods[0].search == {"C": [0.1, 1.0]}


def test_the_shipped_corpus_is_a_data_set():
    data = read("assistant")
    assert len(data.rows) == 672 + 448
    assert (data.labels == "-1").sum() == 168


class NeedsAnArgument:
    """A class that ``module:Class`` cannot make."""

    def __init__(self, k):
        self.k = k

    def fit(self): ...
    def transform(self): ...
    def predict(self): ...
    def get_params(self): ...


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": ["nowhere"]}, r"^data has 'nowhere', which is not a data set; use banking, oos, stackoverflow, "),
        ({"data": "banking"}, r"^data is 'banking', but must be a list of at least one\.$"),
        ({"data": [{"folder": "x"}]}, r"^data has a table with 'folder', which is unknown; use name, path, open_label"),
        ({"data": ["banking", "banking"]}, r"^data names 'banking' twice; give each a name of its own\.$"),
        ({"data": [3]}, r"^data has 3; use a name or a table of name, path, open_label, text_column"),
        ({"ratios": [0.0]}, r"^ratios has 0\.0, but the proportion of known classes must be above 0 and at most 1\.$"),
        ({"seeds": [-1]}, r"^seeds has -1, but a seed must be a whole number from 0 to 4294967295\.$"),
        ({"n_splits": 1}, r"^n_splits is 1, but must be a whole number from 2 on\.$"),
        (
            {"encoders": ["tuned"]},
            r"^encoders has 'tuned'; use none, head, full, each with :MODEL if you like, CLABTextEncoder, .*, "
            r"MOGBTextEncoder, texts for the texts themselves, a folder of sentence-transformers, or module:Class\.$",
        ),
        ({"encoders": ["no.such:Thing"]}, r"^The encoder 'no\.such:Thing' cannot be imported \(No module named 'no'\)"),
        ({"encoders": ["sklearn.svm:SVC"]}, r"^'sklearn\.svm:SVC' is not a transformer of scikit-learn's kind; it"),
        ({"encoders": [{"loss": "softmax"}]}, r"^encoders has \{'loss': 'softmax'\} without a name; give it one"),
        ({"encoders": [{"name": "e", "loss": "x"}]}, r"^The encoder 'e' cannot be used: The 'loss' parameter of Sup"),
        ({"methods": ["elipsoid"]}, r"^'elipsoid' is not a method; use ellipsoid, paper.*, or module:Class for an"),
        ({"methods": ["sklearn.svm:Thing"]}, r"^The method 'sklearn\.svm:Thing' cannot be imported \(module"),
        ({"methods": [{"name": "x"}]}, r"^methods has \{'name': 'x'\} without an estimator; name a method or module"),
        (
            {"methods": [{"estimator": "ellipsoid", "params": {"betta": 1}}]},
            r"^The method 'ellipsoid' has no parameter 'betta'; its parameters are alpha, beta, device, ",
        ),
        (
            {"methods": [{"estimator": "ellipsoid", "search": {"beta": 0.5}}]},
            r"^search of 'ellipsoid' has beta = 0\.5, but needs a list of values to try\.$",
        ),
        (
            {"methods": [{"name": "mine", "estimator": "ADBClassifier", "encoder": "hed"}]},
            r"^The method 'mine' is run with the encoder 'hed' alone, but encoders has head;",
        ),
        (
            {"methods": [f"{__name__}:NeedsAnArgument"]},
            r"^The method 'NeedsAnArgument' cannot be made without arguments \(.*'k'\); give",
        ),
        (
            {"methods": [{"estimator": "ellipsoid", "search": {"beta": [1, "x"]}}]},
            r"^The method 'ellipsoid' cannot be used: The 'beta' p",
        ),
        ({"n_jobs": 0}, r"^n_jobs=0 must be a number of processes from 1 on\.$"),
        ({"device": "abacus"}, r"^device='abacus' is not available on this machine"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "r.jsonl", **given)
    assert not (tmp_path / "r.jsonl").exists()


ROWS, LABELS = np.arange(12.0).reshape(6, 2), np.array(["a", "b", "a", "b", "a", "b"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_train": np.where(np.arange(6) == 2, np.nan, 1)}, r"^y_train of '.*' has missing labels in row 2; drop"),
        ({"y_test": np.arange(6) / 2}, r"^Unknown label type: y_test of '.*' holds 0\.5 in row 1, which is no whole"),
        ({"y_train": LABELS[:5]}, r"^X_train of '.*x\.npz' has 6 rows, but y_train has the shape \(5,\); save one"),
        ({"X_dev": ROWS}, r"but y_dev is missing; save X_train, y_train, X_test, y_test, and X_dev, y_dev where"),
        ({"X_test": ROWS[:, :1]}, r"^X_test of .* has \(1,\) features, but X_train has \(2,\); save the same"),
        ({"X_train": ROWS[np.newaxis]}, r"^X_train of .* is float64 of shape \(1, 6, 2\); save numbers of shape"),
        ({"y_train": LABELS.astype(object)}, r"^The array y_train of .* holds Python objects or is damaged; save"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(tmp_path, changed, message):
    arrays = {"X_train": ROWS, "y_train": LABELS, "X_test": ROWS, "y_test": LABELS}
    np.savez(tmp_path / "whole.npz", **arrays)
    assert read(tmp_path / "whole.npz").labels.tolist() == [*LABELS, *LABELS]
    np.savez(tmp_path / "x.npz", **{**arrays, **changed})
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.npz")


def test_large_numbers_of_arrays_stay_exact_or_are_refused(tmp_path):
    def labels(**of_parts):
        arrays = {f"{name}_{part}": ROWS if name == "X" else y for part, y in of_parts.items() for name in ("X", "y")}
        np.savez(tmp_path / "x.npz", **arrays)
        return read(tmp_path / "x.npz").labels.tolist()

    numbers = 2**60 + np.arange(6)
    others = np.arange(6.0)
    told = [*map(str, numbers), *map(str, range(6))]
    assert labels(train=numbers, test=numbers.astype(np.uint64)) == told[:6] * 2
    assert labels(train=numbers, test=others) == told
    assert labels(train=others, test=others) == [f"{label}.0" for label in told[6:]] * 2
    for train, test, why in ((numbers, 2.0**60 + others, "float64"), (others, numbers, "y_train is float64")):
        with pytest.raises(ValueError, match=rf"^y_test of '.*' holds \S* \({why}\), which is no exact label"):
            labels(train=train, test=test)


def test_an_npz_file_with_a_changed_byte_is_one_sentence_or_what_it_was(tmp_path):
    path = tmp_path / "x.npz"
    X = np.random.default_rng(0).normal(size=(6, 16))
    np.savez_compressed(path, X_train=X, y_train=LABELS, X_test=X, y_test=LABELS)
    whole, refused = path.read_bytes(), []
    for position in range(8, len(whole), 9):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            data = read(path)
        except ValueError as error:
            refused.append(str(error))
        else:
            np.testing.assert_array_equal(data.rows, np.concatenate([X, X]))
    assert len(refused) > 120
    assert not any("\n" in sentence for sentence in refused)


def test_a_text_models_own_mean_is_the_mean(tiny_model, intents_folder, tmp_path):
    """Results of before, when the mean was the default, count for such models, and for no others."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    for mode in ("mean", "cls"):
        parts = [modules.Transformer(tiny_model), modules.Pooling(32, mode), modules.Normalize()]
        SentenceTransformer(modules=parts, device="cpu").save_pretrained(str(tmp_path / mode), create_model_card=False)

    def known(made, **params):
        """Whether a result of the mean counts as one of this model and these parameters."""
        entry = {"name": "none", "finetune": "none", "model_name": str(tmp_path / made), **params}
        plan = make_plan(None, data=[intents_folder], encoders=[entry])
        task = Task(plan.data[0], None, 0.5, 0, plan.encoders[0], 5, str(tmp_path), "cpu")
        stored = SupConTextEncoder(finetune="none", pooling="mean").get_params() | {"model_sha256": task.source().model}
        del stored["prompt"]  # newer than the result
        return Run(task, plan.methods[0])._has_encoder(stored)

    assert known("mean")
    assert known("mean", pooling="mean")
    assert not known("mean", prompt="a: ")
    assert known("cls", pooling="mean")
    assert not known("cls")


def test_every_method_that_asks_for_the_traffic_is_told_that_of_the_protocol():
    own = {"name": "own", "estimator": "MahalanobisClassifier", "params": {"open_share": 0.1}}
    untold = {"name": "untold", "estimator": "ellipsoid", "params": {"open_share": None, "known_shift": None}}
    inside = make_pipeline(StandardScaler(), baselines.MahalanobisClassifier())
    made = make_plan(None, methods=["ellipsoid", "paper", inside, own, untold, "BallClassifier"]).methods
    told = [
        [value for name, value in method.estimator.get_params().items() if name.endswith(("open_share", "known_shift"))]
        for method in made
    ]
    ours = ["(0.25, 0.75)", "0"]
    assert [sorted(map(str, each)) for each in told] == [ours, ours, ours, ["0", "0.1"], ["None", "None"], []]


@pytest.mark.parametrize(("split", "ending"), [(None, "csv"), ("part", "csv"), ("part", "xlsx")])
def test_a_single_file_is_divided_by_its_column_or_by_a_share(split, ending, tmp_path):
    rows = [("hello there", "greet", "test"), ("hello there", "greet", "test"), ("good day", "greet", "train")]
    rows += [(f"what costs number {i}", "price", "train" if i else "dev") for i in range(9)]
    table = pd.DataFrame([*rows, ("call the price", "price", "test")], columns=["said", "intent", "part"])
    path = tmp_path / f"log.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_excel(path, index=False, engine="xlsxwriter")
    entry = {"path": path, "text_column": "said", "label_column": "intent"}
    entry |= {"test_share": 0.4} if split is None else {"split": split}
    (spec,) = make_plan(None, data=[entry]).data
    data = load_data(spec, None)
    assert (spec.name, len(data.rows)) == ("log", 13)
    if split:
        parts = dict(zip(data.rows.tolist(), data.part.tolist(), strict=True))
        assert parts == {text: part for text, _, part in rows} | {"call the price": "test"}
        wrong = make_plan(None, data=[entry | {"split": "intent"}]).data[0]
        with pytest.raises(ValueError, match="holds 'greet'; write train, dev or test into each"):
            load_data(wrong, None)
        with pytest.raises(ValueError, match=r"data gives split to .* only a single file of texts has it"):
            make_plan(None, data=[{"path": tmp_path, "split": "part"}])
        return
    assert [(data.part[data.labels == name] == "test").sum() for name in ("greet", "price")] in ([1, 4], [2, 4])
    assert len({*data.part[data.rows == "hello there"]}) == 1  # equal texts are together


def test_data_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "train.tsv").write_text("wake me\toos\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"has no test\.tsv; a data set needs train\.tsv and test\.tsv, dev"):
        read(tmp_path)
    (tmp_path / "test.tsv").write_text("wake me\talarm\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^The data set 'mine' has no training row of a class; every label is 'oos'"):
        read(tmp_path, "oos")
    with pytest.raises(ValueError, match=r"^No row of the data set 'mine' has the open label 'ooo'; correct it, or"):
        read(tmp_path, "ooo")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, OSError, r"cannot be read \(.*\); pass a TOML"),
        ("# für\n".encode("latin-1"), ValueError, r"is not UTF-8; save it as UTF-8\.$"),
        (b"seeds = [", ValueError, r"is not valid TOML \("),
        (b"jobs = 2", ValueError, r"sets 'jobs', which is unknown; use data, "),
    ],
)
def test_a_plan_that_cannot_be_read_is_named(tmp_path, content, error, message):
    path = tmp_path / "plan.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=rf"^The plan '.*plan\.toml' {message}"):
        run(tmp_path / "r.jsonl", plan=path)
    assert not (tmp_path / "r.jsonl").exists()
