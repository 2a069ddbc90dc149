"""The page *How a fit runs* names functions that exist, and the engine uses the words of its glossary."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import skellipsoid

PACKAGE = Path(skellipsoid.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "contributing.rst").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"``([\w.]+):([\w.]+)``", PAGE)))
#: Words that the glossary replaces: what a fit leaves out is a *set*. (*Block* is a word of ``_engine/common`` alone.)
BANNED = {
    "removal",
    "removals",
    "removed",
    "remove",
    "gone",
    "foreign",
    "taken",
    "block",
    "blocks",
    "chunked",
    "bundle",
}


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_the_page_names_what_exists(module, name):
    found = import_module(f"skellipsoid.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_the_page_names_every_module_that_the_default_fit_runs():
    modules = {module for module, _ in NAMED}
    run = {path.stem for path in (PACKAGE / "_engine" / "boundary").glob("*.py")}
    run -= {"__init__", "settings", "paper_training", "pseudo_open", "radii"}  # parameters, the trainer, baselines
    assert {f"_engine.boundary.{name}" for name in run} <= modules


def defined_names(source):
    """Names of classes, functions, parameters, fields and variables that a file defines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


@pytest.mark.parametrize("path", sorted((PACKAGE / "_engine" / "boundary").glob("*.py")), ids=lambda path: path.stem)
def test_names_are_words_of_the_glossary(path):
    for name in defined_names(path.read_text(encoding="utf-8")):
        words = re.findall(r"[A-Z]?[a-z]+", name)
        assert not BANNED & {word.lower() for word in words}, name


def test_a_letter_of_the_glossary_has_one_meaning():
    glossary = PAGE[PAGE.index("Words and letters") : PAGE.index("Style\n-----")]
    first_columns = [line[:37] for line in glossary.splitlines() if line.startswith(":math:")]
    letters = [letter for column in first_columns for letter in re.findall(r":math:`([^`]+)`", column)]
    assert len(letters) > 10
    assert len(letters) == len(set(letters))
