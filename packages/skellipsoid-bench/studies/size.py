"""How large the distributions are: lines of code, public names, words of the documentation.

    python studies/size.py          # of this checkout
    python studies/size.py FOLDER   # of another one

A line of code is neither blank nor a comment nor part of a docstring. Public names are those of ``__all__`` of
the package and of its public modules, without ``__version__``.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

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


def main(root):
    """Print a line for each distribution, and the words of the documentation."""
    for package in (root / "skellipsoid", *sorted(root.glob("packages/*/skellipsoid_*"))):
        if package.suffix != ".egg-info":
            count = sum(lines_of_code(path.read_text(encoding="utf-8")) for path in package.rglob("*.py"))
            print(f"{package.name:20} {count:6,} lines of code, {len(public_names(package)):3} public names")
    pages = [*root.glob("docs/*.rst"), *root.glob("docs/guide/*.rst"), root / "README.md"]
    words = sum(len(re.findall(r"\w+", path.read_text(encoding="utf-8"))) for path in pages)
    print(f"{'documentation':20} {words:6,} words in {len(pages)} pages")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3]).resolve())
