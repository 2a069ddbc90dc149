"""Checks of every classifier: what it predicts, its scores, its labels and its state. Each takes an unfitted one.

Its open label is -1.
"""

import pickle
import random
from contextlib import nullcontext

import joblib
import numpy as np
import pytest
import torch
from open_set_data import blobs, far_rows, has_boundary, scattered, scoring_methods, values
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

from skellipsoid.baselines import SoftmaxOpenSetClassifier
from skellipsoid_bench.literature import DOCClassifier, MOGBClassifier, OpenMaxClassifier

#: Of classes far apart every draw of seeds gives the same balls, and the folds of a threshold the same threshold.
SEEDLESS = {MOGBClassifier, SoftmaxOpenSetClassifier, DOCClassifier, OpenMaxClassifier}


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
            assert decision.dtype == values(classifier, rows).dtype == rows.dtype
            assert np.isfinite(decision).all()
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
        (np.array([0, 255], dtype=np.uint8), -1, -1, "i"),
        (np.array([2**60 + 1, 2**60 + 2]), 2**60 + 3, 2**60 + 3, "i"),
        (np.array([False, True]), -1, -1, "i"),
        (np.array([0.0, 2.0]), -1, -1.0, "f"),
        (np.array([0.0, 2.0], dtype=np.float32), 7, 7.0, "f"),
        (names, -1, "-1", "U"),
        (names, "open", "open", "U"),
        (names.astype(object), -1, "-1", "O"),
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
