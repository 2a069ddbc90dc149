"""Promise: saved published methods load where this package is installed, and say what to install where not."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import skellipsoid
import skellipsoid_runtime
from skellipsoid import load, save
from skellipsoid_bench import literature
from skellipsoid_bench.literature import CLABClassifier

LOAD = """
import sys, skellipsoid
try:
    print(skellipsoid.load(sys.argv[1]).predict([[0.0, 9.0]]).tolist())
except ImportError as error:
    print(error)
print("skellipsoid_bench" in sys.modules)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved boundary of CLAB."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 9], [9, 0]], 20, axis=0)
    save(CLABClassifier(max_iter=3, random_state=0).fit(X, np.repeat(["up", "right"], 20)), folder)
    return folder


def test_without_the_distribution_one_sentence_says_which_to_install(saved, fresh_environment, tmp_path):
    for folder in filter(os.path.isdir, sys.path):
        if "site-packages" in folder:
            for entry in os.scandir(folder):
                if "skellipsoid" not in entry.name and not (tmp_path / entry.name).exists():
                    (tmp_path / entry.name).symlink_to(entry.path)
    paths = [str(Path(module.__file__).parents[1]) for module in (skellipsoid, skellipsoid_runtime)] + [str(tmp_path)]
    environment = {**fresh_environment(), "PYTHONPATH": os.pathsep.join(paths)}
    # With -S no file adds folders to the path.
    command = [sys.executable, "-S", "-c", LOAD, str(saved)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert answer.stderr == ""
    sentence, imported = answer.stdout.splitlines()
    assert sentence == (
        f"The model in {str(saved)!r} cannot be loaded: CLABClassifier is a class of the package "
        "skellipsoid-bench, which is not installed; install it (pip install skellipsoid-bench, or in a clone "
        "pip install ./packages/skellipsoid-bench)."
    )
    assert imported == "False"


def test_a_name_that_nobody_registered_is_refused(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "model")
    path = tmp_path / "model" / "skellipsoid.json"
    manifest = json.loads(path.read_text(encoding="utf-8").replace("CLABClassifier", "os:system"))
    del manifest["manifest_sha256"]
    lines = json.dumps(manifest, indent=1).encode().removeprefix(b"{\n")
    digest = hashlib.sha256(lines).hexdigest().encode()
    path.write_bytes(b'{"manifest_sha256": "' + digest + b'",\n' + lines)
    with pytest.raises(ValueError, match=r"does not describe an estimator of this package \(KeyError: 'os:system'\)"):
        load(tmp_path / "model")


def test_every_published_method_is_registered():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    registered = project["entry-points"]["skellipsoid.estimators"]
    assert registered == {name: f"skellipsoid_bench.literature:{name}" for name in literature.__all__}
