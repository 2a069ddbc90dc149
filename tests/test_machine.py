"""Promise: one module asks the machine, and what the package does and says holds on every one."""

import ast
import copy
import json
import os
import pickle
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from machines import PROCESSORS
from sklearn.pipeline import Pipeline

import skellipsoid
import skellipsoid_runtime
from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, load, save
from skellipsoid._torch import machine as here
from skellipsoid_runtime import _machine

ROOTS = [Path(module.__file__).parent for module in (skellipsoid, skellipsoid_runtime)]
#: The modules that may ask.
PLACES = [Path(here.__file__), Path(_machine.__file__)]
#: A process of its own, which imports nothing of the package and bounds its own memory.
PLACES.append(Path(skellipsoid.__file__).parent / "_text_files" / "workbooks" / "child.py")
#: Files that open members of a zip, which gives bytes without being told.
OPENS_ZIPS = {"bot_members.py", "package.py"}
FILES = [path for root in ROOTS for path in sorted(root.rglob("*.py")) if path not in PLACES]
#: What asks, by the beginning of the name.
ASKS = (
    *(
        "torch.cuda.",
        "torch.cpu.",
        "torch.backends.",
        "torch.accelerator.",
        "torch.get_num_",
        "torch.xpu.",
        "torch.mps.",
    ),
    *("os.cpu_count", "os.process_cpu_count", "os.sched_getaffinity", "os.sysconf", "os.uname", "os.getloadavg"),
    *("os.isatty", "os.get_terminal_size", "shutil.get_terminal_size", "shutil.disk_usage", "os.statvfs"),
    *("os.rename", "os.replace", "shutil.move", "os.path.expanduser", "os.getlogin", "os.environ.HOME"),
    *("platform.", "psutil.", "resource.", "locale.", "getpass.", "multiprocessing.cpu_count", "joblib.cpu_count"),
    *("time.localtime", "time.strftime", "time.ctime", "time.mktime", "time.timezone", "time.tzname", "time.tzset"),
    *("datetime.date.today", "datetime.datetime.today", "tempfile.gettempdir", "tempfile.mktemp"),
)
#: Methods that ask, of whatever object.
METHODS = {"isatty", "home", "expanduser", "get_capabilities"}
#: Versions are those of what is installed.
ALLOWED = {"platform.python_version"}
#: Calls that ask unless they are given this argument, by its name or its place.
WITHOUT = {
    **dict.fromkeys(("tempfile.TemporaryDirectory", "tempfile.mkdtemp", "tempfile.mkstemp"), ("dir", 2)),
    **dict.fromkeys(("tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"), ("dir", 9)),
    "datetime.datetime.now": ("tz", 0),
    "datetime.datetime.fromtimestamp": ("tz", 1),
    "concurrent.futures.ThreadPoolExecutor": ("max_workers", 0),
    "concurrent.futures.ProcessPoolExecutor": ("max_workers", 0),
}
#: Methods that ask for the encoding of the locale unless it is given.
READ_TEXT = {"read_text": 0, "write_text": 1}
SYSTEM_FILES = ("/proc/", "/sys/", "/dev/shm")


def questions(source):
    """What a source asks of the machine, with the line."""
    tree, names = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def dotted(node):
        if isinstance(node, ast.Name):
            return names.get(node.id, "open" if node.id == "open" else "?")
        return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"

    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node)
            is_method = isinstance(node, ast.Attribute) and node.attr in METHODS
            if (name.startswith(ASKS) and name not in ALLOWED) or is_method:
                yield node.lineno, name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(SYSTEM_FILES):
            yield node.lineno, node.value
        elif isinstance(node, ast.FormattedValue) and (spec := number_of_the_locale(node)):
            yield node.lineno, spec
        elif isinstance(node, ast.Call) and (asked := asks_by_what_is_left_out(node, dotted(node.func))):
            yield node.lineno, asked


def number_of_the_locale(node):
    """Format of a number with the decimal sign of the locale."""
    parts = node.format_spec.values if node.format_spec else []
    last = parts[-1].value if parts and isinstance(parts[-1], ast.Constant) else ""
    return f":{last}" if str(last).endswith("n") else None


