"""How large the distributions are: lines, copies of lines, and containers in a fit and after it.

    python studies/size.py                      # of this checkout
    python studies/size.py FOLDER               # of another checkout: PYTHONPATH=FOLDER, so that its package is run
    python studies/size.py NAME=FOLDER … --page > results/size.rst      # a column for each, each in its own process

A line of code is neither blank nor a comment nor part of a docstring. Public names are those of ``__all__`` of the
package and of its public modules, without ``__version__``. Copies are runs of more than ``MOST_EQUAL`` equal lines of
code, imports apart, in two places of the distributions. Containers are the package's classes of which a function held a
value, on 600 samples of 6 classes in 8 features and a log of 300 of which 40 have labels: no estimators, constraints of
parameters or enumerations; those that pass from one folder to another are named. A test touches private names if its
function uses a name that its file imports from a private module, or reads a private attribute.
"""

import ast
import enum
import io
import os
import re
import subprocess
import sys
import textwrap
import tokenize
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, learn_from_traffic, set_operating_point

#: Tokens that are no code.
EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
#: Underlined, but public in Python, and in notebooks.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_repr_html_"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
#: Runs of more equal lines of code are copies.
MOST_EQUAL = 20


def code_of(source):
    """Numbers of the lines of a file that hold code."""
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            held |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                held -= {*range(first.lineno, first.end_lineno + 1)}
    return held


def lines_of_code(source):
    """Count the lines of a file that hold code."""
    return len(code_of(source))


