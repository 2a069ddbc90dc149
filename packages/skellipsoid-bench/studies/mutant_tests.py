"""Plugin of pytest: which tests come to which place, and which of them fail under a mutant.

``SKELLIPSOID_MUTANT_COVER`` names a folder for what tests come to; ``SKELLIPSOID_MUTANT_RUN`` a plan of ``mutants.py``.
The plan runs in forks of one process that has collected the suite. What a fixture of a module or session comes to, all
tests that use it come to. A test that is seen to fail runs twice more alone, with the mutant and without: only where it
fails with it and passes without it, it has killed the mutant.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import threading
import time
from pathlib import Path

import hypothesis
import pytest

COVER, RUN = os.environ.get("SKELLIPSOID_MUTANT_COVER"), os.environ.get("SKELLIPSOID_MUTANT_RUN")
#: Of this process, and of those that it starts: the test, or the fixture, that is responsible.
WHO = "SKELLIPSOID_MUTANT_TEST"
#: A test that takes this much longer than its usual processor time hangs.
PATIENCE_SECONDS, PATIENCE = 40, 10
_failed: list[str] = []
_fixtures: dict[str, list[str]] = {}


def pytest_configure():
    """Search no smaller example of a property that fails: the mutant is dead."""
    if RUN:
        phases = hypothesis.Phase.explicit, hypothesis.Phase.generate
        hypothesis.settings.register_profile("mutants", phases=phases, database=None)
        hypothesis.settings.load_profile("mutants")


def function_of(test):
    """Name of the function of a test, without its case."""
    return test.partition("[")[0]


def named(fixture):
    """Name of a fixture that several tests share."""
    return f"fixture {fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    os.environ[WHO] = item.nodeid
    start = processor_seconds()
    try:
        return (yield)
    finally:
        os.environ.pop(WHO, None)
        if COVER:
            record = {
                "test": item.nodeid,
                "seconds": round(processor_seconds() - start, 2),
                "failed": item.nodeid in _failed,
                "fixtures": _fixtures.pop(item.nodeid, []),
            }
            append(Path(COVER) / "tests.jsonl", record)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    before = os.environ.get(WHO)
    if fixturedef.scope != "function":
        os.environ[WHO] = named(fixturedef)
    try:
        return (yield)
    finally:
        if before is not None:
            os.environ[WHO] = before


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    # Those that were asked for in the test's body, too; afterwards pytest forgets them.
    request = getattr(item, "_request", None)
    used = request._fixture_defs.values() if request else []
    _fixtures[item.nodeid] = sorted(named(fixture) for fixture in used if fixture.scope != "function")


def pytest_runtest_logreport(report):
    if report.failed:
        _failed.append(report.nodeid)


def processor_seconds():
    """Seconds of this process and of those that it started and that ended: the same on a busy machine."""
    return sum(os.times()[:4])


def append(path, record):
    """Write a line in one piece, as several processes write."""
    with open(path, "ab", buffering=0) as file:
        file.write(f"{json.dumps(record)}\n".encode())


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if not RUN or session.testsfailed:
        return None
    plan = json.loads(Path(RUN).read_text(encoding="utf-8"))
    items = {item.nodeid: item for item in session.items}
    print(f"{len(items)} tests, {len(plan['mutants'])} mutants, {threading.active_count()} threads", flush=True)
    shards = [plan["mutants"][part :: plan["processes"]] for part in range(plan["processes"])]
    children = [fork(lambda shard=shard: judge(shard, items, plan)) for shard in shards[1:]]
    judge(shards[0], items, plan)
    for child in children:
        os.waitpid(child, 0)
    return True


def fork(work):
    """Do the work in a child, with its own group of processes; give its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        work()
        code = 0
    finally:
        os._exit(code)


def judge(mutants, items, plan):
    """Append what becomes of each mutant to the results."""
    usual = {}
    for mutant in mutants:
        tests = [test for test in mutant["tests"] if test in items]
        start, killers, how, unsure = time.monotonic(), [], None, []
        waiting = tests
        while waiting and len(killers) < plan["kills"]:
            test, seen = first_failure(waiting, mutant["number"], items, plan)
            if test is None:
                break
            waiting = waiting[waiting.index(test) + 1 :]
            if killers and function_of(test) == function_of(killers[0]):
                continue
            if test not in usual:
                usual[test] = first_failure([test], -1, items, plan)[1]
            again = seen if seen == "hangs" else first_failure([test], mutant["number"], items, plan)[1]
            if again and not usual[test]:
                killers.append(test)
                how = how or again
            else:
                unsure.append(test)
        state = "killed" if killers else "alive" if tests else "uncovered"
        record = {"number": mutant["number"], "state": state, "killer": killers[0] if killers else None, "how": how}
        record |= {"killers": killers, "unsure": unsure, "covering": mutant["covering"], "tests": len(tests)}
        record["seconds"] = round(time.monotonic() - start, 1)
        append(plan["results"], record)
        print(record, flush=True)


def first_failure(tests, number, items, plan):
    """Run tests in a fork until one fails or hangs; that test and which of both, or twice ``None``."""
    reader, writer = os.pipe()
    child = fork(lambda: run_tests([items[test] for test in tests], number, writer, plan))
    os.close(writer)
    current, began, lines, patience = None, time.monotonic(), b"", 10
    try:
        while True:
            limit = PATIENCE_SECONDS + PATIENCE * plan["seconds"].get(current, 0)
            if time.monotonic() - began > limit:
                patience = 0
                return current, "hangs"
            if not select.select([reader], [], [], 1)[0]:
                continue
            got = os.read(reader, 65536)
            *whole, lines = (lines + got).split(b"\n")
            for line in whole:
                word, test = json.loads(line)
                if word == "starts":
                    current, began = test, time.monotonic()
                else:
                    return (test, "fails") if word == "fails" else (None, None)
            if not got:
                return current, "ends the process"
    finally:
        os.close(reader)
        kill(child, patience)
        shutil.rmtree(Path(plan["folder"]) / "tmp" / str(child), ignore_errors=True)


def kill(child, patience):
    """Give a child some seconds to end; then end it and what it started by force."""
    for _ in range(10 * patience):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def run_tests(items, number, writer, plan):
    """Run tests in this process while a mutant is on, and write where it is."""
    import _mutants

    def tell(word, test):
        os.write(writer, f"{json.dumps([word, test])}\n".encode())

    _mutants.active = number
    os.environ["SKELLIPSOID_MUTANT"] = str(number)
    folder = Path(plan["folder"]) / "tmp" / str(os.getpid())
    folder.parent.mkdir(exist_ok=True)
    items[0].config._tmp_path_factory._given_basetemp = folder
    for item, following in zip(items, [*items[1:], None], strict=True):
        tell("starts", item.nodeid)
        _failed.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if _failed:
            tell("fails", item.nodeid)
            item.session._setupstate.teardown_exact(None)
            return
    tell("ends", None)
