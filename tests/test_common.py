"""Promise: every classifier of the package passes scikit-learn's checks and this package's own.

The classifiers of ``skellipsoid.baselines`` come from its index; those of the literature stand here. What a check of
scikit-learn wants otherwise is listed with its reason; a classifier that is not listed skips those of ``BOUNDARY``. Of
the default classifier and of what wraps one all checks are fast tests, of one classifier of each template slow ones
(of scikit-learn's, of one with a boundary and one without).
All other classifiers have the validation of one of these: of them only ``OF_THE_CLASS`` and ``OWN_OF_THE_CLASS`` run.
"""

import inspect
import pickle
import random
import sys
import warnings
from contextlib import nullcontext
from functools import cache
from itertools import product
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, baselines
from skellipsoid._base import BoundaryOpenSetClassifier
from skellipsoid.baselines import (
    BallClassifier,
    EnergyClassifier,
    KNNOpenSetClassifier,
    LOFOpenSetClassifier,
    MahalanobisClassifier,
    MaxLogitClassifier,
)
from skellipsoid.utils import expected_failed_checks
from skellipsoid_bench.language_models import PromptOpenSetClassifier
from skellipsoid_bench.literature import ADBClassifier, CLABClassifier, DOCClassifier, MOGBClassifier, OpenMaxClassifier

#: Parameters for this package's own checks, where the defaults do not suit their few rows.
PARAMETERS = {
    BallClassifier: {"coverage": 1.0},
    # The median distance, where half of the rows are outside, made larger by negatives far away.
    CLABClassifier: {"normalize": False, "eta": 0.8},
    MOGBClassifier: {"min_size": 1, "split_size": 1},
    KNNOpenSetClassifier: {"normalize": False},
    OpenMaxClassifier: {"tail_size": 3},
}
#: Classifiers of the other distribution, and scikit-learn's checks that they rightly fail. ``xfail_strict`` makes a
#: needless one an error.
OF_LITERATURE = {
    ADBClassifier: expected_failed_checks(BallClassifier()),
    CLABClassifier: expected_failed_checks(BallClassifier()),
    DOCClassifier: expected_failed_checks(EnergyClassifier()),
    MOGBClassifier: expected_failed_checks(EnergyClassifier()),
    OpenMaxClassifier: expected_failed_checks(MahalanobisClassifier()),
}
OTHERS = [*(getattr(baselines, name) for name in baselines.__all__), *OF_LITERATURE]
CLASSIFIERS = {classifier: PARAMETERS.get(classifier, {}) for classifier in (EllipsoidOpenSetClassifier, *OTHERS)}
#: Of classes far apart every draw of seeds gives the same balls, and the folds of a threshold the same threshold.
SEEDLESS = {MOGBClassifier, baselines.SoftmaxOpenSetClassifier, DOCClassifier, OpenMaxClassifier}


def expected_failures(estimator):
    return OF_LITERATURE.get(type(estimator)) or expected_failed_checks(estimator)


#: The default, and what wraps a classifier.
FAST = {EllipsoidOpenSetClassifier, TunedOperatingPointCV}
#: One of each template.
TEMPLATES = {
    BallClassifier,  # CentroidBallClassifier
    MaxLogitClassifier,  # LogitClassifier
    KNNOpenSetClassifier,  # ThresholdedClassifier
    LOFOpenSetClassifier,  # BaseOpenSetClassifier
}
#: Checks of what no template has: the parameters and the state.
OF_THE_CLASS = {
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_estimators_pickle",
    "check_dict_unchanged",
}

#: Those of this package's own checks whose outcome a class's mathematics decides. The others hold for its template.
OWN_OF_THE_CLASS = {
    "check_open_set_learns",
    "check_open_set_predict_is_open_exactly_below_offset",
    "check_open_set_pickle_joblib_clone",
    "check_open_set_same_seed_same_result",
    "check_open_set_input_unchanged",
    "check_open_set_integer_weights_are_repetitions",
}

#: Those of literature train for long, and have tests of their own.
OWN_OF_LITERATURE = {
    "check_open_set_learns",
    "check_open_set_pickle_joblib_clone",
    "check_open_set_integer_weights_are_repetitions",
}

SCORING_METHODS = ("predict", "predict_known", "score_samples", "class_margins", "decision_function")


def sklearn_instance(classifier):
    """The default instance, with an open label that the data of scikit-learn's checks do not use.

    With a seed where there is one: ``check_classifiers_one_label`` sets none.
    """
    seed = {"random_state": 0} if "random_state" in classifier().get_params() else {}
    # The checks' classes have less than the five rows of a ball.
    more = CLASSIFIERS[classifier] if classifier is MOGBClassifier else {}
    return classifier(open_label=-999, **seed, **more)


def tuned_instance():
    """The tuned operating point; folds with open rows need more classes than the data of scikit-learn's checks have."""
    classifier = sklearn_instance(EllipsoidOpenSetClassifier)
    return TunedOperatingPointCV(classifier, rejection_rate=0.4, cv=StratifiedKFold(2))


