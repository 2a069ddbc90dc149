"""Promise: published methods serve comparison and are not exported; an error of one sentence says so."""

import numpy as np
import pytest

from skellipsoid import export_onnx
from skellipsoid_bench.literature import ADBClassifier, DOCClassifier, MOGBClassifier, OpenMaxClassifier


@pytest.mark.parametrize(
    "classifier",
    [ADBClassifier(max_iter=2, random_state=0), DOCClassifier(), MOGBClassifier(min_size=1), OpenMaxClassifier()],
)
def test_a_boundary_of_the_literature_is_refused(classifier, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 9], [9, 0]], 20, axis=0)
    classifier.fit(X, np.repeat(["up", "right"], 20))
    with pytest.raises(TypeError, match=rf"^An? {type(classifier).__name__} cannot be exported"):
        export_onnx(classifier, tmp_path / "model")
    assert not (tmp_path / "model").exists()