def asks_by_what_is_left_out(call, name):
    """Name of a call that asks, because it is not told: a folder, a time zone, a number of threads, an encoding."""
    given = {keyword.arg for keyword in call.keywords}
    method = name.rpartition(".")[2]
    argument, place = WITHOUT.get(name, (None, 0))
    if argument is not None and argument not in given and len(call.args) <= place:
        return name
    if method in READ_TEXT and "encoding" not in given and len(call.args) <= READ_TEXT[method]:
        return name
    mode = [*call.args[name == "open" :][:1], *(each.value for each in call.keywords if each.arg == "mode")]
    is_binary = any(isinstance(each, ast.Constant) and "b" in str(each.value) for each in mode)
    opens = (
        method == "open"
        and name not in ("os.open", "webbrowser.open")
        and isinstance(call.func, ast.Name | ast.Attribute)
    )
    return name if opens and not (is_binary or "encoding" in given) else None


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_no_other_module_asks_the_machine(root):
    files = [path for path in FILES if path.is_relative_to(root)]
    assert len(files) > 10
    asked = {(path.name, *found) for path in files for found in questions(path.read_text(encoding="utf-8"))}
    asked = {found for found in asked if found[0] not in OPENS_ZIPS or found[2] != "?.open"}
    assert not asked, f"ask in {' or '.join(path.name for path in PLACES)} and call that"


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ntorch.cuda.is_available()",
        "import torch\nread = torch.cpu.get_capabilities",
        "from torch import cuda\ncuda.mem_get_info()",
        "import os\nos.cpu_count()",
        "from os import sched_getaffinity as cores\ncores(0)",
        "import sys\nsys.stdout.isatty()",
        "from pathlib import Path\nPath.home()",
        "from pathlib import Path\nPath('~').expanduser()",
        "from datetime import datetime\ndatetime.now()",
        "import time\ntime.strftime('%H')",
        "import locale\nlocale.getpreferredencoding()",
        "import tempfile\ntempfile.mkdtemp()",
        "from tempfile import TemporaryDirectory\nTemporaryDirectory(prefix='a')",
        "import os\nos.replace('a', 'b')",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor()",
        "open('a')",
        "path.read_text()",
        "path.write_text('a')",
        "path.open('w')",
        "memory = '/proc/meminfo'",
        "import platform as p\np.machine()",
        "f'{x:,.3n}'",
    ],
)
def test_a_question_is_found(line):
    assert [*questions(line)]


@pytest.mark.parametrize(
    "line",
    [
        "from datetime import UTC, datetime\ndatetime.now(UTC)",
        "from tempfile import TemporaryDirectory\nTemporaryDirectory(dir=beside)",
        "path.open('rb')",
        "open('a', encoding='utf-8')",
        "path.read_text(encoding='utf-8')",
        "path.replace(target)",
        "import torch\ntorch.set_num_threads(1)",
        "import platform\nplatform.python_version()",
    ],
)
def test_what_asks_nothing_is_allowed(line):
    assert [*questions(line)] == []


def test_the_places_that_ask_are_found():
    """The names of what asks are spelled as the modules use them."""
    for path in PLACES:
        assert [*questions(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("machine", ["no_vector_extensions"], indirect=True)
def test_a_process_of_a_test_is_on_its_machine(machine, fresh_python):
    script = "from skellipsoid._torch import machine\nprint(machine.instructions(), machine.__file__)"
    found = fresh_python(script).stdout
    assert found == f"{here.instructions()} {here.__file__}\n"
    assert here.instructions()["amx_bf16"] is False


@pytest.mark.parametrize("machine", ["no_home"], indirect=True)
@pytest.mark.parametrize(
    "script",
    [
        "from skellipsoid_runtime import OnnxPipeline",
        "from skellipsoid._onnx.quantize import import_onnxruntime\nimport_onnxruntime()",
    ],
    ids=["runtime", "export"],
)
def test_onnxruntime_writes_nothing_into_the_home(machine, script, fresh_python):
    """Nor does it complain that it cannot; the variable that keeps it from doing so is not left behind."""
    done = fresh_python(
        f"{script}\nimport os, sys\nprint('onnxruntime' in sys.modules, 'ORT_DISABLE_TELEMETRY' in os.environ)"
    )
    assert (done.stderr, done.stdout) == ("", "True False\n")


@pytest.mark.parametrize("machine", PROCESSORS, indirect=True)
def test_a_model_is_loaded_without_a_word_and_embeds_with_one(machine, tmp_path, encoder):
    """No processor is slow at what is not computed."""
    save(copy.copy(encoder).set_params(dtype="bfloat16"), tmp_path / "model")
    ran = []
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda module, given: ran.append(type(module)))
    try:
        loaded = load(tmp_path / "model")
        save(loaded, tmp_path / "again")
        pickle.dumps(loaded)
        assert ran == []
        loaded._backbone.embed(["a text"])
        assert ran
    finally:
        hook.remove()
    if machine in ("avx512", "no_vector_extensions"):
        with pytest.warns(UserWarning, match="no AMX; use dtype='float32' here"):
            loaded.transform(["a text"])
    else:
        loaded.transform(["a text"])


@pytest.fixture(scope="module")
def encoder(tiny_model, texts):
    return SupConTextEncoder(tiny_model, finetune="none", device="cpu").fit(texts)


@pytest.mark.parametrize("machine", ["one_core", "many_cores", "little_memory", "no_gpu"], indirect=True)
def test_answers_are_those_of_every_machine(machine, encoder, texts, labels):
    features = encoder.transform(texts)
    found = EllipsoidOpenSetClassifier(random_state=0).fit(features, labels)
    assert (found.predict(features) == labels).mean() > 0.5


@pytest.mark.parametrize("machine", ["tmp_elsewhere", "no_home", "other_time_zone"], indirect=True)
def test_a_model_is_saved_and_loaded_on_every_machine(machine, encoder, texts, labels, tmp_path):
    pipeline = Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))])
    pipeline.steps[1][1].fit(encoder.transform(texts), labels)
    save(pipeline, tmp_path / "model")
    save(pipeline, tmp_path / "model", overwrite=True)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(texts), pipeline.predict(texts))
    saved = json.loads((tmp_path / "model" / "skellipsoid.json").read_bytes())["saved"]
    assert abs(datetime.fromisoformat(saved) - datetime.now(UTC)) < timedelta(minutes=10)
    if machine == "tmp_elsewhere":
        assert os.stat(tempfile.gettempdir()).st_dev != os.stat(tmp_path).st_dev
