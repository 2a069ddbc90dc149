"""The synthetic generator, against the samples it draws."""

import numpy as np
import pytest

from skellipsoid.datasets import make_open_blobs


def test_samples_follow_the_distribution():
    X, y, drawn = make_open_blobs(40_000, 3, n_known=2, open_share=0.4, random_state=0, return_distribution=True)
    assert np.bincount(y + 1).tolist() == [16_000, 12_000, 12_000]
    for label in range(2):
        rows = X[y == label]
        np.testing.assert_allclose(rows.mean(axis=0), drawn.centers[label], atol=0.1)
        np.testing.assert_allclose(np.cov(rows.T), drawn.covariances[label], atol=0.2)
    np.testing.assert_allclose(X[y == -1].mean(axis=0), 0, atol=0.2)
    np.testing.assert_allclose(np.cov(X[y == -1].T) / drawn.open_variance, np.eye(3), atol=0.05)


@pytest.mark.parametrize("anisotropy", [1.0, 9.0])
def test_covariances_have_the_promised_shape(anisotropy):
    drawn = make_open_blobs(n_features=4, anisotropy=anisotropy, random_state=0, return_distribution=True)[2]
    for covariance in drawn.covariances:
        deviations = np.sqrt(np.linalg.eigvalsh(covariance))
        assert deviations[-1] / deviations[0] == pytest.approx(anisotropy)
        assert deviations.prod() == pytest.approx(1)
        assert drawn.open_variance > deviations[-1] ** 2


def test_same_seed_same_result_and_the_distribution_does_not_depend_on_the_size():
    X, y, drawn = make_open_blobs(100, random_state=7, return_distribution=True)
    again = make_open_blobs(100, random_state=np.random.RandomState(7))
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    larger = make_open_blobs(1_000, random_state=7, shuffle=False, return_distribution=True)[2]
    np.testing.assert_array_equal(larger.centers, drawn.centers)
    np.testing.assert_array_equal(larger.covariances, drawn.covariances)
    other = make_open_blobs(100, random_state=8)
    assert not np.array_equal(X, other[0])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples == 0, must be >= 1"),
        ({"n_features": 2.0}, TypeError, "n_features must be an instance of"),
        ({"open_share": 1.0}, ValueError, "open_share == 1.0, must be < 1"),
        ({"open_scale": 1.0}, ValueError, "open_scale == 1.0, must be > 1"),
        ({"open_label": 2}, ValueError, "open_label=2 is one of the known classes 0 to 2"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        make_open_blobs(**parameters)
