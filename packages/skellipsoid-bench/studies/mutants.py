"""Which small faults the test suite finds: mutants of the package, before and after tests are thinned.

A mutant is one operator, constant or statement that is changed or deleted (``mutant_places.py``). All are written into
one copy of the package, in which a variable turns one on. The fast suite runs once there and notes which tests come to
which mutant; then each mutant meets those tests alone, its known killer first, until one fails. Tests that fail in the
copy without a mutant are left out: those that read the sources. A survivor has passed the tests that cover it, or as
many as take ``--limit`` seconds: first those that are fast, that come to few mutants, and of files named alike.

    python studies/mutants.py draw  # once: results/mutants.json
    python studies/mutants.py more  # in a later version: for those that are gone, and of each file of some modules
    python studies/mutants.py make FOLDER
    python studies/mutants.py cover FOLDER --processes 2
    nice python studies/mutants.py run FOLDER  # again: goes on; survivors meet the tests that a higher limit adds
    python studies/mutants.py table FOLDER > results/mutants.rst  # exit status 1: what died before lives now
    python studies/mutants.py table FOLDER --keep > results/mutants.rst  # what is found is what later runs compare with

Of a later version the same mutants are made, by the text of their statements; those whose code is gone are counted.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from mutant_places import MODULES, Place, all_places, draw, draw_more, find, rewritten

STUDIES = Path(__file__).resolve().parent
ROOT = STUDIES.parents[2]
DRAWN = STUDIES.parent / "results" / "mutants.json"
NUMBER, OF_FILE, SEED = 80, 3, 0
#: A test takes at least so many seconds.
LEAST_SECONDS = 0.02
SWITCH = '''"""Which mutant is on, and which test comes to which one."""

import os

active = int(os.environ.get("SKELLIPSOID_MUTANT", "-1"))
_environ, _write, _seen = os.environ, os.write, set()
_hits = os.environ.get("SKELLIPSOID_MUTANT_HITS")
_file = os.open(_hits, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if _hits else None


def on(number):
    if _file is not None:
        hit = f"{number}\\t{_environ.get('SKELLIPSOID_MUTANT_TEST', '')}\\n"
        if hit not in _seen:
            _seen.add(hit)
            _write(_file, hit.encode())
    return number == active
'''


def main():
    """Do one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, step in {
        "draw": draw_all,
        "more": more,
        "make": make,
        "cover": cover,
        "run": run,
        "table": table,
    }.items():
        command = steps.add_parser(name, help=step.__doc__)
        command.set_defaults(step=step)
        if name not in ("draw", "more"):
            command.add_argument("folder", type=lambda path: Path(path).resolve(), help="folder of the copy")
        if name in ("cover", "run"):
            command.add_argument("--processes", type=int, default=1, help="(default: 1)")
            command.add_argument("--marks", default="not slow", help="which tests; '' is all (default: 'not slow')")
        if name == "run":
            command.add_argument("--limit", type=float, default=90, help="seconds of tests for a mutant (default: 90)")
            command.add_argument("--kills", type=int, default=1, help="functions of tests that kill it (default: 1)")
            command.add_argument("--every", type=int, default=1, help="one of so many, evenly drawn (default: 1)")
        if name == "table":
            command.add_argument("--keep", action="store_true", help="write states and killers into mutants.json")
    options = parser.parse_args()
    sys.exit(options.step(options))


def draw_all(options):
    """Draw the mutants of this version."""
    drawn = draw(all_places(ROOT), NUMBER, SEED)
    write_drawn([place._asdict() for place in drawn])


def more(options):
    """Add mutants for those whose code is gone, and three of each file of the modules that matter most."""
    records = read_drawn()
    drawn = [Place(**{name: record[name] for name in Place._fields}) for record in records]
    write_drawn([*records, *(place._asdict() for place in draw_more(drawn, all_places(ROOT), OF_FILE, SEED))])


def read_drawn():
    """Read what was drawn, and what became of it."""
    return json.loads(DRAWN.read_text(encoding="utf-8"))


