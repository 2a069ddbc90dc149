"""What held-out tables conclude from few samples: p-values of few fresh samples, and radii beside rare classes."""

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid._held_out.table import KNOWN, HeldOutTable

LEVELS = np.array([0.05, 0.1, 0.2, 0.5])


def drawn(rng, n, means, shrink, *, heavy=False):
    """Samples of equal classes; those that an encoder was trained on lie nearer to their mean (``shrink``)."""
    y = np.repeat(np.arange(len(means)), n)
    deviations = rng.normal(size=(len(y), means.shape[1]))
    if heavy:
        deviations /= np.sqrt(rng.chisquare(5, size=(len(y), 1)) / 5)
    return means[y] + 0.4 * shrink * deviations, y


def known_part(distances, classes, n_classes):
    n = len(distances)
    return HeldOutTable(np.full(n, KNOWN), distances, classes, classes, np.ones(n), np.arange(n), n_classes)


@pytest.mark.parametrize("n_val", [2, 6, 20, 100])
@pytest.mark.parametrize("heavy", [False, True])
def test_p_values_are_uniform_on_fresh_samples(n_val, heavy, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    means = rng.normal(size=(30, 12))
    (X, y), (X_val, y_val) = drawn(rng, 40, means, 0.5, heavy=heavy), drawn(rng, n_val, means, 1.0, heavy=heavy)
    new, _ = drawn(rng, 60, means, 1.0, heavy=heavy)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    p = clf.known_p_value(new)
    # 3.5 standard errors of a share of the validation samples, and of the new ones; 0.01 for unlike shapes.
    error = np.sqrt(LEVELS * (1 - LEVELS) * (1 / len(X_val) + 1 / len(new)))
    found = (p[:, np.newaxis] <= LEVELS).mean(axis=0)
    np.testing.assert_array_less(np.abs(found - LEVELS), 3.5 * error + 0.01, f"{found}")


@pytest.mark.parametrize("n_fresh", [3, 20, 150, 3000])
@pytest.mark.parametrize(("factor", "power"), [(1.0, 1.0), (2.0, 1.0), (1.3, 1.5), (2.0, 0.7)])
def test_held_out_distances_follow_those_of_fresh_samples(n_fresh, factor, power):
    """Location and spread in logarithms, within four standard errors of the number of fresh samples."""
    rng = np.random.default_rng(n_fresh)
    classes = np.arange(1200) % 5
    old = known_part(rng.gamma(20, 0.05, size=1200), classes, 5)
    fresh = known_part(factor * rng.gamma(20, 0.05, size=n_fresh) ** power, np.arange(n_fresh) % 5, 5)
    mapped = old.with_fresh(fresh).distances[:1200]
    assert (mapped.argsort() == old.distances.argsort()).all()
    wanted, found = (np.log(part) for part in (factor * old.distances**power, mapped))
    deviation = max(wanted.std(), np.log(old.distances).std())
    assert abs(found.mean() - wanted.mean()) < 4 * deviation * (1 / n_fresh + 1 / 1200) ** 0.5
    if n_fresh >= 150:
        assert abs(np.log(found.std() / wanted.std())) < 4 * (1 / n_fresh + 1 / 1200) ** 0.5
