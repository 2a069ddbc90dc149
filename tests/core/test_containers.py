"""Promise: every public function gives, for samples, texts, labels and numbers of any container, the array's answer.

The lists below name all that is public and takes such data, so that what is new must be listed. All parameters of it
that take data are given, and all methods of a class that take data are called.
"""

import inspect
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from container_helpers import ARRAYS, KINDS, Given, assert_same, data_methods, data_parameters
from sklearn.pipeline import make_pipeline

import skellipsoid
import skellipsoid_bench
import skellipsoid_runtime
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, metrics, model_selection, plotting
from skellipsoid.metrics import open_set_accuracy
from skellipsoid_bench import language_models, literature

TESTS = Path(__file__).parents[1]
OF_BENCH = "../packages/skellipsoid-bench/tests"
RNG = np.random.default_rng(0)
KNOWN, OPEN = ["a", "b", "c"], ["d", "-1"]
CENTRES = {"a": (9, 0, 0), "b": (0, 9, 0), "c": (0, 0, 9), "d": (0, 0, 0), "-1": (-9, -9, -9), "e": (9, 9, 9)}


def blobs(labels):
    """Round classes far apart."""
    return np.round(RNG.normal(size=(len(labels), 3)) + [CENTRES[label] for label in labels], 3)


def sentences(labels):
    """Texts that the tiny text model tells apart."""
    words = {"a": "wake", "b": "lamp", "c": "rain", "d": "jazz", "-1": "hamlet", "e": "bread"}
    more = "me the morning tomorrow please early six noon seven today balance account".split()  # noqa: SIM905
    return [f"{words[label]} {more[i % 12]} {more[i % 11]}" for i, label in enumerate(labels)]


def groups(n_rows):
    return np.array([f"group {i // 2}" for i in range(n_rows)])


def data(make):
    """What is given to a fit, afterwards, and to single methods, as arrays."""
    old, new, added = np.repeat(KNOWN, 12), np.tile([*KNOWN, *OPEN], 12), np.repeat(["e"], 6)
    after = {
        **{"X": make(new), "y": new, "groups": groups(60), "sample_weight": np.tile([1.0, 2.0], 30)},
        **{"y_true": new, "y_pred": np.tile(["-1", "b", "a", "c"], 15), "y_pred_known": np.tile(["c", "a", "b"], 20)},
        **{"score": RNG.normal(size=60).round(2), "labels": np.array(KNOWN), "stratify": new},
        **{"reference": make(old), "texts": sentences(new), "scores": RNG.normal(size=(20, 3))},
        **{name: RNG.uniform(size=12).round(3) for name in ("scores_a", "scores_b", "p_values")},
    }
    fit = {"X": make(old), "y": old, "groups": groups(36), "sample_weight": np.full(36, 2.0)}
    return {
        "fit": fit | {"X_val": make(old[::3]), "y_val": old[::3]},
        "after": after,
        "add_classes": {"X": make(added), "y": added, "groups": groups(6)},
        "learn_from_traffic": {"X": make(new), "y": new, "sample_weight": np.tile([1.0, 2.0], 30)},
        "remove_classes": {"labels": np.array(["b"])},
    }


OF_FEATURES, OF_TEXTS = data(blobs), data(sentences)


class NearestMean(skellipsoid.ScoreOpenSetClassifier):
    """A method of one's own."""

    def __init__(self, *, threshold="auto"):
        self.threshold = threshold

    def fit_scores(self, X, classes, sample_weight):
        self.means_ = [X[classes == k].mean(axis=0) for k in range(classes.max() + 1)]

    def class_scores(self, X):
        return -np.column_stack([np.linalg.norm(X - mean, axis=1) for mean in self.means_])


