"""Promise: importing the package is cheap and changes nothing, and the computations know no estimator."""

import ast
import gc
from pathlib import Path

import pytest

import skellipsoid

ROOT = Path(skellipsoid.__file__).parent
#: Rooms, each before those that import from it.
ROOMS = (
    *("_version", "_torch", "_samples", "_core", "_bot_files", "_text_files", "datasets", "metrics"),
    *("model_selection", "_held_out", "_traffic_model", "_encoders", "_ellipsoid"),
    *("baselines", "_data_check", "_traffic", "plotting", "persistence", "_onnx", "dask", "_base", "utils"),
    *("cli", "__main__"),
)
#: Rooms of computations, in torch and NumPy.
COMPUTATIONS = ["_torch", "_samples", "_ellipsoid.math", "_ellipsoid.paper", "_encoders.torch"]
FILES = [path for room in COMPUTATIONS for path in sorted(ROOT.joinpath(*room.split(".")).glob("*.py"))]
#: They hold no estimator either; ``posterior`` and ``zones`` take a logistic regression of scikit-learn.
HELD_OUT = ["_held_out.table", "_held_out.expected", "_traffic_model"]
FILES += [ROOT / "_held_out" / f"{name}.py" for name in ("table", "expected")]
FILES += [ROOT / "_traffic_model" / f"{name}.py" for name in ("normal_scores", "threshold")]
INSIDE = (*(f"skellipsoid.{room}." for room in COMPUTATIONS), *(f"skellipsoid.{name}" for name in HELD_OUT))


def test_import_loads_nothing_that_takes_long(fresh_python):
    script = (
        "import sys, skellipsoid\n"
        "heavy = ['numpy', 'scipy', 'sklearn', 'torch', 'tqdm', 'sentence_transformers', 'transformers']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    answer = fresh_python(script)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")


def test_public_modules_import_torch_or_work_without_it(fresh_python):
    script = (
        "import importlib, sys, skellipsoid\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n"
        "            raise ImportError(name=name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "for name in [*skellipsoid._MODULES, 'cli']:\n"
        "    try:\n"
        "        importlib.import_module(f'skellipsoid.{name}')\n"
        "    except ImportError as error:\n"
        "        print('with' if error.name == 'torch' else error, name)\n"
        "    else:\n"
        "        print('without', name)\n"
        "from skellipsoid.datasets import make_open_blobs\n"
        "from skellipsoid.metrics import open_set_auroc, open_set_f1_score\n"
        "from skellipsoid.model_selection import OpenSetKFold\n"
        "from skellipsoid.plotting import ScoreHistogramDisplay\n"
        "X, y = make_open_blobs(60, random_state=0)\n"
        "train, test = next(OpenSetKFold(3).split(X, y))\n"
        "known = sorted({*y[train]} - {-1})\n"
        "ScoreHistogramDisplay.from_predictions(y, y + 1.0, labels=known)\n"
        "print('AUROC', open_set_auroc(y, y + 1.0, labels=known), 0 < open_set_f1_score(y, y, labels=known) < 1)"
    )
    answer = fresh_python(script)
    assert answer.stderr == ""
    assert sorted(answer.stdout.splitlines()) == [
        "AUROC 1.0 True",
        *(f"with {name}" for name in ("baselines", "dask", "utils")),
        *(f"without {name}" for name in ("cli", "datasets", "metrics", "model_selection", "persistence", "plotting")),
    ]


def test_import_leaves_random_state_threads_and_warnings_alone_and_loads_nothing_that_only_some_need(fresh_python):
    script = (
        "import sys, warnings, torch, numpy as np\n"
        "np.random.seed(0); torch.manual_seed(0)\n"
        "def state():\n"
        "    arrays = np.random.get_state()[1].tobytes(), torch.random.get_rng_state().numpy().tobytes()\n"
        "    return arrays, torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()\n"
        "import sklearn, sklearn.utils.estimator_checks\n"
        "before, filters, there = state(), list(warnings.filters), {*sys.modules}\n"
        "import skellipsoid, skellipsoid._encoders.torch.backbone\n"
        "every = [getattr(skellipsoid, name) for name in skellipsoid.__all__]\n"
        "print(state() == before, list(warnings.filters) == filters)\n"
        "heavy = {'sentence_transformers', 'transformers', 'matplotlib', 'pooch', 'openai', 'gguf', 'accelerate'}\n"
        "print(heavy & {*sys.modules} - there)"
    )
    assert fresh_python(script).stdout.split() == ["True", "True", "set()"]


def test_the_garbage_collector_works_again_after_an_import_that_failed(monkeypatch):
    def fail(*given, **more):
        raise OSError(f"the collector is {'on' if gc.isenabled() else 'off'}")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", fail)
    with pytest.raises(OSError, match="the collector is off"):
        skellipsoid.SupConTextEncoder(str(ROOT), finetune="none").fit(["a text"])
    assert gc.isenabled()


def imported_names(source, package):
    """Absolute names of what a file of a package imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *filter(None, [node.module])]
            yield from (".".join([*module, alias.name]) for alias in node.names)


def is_outside(name):
    """Whether a computation must not know a module."""
    top = name.split(".")[0]
    return top == "sklearn" or (top == "skellipsoid" and not name.startswith(INSIDE))


def test_the_computations_know_no_estimator():
    for path in FILES:
        package = ["skellipsoid", *path.relative_to(ROOT).parts[:-1]]
        names = list(imported_names(path.read_text(encoding="utf-8"), package))
        assert names or path.stem == "__init__"
        assert [name for name in names if is_outside(name)] == [], path


def test_no_room_imports_from_one_above_it():
    assert {path.stem for path in ROOT.iterdir() if path.stem[-2:] != "__"} == {*ROOMS, "py"} - {"__main__"}
    for path in sorted(ROOT.rglob("*.py")):
        package = ["skellipsoid", *path.relative_to(ROOT).parts[:-1]]
        own = Path(path.relative_to(ROOT).parts[0]).stem
        for name in imported_names(path.read_text(encoding="utf-8"), package):
            top, *inner = name.split(".")
            if top == "skellipsoid" and own != "__init__":
                assert ROOMS.index(inner[0]) <= ROOMS.index(own), f"{path} imports {name}"


def test_the_public_names_are_those_listed():
    assert list(skellipsoid.__all__) == sorted(skellipsoid.__all__)
    for name in skellipsoid.__all__:
        assert getattr(skellipsoid, name) is not None


def test_type_checkers_and_readers_see_what_is_imported_late():
    source = Path(skellipsoid.__file__).read_text(encoding="utf-8")
    late = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen = {(alias.name, part.module) for part in late.body if isinstance(part, ast.ImportFrom) for alias in part.names}
    named = {(name, module) for name, module in skellipsoid._MODULE_OF.items()}
    packages = {(name, None) for name in skellipsoid._MODULES if name != "persistence"}
    assert seen == named | packages
    assert {name for name, _ in seen} == {*skellipsoid.__all__} - {"__version__"}