def sklearn_checks():
    """Estimators and scikit-learn's checks, the expected failures marked.

    What ``parametrize_with_checks`` does, as a list: scikit-learn 1.6 passes a generator, of which pytest warns.
    """
    for estimator in [*map(sklearn_instance, CLASSIFIERS), tuned_instance()]:
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=expected_failures(estimator), mark="xfail"
        ):
            values, marks = getattr(case, "values", case), [*getattr(case, "marks", ())]
            # scikit-learn 1.6 wants a TypeError of what takes no sparse rows; later ones do not ask it.
            if values[1].func.__name__.endswith("on_sparse_data") and not get_tags(estimator).input_tags.sparse:
                continue
            if values[1].func.__name__ not in OF_THE_CLASS and type(estimator) not in FAST:
                if type(estimator) not in {BallClassifier, KNNOpenSetClassifier}:  # with a boundary, and without
                    continue
                marks.append(pytest.mark.slow)
            yield pytest.param(*values, marks=marks)


def check_id(value):
    if not hasattr(value, "func"):
        return type(value).__name__
    options = ",".join(f"{name}={option}" for name, option in value.keywords.items())
    return f"{value.func.__name__}({options})"


@pytest.mark.parametrize(("estimator", "check"), list(sklearn_checks()), ids=check_id)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator", [*map(sklearn_instance, CLASSIFIERS), tuned_instance()], ids=lambda each: type(each).__name__
)
def test_expected_failures_name_checks_that_run(estimator):
    names = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert set(expected_failures(estimator)) <= names
    assert expected_failures(estimator)


# This package's own checks. Each takes an unfitted classifier whose open label is -1.


def blobs(n_classes=3, *, rows=30, n_features=4, seed=0):
    """Round classes far apart, none between two others, with the labels 0 ... n_classes - 1, their rows mixed."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_classes), rows))
    centers = 8.0 * np.arange(n_classes)[:, np.newaxis] * np.ones(n_features)
    centers[1::2, -1] *= -1
    return centers[y] + rng.normal(size=(len(y), n_features)), y


def scattered(n_features=4, *, n_samples=200, seed=1):
    """Rows in, between, beside and far from the classes of ``blobs``."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([1.0, 10.0, 1000.0], size=(n_samples, 1))
    return 8 + scale * rng.normal(size=(n_samples, n_features))