def copies_of(packages, root):
    """Give runs of equal lines of code in two places: their number of lines, and where they begin."""
    lines, windows = [], defaultdict(list)
    for path in sorted(path for package in packages for path in package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        imports = {
            n
            for node in ast.parse(source).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for n in range(node.lineno, node.end_lineno + 1)
        }
        text = source.splitlines()
        lines += [(text[n - 1].strip(), f"{path.relative_to(root)}:{n}") for n in sorted(code_of(source) - imports)]
        lines.append((f"end of {path}", ""))
    for start in range(len(lines) - MOST_EQUAL):
        windows[tuple(line for line, _ in lines[start : start + MOST_EQUAL + 1])].append(start)
    found = []
    for first, *others in windows.values():
        for other in others:
            if lines[first - 1][0] != lines[other - 1][0]:  # a run begins here
                equal = (i for i in range(len(lines) - other) if lines[first + i][0] != lines[other + i][0])
                found.append((next(equal), lines[first][1], lines[other][1]))
    return found


def lines_of(folder):
    """Lines of code of all files of a folder."""
    return sum(lines_of_code(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))


def public_names(package):
    """Names of ``__all__`` of a package and of its public modules."""
    found = set()
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if any(part.startswith("_") for part in parts if part != "__init__"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                module = ".".join(part for part in parts if part != "__init__")
                found |= {(module, name) for name in ast.literal_eval(node.value)}
    listed = {f"{module}.{name}" for module, name in found if name != "__version__"}
    # load and save stand in two modules; the command is no module that users import.
    return {name for name in listed if ".persistence." not in name and ".cli." not in name}


class Run:
    """Containers of the package that its functions hold while another is called."""

    def __init__(self, call):
        self.folders = defaultdict(set)  # of the functions that hold each
        self._package = str(Path(skellipsoid.__file__).parent) + os.sep
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _note(self, frame, event, _):
        if event == "return" and frame.f_code.co_filename.startswith(self._package):
            folder = Path(frame.f_code.co_filename).relative_to(self._package).parent.as_posix()
            for kind in filter(_is_container, map(type, frame.f_locals.values())):
                self.folders[kind].add(folder.replace("/", "."))

    def row(self):
        """Give what is counted, in a line."""
        passed = sorted(kind.__name__ for kind, folders in self.folders.items() if folders - {_folder_of(kind)})
        return f"{len(self.folders)} containers; {len(passed)} pass from one folder to another: {', '.join(passed)}"


def _folder_of(kind):
    return ".".join(kind.__module__.split(".")[1:-1])


def _is_container(kind):
    is_own = kind.__module__.startswith("skellipsoid") and kind.__module__ != "skellipsoid._core.sklearn"
    return is_own and not issubclass(kind, BaseEstimator | type | enum.Enum)


def runs():
    """Run a fit, a prediction, and what stands after a fit."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.normal(size=(8, 8))
    X, y = centers[np.arange(600) % 6] + rng.normal(size=(600, 8)), np.arange(600) % 6
    log = centers[np.arange(300) % 8] + 1.2 * rng.normal(size=(300, 8))
    labels = [int(k) if k < 6 else -1 for k in np.arange(40) % 8] + [None] * 260
    fitted = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)  # what is made once is made
    yield "fit", lambda: EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    yield "predict", lambda: fitted.predict(X)
    moved = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    yield "set_operating_point", lambda: set_operating_point(moved, log, np.array(labels, dtype=object))
    yield "learn_from_traffic", lambda: learn_from_traffic(fitted, log, labels)


def tests_of(root):
    """Files of tests of a checkout."""
    return [*root.glob("tests/**/*.py"), *root.glob("packages/*/tests/**/*.py"), root / "conftest.py"]


def private_imports(root):
    """Files of tests that import a private module or name of the distributions."""
    pattern = re.compile(r"^\s*(from|import) skellipsoid\S*\._|^\s*from skellipsoid\S* import .*\b_(?!_)", re.MULTILINE)
    return [path for path in tests_of(root) if pattern.search(path.read_text(encoding="utf-8"))]


def private_tests(root):
    """Test functions, and those of them that touch a private name."""
    tests, touching = [], []
    for path in tests_of(root):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        private = _private_imports(tree)
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
                tests.append(node.name)
                if any(_is_touching(inner, private) for inner in ast.walk(node)):
                    touching.append(f"{path.relative_to(root)}::{node.name}")
    return tests, touching


def _private_imports(tree):
    """Names that a file imports from private modules, or that are private."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skellipsoid"):
            names = {f"{node.module}.{alias.name}": alias.asname or alias.name for alias in node.names}
            found |= {short for name, short in names.items() if _is_private(name)}
    return found


def _is_touching(node, private):
    if isinstance(node, ast.Attribute):
        return _is_private(node.attr) and node.attr not in PUBLIC
    return isinstance(node, ast.Name) and node.id in private


def private_patches(root):
    """Count the calls in tests that replace a private name, or one of a private module."""
    found = 0
    for path in tests_of(root):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        private = _private_imports(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("setattr", "setitem", "object"):
                target, *more = node.args[:2]
                text = [ast.unparse(target)] + [each.value for each in more if isinstance(each, ast.Constant)]
                names = ".".join(map(str, text)).strip("'\"")
                found += names.split(".")[0] in private or _is_private(names)
    return found


def _is_private(name):
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def longest_function(package):
    """Lines of code of the longest function, and its name; docstrings are no code."""
    sizes = []
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, FUNCTIONS):
                text = textwrap.dedent("\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]))
                sizes.append((lines_of_code(text + "\n"), f"{path.relative_to(package)}:{node.name}"))
    return max(sizes)


def counts(root):
    """Give what is counted, by what it is of."""
    packages = [path for path in sorted(root.glob("packages/*/skellipsoid_*")) if path.suffix != ".egg-info"]
    for package in (root / "skellipsoid", *packages):
        yield package.name, f"{lines_of(package):,} lines of code, {len(public_names(package))} public names"
    for name in ("tests", "packages/skellipsoid-bench/tests", "packages/skellipsoid-bench/studies"):
        yield name, f"{lines_of(root / name):,} lines of code"
    copies = copies_of((root / "skellipsoid", *packages), root)
    longest = max(copies, default=(0, "", ""))
    where = f", the longest of {longest[0]} at {longest[1]} and {longest[2]}" if copies else ""
    yield "copies", f"{len(copies)} runs of more than {MOST_EQUAL} equal lines{where}"
    for name, call in runs():
        yield name, Run(call).row()
    package = root / "skellipsoid"
    yield "longest function", "{} lines of code, {}".format(*longest_function(package))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py")}
    for other in packages:
        lines |= {path: len(path.read_text(encoding="utf-8").splitlines()) for path in other.rglob("*.py")}
    long = [f"{path.relative_to(root)} ({count})" for path, count in sorted(lines.items()) if count > 400]
    yield "files", f"{len(lines)}, above 400 lines: {', '.join(long) or 'none'}"
    tests, private = private_tests(root)
    inner = sum(name.startswith("tests/") for name in private)
    yield "functions of tests", f"{len(tests)}, of which {len(private)} touch private names, {inner} of them in tests"
    what = f"{len(private_imports(root))} import private names, {private_patches(root)} calls replace one"
    yield "files of tests", what
    yield from words_of_pages(root)


def words_of_pages(root):
    """Words of the pages, of those of the API and of results apart."""
    pages = [*root.glob("docs/*.rst"), *root.glob("docs/guide/*.rst"), root / "README.md"]
    apart = {"docs/api.rst": "API", "docs/guide/benchmark_results.rst": "results"}
    words = {}
    for path in pages:
        kind = apart.get(path.relative_to(root).as_posix(), "")
        found = len(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        # What leads a search to a page is no prose.
        found -= sum(len(re.findall(r"\w+", line)) for line in re.findall(r"\.\. index::.*", path.read_text("utf-8")))
        words[kind] = words.get(kind, 0) + found
    kinds = "".join(f"; {count:,} of {kind}" for kind, count in words.items() if kind)
    yield "documentation", f"{words['']:,} words in {len(pages) - len(words) + 1} pages{kinds}"


def page(columns):
    """Write the counts of several checkouts as a table."""
    found = {}
    for name, folder in columns.items():
        path = os.pathsep.join(map(str, [folder, *sorted(Path(folder).glob("packages/*"))]))
        command = [sys.executable, __file__, folder]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True
        )
        found[name] = dict(re.split(r" {2,}", line, maxsplit=1) for line in done.stdout.splitlines())
    lines = [".. list-table::", "   :header-rows: 1", "", "   * -"]
    lines += [f"     - {name}" for name in found]
    for key in dict.fromkeys(key for column in found.values() for key in column):
        lines += [f"   * - {key}", *(f"     - {column.get(key, '')}".rstrip() for column in found.values())]
    print("\n".join(lines))


def main(given):
    """Print the counts of a checkout, or a page of several."""
    if "--page" in given:
        return page(dict(each.split("=", 1) for each in given if each != "--page"))
    root = Path(given[0] if given else Path(__file__).parents[3]).resolve()
    warnings.simplefilter("ignore")
    for name, text in counts(root):
        print(f"{name:40}  {text}")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