#: Functions of data alone.
FUNCTIONS = [skellipsoid.check_training_features, skellipsoid.check_training_texts, metrics.bootstrap_interval]
FUNCTIONS += [metrics.fpr_at_tpr, skellipsoid_bench.holm, metrics.known_f1_score]
FUNCTIONS += [metrics.open_f1_score, metrics.open_set_accuracy, metrics.open_set_aupr, metrics.open_set_auroc]
FUNCTIONS += [metrics.open_set_f1_score, metrics.open_set_report, metrics.oscr_curve, metrics.oscr_score]
FUNCTIONS += [skellipsoid_bench.paired_test, metrics.trade_off_curve, skellipsoid.find_duplicates]
FUNCTIONS += [metrics.asking_report]
#: What "predict_set" gives for sixty samples.
ASKED = {"action": ["answer", "ask", "open"] * 20, "classes": [["a", "-1"], ["b", "c"], ["-1", "-1"]] * 20}
#: Functions of a fitted model and data: of features, and of texts by a Pipeline.
ON_MODELS = [skellipsoid.add_classes, skellipsoid.compare, skellipsoid.discover_classes, skellipsoid.explain]
ON_MODELS += [skellipsoid.estimate_open_share, skellipsoid.predict_open_proba, skellipsoid.remove_classes]
ON_MODELS += [skellipsoid.set_operating_point, skellipsoid.learn_from_traffic, skellipsoid.choose_to_label]
ON_MODELS += [skellipsoid.predict_set, metrics.open_set_accuracy_scorer, metrics.open_set_f1_scorer]
#: What functions take besides.
MORE = {
    metrics.asking_report: {"result": ASKED},
    metrics.bootstrap_interval: {"metric": lambda y: open_set_accuracy(y, y), "n_resamples": 9, "random_state": 0},
    skellipsoid.explain: {"n_axes": 1, "n_neighbors": 2},
    skellipsoid.predict_open_proba: {"open_share": 0.3},
    skellipsoid.set_operating_point: {"open_share": 0.2},
}
#: Classes whose methods are called without a fit.
UNFITTED = {
    model_selection.KnownClassSplit: lambda: model_selection.KnownClassSplit(0.5, 0),
    model_selection.OpenSetKFold: lambda: model_selection.OpenSetKFold(2),
    model_selection.OpenSetShuffleSplit: lambda: model_selection.OpenSetShuffleSplit(2, random_state=0),
    model_selection.RealOpenKFold: lambda: model_selection.RealOpenKFold(2),
    **{getattr(plotting, name): partial(getattr, plotting, name) for name in plotting.__all__},
}
#: Parameters of classes that are fitted; the others take features.
OF_TEXT = {
    SupConTextEncoder: {"finetune": "head", "max_iter": 2, "cross_fit": False, "early_stopping": True},
    **{getattr(literature, name): {"max_iter": 1} for name in literature.__all__ if name.endswith("TextEncoder")},
    literature.DEClassifier: {"max_iter": 1, "n_neighbors": 3},
}
OF_FEATURE = {
    EllipsoidOpenSetClassifier: {},
    NearestMean: {},
    skellipsoid.TunedOperatingPointCV: {"rejection_rate": 0.2, "cv": 3},
    skellipsoid.OpenShareMonitor: {},
    **{kind: {} for kind in vars(skellipsoid.baselines).values() if isinstance(kind, type)},
    **{getattr(literature, name): {} for name in literature.__all__ if "Text" not in name and name != "DEClassifier"},
}
LISTED = [*FUNCTIONS, *ON_MODELS, *UNFITTED, *OF_TEXT, *OF_FEATURE]
#: Classes that need what stands in another folder of tests, and the files that hold them against ``KINDS``.
ELSEWHERE = {
    language_models.LLMTextEncoder: f"{OF_BENCH}/language_models/test_llm_encoder.py",
    language_models.PromptOpenSetClassifier: f"{OF_BENCH}/language_models/test_prompt.py",
    skellipsoid_runtime.OnnxPipeline: "runtime/test_onnx_pipeline.py",
}
#: All but one of each template, as in test_common.py.
FAST = {
    EllipsoidOpenSetClassifier,
    NearestMean,
    skellipsoid.TunedOperatingPointCV,
    skellipsoid.OpenShareMonitor,
    SupConTextEncoder,
}
SLOW = {*OF_TEXT, *OF_FEATURE, *(getattr(plotting, name) for name in plotting.__all__)} - FAST

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),  # a column as labels
    pytest.mark.filterwarnings("ignore:(3 classes are too few|The reference has 36 samples):UserWarning"),
]


