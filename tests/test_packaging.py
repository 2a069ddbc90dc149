"""Promise: the distributions of this repository are released together. ``.ci/run`` builds and installs them."""

import re
import tomllib
from pathlib import Path

import pip_lines
import pytest

import skellipsoid

ROOT = Path(__file__).parent.parent
OTHERS = sorted(path.name for path in (ROOT / "packages").iterdir() if (path / "pyproject.toml").exists())


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def project_of(folder):
    return tomllib.loads(text_of(f"{folder}/pyproject.toml"))["project"]


def test_every_place_names_the_same_version():
    found = {
        "citation": re.search(r"^version: (.*)$", text_of("CITATION.cff"), re.M)[1],
        "changes": re.search(r"^## (\S+)", text_of("CHANGES.md"), re.M)[1],
        "requirement": re.search(r'"skellipsoid==(.*?)"', text_of("packages/skellipsoid-bench/pyproject.toml"))[1],
        "runtime": re.search(r'"skellipsoid-runtime==(.*?)"', text_of("pyproject.toml"))[1],
    }
    for name in OTHERS:
        path = f"packages/{name}/{name.replace('-', '_')}/_version.py"
        found[name] = re.search(r'^__version__ = "(.*)"$', text_of(path), re.M)[1]
    assert found == dict.fromkeys(found, skellipsoid.__version__)


@pytest.mark.parametrize("name", OTHERS)
def test_the_distributions_have_the_same_licence_and_lowest_versions(name):
    assert text_of(f"packages/{name}/LICENSE") == text_of("LICENSE")
    package, other = project_of("."), project_of(f"packages/{name}")
    for key in ("license", "authors", "requires-python"):
        assert other[key] == package[key]
    numpy = [line for line in other["dependencies"] if line.startswith("numpy")]
    assert {*numpy} <= {*package["dependencies"]}


def test_what_the_package_takes_of_the_runtime_needs_numpy_alone(fresh_python):
    assert [line.split(">")[0] for line in project_of("packages/skellipsoid-runtime")["dependencies"]] == ["numpy"]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "skellipsoid").rglob("*.py"))
    names = sorted({*re.findall(r"^\s*from (skellipsoid_runtime\.\S+) import", sources, re.M)})
    assert len(names) > 4
    script = (
        "import importlib, sys\n"
        "class Refused:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] not in {'numpy', 'skellipsoid_runtime', *sys.stdlib_module_names}:\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refused())\n"
        f"[importlib.import_module(name) for name in {names}]"
    )
    assert fresh_python(script).stderr == ""


def test_what_the_guide_installs_is_there():
    """``.ci/run`` gives the same lines to pip, with the built wheels."""
    lines = pip_lines.guide()
    assert len(lines) > 10
    assert [each for line in lines for each in pip_lines.problems(line)] == []


def test_what_messages_say_to_install_is_there():
    found = pip_lines.messages()
    assert {named.name for _, named, _ in found} == {"skellipsoid", *OTHERS}
    for place, named, is_of_index in found:
        assert {*named.extras} <= {*project_of(pip_lines.OURS[named.name])["optional-dependencies"]}, place
        if is_of_index and named.name != "skellipsoid":  # a clone has no index; what is installed has extras there, too
            assert named.name.replace("-", "_") in place