def far_rows(n_samples=5, n_features=4):
    return np.linspace(300, 900, n_samples)[:, np.newaxis] * np.array([1.0, -1.0] * (n_features // 2))


def values(classifier, rows):
    """All that a fitted classifier says of rows: margins where it has a boundary, else scores."""
    if has_boundary(classifier):
        return classifier.class_margins(rows)
    return np.column_stack([classifier.score_samples(rows), classifier.decision_function(rows)])


def has_boundary(classifier):
    return isinstance(classifier, BoundaryOpenSetClassifier)


def scoring_methods(classifier):
    return [method for method in SCORING_METHODS if hasattr(classifier, method)]


def check_open_set_learns(classifier):
    X, y = blobs()
    new, truth = blobs(seed=2)
    classifier.fit(X, y)
    assert (classifier.predict_known(new) == truth).all()
    assert (classifier.predict(new) == truth).mean() > 0.7
    if has_boundary(classifier):
        assert (classifier.predict(far_rows()) == -1).all()


def check_open_set_predict_is_open_exactly_below_offset(classifier):
    X, y = blobs()
    rows = np.concatenate([X, scattered()])
    classifier.fit(X, y)
    scores, known = classifier.score_samples(rows), classifier.predict_known(rows)
    margins, decision = values(classifier, rows), classifier.decision_function(rows)
    for offset in (0.0, np.median(scores), scores[7], -np.inf, np.inf):
        classifier.offset_, classifier.class_offsets_ = offset, np.zeros(3)
        np.testing.assert_array_equal(classifier.predict(rows), np.where(scores < offset, -1, known))
        for class_offsets in ([0.0, 0.2, -0.3], [0.0, np.inf, -np.inf]):
            if np.isinf(offset) and np.isinf(class_offsets).any():
                continue
            classifier.class_offsets_ = np.array(class_offsets)
            least = offset + classifier.class_offsets_[np.searchsorted(classifier.classes_, known)]
            np.testing.assert_array_equal(classifier.predict(rows), np.where(scores < least, -1, known))
        # Only predict uses the offset.
        np.testing.assert_array_equal(classifier.score_samples(rows), scores)
        np.testing.assert_array_equal(classifier.predict_known(rows), known)
        np.testing.assert_array_equal(values(classifier, rows), margins)
        np.testing.assert_array_equal(classifier.decision_function(rows), decision)


def check_open_set_offset_resets_on_refit(classifier):
    X, y = blobs()
    answers = classifier.fit(X, y).predict(X)
    assert classifier.offset_ == 0
    assert isinstance(classifier.offset_, float)
    assert classifier.class_offsets_.tolist() == [0.0, 0.0, 0.0]
    classifier.offset_, classifier.class_offsets_ = 0.5, np.ones(3)
    np.testing.assert_array_equal(classifier.fit(X, y).predict(X), answers)
    assert classifier.offset_ == 0
    assert classifier.class_offsets_.tolist() == [0.0, 0.0, 0.0]


def check_open_set_margins_shape(classifier):
    for n_classes in (1, 2, 3):
        X, y = blobs(n_classes)
        classifier.fit(X, y)
        for dtype in (np.float64, np.float32):
            rows = scattered().astype(dtype)
            margins, scores = classifier.class_margins(rows), classifier.score_samples(rows)
            decision = classifier.decision_function(rows)
            assert margins.shape == (len(rows), n_classes)
            assert scores.shape == (len(rows),)
            assert decision.shape == ((len(rows),) if n_classes == 2 else (len(rows), n_classes))
            assert margins.dtype == scores.dtype == decision.dtype == dtype
            assert np.isfinite(margins).all()


def check_open_set_scores_shape(classifier):
    for n_classes in (1, 2, 3):
        X, y = blobs(n_classes)
        classifier.fit(X, y)
        for dtype in (np.float64, np.float32):
            rows = scattered().astype(dtype)
            scores, decision = classifier.score_samples(rows), classifier.decision_function(rows)
            assert scores.shape == (len(rows),)
            assert decision.shape == ((len(rows),) if n_classes == 2 else (len(rows), n_classes))
            assert scores.dtype == decision.dtype == dtype
            assert np.isfinite(scores).all()
            assert np.isfinite(decision).all()


def check_open_set_score_is_the_assigned_margin(classifier):
    X, y = blobs()
    rows = np.concatenate([X, scattered()])
    classifier.fit(X, y)
    assigned = np.searchsorted(classifier.classes_, classifier.predict_known(rows))
    margins = classifier.class_margins(rows)[np.arange(len(rows)), assigned]
    np.testing.assert_allclose(classifier.score_samples(rows), margins, rtol=1e-9, atol=1e-9)


def check_open_set_decision_argmax_is_predict_known(classifier):
    for n_classes in (1, 2, 3, 5):
        X, y = blobs(n_classes)
        classifier.fit(X, y)
        for rows in (X, scattered(), scattered().astype(np.float32), far_rows()):
            decision, known = classifier.decision_function(rows), classifier.predict_known(rows)
            chosen = (decision > 0).astype(int) if n_classes == 2 else decision.argmax(axis=1)
            np.testing.assert_array_equal(classifier.classes_[chosen], known)


def check_open_set_decision_keeps_the_other_margins(classifier):
    X, y = blobs()
    rows = scattered()
    classifier.fit(X, y)
    decision, margins = classifier.decision_function(rows), classifier.class_margins(rows)
    assigned = np.searchsorted(classifier.classes_, classifier.predict_known(rows))
    others = np.arange(3) != assigned[:, np.newaxis]
    np.testing.assert_array_equal(decision[others], margins[others])
    np.testing.assert_allclose(decision.max(axis=1), margins.max(axis=1), rtol=1e-6)


def check_open_set_open_label_kinds(classifier):
    X, y = blobs(2)
    names = np.array(["a", "bcd"])
    cases = [
        # labels of the two classes, open_label, what must be answered for open rows, kind of the answers
        (np.array([4, 9]), -1, -1, "i"),
        (np.array([4, 9], dtype=np.int8), -999, -999, "i"),
        (np.array([0, 255], dtype=np.uint8), -1, -1, "i"),
        (np.array([4, 9], dtype=np.uint64), -1, -1, "i"),
        (np.array([2**60 + 1, 2**60 + 2]), 2**60 + 3, 2**60 + 3, "i"),
        (np.array([False, True]), -1, -1, "i"),
        (np.array([0.0, 2.0]), -1, -1.0, "f"),
        (np.array([0.0, 2.0], dtype=np.float32), 7, 7.0, "f"),
        (names, -1, "-1", "U"),
        (names, "open", "open", "U"),
        (names.astype(object), -1, "-1", "O"),
        (names.astype(object), "somewhere else", "somewhere else", "O"),
        (np.array([-1, 1]), -7, -7, "i"),
    ]
    for labels, open_label, expected, kind in cases:
        are_booleans = pytest.warns(UserWarning, match="y holds booleans, and the prediction for open samples is -1")
        with are_booleans if labels.dtype.kind == "b" else nullcontext():
            classifier.set_params(open_label=open_label).fit(X, labels[y])
        answers = classifier.predict(X)
        classifier.offset_ = np.inf  # without a boundary rows far away may be known
        answers = np.concatenate([answers, classifier.predict(far_rows())])
        assert classifier.open_label_ == expected
        assert type(classifier.open_label_) is type(expected)
        assert answers.dtype.kind == kind
        assert set(answers[-5:].tolist()) == {expected}
        assert set(answers.tolist()) == {*labels.tolist(), expected}
        assert classifier.score(far_rows(), np.full(5, expected)) == 1
        # The answers are such that scikit-learn's metrics take them beside labels of the caller's kind.
        f1 = f1_score([*labels[y].tolist(), *[expected] * 5], answers, average="macro", zero_division=0)
        assert 0.5 < f1 <= 1


def check_open_set_open_rows_never_a_class(classifier):
    X, y = blobs()
    for labels, expected in ((y, -1), (np.array(["a", "b", "c"])[y], "-1"), (y.astype(np.float32), -1.0)):
        labels = labels.copy()
        if labels.dtype.kind == "U":
            labels = labels.astype("<U2")
        labels[:20] = expected
        classifier.fit(X, labels)
        assert expected not in classifier.classes_.tolist()
        assert len(classifier.classes_) == 3
        assert expected not in classifier.predict_known(scattered()).tolist()


def check_open_set_one_class_warning(classifier):
    X, y = blobs(2)
    with pytest.warns(UserWarning, match="30 samples with the label -1 were read as open.* class 0;") as caught:
        classifier.fit(X, np.where(y == 0, 0, -1))
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the caller's line
    with pytest.warns(UserWarning, match="30 samples with the label '-1' .* class 'a';"):
        classifier.fit(X, np.where(y == 0, "a", "-1"))
    # Warnings are errors here: none comes for one class without open rows, nor for two classes beside open ones.
    classifier.fit(X[y == 0], y[y == 0])
    classifier.fit(*blobs(2)).fit(np.append(X, far_rows(), axis=0), np.append(y + 1, np.full(5, -1)))


def check_open_set_outlier_labels_warning(classifier):
    X, y = blobs(3)
    for labels, open_label in ((y - 1, "-1"), ((y - 1).astype(float), "-1.0"), ((y - 1).astype(str), "'-1'")):
        message = f"30 samples with the label {open_label} were read as open, beside the classes 0 and 1: .*pass -2"
        with pytest.warns(UserWarning, match=message) as caught:
            classifier.fit(X, labels)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    # What the message says silences it: warnings are errors here.
    assert clone(classifier).set_params(open_label=-2).fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    assert clone(classifier).set_params(open_label=-2).fit(X, np.where(y, y - 1, -2)).classes_.tolist() == [0, 1]
    classifier.fit(X, np.where(y, y, -1))
    classifier.fit(X[y > 0], y[y > 0] - 1)


def check_open_set_no_probabilities(classifier):
    X, y = blobs()
    for estimator in (classifier, classifier.fit(X, y), make_pipeline(classifier).fit(X, y)):
        assert not hasattr(estimator, "predict_proba")


def check_open_set_score_reads_unknown_labels_as_open(classifier):
    X, y = blobs()
    rows, truth = np.concatenate([X, far_rows(10)]), np.append(y, np.repeat([-1, 77], 5))
    classifier.fit(X, y)
    answers = classifier.predict(rows)
    expected = accuracy_score(np.where(truth == 77, -1, truth), answers)
    assert classifier.score(rows, truth) == expected
    assert classifier.score(rows, truth.tolist()) == expected
    if has_boundary(classifier):
        assert classifier.score(rows[-10:], truth[-10:]) == 1
    weight = np.random.default_rng(0).random(len(rows))
    weighted = accuracy_score(np.where(truth == 77, -1, truth), answers, sample_weight=weight)
    assert classifier.score(rows, truth, sample_weight=weight) == weighted
    names = np.array(["a", "b", "c", "zebra", "-1"])
    classifier.fit(X, names[y])
    assert classifier.score(rows, names[np.where(truth == 77, 3, truth)]) == expected


def check_open_set_pickle_joblib_clone(classifier, folder):
    X, y = blobs()
    rows = scattered()
    margins = values(classifier.fit(X, y), rows)
    np.testing.assert_array_equal(values(pickle.loads(pickle.dumps(classifier)), rows), margins)
    joblib.dump(classifier, folder / "classifier.joblib")
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # torch says only once in a process that memory is read-only
    try:
        mapped = joblib.load(folder / "classifier.joblib", mmap_mode="r")
        np.testing.assert_array_equal(values(mapped, rows), margins)
        mapped.predict(rows)
    finally:
        torch.set_warn_always(always)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    for method in scoring_methods(classifier):
        with pytest.raises(NotFittedError):
            getattr(copy, method)(rows)


def check_open_set_fitted_state_is_numpy(classifier):
    X, y = blobs()
    classifier.fit(torch.from_numpy(X), torch.from_numpy(y))
    assert not any(isinstance(value, torch.Tensor) for value in vars(classifier).values())


def check_open_set_random_state_untouched(classifier):
    X, y = blobs()

    def states():
        numbers, position = np.random.get_state()[1:3]  # noqa: NPY002
        return numbers.tolist(), position, torch.random.get_rng_state().tolist(), random.getstate()

    before = states()
    if "random_state" not in classifier.get_params():
        classifier.fit(X, y).predict(X)
        assert states() == before
        return
    for random_state in (0, np.random.RandomState(0)):
        classifier.set_params(random_state=random_state).fit(X, y).predict(X)
    assert states() == before
    # Without a seed a fit draws at most one number from NumPy's generator, and nothing else.
    margins = values(classifier.set_params(random_state=None).fit(X, y), X)
    after = states()
    np.random.set_state(("MT19937", *before[:2]))  # noqa: NPY002
    if states() != after:
        np.random.randint(2**31 - 1)  # noqa: NPY002
    assert states() == after
    other = values(classifier.fit(X, y), X)
    assert (other != margins).any() or type(classifier) in SEEDLESS
    np.random.set_state(("MT19937", *before[:2]))  # noqa: NPY002
    np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)


def check_open_set_same_seed_same_result(classifier):
    X, y = blobs()
    rows = scattered()
    margins = values(classifier.fit(X, y), rows)
    torch.rand(3)  # nothing depends on the global state
    np.testing.assert_array_equal(values(classifier.fit(X, y), rows), margins)
    np.testing.assert_array_equal(values(clone(classifier).fit(X, y), rows), margins)
    if "random_state" in classifier.get_params():
        classifier.set_params(random_state=np.random.RandomState(5))
        once, again = (values(clone(classifier).fit(X, y), rows) for _ in range(2))
        np.testing.assert_array_equal(once, again)
        assert (once != margins).any() or type(classifier) in SEEDLESS


def check_open_set_bad_input(classifier):
    X, y = blobs()
    with_nan, with_inf = X.copy(), X.copy()
    with_nan[3, 1], with_inf[3, 1] = np.nan, np.inf
    cases = [
        (sparse.csr_matrix(X), y, ValueError, "X is sparse, of shape .* must be dense"),
        (with_nan, y, ValueError, "NaN"),
        (with_inf, y, ValueError, "infinity"),
        (np.empty((0, 4)), y, ValueError, r"0 sample\(s\)"),
        (np.empty((90, 0)), y, ValueError, r"0 feature\(s\)"),
        (X[:, 0], y, ValueError, "(?s)Expected 2D array.*Reshape your data"),
        (X, y[:-1], ValueError, r"inconsistent numbers of samples: \[90, 89\]"),
        (X, np.full(len(X), -1), ValueError, "All 90 samples have the open label -1.*another open label"),
        (X, np.full(len(X), "-1"), ValueError, "All 90 samples have the open label '-1'"),
    ]
    for bad, labels, error, message in cases:
        with pytest.raises(error, match=message):
            classifier.fit(bad, labels)
    for open_label, message in ((0.5, "0.5 is no whole number"), ("open", "'open' is a string.*numbers")):
        with pytest.raises(ValueError, match=f"{message}.*such as -1"):
            clone(classifier).set_params(open_label=open_label).fit(X, y)


def check_open_set_bad_new_rows(classifier):
    X, y = blobs()
    classifier.fit(X, y)
    with_nan = X.copy()
    with_nan[3, 1] = np.nan
    for method in (*scoring_methods(classifier), "score"):
        call = getattr(classifier, method)
        more = (y,) if method == "score" else ()
        for bad, error, message in (
            (sparse.csr_matrix(X), ValueError, "dense"),
            (with_nan, ValueError, "NaN"),
            (X[:, :2], ValueError, "X has 2 features, but .* is expecting 4"),
            (X[:0], ValueError, r"0 sample\(s\)"),
            (X[0], ValueError, "Reshape your data"),
        ):
            with pytest.raises(error, match=message):
                call(bad, *more)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.score(X, y[:-1])


def no_numbers():
    """What NumPy turns into numbers without a word, or what a mask hides, and the sentence that refuses it."""
    X = blobs()[0]
    dates = np.datetime64("2024-01-01", "s") + (1e6 * X).astype("timedelta64[s]")
    missing = dates.copy()
    missing[3, 1] = np.datetime64("NaT", "s")
    masked = np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 13)
    table = pd.DataFrame(X, columns=list("abcd"))
    column = pd.Series(dates[:, 3])
    records = np.zeros(len(X), dtype=[("a", float), ("b", float)])
    days = [[day.date() for day in row] for row in dates.tolist()]
    dated = r"X holds {}, but features must be numbers; convert dates and times, for instance to days .* ones\.$"
    return {
        "dates": (dates, dated.format(r"values of type datetime64\[s\]")),
        "a missing date": (missing, dated.format(r"values of type datetime64\[s\]")),
        "times": (dates - dates[0], dated.format(r"values of type timedelta64\[s\]")),
        "a list of dates": (list(dates), dated.format(r"values of type datetime64\[s\]")),
        "objects": (dates.astype(object), dated.format(r"2.* of type datetime")),
        "lists of days": (days, dated.format(r"2.* of type date")),
        "a date among numbers": (np.array([[*row[:3], pd.NaT] for row in X]), dated.format("NaT of type NaTType")),
        "a column": (table.assign(d=column), dated.format(r"the column 'd' of type datetime64\[s\]")),
        "a zoned column": (
            table.assign(d=column.dt.tz_localize("UTC")),
            dated.format(r"the column 'd' of type datetime64\[s, UTC\]"),
        ),
        "periods": (table.assign(d=column.dt.to_period("D")), dated.format(r"the column 'd' of type period\[D\]")),
        "a column of days": (table.assign(d=[row[3] for row in days]), dated.format("2.* of type date")),
        "a polars column": (
            pl.DataFrame(table.to_dict("list")).with_columns(d=pl.Series(column.astype("datetime64[us]").to_numpy())),
            dated.format("the column 'd' of type Datetime.*"),
        ),
        "masked": (masked, r"X has masked values in row 3; fill them, or drop these rows\.$"),
        "masked rows": (list(masked), r"X has masked values in row 3; fill them"),
        "records": (records, r"X holds records with the fields a, b, but .*structured_to_unstructured\(X\)\.$"),
        "complex": (X + 1j, "Complex data not supported: X is of type complex128; pass real and .* features.$"),
    }


