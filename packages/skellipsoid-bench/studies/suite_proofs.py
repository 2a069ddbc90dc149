"""What each test proves: the branches that it comes to, the mutants that it kills, and the seconds that it takes.

It works on the copy with mutants that ``mutants.py make FOLDER`` writes, and goes on where it was stopped:

    python studies/suite_proofs.py measure FOLDER --seconds 540  # again until it says that all are measured
    python studies/mutants.py run FOLDER --kills 2
    python studies/suite_proofs.py table FOLDER > results/suite_proofs.tsv  # a line for each function of tests
    python studies/suite_proofs.py choose FOLDER  # the functions that the cheapest set does without

A function of tests stands for its cases, of which at most ``--cases`` are measured, evenly drawn; its seconds are those
of all. What a fixture of a module or session comes to, all tests that use it come to. What runs in other processes is
not seen: such a function may prove more than its line says, so that a person decides. The set is greedy: the function
with the most new branches and mutants a second is taken next, a mutant counting as several branches.
"""

import argparse
import json
import os
import re
import shutil
import sqlite3
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import coverage
import mutant_tests
import mutants
import pytest

#: The copy, and the moment to stop at: of a run that measures.
FOLDER, UNTIL = os.environ.get("SKELLIPSOID_PROOFS"), float(os.environ.get("SKELLIPSOID_PROOFS_UNTIL", "inf"))
CASES = int(os.environ.get("SKELLIPSOID_PROOFS_CASES", "20"))
#: A mutant that a set kills weighs as much as so many branches.
BRANCHES_OF_MUTANT = 5
PACKAGES = ("skellipsoid", "skellipsoid_runtime", "skellipsoid_bench")


