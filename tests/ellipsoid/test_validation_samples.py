"""``X_val`` and ``y_val`` of the closed form: what a model was not trained on says how far out new samples lie."""

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier

N_CLASSES, N_FEATURES = 8, 20


def draw(n, seed, shrink=1.0, names=None):
    """Rows of eight classes; those that a model was trained on lie nearer to their class mean (``shrink``)."""
    means = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_CLASSES), n)
    X = means[y] + 0.4 * shrink * rng.normal(size=(len(y), N_FEATURES))
    return X, y if names is None else names[y]


def make(**parameters):
    return EllipsoidOpenSetClassifier(random_state=0, **parameters)


def rejected(clf, X):
    return (clf.score_samples(X) < 0).mean()


@pytest.fixture(scope="module")
def trained():
    """Rows that a model was trained on, and fresh ones to validate and to test."""
    return draw(60, 1, shrink=0.7), draw(30, 2), draw(200, 3)


def test_held_out_scores_are_those_of_fresh_samples(trained):
    (X, y), (X_val, y_val), (new, _) = trained
    plain, given = make().fit(X, y), make().fit(X, y, X_val=X_val, y_val=y_val)
    # Without validation samples the trained rows promise far too much.
    assert rejected(plain, new) > 5 * (plain.held_out_scores_ < 0).mean()
    assert np.median(plain.known_p_value(new)) < 0.1
    forecast = (given.held_out_scores_ < 0).mean()
    assert rejected(given, new) == pytest.approx(forecast, abs=0.04)
    p = given.known_p_value(new)
    for level in (0.05, 0.1, 0.2, 0.5):
        assert (p <= level).mean() == pytest.approx(level, abs=0.06)


def test_copies_of_training_samples_are_left_out_with_a_warning(trained):
    (X, y), (X_val, y_val), _ = trained
    plain, given = make().fit(X, y), make().fit(X, y, X_val=X_val, y_val=y_val)
    with pytest.warns(UserWarning, match=r"10 of 250 known samples of X_val are duplicates of training samples"):
        mixed = make().fit(X, y, X_val=np.append(X_val, X[:10], axis=0), y_val=np.append(y_val, y[:10]))
    np.testing.assert_array_equal(mixed.radii_, given.radii_)
    with pytest.warns(UserWarning, match=r"480 of 480 known samples of X_val are duplicates"):
        copied = make().fit(X, y, X_val=X, y_val=y)
    np.testing.assert_array_equal(copied.radii_, plain.radii_)
    with pytest.warns(UserWarning, match=r"10 of 10 known samples"):  # exact copies are no news without a search either
        make(duplicates="off").fit(X, y, X_val=X[:10], y_val=y[:10])


def test_classes_of_one_group_are_judged_by_the_validation_samples(trained):
    (X, y), (X_val, y_val), (new, _) = trained
    with pytest.warns(UserWarning, match="single group"):
        clf = make().fit(X, y, groups=np.where(y < 7, y, 100 + np.arange(len(y))), X_val=X_val, y_val=y_val)
    assert rejected(clf, new) < 0.2


@pytest.mark.parametrize("n", [1, 5])  # of each class: up to 8 do not change the deviation
def test_the_page_of_the_method_has_the_formula(n):
    (X, y), (X_val, y_val) = draw(60, 1, shrink=0.7), draw(n, 2)
    plain, given = make().fit(X, y), make().fit(X, y, X_val=X_val, y_val=y_val)

    def logs(clf, scores):
        return np.log((1 - scores) * clf.radii_[0])

    def held_out(clf):
        return logs(clf, clf.held_out_.score[~clf.held_out_.is_open][: len(X)])

    def h(difference, error):
        return difference**3 / (difference**2 + error**2)

    of_held_out, of_new = held_out(plain), logs(plain, plain.score_samples(X_val))
    error = (1 / len(of_held_out) + 1 / len(of_new)) ** 0.5
    shift = h(of_new.mean() - of_held_out.mean(), max(of_held_out.std(), of_new.std()) * error)
    widening = np.exp(h(np.log(of_new.std() / of_held_out.std()), error)) if len(of_new) > 8 else 1.0
    centre = of_held_out.mean()
    np.testing.assert_allclose(held_out(given), centre + shift + widening * (of_held_out - centre), atol=1e-6)
