"""The page *How a fit runs* names functions that exist, and a letter of its glossary has one meaning."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import skellipsoid

PACKAGE = Path(skellipsoid.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "internals.rst").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"``([\w.]+):([\w.]+)``", PAGE)))


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_the_page_names_what_exists(module, name):
    found = import_module(f"skellipsoid.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_the_page_names_every_module_that_the_default_fit_runs():
    modules = {module for module, _ in NAMED}
    run = {path.stem for path in (PACKAGE / "_ellipsoid" / "math").glob("*.py")} - {"__init__"}
    assert {f"_ellipsoid.math.{name}" for name in run} <= modules


def test_a_letter_of_the_glossary_has_one_meaning():
    glossary = PAGE[PAGE.index("Words and letters") : PAGE.index("Why models are JSON")]
    first_columns = [line[:37] for line in glossary.splitlines() if line.startswith(":math:")]
    letters = [letter for column in first_columns for letter in re.findall(r":math:`([^`]+)`", column)]
    assert len(letters) > 10
    assert len(letters) == len(set(letters))
