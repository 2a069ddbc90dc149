"""How large the distributions are: lines of code, public names, words of the documentation, functions of a fit.

    python studies/size.py          # of this checkout
    python studies/size.py FOLDER   # of another one, beside whose package nothing else is found: PYTHONPATH=FOLDER

A line of code is neither blank nor a comment nor part of a docstring. Public names are those of ``__all__`` of
the package and of its public modules, without ``__version__``. A fit is that of 131 samples of 7 classes in 5 features
by default; it is run with the package that Python finds.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from pathlib import Path

import numpy as np

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier

#: Tokens that are no code.
EMPTY = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(source):
    """Count the lines of a file that hold code."""
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            held |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                held -= {*range(first.lineno, first.end_lineno + 1)}
    return len(held)


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


def functions_of_a_fit():
    """Functions of the package that a small fit runs, with their files."""
    rng = np.random.default_rng(0)
    y = np.arange(131) % 7
    X = 2 * rng.normal(size=(7, 5))[y] + rng.normal(size=(131, 5))
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    package, found = str(Path(skellipsoid.__file__).parent), set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and not code.co_name.startswith("<"):
            found.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    classifier.fit(X, y)
    sys.setprofile(None)
    return found


def private_imports(root):
    """Files of tests that import a private module or name of the distributions."""
    files = [*root.glob("tests/**/*.py"), *root.glob("packages/*/tests/**/*.py"), root / "conftest.py"]
    pattern = re.compile(r"^\s*(from|import) skellipsoid\S*\._|^\s*from skellipsoid\S* import .*\b_(?!_)", re.MULTILINE)
    return [path for path in files if pattern.search(path.read_text(encoding="utf-8"))]


def private_patches(root):
    """Count the calls in tests that replace a private name, or one of a private module."""
    found = 0
    for path in [*root.glob("tests/**/*.py"), *root.glob("packages/*/tests/**/*.py"), root / "conftest.py"]:
        tree, private = ast.parse(path.read_text(encoding="utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skellipsoid"):
                names = {f"{node.module}.{alias.name}": alias.asname or alias.name for alias in node.names}
                private |= {short for name, short in names.items() if _is_private(name)}
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
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                text = textwrap.dedent("\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]))
                sizes.append((lines_of_code(text + "\n"), f"{path.relative_to(package)}:{node.name}"))
    return max(sizes)


def main(root):
    """Print a line for each distribution, and the words of the documentation."""
    for package in (root / "skellipsoid", *sorted(root.glob("packages/*/skellipsoid_*"))):
        if package.suffix != ".egg-info":
            count = sum(lines_of_code(path.read_text(encoding="utf-8")) for path in package.rglob("*.py"))
            print(f"{package.name:20} {count:6,} lines of code, {len(public_names(package)):3} public names")
    pages = [*root.glob("docs/*.rst"), *root.glob("docs/guide/*.rst"), root / "README.md"]
    package = root / "skellipsoid"
    functions = functions_of_a_fit()
    print(f"a fit runs {len(functions)} functions in {len({file for file, _ in functions})} files")
    print("longest function: {} lines of code, {}".format(*longest_function(package)))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py")}
    long = sorted(path.name for path, count in lines.items() if count > 400)
    print(f"{len(lines)} files, of which {len(long)} have more than 400 lines: {', '.join(long)}")
    print(
        f"{len(private_imports(root))} files of tests import private names, {private_patches(root)} calls replace one"
    )
    words = sum(len(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in pages)
    print(f"{'documentation':20} {words:6,} words in {len(pages)} pages")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3]).resolve())
