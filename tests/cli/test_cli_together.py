"""Promise: of two changes of one saved model at once none is lost without a word: the second is refused."""

import shutil
import subprocess
import sys

import pytest
import warm_process

from skellipsoid import load
from skellipsoid.cli import main

pytestmark = pytest.mark.slow

#: A command that says when it is about to lock a folder for the first time, and then waits for a line.
MEET = """
import sys
from filelock import FileLock
from skellipsoid.cli import main

acquire = FileLock.acquire

def meet(lock, *given, **more):
    FileLock.acquire = acquire
    print("there", flush=True)
    sys.stdin.readline()
    return acquire(lock, *given, **more)

FileLock.acquire = meet
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def commands(folder, tmp_path, tiny_model, table):
    """Commands that change the model, by name."""
    (tmp_path / "new.tsv").write_text("play jazz songs\tmusic\nplay songs by queen\tmusic\n", encoding="utf-8")
    changes = {
        "add": ["add", "--data", tmp_path / "new.tsv"],
        "set-threshold": ["set-threshold", "--rejection-rate", "0.4"],
        "remove": ["remove", "--labels", "alarm"],
        "merge": ["merge", "--labels", "light", "weather", "--into", "both"],
    }
    found = {name: [*words, "--model", folder] for name, words in changes.items()}
    found["train"] = ["train", "--data", table, "--model-name", tiny_model, "--save", folder, "--overwrite"]
    return {name: [*map(str, words), "--quiet"] for name, words in found.items()}


@pytest.fixture(scope="module")
def warm(fresh_environment):
    """Path of a socket at which processes begin that have imported the package."""
    with warm_process.listening(fresh_environment()) as path:
        yield path


@pytest.fixture
def start(warm, fresh_environment):
    """Start a command in a process of its own, and wait until it is about to save."""
    started = []

    def begin(command):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        script = [sys.executable, warm_process.__file__, warm, "-c", MEET, *command]
        started.append(subprocess.Popen(script, env=fresh_environment(), text=True, **pipes))
        assert started[-1].stdout.readline() == "there\n", started[-1].communicate()[1]
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def finish(*processes):
    """Let commands go on at once, and give the status, the output and the errors of each."""
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120) for process in processes]
    return [(process.returncode, *outputs) for process, outputs in zip(processes, told, strict=True)]


def state(folder):
    """What each change alters: classes, the limit, and the list of changes."""
    classifier = load(folder)[-1]
    return classifier.classes_.tolist(), classifier.offset_, [change["what"] for change in classifier.changes_]


@pytest.mark.parametrize(("one", "other"), [("add", "set-threshold"), ("remove", "merge")])
def test_of_two_changes_at_once_one_is_done_and_the_other_refused(
    one, other, folder, saved, tmp_path, commands, start, capsys
):
    results = finish(start(commands[one]), start(commands[other]))
    (_, done, _), (_, out, err) = sorted(results)
    assert (sorted(result[0] for result in results), out) == ([0, 2], "")
    assert done.startswith(("Added", "The threshold moves", "Removed", "Merged"))
    remedy = "run the command again, to change the model as it is now."
    changed = f"The model in {str(folder)!r} was changed meanwhile, and this change is not written"
    assert err == f"skellipsoid: {changed}; {remedy}\n"
    winner, loser = (one, other) if not results[0][0] else (other, one)
    both = state(folder)
    # The model is what the one that is done makes of the first model, and the other one can follow.
    shutil.rmtree(folder)
    shutil.copytree(saved, folder)
    assert main(commands[winner]) == 0
    assert state(folder) == both
    assert main(commands[loser]) == 0
    assert state(folder) != both
    capsys.readouterr()


@pytest.mark.parametrize("first", ["train", "add"])
def test_a_training_that_replaces_a_model_and_a_change_of_it(first, folder, commands, start):
    training, change = start(commands["train"]), start(commands["add"])
    if first == "train":
        ((status, out, _),) = finish(training)
        assert (status, "The model is in" in out) == (0, True)
        ((status, out, err),) = finish(change)
        assert (status, out) == (2, "")
        assert "was changed meanwhile" in err
        assert "music" not in state(folder)[0]
        return
    assert finish(change)[0][0] == 0
    changed = (folder / "skellipsoid.json").read_bytes()
    ((status, out, err),) = finish(training)
    beside = folder.with_name("model-2")
    assert (status, "The model is in" in out) == (2, False)
    left = f"{str(folder)!r} was changed during the training and is left alone"
    assert err == f"skellipsoid: {left}; the model is in {str(beside)!r} instead, use it there or move it.\n"
    assert (folder / "skellipsoid.json").read_bytes() == changed
    assert len(state(beside)[0]) == 4


def test_of_two_logs_that_are_watched_at_once_both_are_counted(folder, texts, tmp_path, start, capsys):
    logs = [tmp_path / f"log{i}.txt" for i in range(3)]
    for log, lines in zip(logs, (texts, texts[:12], texts[12:]), strict=True):
        log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first, *others = (["monitor", "--model", str(folder), "--data", str(log), "--quiet"] for log in logs)
    assert main(first) == 0
    capsys.readouterr()
    told = [out for _, out, _ in finish(*map(start, others))]
    assert sum(f"% of the {len(texts)} texts since" in out for out in told) == 1
