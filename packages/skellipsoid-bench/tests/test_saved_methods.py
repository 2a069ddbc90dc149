"""Promise: saved published methods load where this package is installed, and say what to install where not."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from skellipsoid import load, save
from skellipsoid.persistence import _kinds
from skellipsoid_bench import literature
from skellipsoid_bench.literature import CLABClassifier


def test_without_the_distribution_one_sentence_says_which_to_install(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 9], [9, 0]], 20, axis=0)
    save(CLABClassifier(max_iter=3, random_state=0).fit(X, np.repeat(["up", "right"], 20)), tmp_path / "model")
    assert type(load(tmp_path / "model")) is CLABClassifier
    monkeypatch.setattr(_kinds, "_registered", dict)
    with pytest.raises(ImportError) as error:
        load(tmp_path / "model")
    assert str(error.value) == (
        f"The model in {str(tmp_path / 'model')!r} cannot be loaded: CLABClassifier is a class of the package "
        "skellipsoid-bench, which is not installed; install it (pip install skellipsoid-bench, or in a clone "
        "pip install ./packages/skellipsoid-bench)."
    )


def test_every_published_method_is_registered():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    registered = project["entry-points"]["skellipsoid.estimators"]
    assert registered == {name: f"skellipsoid_bench.literature:{name}" for name in literature.__all__}
