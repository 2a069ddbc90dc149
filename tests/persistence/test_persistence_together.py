"""Promise: readers beside a writer, and several saves at once, see one whole model, the old or the new."""

import errno
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock
from persistence_helpers import MANIFEST

from skellipsoid import EllipsoidOpenSetClassifier, load, save

_WRITE = """
import itertools, os, sys
from pathlib import Path
from skellipsoid import load, save

target, models = Path(sys.argv[1]), [load(folder) for folder in sys.argv[2:]]
os.fsync = lambda handle: None  # so that it replaces the model as often as it can
print("ready", flush=True)
for model in itertools.cycle(models):
    save(model, target, overwrite=True)
    if target.with_name("stop").exists():
        break
"""


@pytest.mark.slow
def test_a_model_is_loaded_while_another_process_replaces_it(pipeline, other, tmp_path, fresh_environment, monkeypatch):
    save(pipeline["clf"], tmp_path / "first")
    save(other["clf"], tmp_path / "second")
    target = tmp_path / "model"
    save(pipeline["clf"], target)
    wanted = {model["clf"].centroids_.tobytes() for model in [pipeline, other]}
    n_manifests = n_reads = 0

    def count(path, *how, original=os.open, **more):
        nonlocal n_manifests
        n_manifests += path == target / MANIFEST
        return original(path, *how, **more)

    monkeypatch.setattr(os, "open", count)
    command = [sys.executable, "-c", _WRITE, *map(str, [target, tmp_path / "first", tmp_path / "second"])]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=fresh_environment(), text=True)
    try:
        assert writer.stdout.readline() == "ready\n"
        found = []
        end = time.monotonic() + 60
        # Until the model was replaced ten times while it was read.
        while n_manifests - n_reads < 10 and time.monotonic() < end:
            found.append(load(target).centroids_.tobytes())
            n_reads += 1
        assert writer.poll() is None
    finally:
        (tmp_path / "stop").touch()
        assert writer.wait(60) == 0
        writer.stdout.close()
    assert n_manifests - n_reads >= 4  # fewer on a busy machine
    assert set(found) == wanted
    assert sorted(p.name.split("-")[0] for p in target.iterdir()) == ["README.md", "parts", MANIFEST]


def test_a_model_that_never_rests_is_given_up_with_a_sentence(classifier, tmp_path, monkeypatch):
    target = tmp_path / "model"
    save(classifier, target)
    n_reads = 0

    def replace_meanwhile(path, *how, original=os.open, **more):
        nonlocal n_reads
        if Path(path).name == "arrays.safetensors":
            n_reads += 1
            with monkeypatch.context() as patch:  # the save opens such a file, too
                patch.setattr(os, "open", original)
                save(classifier, target, overwrite=True)
        return original(path, *how, **more)

    monkeypatch.setattr(os, "open", replace_meanwhile)
    with pytest.raises(ValueError, match=r"model' was replaced 30 times while it was read; load it again later"):
        load(target)
    assert n_reads == 30


@pytest.mark.parametrize("existing", [False, True])
def test_saves_to_one_folder_at_a_time_leave_one_whole_model(blobs, tmp_path, existing):
    X, y = blobs
    models = [EllipsoidOpenSetClassifier(random_state=0).fit(X + shift, y) for shift in range(8)]
    target = tmp_path / "model"
    if existing:
        save(models[0], target)
    start = threading.Barrier(8)

    def run(model):
        start.wait()
        save(model, target, overwrite=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, models))
    assert load(target).centroids_.tobytes() in {model.centroids_.tobytes() for model in models}
    assert sorted(p.name.split("-")[0] for p in target.iterdir()) == ["README.md", "parts", MANIFEST]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_of_two_first_saves_without_overwrite_the_second_is_refused(blobs, tmp_path):
    X, y = blobs
    models = [EllipsoidOpenSetClassifier(random_state=0).fit(X + shift, y) for shift in range(8)]
    start = threading.Barrier(8)

    def run(model):
        start.wait()
        with suppress(FileExistsError):
            save(model, tmp_path / "model")
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(run, models))
    assert sum(done) == 1
    assert load(tmp_path / "model").centroids_.tobytes() == models[done.index(True)].centroids_.tobytes()
    assert len(list((tmp_path / "model").iterdir())) == 3