def check_open_set_no_numbers_are_refused(classifier):
    X, y = blobs()
    for bad, sentence in no_numbers().values():
        with pytest.raises(ValueError, match=f"^{sentence}"):
            clone(classifier).fit(bad, y)
    classifier.fit(X, y)
    for bad, sentence in no_numbers().values():
        for method in scoring_methods(classifier):
            with pytest.raises(ValueError, match=f"^{sentence}"):
                getattr(classifier, method)(bad)


def check_open_set_masks(classifier):
    X, y = blobs()
    expected = values(clone(classifier).fit(X, y), X)
    first = np.arange(len(y)) == 7
    ones = np.ones(len(y))
    nothing = clone(classifier).fit(np.ma.array(X), np.ma.array(y), sample_weight=np.ma.array(ones))
    np.testing.assert_array_equal(values(nothing, np.ma.array(X)), expected)
    for arguments, options, sentence in (
        ((X, np.ma.array(y, mask=first)), {}, "y has missing labels in row 7; drop them."),
        ((X, list(np.ma.array(y, mask=first))), {}, "y has missing labels in row 7; drop them."),
        ((X, y), {"sample_weight": np.ma.array(ones, mask=first)}, "sample_weight has masked values in row 7; fill"),
        ((X, y), {"groups": np.ma.array(np.arange(len(y)), mask=first)}, "groups has missing values in row 7; give"),
        ((X, y), {"sample_weight": ones.astype("timedelta64[s]")}, "sample_weight is of type timedelta64.*numbers"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            clone(classifier).fit(*arguments, **options)


def check_open_set_input_unchanged(classifier):
    X, y = blobs()
    before, labels = X.copy(), y.copy()
    tensor = torch.from_numpy(X.astype(np.float32))
    classifier.fit(tensor, y)
    classifier.fit(X, y)
    for method in scoring_methods(classifier):
        getattr(classifier, method)(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(y, labels)
    assert torch.equal(tensor, torch.from_numpy(before.astype(np.float32)))


def check_open_set_caller_settings_of_torch(classifier):
    X, y = blobs()
    margins = values(classifier.fit(X, y), X)
    with torch.inference_mode():
        np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)
    with torch.no_grad():
        np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(values(classifier.fit(X, y), X), margins)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.is_grad_enabled()


def check_open_set_repeated_rows_count_once(classifier):
    X, y = blobs()
    rows = scattered()
    margins = values(classifier.fit(X, y), rows)
    answers = classifier.predict(X)
    np.testing.assert_array_equal(classifier.groups_, np.arange(len(X)))
    order = np.random.default_rng(3).permutation(np.repeat(np.arange(len(X)), 1 + np.arange(len(X)) % 5))
    np.testing.assert_array_equal(values(classifier.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)), rows), margins)
    np.testing.assert_array_equal(classifier.groups_, np.repeat(np.arange(len(X)), 2))
    classifier.fit(X[order], y[order])
    if has_boundary(classifier):  # in another order of the rows other synthetic classes or batches are drawn
        np.testing.assert_allclose(1 - values(classifier, rows), 1 - margins, rtol=0.15)
    assert (classifier.predict(X) == answers).mean() > 0.9
    assert len(np.unique(classifier.groups_)) == len(X)
    independent = classifier.set_params(duplicates="off").fit(X[order], y[order])
    assert len(np.unique(independent.groups_)) == len(order)
    assert abs(values(independent, rows) - margins).max() > 0.01


