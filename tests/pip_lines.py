"""The ``pip install`` lines of the guide: what they name is there, and pip takes it from the built wheels.

``python tests/pip_lines.py dist`` gives each to pip, which installs nothing, in an environment that has what the extras
need.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
GUIDE = ["README.md", "CONTRIBUTING.md", "docs/*.rst", "docs/guide/*.rst", "packages/*/README.md"]
MESSAGES = ["skellipsoid/**/*.py", "packages/*/skellipsoid_*/**/*.py"]
#: A line ends with its literal or with the line, but for a backslash there.
_LINE = re.compile(r"pip install((?: |\\\n)(?:[^`\n\\]|\\\n)+)")
#: ``how_to_install`` says how, from an index and from a clone.
_MESSAGE = re.compile(
    r"(pip install |how_to_install\((?=['\"]))(?:\"\s*f?\"|'\s*f?')?['\"]?([a-z][a-z-]*(?:\[[a-z,]+\])?)"
)
_REQUIREMENT = re.compile(r"([^\[\]<>=]+)(?:\[(.*)\])?(?:[<>=].*)?")


def _projects() -> dict[str, Path]:
    folders = [ROOT, *(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))]
    return {project(folder)["name"]: folder for folder in folders}


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


OURS = _projects()
#: What a distribution of this repository needs of the others, and an installed one brings.
REQUIRED = {"skellipsoid": ["skellipsoid-runtime"]}


class Named(NamedTuple):
    """What a line names: a distribution with its extras, by its folder in a clone or by its name in an index."""

    name: str
    extras: tuple[str, ...]
    folder: Path | None


class Line(NamedTuple):
    """What a line names, its files of constraints, and what the lines of its paragraph name."""

    place: str
    named: list[Named]
    files: list[Path]
    beside: list[Named]


def read(path: Path, text: str) -> Iterator[Line]:
    """Lines of a page; a folder or file that is not there is an error."""
    # Packages are handled from their own folders.
    base = path.parent if path.parent.parent.name == "packages" else ROOT
    for paragraph in re.split(r"\n\s*\n", text):
        beside: list[Named] = []
        for words in _LINE.findall(paragraph):
            named, files = [], []
            found = iter(shlex.split(words.replace("\\\n", " ")))
            for word in found:
                if word in ("&&", "|"):
                    break
                if word in ("-c", "-r"):
                    files.append(base / next(found))
                elif not word.startswith("-"):
                    named.append(_named(word, base))
            beside += named
            yield Line(f"{path.relative_to(ROOT)}: pip install{words}", named, files, beside)


def _named(word: str, base: Path) -> Named:
    name, extras = _REQUIREMENT.fullmatch(word).groups()
    folder = (base / name).resolve() if "/" in name or name.startswith(".") else None
    if folder is not None:
        name = next((ours for ours, where in OURS.items() if where == folder), name)
    return Named(name, tuple(extras.split(",")) if extras else (), folder)


def problems(line: Line) -> list[str]:
    """Sentences about what a line names and is not there."""
    found = [f"there is no file {file}" for file in line.files if not file.is_file()]
    for each in line.named:
        if each.name not in OURS:
            found += [f"{each.folder} is no distribution of this repository"] if each.folder else []
            continue
        folder = OURS[each.name]
        needed = {OURS[name] for name in REQUIRED.get(each.name, ())} - {other.folder for other in line.beside}
        found += [f"{each.name} needs {other.relative_to(ROOT)}; name it, too" for other in needed]
        missing = {*each.extras} - {*project(folder).get("optional-dependencies", {})}
        found += [f"{each.name} has no extra {extra}" for extra in sorted(missing)]
        if each.folder is None:
            in_clone = each._replace(folder=folder)
            if in_clone not in line.beside:
                found.append(f"{each.name} is not found by its name from a clone; name {folder.relative_to(ROOT)}, too")
    return [f"{line.place}: {each}" for each in found]


def guide() -> list[Line]:
    files = [path for pattern in GUIDE for path in sorted(ROOT.glob(pattern))]
    return [line for path in files for line in read(path, path.read_text(encoding="utf-8"))]


def messages() -> list[tuple[str, Named, bool]]:
    """Files whose errors say what to install, that, and whether by the name of an index alone."""
    files = [path for pattern in MESSAGES for path in sorted(ROOT.glob(pattern))]
    return [
        (str(path.relative_to(ROOT)), _named(word, ROOT), said.startswith("pip"))
        for path in files
        for said, word in _MESSAGE.findall(path.read_text(encoding="utf-8"))
    ]


def _ask_pip(wheels: Path, named: Named) -> str | None:
    """Why pip does not take it; ``None`` if it does. Others than ours only have to exist."""
    pip = [sys.executable, "-m", "pip"]
    extras = f"[{','.join(named.extras)}]" if named.extras else ""
    if named.name in OURS:
        wheel = next(wheels.glob(f"{named.name.replace('-', '_')}-[0-9]*.whl"), None)
        if wheel is None:
            return f"there is no wheel of {named.name} in {wheels}"
        command = [*pip, "install", "--dry-run", "--no-index", "--find-links", str(wheels), f"{wheel}{extras}"]
    else:
        command = [*pip, "index", "versions", named.name]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    said = found.stderr.strip()
    return said or "pip fails" if found.returncode or "does not provide the extra" in said else None


def main(wheels: Path) -> int:
    lines = guide()
    wrong = [each for line in lines for each in problems(line)]
    every = {(each.name, each.extras): each for line in lines for each in line.named}
    every |= {(each.name, each.extras): each for _, each, _ in messages() if each.name in OURS and not each.extras}
    for each in every.values():
        if why := _ask_pip(wheels, each):
            wrong.append(f"{each.name}{list(each.extras) or ''}: {why}")
    said = [f"{len(lines)} pip lines, {len(every)} different things to install", *wrong]
    sys.stdout.write("\n".join(said) + "\n")
    return int(bool(wrong) or not lines)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
