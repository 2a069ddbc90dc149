"""Promise: a drawn mutant changes the answer while it is on, and nothing while it is off; it is found again later."""

import ast
import json
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "packages" / "skellipsoid-bench" / "studies"
#: Each function has one place, and is asked for one answer.
SOURCE = '''"""Nothing here: 1 + 1."""
LIMIT = 3


def add(x: "int | None" = 2):
    """Not 1 here."""
    return x + len("aé")


def half(x):
    x *= 0.5 * 2 - 0.5  # é
    return (
        x
    )


def both(x, y):
    if not (x
            and y):
        raise ValueError(f"{1 + 1}" * 2)
    return True


def collect(found):
    found.append("one")
    return found
'''
CALLS = [("add", (5,)), ("half", (6.0,)), ("both", (1, 0)), ("both", (1, 1)), ("collect", ([],))]


@pytest.fixture
def mutant_places(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    import mutant_places

    return mutant_places


@pytest.fixture
def switch(monkeypatch):
    """The module that turns mutants on."""
    module = types.ModuleType("_mutants")
    module.active = -1
    module.on = lambda number: number == module.active
    monkeypatch.setitem(sys.modules, "_mutants", module)
    return module


def answers(code):
    """What the functions of a source give, or the errors that they raise."""
    names = {}
    exec(code, names)
    found = []
    for name, arguments in CALLS:
        try:
            found.append(names[name](*(list(value) if isinstance(value, list) else value for value in arguments)))
        except ValueError as error:
            found.append(repr(error))
    return found


def test_each_mutant_changes_an_answer_and_nothing_while_it_is_off(mutant_places, switch):
    source = SOURCE.encode()
    found = mutant_places.places(source, "skellipsoid/cli/sums.py")
    assert {place.kind for place in found} == set(mutant_places.KINDS)
    original = answers(SOURCE)
    for number, (place, span) in enumerate(found.items()):
        code = mutant_places.rewritten(source, {number: (place, span)})
        switch.active = -1
        assert answers(code) == original
        switch.active = number
        assert answers(code) != original, place
        assert code.count(b"\n") == source.count(b"\n")  # lines stay where they are


def test_texts_annotations_and_defaults_are_left_alone(mutant_places):
    found = mutant_places.places(SOURCE.encode(), "skellipsoid/cli/sums.py")
    assert {place.function for place in found} == {"add", "half", "both", "collect"}
    assert [place.before for place in found if place.function == "add"] == ["x + len('aé')"]
    assert all("f'" not in place.before or place.kind == "statement" for place in found)


def test_a_mutant_is_found_where_its_statement_has_moved(mutant_places):
    before = mutant_places.places(SOURCE.encode(), "skellipsoid/cli/sums.py")
    later = SOURCE.replace("LIMIT = 3", "LIMIT = 3\nMORE = 4").replace("x + len", "len").encode()
    after = mutant_places.places(later, "skellipsoid/cli/other.py")
    drawn = mutant_places.draw(before, 4, 0)
    again = dict(mutant_places.find(drawn, after))
    assert drawn == mutant_places.draw(dict(reversed(before.items())), 4, 0)
    assert [number for number, place in enumerate(drawn) if place.function != "add"] == list(again)
    assert all(before[drawn[number]].line + 1 == after[place].line for number, place in again.items())


class Off(ast.NodeTransformer):
    """Take out what is on only under a mutant."""

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return node.orelse if "_mutants" in ast.unparse(node.test) else node

    def visit_If(self, node):
        self.generic_visit(node)
        return node.body if "_mutants" in ast.unparse(node.test) else node


def test_the_committed_mutants_leave_the_package_as_it_is_while_they_are_off(mutant_places):
    records = json.loads((STUDIES.parent / "results" / "mutants.json").read_text(encoding="utf-8"))
    drawn = [mutant_places.Place(**{name: record[name] for name in mutant_places.Place._fields}) for record in records]
    assert len(set(drawn)) == 80
    n_changed = 0
    for file in sorted({place.file for place in drawn if (ROOT / place.file).exists()})[::4]:
        source = (ROOT / file).read_bytes()
        found = mutant_places.places(source, file)
        spans = {number: (place, found[place]) for number, place in enumerate(drawn) if place in found}
        code = mutant_places.rewritten(source, spans)
        assert ast.dump(Off().visit(ast.parse(code))) == ast.dump(ast.parse(source))
        n_changed += code.count(b'"_mutants"') == len(spans) > 0
    assert n_changed > 5
