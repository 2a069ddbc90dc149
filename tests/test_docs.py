"""Promise: the code of the guide was run, its console blocks too. The build of the documentation runs the examples."""

import doctest
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import warm_process
from machines import COMBINED

import skellipsoid
import skellipsoid_bench
from skellipsoid import datasets, metrics, model_selection

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE_BY_SPHINX = {"_build", "auto_examples", "generated"}
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.rst"))
    if not MADE_BY_SPHINX & {*path.relative_to(DOCS).parts} and path.name != "sg_execution_times.rst"
}
MARKDOWN = [*ROOT.glob("*.md"), *ROOT.glob("packages/*/*.md")]
#: Pages whose console blocks are run; those of one group train the same model, once.
TRAINING = "skellipsoid train --data export.csv --save model --quiet"
CONSOLE_GROUPS = [["month"], ["traffic", "monitoring", "changing"]]
CONSOLE_GROUPS += [["command_line"], ["benchmark_runner"], ["own_method"]]
CONSOLE_PAGES = [f"guide/{name}.rst" for group in CONSOLE_GROUPS for name in group]
#: Pages whose Python blocks are slow.
SLOW_PAGES = [
    *("coming_from.rst", "features.rst", "index.rst", "inspecting.rst", "mails.rst", "quick_start.rst", "recipes.rst"),
    *("serving.rst", "text.rst"),
]
#: Blocks of commands that CI runs as the README has them, or as `.ci/run` has them; benchmarks take hours, and
#: skellipsoid-bench's own tests read their commands.
NOT_RUN_HERE = {"contributing.rst", "guide/benchmarks.rst", "guide/quick_start.rst", "index.rst", "install.rst"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def loads_the_demo(page):
    """Whether a page's set-up is to load the model that the command ``demo`` saves."""
    return 'load("assistant")' in PAGES[page] and 'save(pipe, "assistant")' not in PAGES[page]


def is_slow(page):
    return loads_the_demo(page) or Path(page).name in SLOW_PAGES


@pytest.fixture(scope="session")
def assistant(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = run([sys.executable, "-m", "skellipsoid", "demo", "--save", "assistant", "--quiet"], cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "assistant"


@pytest.mark.parametrize(
    ("page", "machine"),
    [
        pytest.param(page, machine, id=page, marks=[pytest.mark.slow] if is_slow(page) else [])
        # One of the machines for each page: what it says holds on all of them.
        for (page, text), machine in zip(PAGES.items(), itertools.cycle(COMBINED), strict=False)
        if ">>> " in text
    ],
    indirect=["machine"],
)
@pytest.mark.usefixtures("elsewhere")
def test_python_blocks_do_what_the_page_says(page, machine, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if loads_the_demo(page):
        assert "``skellipsoid demo --save assistant``" in PAGES[page]
        shutil.copytree(request.getfixturevalue("assistant"), tmp_path / "assistant")
    report: list[str] = []
    blocks = doctest.DocTestParser().get_doctest(PAGES[page], {}, page, str(DOCS / page), 0)
    results = doctest.DocTestRunner(optionflags=FLAGS).run(blocks, out=report.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(report)


@pytest.mark.usefixtures("elsewhere")
def test_readme_runs_as_it_is_pasted(tmp_path, monkeypatch, assistant):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(assistant, tmp_path / "assistant")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    train = datasets.load_assistant_intents(subset="train")
    X, y = datasets.make_open_blobs(200, open_share=0.0, random_state=0)
    # What the reader has, and the README does not.
    theirs = {"my_texts": train.data[:120], "my_labels": train.target[:120], "X_train": X, "y_train": y, "X_new": X}
    report: list[str] = []
    quick_start = doctest.DocTestParser().get_doctest(text, theirs, "README.md", "README.md", 0)
    results = doctest.DocTestRunner(optionflags=FLAGS).run(quick_start, out=report.append, clear_globs=False)
    assert results.attempted >= 5
    assert results.failed == 0, "".join(report)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert blocks
    for block in blocks:
        exec(block, quick_start.globs)
    # What "After the fit" promises of this very model.
    new = train.data[train.target == train.target[-1]]
    fuller = skellipsoid.add_classes(skellipsoid.load("my_model"), new, ["new"] * len(new))
    assert "new" in fuller.classes_


def test_readme_shows_the_demo_as_the_guide_does():
    # Where it is run.
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^```text\n(.*?)^```", text, re.M | re.S)[1].splitlines()
    guide = [line.removeprefix("   ") for line in PAGES["guide/command_line.rst"].splitlines()]
    assert shown
    assert {*shown} <= {*guide}


@pytest.mark.parametrize("page", sorted(str(path.relative_to(ROOT)) for path in MARKDOWN))
def test_relative_links_of_markdown_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    }
    targets = re.findall(r"\]\(([^)\s]+)", text)
    assert targets or page != "README.md"
    for target in targets:
        path, _, anchor = target.partition("#")
        if "://" not in target:
            assert ((ROOT / page).parent / path).exists() if path else anchor in headings, f"{page} links to {target}"


def test_every_code_block_is_of_a_kind_that_is_run():
    # What a page shows as Python is a doctest; anything else that claims to be code is for a terminal.
    kinds = {
        (page, kind)
        for page, text in PAGES.items()
        for kind in re.findall(r"^ *\.\. (?:code-block|code):: *(.*)", text, re.M)
    }
    assert {kind for _, kind in kinds} <= {"console", "javascript"}
    # tests/runtime runs what is in JavaScript.
    assert {page for page, kind in kinds if kind == "javascript"} == {"guide/serving.rst"}
    assert {page for page, kind in kinds if kind == "console"} <= {*CONSOLE_PAGES, "guide/serving.rst"} | NOT_RUN_HERE


@pytest.mark.slow
@pytest.mark.parametrize("group", CONSOLE_GROUPS, ids="-".join)
def test_console_blocks_do_what_the_page_says(group, tmp_path):
    with warm_process.listening(environment()) as warm:
        run_pages(group, tmp_path, warm)


def run_pages(group, tmp_path, warm):
    trained = None
    for name in group:
        page, folder = f"guide/{name}.rst", tmp_path / name
        folder.mkdir()
        for file in re.findall(r"(?:^\.\. literalinclude:: |:download:`)([\w.]+)", PAGES[page], re.M):
            shutil.copy((DOCS / page).parent / file, folder)
        commands = console_commands(PAGES[page])
        assert commands
        for command, wanted in commands:
            if command == TRAINING and trained:
                done = trained
                shutil.copytree(tmp_path / group[0] / "trained", folder / "model")
            else:
                done = run(["bash", "-c", f"{SHELL.format(warm)}\n{command}"], cwd=folder)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            assert is_close(wanted, done.stdout), f"{command}\n{done.stdout}"
            if command == TRAINING and not trained:
                trained = done
                shutil.copytree(folder / "model", folder / "trained")


NUMBER = r"-?\d+(?:\.\d+)?"


def is_close(wanted, found):
    """Whether an output is the page's; numbers may differ by a twentieth, since processors round differently."""
    parts = re.split(rf"(\.\.\.|{NUMBER})", " ".join(wanted.split()))
    numbers = [float(part) for part in parts if re.fullmatch(NUMBER, part)]
    patterns = {"...": ".*?"} | {part: f"({NUMBER})" for part in parts if re.fullmatch(NUMBER, part)}
    match = re.fullmatch("".join(patterns.get(part, re.escape(part)) for part in parts), " ".join(found.split()))
    least = [0.01 if number % 1 else 2 for number in numbers]
    return match is not None and all(
        abs(float(other) - number) <= max(abs(number) / 20, small)
        for other, number, small in zip(match.groups(), numbers, least, strict=True)
    )


@pytest.mark.parametrize(
    "module",
    [
        *(skellipsoid, skellipsoid_bench, skellipsoid_bench.datasets, skellipsoid_bench.language_models),
        *(skellipsoid.dask, datasets, metrics, model_selection),
    ],
    ids=lambda module: module.__name__,
)
def test_api_page_lists_every_public_name(module):
    public = {*module.__all__} - {"__version__"}
    assert {name for name in public if not re.search(rf"\b{name}\b", PAGES["api.rst"])} == set()


#: The commands that the page names, as this very Python and package, which one process has imported for all.
SHELL = f"""
set -o pipefail
python() {{{{ {shlex.quote(sys.executable)} "$@"; }}}}
warm() {{{{ python {shlex.quote(warm_process.__file__)} {{}} "$@"; }}}}
skellipsoid() {{{{ warm skellipsoid "$@"; }}}}
skellipsoid-bench() {{{{ warm skellipsoid_bench "$@"; }}}}
"""


def environment():
    # One thread: the tests may share the processor with each other.
    own = {"HF_HUB_OFFLINE": "1", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    paths = [str(ROOT), *map(str, ROOT.glob("packages/*")), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | own | {"PYTHONPATH": os.pathsep.join(paths)}


def run(command, cwd):
    return subprocess.run(
        command, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def console_commands(text):
    """Commands of a page's console blocks, each with the output that the page shows."""
    commands: list[list[str]] = []
    for block in re.findall(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", text, re.M):
        for line in re.sub(r"\\\n *", "", textwrap.dedent(block)).rstrip().splitlines():
            if line.startswith("$ "):
                commands.append([line.removeprefix("$ "), ""])
            else:
                commands[-1][1] += line + "\n"
    return commands