def check_open_set_integer_weights_are_repetitions(classifier):
    if not classifier._takes_weights:
        pytest.skip("counts neighbours, which have no weights")
    X, y = blobs(rows=12)
    rows = scattered()
    weights = np.random.default_rng(4).integers(4, size=len(X))
    repeated = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    classifier.set_params(duplicates="each")
    margins = values(classifier.fit(*repeated), rows)
    np.testing.assert_allclose(values(classifier.fit(X, y, sample_weight=weights), rows), margins, rtol=1e-5)
    assert (classifier.groups_ == -1).sum() == (weights == 0).sum()
    np.testing.assert_allclose(values(classifier.fit(X, y, sample_weight=0.3 * weights), rows), margins, rtol=1e-5)
    kept = weights > 0
    unweighted = values(classifier.fit(X[kept], y[kept]), rows)
    assert abs(unweighted - margins).max() > 0.01


def check_open_set_groups_have_no_order_and_no_kind(classifier):
    X, y = blobs()
    rows = scattered()
    numbers = np.random.default_rng(5).integers(30, size=len(X))
    margins = values(classifier.fit(X, y, groups=numbers), rows)
    assert len(np.unique(classifier.groups_)) == len(np.unique(numbers))
    for groups in (-numbers, numbers.astype(str).tolist(), numbers.astype(str).astype(object), numbers / 2):
        np.testing.assert_allclose(values(classifier.fit(X, y, groups=groups), rows), margins, rtol=1e-9)
    # Where nothing is held out, groups change nothing.
    assert (abs(values(classifier.fit(X, y), rows) - margins).max() > 1e-3) == hasattr(classifier, "held_out_")
    for groups, message in (
        (numbers[1:], r"groups has the shape \(89,\), but must hold one group for each of the 90 rows"),
        (np.where(numbers < 2, np.nan, numbers), "groups has missing values in row.*a value of its own"),
        ([None, *numbers[1:].tolist()], "groups has missing values in row 0;"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.fit(X, y, groups=groups)


def check_open_set_metadata_reaches_a_pipeline(classifier):
    X, y = blobs()
    groups, weights = np.arange(len(X)) // 3, np.arange(len(X)) % 2
    expected = values(clone(classifier).fit(X, y, sample_weight=weights, groups=groups), X)
    pipeline = make_pipeline(FunctionTransformer(), clone(classifier))
    name = pipeline.steps[-1][0]
    pipeline.fit(X, y, **{f"{name}__sample_weight": weights, f"{name}__groups": groups})
    np.testing.assert_array_equal(values(pipeline[-1], X), expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(classifier).set_fit_request(sample_weight=True, groups=True)
        routed = make_pipeline(FunctionTransformer(), routed).fit(X, y, sample_weight=weights, groups=groups)
        np.testing.assert_array_equal(values(routed[-1], X), expected)


def check_open_set_a_failed_fit_changes_nothing(classifier):
    X, y = blobs()
    wider, names = np.hstack([X, X]), np.array(["a", "b", "c"])[y]
    failures = [
        ((wider, np.full(len(X), -1)), {}, ValueError),
        ((wider, X[:, 0]), {}, ValueError),
        ((wider, names), {"groups": [None] * len(X)}, ValueError),
        ((wider, names), {"sample_weight": np.zeros(len(X))}, ValueError),
        ((wider, names), {"sample_weight": np.full(len(X), -1.0)}, ValueError),
        ((wider * 1e300, names), {}, ValueError),
    ]
    for arguments, options, error in failures:
        state = dict(vars(classifier.fit(X, y)))
        answers = classifier.predict(X)
        with pytest.raises(error):
            classifier.fit(*arguments, **options)
        assert all(vars(classifier)[name] is value for name, value in state.items())
        np.testing.assert_array_equal(classifier.predict(X), answers)

    with (
        mock.patch("skellipsoid._samples.training_samples.find_duplicates", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        classifier.fit(wider, names)
    np.testing.assert_array_equal(classifier.predict(X), answers)
    assert classifier.fit(X, y).score(X, y) > 0.7


def check_open_set_a_fit_deletes_only_what_a_fit_stored(classifier):
    X, y = blobs()
    classifier.note, classifier._note = "mine", np.ones(2)
    classifier.fit(X, y)
    classifier.former_ = 1  # as of another version's fit
    classifier.fit(X, y)
    assert (classifier.note, len(classifier._note), hasattr(classifier, "former_")) == ("mine", 2, False)


def check_open_set_one_group_for_all_is_no_group(classifier):
    X, y = blobs()
    margins = values(classifier.fit(X, y), X)
    for groups in (np.zeros(len(X)), y):
        with pytest.warns(UserWarning, match=r"Every class is a single group \(0, 1, 2\).*groups are ignored"):
            classifier.fit(X, y, groups=groups)
        np.testing.assert_array_equal(values(classifier, X), margins)
    with pytest.warns(UserWarning, match=r"1 of 3 classes are a single group \(2\).*do not count for the size"):
        classifier.fit(X, y, groups=np.where(y == 2, -1, np.arange(len(X))))
    assert (classifier.predict(X) != -1).mean() > 0.7


def check_open_set_uneven_weights_and_near_copies_of_any_draw(classifier):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = blobs(4, rows=25, n_features=8, seed=seed)
        drawn = rng.choice(len(X), 250)
        uneven, groups = rng.uniform(0.5, 2, size=250), rng.integers(60, size=250)
        cases = ((1e-4, None, None), (0, uneven, None), (1e-4, uneven, groups))
        for jitter, weights, given in cases if classifier._takes_weights else cases[:1]:
            classifier.fit(X[drawn] + jitter * rng.normal(size=(250, 8)), y[drawn], sample_weight=weights, groups=given)
            assert (classifier.predict(X) != -1).mean() > 0.6


def check_open_set_few_distinct_rows_repeated(classifier):
    rng = np.random.default_rng(0)
    for rows in (4, 6):
        X, y = blobs(3, rows=rows, n_features=8)
        answers = classifier.fit(X, y).predict(X)
        many, target = np.repeat(X, 20, axis=0), np.repeat(y, 20)
        np.testing.assert_array_equal(classifier.fit(many, target).predict(X), answers)
        jitter = 1e-7 * rng.normal(size=many.shape)
        assert (classifier.fit(many + jitter, target).predict(X) == answers).mean() > 0.85


def check_open_set_outliers_are_dropped_and_named(classifier):
    X, y = blobs(rows=50)
    rows = scattered()
    kept = np.delete(np.arange(len(X)), [7, 31])
    expected = values(classifier.fit(X[kept], y[kept]), rows)
    spoilt = X.copy()
    spoilt[7, 2], spoilt[31, 0] = 1e6, -1e120
    with pytest.warns(UserWarning, match="outliers, which are more than 20 times .*: rows 7, 31. They are dropped"):
        classifier.fit(spoilt, y)
    np.testing.assert_allclose(values(classifier, rows), expected, rtol=1e-6)
    if has_boundary(classifier):
        assert (classifier.predict(spoilt[[7, 31]]) == -1).all()
    large = classifier.fit(X * 1e100, y)
    answers, margins = large.predict(rows * 1e100), values(large, rows * 1e100)
    np.testing.assert_array_equal(classifier.fit(X, y).predict(rows), answers)
    if has_boundary(classifier):  # its margins have no units
        np.testing.assert_allclose(margins, values(classifier, rows), rtol=1e-6)
    for factor, message in ((1e200, "up to .*e.20. in rows 0, 1, .*, 9 and 140 more, whose squares overflow"),):
        with pytest.raises(ValueError, match=message):
            classifier.fit(X * factor, y)
    spoilt[7, 2] = 1e300
    with pytest.raises(ValueError, match=r"X has values up to 1e\+300 in row 7, whose squares overflow.*below 1e\+150"):
        classifier.fit(spoilt, y)
    with pytest.raises(ValueError, match="in row 7, whose squares overflow"):  # rows without a weight count, too
        classifier.fit(spoilt, y, sample_weight=np.arange(len(y)) > 0)
    if has_boundary(classifier):
        assert (classifier.fit(X, y).predict(spoilt[[7]]) == -1).all()


def check_open_set_units_change_no_decision(classifier):
    X, y = blobs(rows=40)
    rows = np.concatenate([blobs(rows=40, seed=5)[0], scattered()])
    kinds = [classifier]
    if "normalize" in classifier.get_params():
        kinds.append(clone(classifier).set_params(normalize=True))
    for kind, dtype in product(kinds, (np.float64, np.float32)):
        answers = clone(kind).fit(X.astype(dtype), y).predict(rows.astype(dtype))
        assert 0 < (answers == -1).mean() < 1
        for unit in (1e-30, 1e-6, 1e6, 1e15):
            others = clone(kind).fit((X * unit).astype(dtype), y).predict((rows * unit).astype(dtype))
            assert (others != answers).mean() <= 0.01, (unit, dtype)  # rounding may move a sample over a boundary


OPEN_SET_CHECKS = [
    function for name, function in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    if name.startswith("check_open_set_")
]  # fmt: skip


#: What only a classifier with a boundary passes: it has margins.
BOUNDARY_CHECKS = {
    check_open_set_margins_shape,
    check_open_set_score_is_the_assigned_margin,
    check_open_set_decision_keeps_the_other_margins,
}


def own_checks():
    """Give pairs of a classifier and a check."""
    for classifier, check in product(CLASSIFIERS, OPEN_SET_CHECKS):
        of_class = OWN_OF_LITERATURE if classifier in OF_LITERATURE else OWN_OF_THE_CLASS
        is_fast = classifier in FAST or check.__name__ in of_class
        if is_fast or classifier in TEMPLATES:
            name = f"{classifier.__name__}-{check.__name__}"
            yield pytest.param(classifier, check, id=name, marks=[] if is_fast else [pytest.mark.slow])


@pytest.mark.parametrize(("classifier", "check"), list(own_checks()))
def test_open_set_checks(classifier, check, tmp_path):
    estimator = classifier(**CLASSIFIERS[classifier])
    if check in BOUNDARY_CHECKS and not has_boundary(estimator):
        pytest.skip("has no margins; check_open_set_scores_shape is for it")
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* have fewer than 10 different samples", UserWarning)  # the data are small
        check(estimator, *([tmp_path] if "folder" in inspect.signature(check).parameters else []))


# The rules of docs/api.rst.

#: What each public function of a fitted model is given beside it.
GIVEN = {
    "add_classes": lambda model, X, folder: {"X": far_rows(), "y": [9] * 5},
    "choose_to_label": lambda model, X, folder: {"X": scattered(), "n": 5},
    "compare": lambda model, X, folder: {"after": model, "X": X},
    "discover_classes": lambda model, X, folder: {"X": scattered()},
    "estimate_open_share": lambda model, X, folder: {"X": scattered()},
    "explain": lambda model, X, folder: {"X": X},
    "export_onnx": lambda model, X, folder: {"folder": folder / "graph"},
    "forecast_answers": lambda model, X, folder: {"open_share": 0.3},
    "learn_from_traffic": lambda model, X, folder: {"X": X, "y": [0, *[None] * (len(X) - 1)]},
    "merge_classes": lambda model, X, folder: {"merged": {9: [0, 1]}},
    "predict_open_proba": lambda model, X, folder: {"X": X, "open_share": 0.3},
    "predict_set": lambda model, X, folder: {"X": X, "max_classes": 2},
    "refresh": lambda model, X, folder: {},
    "remove_classes": lambda model, X, folder: {"labels": [0]},
    "save": lambda model, X, folder: {"folder": folder / "model"},
    "set_operating_point": lambda model, X, folder: {"X": X, "rejection_rate": 0.1},
}
OF_MODELS = {
    name: function
    for name, function in ((name, getattr(skellipsoid, name)) for name in skellipsoid.__all__)
    if inspect.isfunction(function) and {"estimator", "before"} & inspect.signature(function).parameters.keys()
}


def test_every_function_of_a_model_is_listed():
    assert OF_MODELS.keys() == GIVEN.keys()


@cache
def of_four_classes(steps):
    """A fitted model, as a pickle."""
    model = EllipsoidOpenSetClassifier(random_state=0)
    return pickle.dumps((make_pipeline(*steps, model) if steps else model).fit(*blobs(4)))


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["classifier", "Pipeline"])
def test_only_names_that_begin_with_set_change_the_model_and_return_it(name, steps, tmp_path, one_registry):
    X = blobs(4)[0]
    model = pickle.loads(of_four_classes(steps))
    before = pickle.dumps(model)
    result = OF_MODELS[name](model, **GIVEN[name](model, X, tmp_path))
    assert (pickle.dumps(model) != before) == (result is model) == name.startswith("set_")


def test_no_method_has_the_name_of_a_function():
    functions = {name for name in skellipsoid.__all__ if inspect.isfunction(getattr(skellipsoid, name))}
    others = [skellipsoid.ScoreOpenSetClassifier, PromptOpenSetClassifier, TunedOperatingPointCV]
    for kind in (*CLASSIFIERS, *others):
        assert not functions & {*dir(kind)}
