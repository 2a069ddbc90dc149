"""Places in the source that can be mutated: found, drawn, and rewritten so that a variable turns each one on.

A place is known by its file, function, statement and what is replaced, not by its line, so that it is found again in a
later version. Only bodies of functions are mutated, without texts of errors and warnings, annotations, f-strings and
patterns, and nothing whose change nobody can notice, as far as the source tells (``stacklevel``, ``flush``).
"""

import ast
import copy
import random
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

MODULES = (
    "_ellipsoid",
    "_held_out",
    "_samples",
    "_traffic",
    "persistence",
    "cli",
    "_bot_files",
    "_text_files",
    "skellipsoid-runtime",
)
#: Of these modules each file has mutants of its own.
OF_EACH_FILE = (
    *(
        f"skellipsoid/{name}/"
        for name in ("_ellipsoid", "_held_out", "_samples", "_traffic", "_bot_files", "_text_files")
    ),
    "packages/skellipsoid-runtime/",
)
KINDS = ("operator", "constant", "statement")
#: Calls of these, and their arguments, are left alone.
QUIET_CALLS = {"warn", "cast", "close", "collect", "flush", "filterwarnings", "simplefilter", "shutdown"}
QUIET_KEYWORDS = {"stacklevel", "maxsize", "flush", "buffering", "chunksize", "strict"}
OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],  # codespell:ignore notin
    ast.NotIn: [ast.In],  # codespell:ignore notin
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
#: What a whole place becomes; ``on`` is of the module that ``make`` writes beside the package.
ON = '__import__("_mutants").on({number})'


class Place(NamedTuple):
    """What is replaced by what, and where."""

    file: str
    function: str
    statement: str
    occurrence: int  # of the statement in the function
    kind: str
    before: str
    after: str
    turn: int  # of equal replacements in the statement

    @property
    def module(self):
        """Part of the package."""
        return Path(self.file).parts[1].removesuffix(".py")


class Span(NamedTuple):
    """Bytes of the source, and the line that they begin at."""

    start: int
    end: int
    line: int


def files(root):
    """List the sources that are mutated, as paths from the root."""
    package, runtime = Path(root) / "skellipsoid", Path(root, "packages", "skellipsoid-runtime", "skellipsoid_runtime")
    paths = chain.from_iterable([package / f"{name}.py", *(package / name).rglob("*.py")] for name in MODULES)
    paths = chain(paths, runtime.rglob("*.py"))
    return sorted(path.relative_to(root).as_posix() for path in paths if path.is_file())


def all_places(root):
    """Spans of all places by their names."""
    return {
        place: span for file in files(root) for place, span in places((Path(root) / file).read_bytes(), file).items()
    }


def places(source, file):
    """Spans of the places of one file by their names."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, seen = {}, {}
    for function, statement, is_last in statements(ast.parse(source)):
        text = ast.unparse(statement).partition("\n")[0]
        occurrence = seen[function, text] = seen.get((function, text), -1) + 1
        turns = {}
        for kind, node, after in replacements(statement, is_last):
            before = ast.unparse(node)
            turn = turns[before, after] = turns.get((before, after), -1) + 1
            line, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
            span = Span(line + node.col_offset, last + node.end_col_offset, node.lineno)
            if kind != "statement" or not source[line : span.start].strip():
                found[Place(file, function, text, occurrence, kind, before, after, turn)] = span
    return found


def statements(node, function="", *, is_inside=False):
    """Give the name of the function, the statement, and whether it is the function's last, for all in functions."""
    children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    for child in children:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{function}.{child.name}".lstrip(".")
            yield from statements(child, name, is_inside=is_inside or not isinstance(child, ast.ClassDef))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            if is_inside and isinstance(child, ast.stmt):
                yield function, child, isinstance(node, ast.FunctionDef) and child is node.body[-1]
            yield from statements(child, function, is_inside=is_inside)