def write_drawn(records):
    """Write it, one mutant in a line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    DRAWN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def make(options):
    """Copy this version into a folder, with all mutants, none of them on."""
    options.folder.mkdir(parents=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (options.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, options.folder / name)
    found = all_places(ROOT)
    drawn = [Place(**{name: record[name] for name in Place._fields}) for record in read_drawn()]
    of_file, lines = {}, {}
    for number, place in find(drawn, found):
        of_file.setdefault(place.file, {})[number] = place, found[place]
        lines[number] = f"{place.file}:{found[place].line}"
    for file, spans in of_file.items():
        path = options.folder / file
        path.write_bytes(rewritten(path.read_bytes(), spans))
    (options.folder / "_mutants.py").write_text(SWITCH, encoding="utf-8")
    shutil.copy2(STUDIES / "mutant_tests.py", options.folder)
    (options.folder / "mutants.json").write_text(json.dumps(lines), encoding="utf-8")
    print(f"{len(lines)} of {len(drawn)} mutants are in {options.folder}")


def run_pytest(options, processes, log, *arguments, **variables):
    """Run pytest in the copy."""
    paths = [options.folder, *(options.folder / "packages" / f"skellipsoid-{name}" for name in ("bench", "runtime"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"} | variables
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutant_tests", "-p", "no:cacheprovider", *arguments]
    command += ["-n", str(processes), "-m", options.marks]
    with open(options.folder / log, "ab") as file:
        return subprocess.run(command, cwd=options.folder, env=environment, stdout=file, stderr=file, check=False)


def cover(options):
    """Run the suite once, and note which tests come to which mutant."""
    for name in ("hits.tsv", "tests.jsonl"):
        (options.folder / name).unlink(missing_ok=True)
    variables = {"SKELLIPSOID_MUTANT_COVER": options.folder, "SKELLIPSOID_MUTANT_HITS": options.folder / "hits.tsv"}
    variables = {name: str(path) for name, path in variables.items()}
    run_pytest(options, options.processes, "cover.log", "--dist", "worksteal", **variables)
    tests = read_lines(options.folder / "tests.jsonl")
    print(f"{len(tests)} tests; these fail without a mutant and are left out:")
    print(*(f"  {record['test']}" for record in tests if record["failed"]), sep="\n")


def read_lines(path):
    """Give the records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def covering(folder):
    """Seconds of each test that passes, with those of what it shares, and the tests of each mutant."""
    records = [record for record in read_lines(folder / "tests.jsonl") if not record["failed"]]
    users = {}
    for record in records:
        for who in (record["test"], *record["fixtures"]):
            users.setdefault(who, {})[record["test"]] = record["seconds"]
    # Its first test pays for a fixture, or the last one of a file, where its process ends; in a fork each test does.
    own = {}
    for who, found in users.items():
        spent = [*found.values()]
        own[who] = max(0.0, spent[0] - median(spent), spent[-1] - median(spent) if ".py::" in who else 0.0)
    seconds = {
        record["test"]: LEAST_SECONDS + record["seconds"] + max(map(own.get, record["fixtures"]), default=0.0)
        for record in records
    }
    tests = {}
    for line in (folder / "hits.tsv").read_text(encoding="utf-8").splitlines():
        number, _, who = line.partition("\t")
        tests.setdefault(int(number), set()).update(users.get(who, ()))
    return seconds, tests


def in_order(tests, seconds, mutant, limit, breadth):
    """Order tests for so many seconds: the known killer, then fast ones of few mutants and of files named alike."""
    names = [part.removesuffix(".py").strip("_") for part in Path(mutant["file"]).parts[1:]]

    def cost(test):
        alike = 1 + sum(name in test.partition("::")[0] for name in names)
        return seconds[test] * breadth[test] ** 0.5 / alike, test

    chosen, spent = [], 0.0
    for test in sorted(tests, key=lambda test: (test != mutant.get("killer"), *cost(test))):
        if spent + seconds[test] <= limit:
            spent += seconds[test]
            chosen.append(test)
    if tests and not chosen:
        chosen.append(min(tests, key=cost))
    # Those of a file beside each other, since they share its fixtures.
    files = {test.partition("::")[0]: None for test in chosen}
    return [test for file in files for test in chosen if test.partition("::")[0] == file]


