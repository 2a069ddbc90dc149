"""Promise: a save that fails or is killed at any moment leaves the old model whole, or the new one."""

import itertools
import json
import os
import shutil
import warnings
from pathlib import Path

import pytest
from persistence_helpers import MANIFEST, snapshot

from skellipsoid import load, save


@pytest.mark.parametrize("existing", [False, True])
def test_a_save_that_fails_cleans_up_after_itself(classifier, pipeline, tmp_path, existing, monkeypatch):
    target = tmp_path / "model"
    if existing:
        save(pipeline, target)
        (target / "notes.txt").write_text("mine")
    before = snapshot(tmp_path)
    for n_calls in range(1000):
        calls = itertools.count()

        def failing(original, n_calls=n_calls, calls=calls):
            def call(*arguments, **options):
                if next(calls) >= n_calls:
                    raise OSError(28, "No space left on device")
                return original(*arguments, **options)

            return call

        with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for place, name in [(Path, "write_bytes"), (Path, "rename"), (Path, "replace"), (os, "fsync")]:
                patched.setattr(place, name, failing(getattr(place, name)))
            try:
                save(classifier, target, overwrite=existing)
            except OSError as error:
                said = f"The model cannot be written to {str(target)!r} (No space left on device); it needs"
                assert (error.errno, str(error).startswith(said)) == (28, True)  # noqa: PT017
                assert snapshot(tmp_path) == before
                continue
        assert load(target).centroids_.tolist() == classifier.centroids_.tolist()
        if not caught:
            break
        # The last step of all: the model is there, its card is still that of the old one.
        assert "README.md' cannot be written ([Errno 28]" in str(caught[0].message)
        assert snapshot(tmp_path).get("model/README.md") == before.get("model/README.md")
        if not existing:
            shutil.rmtree(target)
    assert n_calls > 6  # one for each file and rename


_KILL = """
import itertools, json, os, shutil, sys
from pathlib import Path
from skellipsoid import load, save

parent, existing = Path(sys.argv[1]), sys.argv[2] == "True"
target = parent / "kill" / "model"
os.fsync = lambda handle: None  # slow; a process that is killed loses nothing that it has written
new = load(parent / "new")  # its text model is never built: no child needs torch
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(step):
    steps = itertools.count()

    def count(*_):
        if next(steps) == step:
            os._exit(9)

    def watch(event, arguments):
        if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree") or (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        ):
            count()

    def write_in_halves(self, data):
        with self.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            count()
            file.write(data[len(data) // 2 :])

    Path.write_bytes = write_in_halves
    sys.addaudithook(watch)


def whole():
    # Loading compares every file with its checksum.
    return load(target)["clf"].centroids_.tolist() if (target / "skellipsoid.json").exists() else None


outcomes = []
for step in itertools.count():
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    if existing:
        shutil.copytree(parent / "old", target)
        (target / "notes.txt").write_text("mine")
    child = os.fork()
    if not child:
        die_at(step)
        save(new, target, overwrite=existing)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = whole()
    save(new, target, overwrite=existing or found is not None)
    names = sorted(path.name.split("-")[0] for path in [*target.iterdir(), *target.parent.glob(".*")])
    outcomes.append([code, found, whole(), names])
    if code != 9:
        break
json.dump(outcomes, sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes, which this platform does not have")
@pytest.mark.parametrize("existing", [False, True])
def test_a_save_that_is_killed_leaves_the_old_model_whole(pipeline, other, tmp_path, fresh_python, existing):
    save(pipeline, tmp_path / "old")
    save(other, tmp_path / "new")
    before, after = pipeline["clf"].centroids_.tolist(), other["clf"].centroids_.tolist()
    assert before != after
    done = fresh_python(_KILL, tmp_path, existing, timeout=1200)  # it saves and loads dozens of times
    assert (done.stderr, done.returncode) == ("", 0)
    codes, found, saved_again, names = zip(*json.loads(done.stdout), strict=True)
    assert len(codes) > 20
    assert codes == (9,) * (len(codes) - 1) + (0,)
    # What was there (or nothing) until one step, what is new from then on, never a mixture.
    expected = before if existing else None
    turned = found.index(after)
    assert turned > 15
    assert all(model == expected for model in found[:turned])
    assert all(model == after for model in found[turned:])
    # The next save is not troubled by what the killed one left.
    assert all(model == after for model in saved_again)
    kept = ["notes.txt"] if existing else []
    assert all(sorted([*kept, "README.md", "parts", MANIFEST]) == rest for rest in names)
