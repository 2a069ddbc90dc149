"""Promise: readers beside a writer, and several saves at once, see one whole model, the old or the new."""

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock
from persistence_helpers import MANIFEST

from skellipsoid import EllipsoidOpenSetClassifier, load, save


def test_a_model_that_never_rests_is_given_up_with_a_sentence(classifier, tmp_path, monkeypatch):
    target = tmp_path / "model"
    save(classifier, target)
    read = []

    def replace_meanwhile(path, *how, original=os.open, **more):
        if Path(path).name == "arrays.safetensors":
            read.append(path)
            with monkeypatch.context() as patch:  # the save opens such a file, too
                patch.setattr(os, "open", original)
                save(classifier, target, overwrite=True)
        return original(path, *how, **more)

    monkeypatch.setattr(os, "open", replace_meanwhile)
    with pytest.raises(ValueError, match=r"model' was replaced 30 times while it was read; load it again later"):
        load(target)
    assert len(read) == 30


@pytest.mark.parametrize("overwrite", [False, True])
def test_saves_to_one_folder_at_a_time_leave_one_whole_model(blobs, tmp_path, overwrite):
    """Of first saves that may not replace a model, one is done."""
    X, y = blobs
    models = [EllipsoidOpenSetClassifier(random_state=0).fit(X + shift, y) for shift in range(8)]
    start = threading.Barrier(8)

    def run(model):
        start.wait()
        with suppress(FileExistsError):
            save(model, tmp_path / "model", overwrite=overwrite)
            return model.centroids_.tobytes()

    with ThreadPoolExecutor(8) as pool:
        done = {*pool.map(run, models)} - {None}
    assert len(done) == (8 if overwrite else 1)
    assert load(tmp_path / "model").centroids_.tobytes() in done
    assert sorted(p.name.split("-")[0] for p in (tmp_path / "model").iterdir()) == ["README.md", "parts", MANIFEST]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no locks that end with their process")
def test_a_save_waits_for_one_that_replaces_the_same_model(classifier, blobs, tmp_path, warm_server):
    save(classifier, tmp_path / "model")
    save(classifier, tmp_path / "new")
    other = EllipsoidOpenSetClassifier(random_state=0).fit(blobs[0] + 5, blobs[1])
    told, telling = os.pipe()
    with open(told) as told, open(telling, "wb") as telling:
        running = warm_server.start(_KILLED, [tmp_path / "new", tmp_path / "model"], [telling] * 3)
        assert told.readline() == "writing\n"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(save, other, tmp_path / "model", overwrite=True)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        assert len(list((tmp_path / "model").glob("parts-*"))) == 2
        running.kill()
        running.wait()
        waiting.result(timeout=60)
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