def run(options):
    """Turn one mutant after the other on."""
    seconds, tests = covering(options.folder)
    breadth = Counter(test for own in tests.values() for test in own)
    results = options.folder / "results.jsonl"
    known = {record["number"]: record for record in read_lines(results)}
    drawn = read_drawn()
    mutants = []
    for number in sorted(map(int, json.loads((options.folder / "mutants.json").read_text(encoding="utf-8"))))[
        :: options.every
    ]:
        own = tests.get(number, set())
        chosen = in_order(own, seconds, drawn[number], options.limit, breadth)
        before = known.get(number, {"state": "not yet run"})
        if before["state"] != "killed" and before.get("tests") != len(chosen):
            mutants.append({"number": number, "tests": chosen, "covering": len(own)})
    plan = {"mutants": mutants, "seconds": seconds, "folder": str(options.folder), "results": str(results)}
    path = options.folder / "plan.json"
    plan |= {"processes": options.processes, "kills": options.kills}
    path.write_text(json.dumps(plan), encoding="utf-8")
    return run_pytest(options, 0, "run.log", "--hypothesis-seed", "0", SKELLIPSOID_MUTANT_RUN=str(path)).returncode


def table(options):
    """Print what was killed and what lives; the exit status is 1 if what died before lives now."""
    drawn = read_drawn()
    lines = json.loads((options.folder / "mutants.json").read_text(encoding="utf-8"))
    results = {record["number"]: record for record in read_lines(options.folder / "results.jsonl")}
    rows = []
    for number, before in enumerate(drawn):
        now = results.get(number, {"state": "not yet run" if str(number) in lines else "gone"})
        rows.append(before | now | {"was": before.get("state"), "place": lines.get(str(number), before["file"])})
    revived = [row for row in rows if row["was"] == "killed" and row["state"] in ("alive", "uncovered")]
    tests = read_lines(options.folder / "tests.jsonl")
    seconds = sum(record["seconds"] for record in tests)
    print(f"{len(drawn)} mutants, drawn with seed {SEED}, meet the tests that cover them (``studies/mutants.py``). All")
    print(f"{len(tests):,} tests take {seconds:,.0f} seconds of a processor.\n")
    print_numbers(rows)
    for state in ("alive", "uncovered", "not yet run"):  # who killed the others, results/mutants.json says
        print_list(state, [row for row in rows if row["state"] == state])
    print_list("killed before, and not now", revived)
    if options.keep:
        write_drawn([before | kept(row) for before, row in zip(drawn, rows, strict=True)])
    return int(bool(revived))


def kept(row):
    """Give what later runs compare with; of a mutant that was not run, nothing."""
    return {name: row.get(name) for name in ("state", "killer") if row["state"] not in ("gone", "not yet run")}


def print_numbers(rows):
    """Print how many of each part of the package are in each state."""
    states = ("killed", "alive", "uncovered", "gone", "not yet run")
    counts = Counter((Path(row["file"]).parts[1].removesuffix(".py"), row["state"]) for row in rows)
    body = [(module, *(counts[module, state] for state in states)) for module in MODULES]
    body.append(("all", *(sum(counts[module, state] for module in MODULES) for state in states)))
    cells = [tuple(map(str, line)) for line in [("part", *states), *body]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    print(rule, text[0], rule, *text[1:], rule, sep="\n")


def print_list(state, rows):
    """Print a list of mutants."""
    if not rows:
        return
    print(f"\n{state.capitalize()}\n{'-' * len(state)}\n")
    for row in rows:
        change = f"deleted: {row['statement']}" if row["kind"] == "statement" else f"{row['before']} → {row['after']}"
        print(f"- ``{row['place']}``, ``{row['function']}``: ``{change}``")
        if row["state"] == "alive":
            print(f"  ({row['tests']} of the {row['covering']} tests that cover it)")


if __name__ == "__main__":
    main()
