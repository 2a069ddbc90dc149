"""Promise: both distributions of this repository are released together. ``.ci/run`` builds and installs them."""

import re
import tomllib
from pathlib import Path

import skellipsoid

ROOT = Path(__file__).parent.parent


RUNTIME = "packages/skellipsoid-runtime"


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_place_names_the_same_version():
    found = {
        "runtime": re.search(r'^__version__ = "(.*)"$', text_of(f"{RUNTIME}/skellipsoid_runtime/_version.py"), re.M)[1],
        "citation": re.search(r"^version: (.*)$", text_of("CITATION.cff"), re.M)[1],
        "changes": re.search(r"^## (\S+)", text_of("CHANGES.md"), re.M)[1],
    }
    assert found == dict.fromkeys(found, skellipsoid.__version__)


def test_both_distributions_have_the_same_licence_and_lowest_versions():
    assert text_of(f"{RUNTIME}/LICENSE") == text_of("LICENSE")
    package, runtime = (tomllib.loads(text_of(f"{folder}pyproject.toml"))["project"] for folder in ("", f"{RUNTIME}/"))
    for name in ("license", "authors", "requires-python"):
        assert runtime[name] == package[name]
    assert [line for line in runtime["dependencies"] if line.startswith("numpy")] == package["dependencies"][:1]