def public():
    """Functions and classes that are public, but those for Dask's own collections."""
    for package in ("", ".baselines", ".datasets", ".metrics", ".model_selection", ".persistence", ".plotting"):
        module = import_module(f"skellipsoid{package}")
        yield from (getattr(module, name) for name in module.__all__)
    for module in (skellipsoid_runtime, literature, language_models):
        yield from (getattr(module, name) for name in module.__all__)


def takes_data(thing):
    if inspect.isclass(thing):
        return bool(data_methods(thing))
    # The reference of the benchmark is the name of a method.
    return callable(thing) and bool({*data_parameters(thing)} - {"reference"})


def test_all_that_takes_data_is_listed():
    listed = [*LISTED, skellipsoid.ScoreOpenSetClassifier, *ELSEWHERE]
    wanted = [thing for thing in public() if takes_data(thing)]
    assert [thing for thing in wanted if thing not in listed] == []
    for path in ELSEWHERE.values():
        assert "KINDS" in (TESTS / path).read_text(encoding="utf-8")


@cache
def of_features(kind):
    given = Given(kind, OF_FEATURES, label="a", names=["one", "two", "three"])
    # They know the columns that a kind has.
    one, other = (given(EllipsoidOpenSetClassifier(beta=beta, random_state=0).fit, "fit") for beta in (0.5, 0.1))
    given.models |= {"estimator": one, "before": one, "after": other}
    return given


@cache
def of_texts(kind, text_model):
    if kind is not ARRAYS:
        return Given(kind, OF_TEXTS, "texts", **of_texts(ARRAYS, text_model).models)
    given = Given(kind, OF_TEXTS, "texts")
    for name, finetune in (("estimator", "head"), ("before", "none"), ("after", "head")):
        encoder = SupConTextEncoder(text_model, finetune=finetune, max_iter=3, random_state=0)
        pipe = make_pipeline(encoder, EllipsoidOpenSetClassifier(random_state=0))
        given.models[name] = pipe.fit(OF_TEXTS["fit"]["X"], OF_TEXTS["fit"]["y"])
    return given


def outcome(thing, kind, text_model):
    """What comes out where everything is given in containers of a kind."""
    given, more = Given(kind, OF_FEATURES), MORE.get(thing, {})  # without models, whose fits take long
    if thing in FUNCTIONS:
        return given.shown(given(thing, **more))
    if thing in ON_MODELS:
        return [given.shown(given(thing, **more)) for given in (of_features(kind), of_texts(kind, text_model))]
    if thing in UNFITTED:
        return of_features(kind).methods(UNFITTED[thing]())
    parameters = {}
    if thing in OF_TEXT:
        given, parameters = Given(kind, OF_TEXTS, "texts"), {"model_name": text_model}
    if thing in (skellipsoid.TunedOperatingPointCV, skellipsoid.OpenShareMonitor):
        given = of_features(kind)
        parameters = {"estimator": given.models["estimator"]}
    parameters |= {**OF_TEXT, **OF_FEATURE}[thing]
    if "random_state" in inspect.signature(thing).parameters:
        parameters |= {"random_state": 0}
    return given.methods(given(thing(**parameters).fit, "fit"))


@cache
def outcome_of_arrays(thing, text_model):
    return outcome(thing, ARRAYS, text_model)


def kinds_of(thing):
    """Give every kind for a classifier and an encoder, and another one to each of the others, which validate alike."""
    if thing in (EllipsoidOpenSetClassifier, SupConTextEncoder):
        return KINDS
    return [KINDS[LISTED.index(thing) % len(KINDS)]]


def cases():
    for thing in LISTED:
        marks = [pytest.mark.slow] * (thing in SLOW)
        for kind in kinds_of(thing):
            yield pytest.param(thing, kind, id=f"{getattr(thing, '__name__', thing)}-{kind}", marks=marks)


@pytest.mark.filterwarnings("ignore:.* labels count as open")  # one class of the labels is not known, on purpose
@pytest.mark.parametrize(("thing", "kind"), [*cases()])
def test_the_answer_of_arrays(thing, kind, tiny_model):
    assert_same(outcome(thing, kind, tiny_model), outcome_of_arrays(thing, tiny_model))
    plt.close("all")
