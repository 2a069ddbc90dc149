"""Promise: what this distribution takes of skellipsoid is public, but for the modules listed here."""

import ast
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import skellipsoid_bench

ROOT = Path(skellipsoid_bench.__file__).parent
#: Private modules of skellipsoid that are used. The version is pinned, so that they may change.
PRIVATE = [
    "skellipsoid._core.characters",  # of what a language model is told and says
    "skellipsoid._core.files",  # written whole or not at all
    "skellipsoid._core.labels",
    "skellipsoid._core.pipelines",  # answers and scores of any estimator
    "skellipsoid._core.sklearn",  # what is private in scikit-learn
    "skellipsoid._core.state_rules",  # of saved methods
    "skellipsoid._core.text_estimators",
    "skellipsoid._core.validation",
    "skellipsoid._encoders.torch.backbone",
    "skellipsoid._encoders.torch.contrastive",  # the training of a text model
    "skellipsoid._encoders.torch.model_lookup",
    "skellipsoid._encoders.torch.positions",  # this and the next two of a language model
    "skellipsoid._encoders.torch.rows",
    "skellipsoid._encoders.torch.text_modules",
    "skellipsoid._encoders.torch.token_table",
    "skellipsoid._encoders.training_texts",
    "skellipsoid._samples.folds",  # folds of the thresholds of baselines
    "skellipsoid._text_files.read",  # files of texts
    "skellipsoid._torch.devices",
    "skellipsoid._torch.losses",  # this and the loop below of learned radii
    "skellipsoid._torch.progress",
    "skellipsoid._torch.training_loop",
    "skellipsoid.baselines._balls",  # templates, and paragraphs of their docstrings
    "skellipsoid.baselines._logit_classifier",
    "skellipsoid.baselines._shared_docs",
    "skellipsoid.baselines._threshold",
]


def imported(path):
    """Modules that a file imports from, by their absolute names."""
    package = ["skellipsoid_bench", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *filter(None, [node.module])])


def test_the_private_modules_that_are_used_are_listed():
    names = {name for path in ROOT.rglob("*.py") for name in imported(path)}
    private = [name for name in names if name.startswith("skellipsoid.") and "._" in name]
    assert sorted(private) == PRIVATE


def test_the_computations_know_no_estimator():
    files = sorted((ROOT / "literature" / "_torch").glob("*.py"))
    assert len(files) > 3
    for path in files:
        for name in imported(path):
            assert not name.startswith("sklearn"), path
            assert not name.startswith("skellipsoid_bench.literature._") or "._torch" in name, path


def test_what_studies_import_is_there():
    """They take private names too, and none of them runs in CI."""
    studies, missing = sorted((ROOT.parent / "studies").glob("*.py")), []
    assert studies
    for path in studies:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skellipsoid"):
                module = import_module(node.module)
                inside = {each.name for each in iter_modules(getattr(module, "__path__", []))}
                names = {alias.name for alias in node.names if not hasattr(module, alias.name)}
                missing += [(path.name, name) for name in names - inside]
    assert missing == []