def replacements(statement, is_last):
    """Give the kind, the node, and the text that replaces it."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return
    if is_deletable(statement, is_last):
        yield "statement", statement, "pass"
    if isinstance(statement, ast.AugAssign):
        sign = {ast.Add: "-({})", ast.Sub: "-({})", ast.Mult: "1 / ({})", ast.Div: "1 / ({})"}.get(type(statement.op))
        if sign and not is_text(statement.value):
            yield "operator", statement.value, sign.format(ast.unparse(statement.value))
    for node in expressions(statement):
        yield from (("operator", node, ast.unparse(other)) for other in other_operators(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "constant", node, repr(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield "constant", node, repr(node.value + 1)
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield "constant", node, repr(node.value * 2 or 1.0)


def is_deletable(statement, is_last):
    """Whether what follows can run without the statement."""
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return called(call) not in QUIET_CALLS
        case ast.AugAssign() | ast.Raise(exc=ast.expr()) | ast.Continue() | ast.Break():
            return True
        case ast.Return():
            return not is_last
        case ast.Assign(targets=targets, value=value):
            names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            is_stored = isinstance(value, ast.Name)  # as constructors do; without it, nothing works
            parts = ast.Attribute | ast.Subscript
            return not is_stored and all(
                isinstance(target, parts) or (isinstance(target, ast.Name) and target.id in names) for target in targets
            )
    return False


def expressions(node):
    """Expressions of a statement that may be replaced, outer ones first."""
    match node:
        case ast.Raise() | ast.JoinedStr():
            return
        case ast.Call() if called(node) in QUIET_CALLS:
            return
        case ast.AnnAssign():
            children = [node.value] if node.value else []
        case ast.Lambda():
            children = [node.body]
        case _:
            children = ast.iter_child_nodes(node)
    for child in children:
        is_quiet = isinstance(child, ast.keyword) and child.arg in QUIET_KEYWORDS
        if is_quiet or isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue
        if isinstance(child, ast.expr):
            yield child
        yield from expressions(child)


def called(call):
    """Name of what is called, without its object."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def is_text(node):
    """Whether an expression is a text in the source."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def other_operators(node):
    """Copy an expression with another operator."""
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, right=right) if is_text(left) or is_text(right):
            return
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            yield from (with_field(node, "op", other()) for other in OPERATORS.get(type(op), []))
        case ast.Compare(ops=[op]):
            yield from (with_field(node, "ops", [other()]) for other in OPERATORS.get(type(op), []))


def with_field(node, name, value):
    """Copy of a node with another value."""
    other = copy.copy(node)
    setattr(other, name, value)
    return other


def draw(found, number, seed):
    """Draw places, as many of each module and kind as there are, one in a statement at most."""
    waiting = []
    for module in MODULES:
        for kind in KINDS:
            part = sorted(place for place in found if place.module == module and place.kind == kind)
            random.Random(f"{seed} {module} {kind}").shuffle(part)
            waiting.append(part)
    drawn, taken = [], set()
    while len(drawn) < number and any(waiting):
        for part in waiting:
            while part and len(drawn) < number:
                place = part.pop()
                if place[:4] not in taken:
                    taken.add(place[:4])
                    drawn.append(place)
                    break
    return sorted(drawn)


def draw_more(drawn, found, of_file, seed):
    """Add places to those that were drawn: one for each whose code is gone, and so many of each file of the modules.

    All that were drawn stay, with their numbers; no two are in one statement.
    """
    here = dict(find(drawn, found))
    taken, more = {place[:4] for place in here.values()}, []

    def add(part, number, name):
        part = sorted(place for place in part if place[:4] not in taken)
        random.Random(f"{seed} {name}").shuffle(part)
        for _, place in zip(range(number), dict.fromkeys(p[:4] for p in part), strict=False):
            more.append(next(p for p in part if p[:4] == place))
            taken.add(place)

    for number, place in enumerate(drawn):
        if number not in here:
            like = [other for other in found if (other.module, other.kind) == (place.module, place.kind)]
            add(like, 1, f"instead of {number}")
    for file in sorted({place.file for place in found if place.file.startswith(OF_EACH_FILE)}):
        mine = sum(place.file == file for place in [*here.values(), *more])
        add([place for place in found if place.file == file], max(0, of_file - mine), file)
    return sorted(more)


def find(drawn, found):
    """Give the number of each place that the source still has, and the place: in its file, or in the only other one."""
    elsewhere = {}
    for place in found:
        elsewhere.setdefault(place[1:], []).append(place)
    for number, place in enumerate(drawn):
        others = elsewhere.get(place[1:], [])
        if place in found:
            yield number, place
        elif len(others) == 1:
            yield number, others[0]


def rewritten(source, spans):
    """Source in which each numbered place, ``{number: (place, span)}``, is mutated while ``on(number)`` is true."""
    parts = sorted(((span, place, number) for number, (place, span) in spans.items()), reverse=True)
    if any(second.end > first.start for (first, *_), (second, *_) in pairwise(parts)):
        raise ValueError("Two places overlap: draw others.")
    for span, place, number in parts:
        on, now = ON.format(number=number), source[span.start : span.end]
        if place.kind == "statement":
            text = f"if not {on}: ".encode() + now
        else:
            text = f"(({place.after}) if {on} else (".encode() + now + b"))"
        source = source[: span.start] + text + source[span.end :]
    ast.parse(source)
    return source