_KILLED = """
import os, signal, sys
from pathlib import Path
from skellipsoid import load, save

model = load(sys.argv[1])
original = Path.write_bytes

def stop(self, data):
    original(self, data)
    if self.name == "arrays.safetensors":
        print("writing", flush=True)
        signal.pause()

Path.write_bytes = stop
save(model, sys.argv[2], overwrite=True)
"""


@pytest.fixture
def slow_save(classifier, tmp_path, warm_server):
    """A process that has begun to save to ``tmp_path / "model"`` and goes no further."""
    save(classifier, tmp_path / "new")
    started = []

    def start():
        told, telling = os.pipe()
        with open(told) as told, open(telling, "wb") as telling:
            files = [telling] * 3
            started.append(warm_server.start(_KILLED, [tmp_path / "new", tmp_path / "model"], files))
            assert told.readline() == "writing\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no locks that end with their process")
def test_the_first_save_after_a_killed_one_takes_the_folder_and_removes_what_is_left(classifier, tmp_path, slow_save):
    killed = slow_save()
    target = tmp_path / "model"
    with pytest.raises(ValueError, match="is not a saved model"):
        load(target)
    killed.kill()
    killed.wait()
    assert len(list(target.glob("parts-*"))) == 1
    save(classifier, target)
    assert load(target).centroids_.tobytes() == classifier.centroids_.tobytes()
    assert sorted(p.name.split("-")[0] for p in target.iterdir()) == ["README.md", "parts", MANIFEST]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no locks that end with their process")
def test_a_save_waits_for_one_that_replaces_the_same_model(classifier, blobs, tmp_path, slow_save):
    save(classifier, tmp_path / "model")
    running = slow_save()
    other = EllipsoidOpenSetClassifier(random_state=0).fit(blobs[0] + 5, blobs[1])
    done = threading.Event()

    def save_other():
        save(other, tmp_path / "model", overwrite=True)
        done.set()

    thread = threading.Thread(target=save_other)
    thread.start()
    assert not done.wait(1)
    assert len(list((tmp_path / "model").glob("parts-*"))) == 2
    running.kill()
    thread.join(60)
    assert done.is_set()
    assert load(tmp_path / "model").centroids_.tobytes() == other.centroids_.tobytes()
    assert len(list((tmp_path / "model").glob("parts-*"))) == 1


@pytest.mark.parametrize("name", ["parts-0123456789abcdef", "README.md.01234567.tmp"])
def test_without_locks_only_what_is_old_is_removed(classifier, tmp_path, monkeypatch, name):
    def refuse(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    save(classifier, tmp_path / "model")
    left = tmp_path / "model" / name
    left.mkdir() if name.startswith("parts") else left.touch()
    save(classifier, tmp_path / "model", overwrite=True)
    assert left.exists()
    yesterday = time.time() - 25 * 3600
    os.utime(left, (yesterday, yesterday))
    save(classifier, tmp_path / "model", overwrite=True)
    assert not left.exists()
    assert len(list((tmp_path / "model").glob("parts-*"))) == 1
    load(tmp_path / "model")


def test_a_model_that_lacks_a_file_is_read_once(classifier, tmp_path, monkeypatch):
    save(classifier, tmp_path / "model")
    next((tmp_path / "model").rglob("arrays.safetensors")).unlink()
    reads, original = [], os.open
    monkeypatch.setattr(
        os, "open", lambda path, *how, **more: [reads.append(Path(path).name), original(path, *how, **more)][1]
    )
    with pytest.raises(ValueError, match="lacks its file"):
        load(tmp_path / "model")
    assert reads.count("arrays.safetensors") == 1
