"""Where the seconds of a test suite go: by folder beside its budget, by fixture and by test.

From the folder of the repository, with the arguments of pytest:

    python packages/skellipsoid-bench/studies/suite_times.py -n auto --dist worksteal
    python packages/skellipsoid-bench/studies/suite_times.py -n auto --dist worksteal -m slow
    python packages/skellipsoid-bench/studies/suite_times.py tests/core

``--page packages/skellipsoid-bench/results/suite_times.rst`` writes the tables between the two comments of that file,
too. Seconds are those of a clock, summed over the workers. A fixture's seconds count for the test that asked for it
first.
"""

import collections
import os
import sys
import time
from pathlib import Path

import pytest

#: Seconds that the tests of a folder may take, summed over the workers: 600 in all, so that two take 300.
BUDGETS = {
    "tests": 97,
    "tests/cli": 95,
    "tests/traffic": 70,
    "tests/ellipsoid": 55,
    "tests/persistence": 50,
    "tests/serving": 50,
    "tests/runtime": 35,
    "tests/encoders": 35,
    "packages/skellipsoid-bench/tests": 30,
    "tests/core": 28,
    "tests/dask": 12,
    "tests/plotting": 10,
    "tests/data_check": 8,
    "tests/metrics": 8,
    "tests/samples": 6,
    "tests/held_out": 3,
    "tests/baselines": 3,
    "tests/torch": 2,
    "tests/model_selection": 1,
    "tests/bot_files": 1,
    "tests/datasets": 1,
}
#: Rows of the tables of fixtures and of tests.
MOST = 10
#: Seconds of what has a row.
LEAST = 0.05
#: Between these comments of a page stand the tables.
BEGIN, END = ".. suite_times.py writes what follows\n", ".. end of what suite_times.py writes\n"


class Clock:
    """A plugin of pytest: with pytest-xdist one in each worker, which sends what it finds, and one that adds it up."""

    def __init__(self):
        self.pending = []
        self.seconds = {kind: collections.Counter() for kind in ("folder", "fixture", "test")}
        self.numbers = {kind: collections.Counter() for kind in self.seconds}
        self.begun = time.perf_counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Measure a fixture, without those that it asks for in its parameters."""
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            where = f" ({fixturedef.baseid})" if fixturedef.baseid else ""
            self.pending.append((f"{fixturedef.argname}{where}", time.perf_counter() - start))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        """Send the fixtures with the report of a test."""
        report = yield
        report.user_properties = [*report.user_properties, ("fixtures", self.pending)]
        self.pending = []
        return report

    def pytest_runtest_logreport(self, report):
        """Add a report up: where there are workers, in the process that began them."""
        if "PYTEST_XDIST_WORKER" in os.environ:
            return
        path, _, name = report.nodeid.partition("::")
        tests = {"folder": folder_of(path), "test": f"{Path(path).name}::{name.partition('[')[0]}"}
        for kind, key in tests.items():
            self.add(kind, key, report.duration, number=report.when == "call")
        for found, value in report.user_properties:
            for key, seconds in value if found == "fixtures" else ():
                self.add("fixture", key, seconds)

    def add(self, kind, key, seconds, *, number=True):
        """Add seconds to one row of a table."""
        self.seconds[kind][key] += seconds
        self.numbers[kind][key] += number

    def tables(self, arguments):
        """Give the three tables as reStructuredText."""
        seconds, numbers = self.seconds["folder"], self.numbers["folder"]
        lines = [
            f"``pytest {' '.join(arguments)}`` on {os.cpu_count()} cores: {time.perf_counter() - self.begun:.0f} s for "
            f"{numbers.total():,} tests, which took {seconds.total():.0f} s in all workers.",
            "",
        ]
        heads = {"folder": "Folder", "fixture": f"Fixture (the {MOST} largest)", "test": f"Test (the {MOST} largest)"}
        for kind, head in heads.items():
            found = self.seconds[kind].most_common(None if kind == "folder" else MOST)
            rows = [
                (f"``{key}``", f"{self.numbers[kind][key]:,}", f"{value:.1f}", str(BUDGETS.get(key, "")))
                for key, value in found
                if value >= LEAST
            ]
            columns = (head, "Times" if kind == "fixture" else "Tests", "Seconds", "Budget")
            shown = 4 if kind == "folder" else 3
            lines += [*table(columns[:shown], [row[:shown] for row in rows]), ""]
        return "\n".join(lines)


def folder_of(path):
    """Give the folder of a file, of those of the package and of the tests the second one: ``tests/core``."""
    parts = Path(path).parent.parts
    return "/".join(parts[: 3 if parts[:1] == ("packages",) else 2])


def table(head, rows):
    """Give the lines of a table of reStructuredText."""
    cells = [[f"{'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row)] for row in (head, *rows)]
    return [".. list-table::", "   :header-rows: 1", "", *(f"   {cell}" for row in cells for cell in row)]


def pytest_addoption(parser):
    """Add the option that names a page."""
    parser.addoption("--page", type=Path, help="write the tables of suite_times.py into this page")


def pytest_configure(config):
    """Begin to measure."""
    config.pluginmanager.register(Clock(), "clock")


def pytest_terminal_summary(terminalreporter, config):
    """Print the tables, and write them."""
    own = Path(__file__).stem
    arguments = [each for each in config.invocation_params.args if each not in {"-p", own}]
    page = config.getoption("page")
    if page is not None:
        arguments = arguments[: arguments.index("--page")] + arguments[arguments.index("--page") + 2 :]
    tables = config.pluginmanager.get_plugin("clock").tables(arguments)
    terminalreporter.write_line(f"\n{tables}")
    if page is not None:
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{tables}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    # A worker finds this module, too: pytest-xdist gives it the path of this process.
    sys.exit(pytest.main(["-p", Path(__file__).stem, *sys.argv[1:]]))
