"""The open answer inside scikit-learn's meta-estimators, as the page *Recipes* says of each."""

import builtins
import re
from inspect import Parameter, getdoc, signature
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV
from skellipsoid.baselines import MahalanobisClassifier
from skellipsoid.plotting import EllipsoidDisplay
from skellipsoid_bench import literature

PAGE = (Path(__file__).parent.parent / "docs/guide/recipes.rst").read_text(encoding="utf-8")
FOLDS = StratifiedKFold(3)
CLF = EllipsoidOpenSetClassifier(random_state=0)
PAIR = [("open_set", CLF), ("closed", LogisticRegression())]
SEARCH = GridSearchCV(CLF, {"beta": [0.5]}, cv=FOLDS)
OUTCOMES = [
    (make_pipeline(StandardScaler(), CLF), "kept"),
    (SEARCH, "kept"),
    (TunedOperatingPointCV(CLF, rejection_rate=0.1, cv=FOLDS), "kept"),
    (TunedOperatingPointCV(SEARCH, rejection_rate=0.1, cv=FOLDS), "kept"),
    (CalibratedClassifierCV(CLF, cv=3), "**lost**"),
    (StackingClassifier(PAIR), "**lost**"),
    *((VotingClassifier(PAIR, voting=voting), "error") for voting in ("hard", "soft")),
    *((wrapper(CLF), "**lost**") for wrapper in (OneVsRestClassifier, OneVsOneClassifier, FixedThresholdClassifier)),
    *((wrapper(CLF, random_state=0), "**lost**") for wrapper in (BaggingClassifier, AdaBoostClassifier)),
    (TunedThresholdClassifierCV(CLF, scoring="accuracy"), "**lost**"),
]
FAR_AWAY = [[-40.0, -40.0], [40.0, 40.0], [40.0, -50.0]]


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 1, size=(60, 2)) for centre in (0, 10)])
    return X, np.repeat(["left", "right"], 60)


def said(name):
    """What the page says of a wrapper."""
    row = next(row for row in PAGE.split("   * - ") if name in row.splitlines()[0])
    return row.splitlines()[1].strip().removeprefix("- ")


@pytest.mark.parametrize(("model", "expected"), OUTCOMES, ids=[type(model).__name__ for model, _ in OUTCOMES])
def test_a_wrapper_does_with_the_open_answer_what_the_page_says(model, expected, samples):
    try:
        answers = clone(model).fit(*samples).predict(FAR_AWAY)
    except (AttributeError, ValueError):
        found = "error"
    else:
        found = "kept" if (answers == "-1").all() else "**lost**"
    assert found == expected == said(type(model).__name__)


def test_self_training_needs_probabilities(samples):
    labels = np.repeat([0, 1], 60)
    labels[::3] = -1  # unlabelled
    with pytest.raises(AttributeError, match="has no predict_proba"):
        SelfTrainingClassifier(CLF).fit(samples[0], labels)
    assert said("SelfTrainingClassifier") == "error"


def test_only_the_display_of_this_package_draws_open_space(samples):
    pytest.importorskip("matplotlib").use("Agg")
    X, y = np.append(samples[0], [[0.0, 20.0]] * 60, axis=0), np.append(samples[1], ["up"] * 60)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    clf = clone(CLF).fit(X, y)
    assert (clf.predict(FAR_AWAY) == "-1").all()
    drawn = DecisionBoundaryDisplay.from_estimator(clf, X, grid_resolution=20, eps=50)
    assert drawn.response.shape[-1] == len(clf.classes_)  # there is no colour for open
    with pytest.raises(ValueError, match="previously unseen labels"):
        DecisionBoundaryDisplay.from_estimator(clf, X, response_method="predict", grid_resolution=20, eps=50)
    assert EllipsoidDisplay.from_estimator(clf, X, y, grid_resolution=20).is_open.any()
    assert said("DecisionBoundaryDisplay") == "**lost**"


def test_after_samples_and_labels_every_fit_takes_keywords_alone():
    """Weights cannot be taken for groups, nor groups for weights: their order differs between estimators."""
    modules = skellipsoid, skellipsoid.baselines, literature
    found = {getattr(module, name) for module in modules for name in module.__all__}
    methods = [getattr(cls, name, None) for cls in found if isinstance(cls, type) for name in ("fit", "fit_transform")]
    methods = {method.__qualname__: list(signature(method).parameters.values()) for method in methods if method}
    assert len(methods) > 6
    for name, (_, X, *more) in methods.items():
        assert X.name == "X"
        for parameter in more[1:]:
            assert parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD), (name, parameter)
        assert not more or more[0].name == "y"
    assert list(signature(skellipsoid.dask.fit).parameters)[:3] == ["classifier", "X", "y"]
    assert signature(skellipsoid.dask.fit).parameters["groups"].kind is Parameter.KEYWORD_ONLY


X, LABELS = np.random.default_rng(0).normal(size=(60, 3)) + 9 * np.eye(3)[np.arange(60) % 3], np.arange(60) % 3
NOT_SAMPLES = [
    *(None, 3, "text", [], [[]], [1, 2, 3], {"a": 1}, object(), [["a", 1, 2]], [[{}, 1, 2]]),
    *(np.zeros((3, 2)), np.full((5, 3), np.nan), np.zeros((2, 3, 3)), 1e300 * X),
    *(X.astype(complex), np.zeros((60, 3), "M8[s]"), csr_array(X), np.ma.array(X, mask=True)),
]
NOT_LABELS = [*(None, 3, "a", [], LABELS[:5], np.full(60, np.nan)), *(LABELS / 7, [None] * 60, [1, "a"] * 30, object())]


@pytest.mark.parametrize(
    "fit",
    [CLF.fit, MahalanobisClassifier().fit, TunedOperatingPointCV(CLF, cv=2).fit],
    ids=lambda fit: type(fit.__self__).__name__,
)
def test_what_a_fit_raises_stands_in_its_docstring(fit):
    named = re.search(r"Raises\n-+\n(.*?)\n\n", getdoc(fit), re.DOTALL)[1]
    errors = tuple(getattr(builtins, name) for name in re.findall(r"^(\w+)$", named, re.MULTILINE))
    assert errors
    calls = [((rows, LABELS), {}) for rows in NOT_SAMPLES] + [((X, labels), {}) for labels in NOT_LABELS]
    calls += [((X, LABELS), {name: value}) for name in ("groups", "sample_weight") for value in NOT_LABELS[2:6]]
    for arguments, options in calls:
        with pytest.raises(errors):
            fit(*arguments, **options)