class Contexts:
    """A plugin of pytest: each test, and each fixture that several share, is a context of coverage."""

    def __init__(self, folder):
        self.folder = folder
        data = folder / "branches" / f"{time.time_ns()}.db"
        data.parent.mkdir(exist_ok=True)
        self.coverage = coverage.Coverage(data_file=str(data), branch=True, source_pkgs=[*PACKAGES], config_file=False)
        self.coverage.start()
        self.context = ""

    def switch(self, context):
        before, self.context = self.context, context
        self.coverage.switch_context(context)
        return before

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        """Leave out what is measured, and cases beyond so many of a function."""
        done = {record["test"] for record in mutants.read_lines(self.folder / "tests.jsonl")}
        of_function = defaultdict(list)
        for item in items:
            of_function[mutant_tests.function_of(item.nodeid)].append(item)
        known = self.folder / "cases.json"
        numbers = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
        numbers |= {name: len(cases) for name, cases in of_function.items()}
        known.write_text(json.dumps(numbers), encoding="utf-8")
        chosen = set()
        for cases in of_function.values():
            chosen |= {cases[i * len(cases) // min(len(cases), CASES)].nodeid for i in range(min(len(cases), CASES))}
        kept = [item for item in items if item.nodeid in chosen and item.nodeid not in done]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Note what a test comes to."""
        if time.time() > UNTIL:
            item.session.shouldstop = "the time is over"
        self.switch(item.nodeid)
        try:
            return (yield)
        finally:
            self.switch("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Note what a fixture comes to that several tests share."""
        before = None
        if fixturedef.scope != "function":
            before = self.switch(mutant_tests.named(fixturedef))
        try:
            return (yield)
        finally:
            if before is not None:
                self.switch(before)

    def pytest_sessionfinish(self):
        """Write what is not yet written."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of distributions that these tests did not import
            self.coverage.stop()
            self.coverage.save()


def pytest_configure(config):
    """Begin to measure."""
    if FOLDER:
        config.pluginmanager.register(Contexts(Path(FOLDER)), "contexts")


def measure(options):
    """Run the suite of the copy for so many seconds, where it was stopped before."""
    for name in (Path(__file__).name, "mutants.py", "mutant_places.py", "mutant_tests.py"):
        shutil.copy2(mutants.STUDIES / name, options.folder)
    variables = {
        "SKELLIPSOID_MUTANT_COVER": options.folder,
        "SKELLIPSOID_MUTANT_HITS": options.folder / "hits.tsv",
        "SKELLIPSOID_PROOFS": options.folder,
        "SKELLIPSOID_PROOFS_UNTIL": time.time() + options.seconds,
        "SKELLIPSOID_PROOFS_CASES": options.cases,
    }
    variables = {name: str(value) for name, value in variables.items()}
    code = mutants.run_pytest(options, 0, "cover.log", "-p", "suite_proofs", *options.paths, **variables).returncode
    done = len(mutants.read_lines(options.folder / "tests.jsonl"))
    is_all = code == pytest.ExitCode.NO_TESTS_COLLECTED
    print(f"{done} cases are measured{': all' if is_all else ''}")
    return 0 if is_all else 3


def proofs(folder):
    """Seconds and cases of each function of tests, and what it comes to and kills: sets of whole numbers and names."""
    records = [record for record in mutants.read_lines(folder / "tests.jsonl") if not record["failed"]]
    cases, measured = json.loads((folder / "cases.json").read_text(encoding="utf-8")), Counter()
    seconds, users = Counter(), defaultdict(set)
    for record in records:
        name = mutant_tests.function_of(record["test"])
        measured[name] += 1
        seconds[name] += record["seconds"]
        for who in (record["test"], *record["fixtures"]):
            users[who].add(name)
    seconds = {name: value * cases.get(name, measured[name]) / measured[name] for name, value in seconds.items()}
    branches, numbers = {name: set() for name in seconds}, {}
    for who, branch in read_branches(folder):
        number = numbers.setdefault(branch, len(numbers))
        for name in users.get(who, ()):
            branches[name].add(number)
    kills = defaultdict(set)
    for record in mutants.read_lines(folder / "results.jsonl"):
        for test in record.get("killers") or filter(None, [record["killer"]]):
            kills[mutant_tests.function_of(test)].add(record["number"])
    return seconds, cases, branches, kills


def read_branches(folder):
    """Give the context, and the branch, as file and lines, of what all runs have noted: where code can go two ways."""
    noted, ways = [], defaultdict(set)
    for path in sorted(folder.glob("branches/*.db")):
        with sqlite3.connect(path) as data:
            paths = data.execute("select id, path from file")
            files = {number: str(Path(name).relative_to(folder)) for number, name in paths}
            contexts = dict(data.execute("select id, context from context"))
            for file, context, start, end in data.execute("select file_id, context_id, fromno, tono from arc"):
                noted.append((contexts.get(context, ""), files[file], start, end))
                ways[files[file], start].add(end)
    for who, file, start, end in noted:
        # Functions that have no branch count as one.
        if start < 0 or len(ways[file, start]) > 1:
            yield who, (file, start, 0 if start < 0 else end)


def greedy(seconds, gains, start=()):
    """Take functions of tests until no other adds anything: those that have to stay, then the most a second."""
    covered, taken = set().union(*(gains[name] for name in start)), list(start)
    waiting = {name: found - covered for name, found in gains.items() if name not in set(start)}
    while waiting:
        best = max(waiting, key=lambda name: (len(waiting[name]) / max(seconds[name], mutants.LEAST_SECONDS), name))
        new = waiting.pop(best)
        if not new:
            break
        taken.append(best)
        covered |= new
        waiting = {name: found - new for name, found in waiting.items()}
        waiting = {name: found for name, found in waiting.items() if found}
    return taken


def weighted(branches, kills):
    """One set for each function: its branches, and each of its mutants as several."""
    return {
        name: {*found, *((number, i) for number in kills.get(name, ()) for i in range(BRANCHES_OF_MUTANT))}
        for name, found in branches.items()
    }


def choose(options):
    """Print the functions that prove nothing beside the cheapest set, of which those of a pattern are."""
    seconds, cases, branches, kills = proofs(options.folder)
    keep = [name for name in branches if options.keep and re.search(options.keep, name)]
    taken = set(greedy(seconds, weighted(branches, kills), keep))
    left = sorted(set(branches) - taken)
    print(f"# {len(taken)} functions stay: {sum(seconds[name] for name in taken):.0f} s; these {len(left)} go:")
    for name in left:
        print(f"{name}\t{seconds[name]:.2f}\t{cases.get(name, 1)}\t{len(branches[name])}")


def table(options):
    """Print a line for each function of tests."""
    seconds, cases, branches, kills = proofs(options.folder)
    of_branch = Counter(branch for found in branches.values() for branch in found)
    killed = set().union(*kills.values()) if kills else set()
    print(f"# {len(branches)} functions, {len(of_branch)} branches, {len(killed)} mutants killed")
    print("test\tcases\tseconds\tbranches\tof it alone\tkills")
    for name in sorted(branches):
        alone = sum(of_branch[branch] == 1 for branch in branches[name])
        numbers = " ".join(map(str, sorted(kills.get(name, ()))))
        print(f"{name}\t{cases.get(name, 1)}\t{seconds[name]:.2f}\t{len(branches[name])}\t{alone}\t{numbers}")


def main():
    """Do one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for step in (measure, choose, table):
        command = steps.add_parser(step.__name__, help=step.__doc__)
        command.set_defaults(step=step)
        command.add_argument("folder", type=lambda path: Path(path).resolve(), help="folder of the copy")
        if step is measure:
            command.add_argument("--seconds", type=float, default=540, help="(default: 540)")
            command.add_argument("--cases", type=int, default=20, help="cases of a function (default: 20)")
            command.add_argument("--marks", default="not slow", help="which tests; '' is all (default: 'not slow')")
            command.add_argument("paths", nargs="*", help="files and folders of tests (default: all)")
        if step is choose:
            command.add_argument("--keep", help="a regular expression of names that stay")
    options = parser.parse_args()
    sys.exit(options.step(options))


if __name__ == "__main__":
    main()
