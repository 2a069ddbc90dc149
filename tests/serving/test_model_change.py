"""A server takes a new model without losing a request, and keeps the one before if the new one fails."""

import asyncio
import gc
import re
import shutil
import signal
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event

import pytest
from export_helpers import changed_manifest, manifest_of

from skellipsoid import load, save
from skellipsoid_runtime.serve import Settings, _models
from skellipsoid_runtime.serve._app import Service
from skellipsoid_runtime.serve._models import Models

SOON = {"watch_seconds": 0.1}


@pytest.fixture
def pointer(tmp_path, exported):
    """File with the path of the first model."""
    path = tmp_path / "current"
    path.write_text(f"{exported}\n")
    return path


def models_at(path, told=lambda *_: None):
    """The models that a server takes one after the other; ``told(result, model)`` hears of each."""
    return Models(path, told)


def version_in(folder):
    """The version by which a server names the model in a folder."""
    return _models._version(folder)


def version_of(server):
    return server.get("/model")[1]["version"]


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["damaged", "empty pointer"])
def test_a_model_that_cannot_be_loaded_is_not_taken(serve, pointer, exported, exported_later, tmp_path, texts, kind):
    bad = tmp_path / "bad"
    if kind == "damaged":
        shutil.copytree(exported_later, bad)
        content = bytearray((bad / "model.onnx").read_bytes())
        content[1000] ^= 255
        (bad / "model.onnx").write_bytes(content)
    with serve(pointer, **SOON) as server:
        version = version_of(server)
        pointer.write_text("" if kind == "empty pointer" else "bad")  # relative to the file
        wait_until(lambda: server.get("/model")[1]["error"])
        # What files are there, and what they hold, is for the log alone.
        assert "bad" not in server.get("/model")[1]["error"]
        assert "the new model is not taken" in server.output
        assert server.counter('model_changes_total{result="failed"}') == 1
        assert version_of(server) == version
        assert server.post({"text": texts[0]})[1]["label"] == "alarm"
        assert server.get("/ready")[0] == 200
        pointer.write_text(str(exported))
        wait_until(lambda: server.get("/model")[1]["error"] is None)
        assert server.counter('model_changes_total{result="taken"}') == 0  # it is there already
        pointer.write_text(str(exported_later))  # what failed is no obstacle to the next
        wait_until(lambda: version_of(server) != version)
        assert server.get("/model")[1]["error"] is None
        assert server.post({"text": texts[0]})[1]["label"] == "ALARM"
        assert server.counter('model_changes_total{result="taken"}') == 1
        named = 'model_info{{folder="{}",program="skellipsoid_runtime",version="{}"}}'
        assert server.counter(named.format("second", version_of(server))) == 1
        assert server.counter(named.format("first", version)) is None


def test_a_model_that_fails_at_requests_gives_way_to_the_one_before(serve, pointer, exported, texts):
    bad = shutil.copytree(exported, pointer.with_name("bad"))
    changed_manifest(bad, text=manifest_of(bad)["text"] | {"max_length": 200})  # its text model knows 64 positions
    with serve(pointer, watch_seconds=0) as server:
        version = version_of(server)
        pointer.write_text(str(bad))
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: version_of(server) != version)
        assert server.post({"text": texts[0]})[0] == 200
        status, answer = server.post({"text": "wake me at six please " * 20})
        assert status == 200
        assert answer["label"] in {"alarm", "balance", "light", "weather", "-1"}
        assert version_of(server) == version
        assert server.counter('model_changes_total{result="returned"}') == 1
        assert "failed at a request; the log" in server.get("/model")[1]["error"]
        assert re.search(r"ERROR model .* answers again, since .* failed: \S+", server.output)


def test_no_error_of_a_look_ends_the_watch(pointer, exported_later, monkeypatch):
    service, looked = Service(pointer, Settings(watch_seconds=0.01)), Event()
    refresh = service.models.refresh

    def fail_once(**options):
        if not looked.is_set():
            looked.set()
            raise MemoryError
        refresh(**options)

    monkeypatch.setattr(service.models, "refresh", fail_once)

    async def watch():
        async with service.running():
            pointer.write_text(str(exported_later))
            while service.models.current.folder != exported_later:
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(watch(), 20))
    assert looked.is_set()


def test_the_model_before_is_kept_until_the_new_one_has_proved_itself(pointer, exported_later, texts):
    changes = []
    models = models_at(pointer, lambda result, model: changes.append((result, model.folder.name)))
    before = weakref.ref(models.current)
    pointer.write_text(str(exported_later))
    models.refresh()
    models.refresh()
    assert changes == [("taken", "second")]
    for _ in range(99):
        models.answers(texts[:1])
    assert before() is not None
    models.answers(texts[:1])
    gc.collect()
    assert before() is None


def put(source, target, number):
    """Put an export into a folder, with a manifest that no other one has."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    changed_manifest(target, exported=str(number))


def test_a_model_that_is_replaced_all_the_time_is_not_taken(exported, exported_later, tmp_path, monkeypatch, caplog):
    target, load_exported, numbers = tmp_path / "model", _models._load_exported, count(1)
    put(exported, target, 0)
    models = models_at(target)
    before = models.current
    put(exported, target, next(numbers))

    def load_replaced(folder):
        found = load_exported(folder)
        put(exported_later, target, next(numbers))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(_models, "_load_exported", load_replaced)
        models.refresh()
    assert models.current is before
    assert re.search(r"The model in .* was replaced 3 times while it was loaded; .*\.$", caplog.messages[-1])
    models.refresh()
    assert models.error is None
    assert models.current.version == version_in(target)


def test_saves_during_loads_end_with_the_last_model_under_its_name(saved, tmp_path, texts):
    folder, pipe, written = tmp_path / "model", load(saved), {}

    def save_next(offset):
        pipe[-1].offset_ = offset
        save(pipe, folder, overwrite=True)
        written[version_in(folder)] = pipe.predict(texts).tolist()

    save_next(0.0)
    models, found = models_at(folder), []
    with ThreadPoolExecutor(1) as pool:
        saves = pool.submit(lambda: [(time.sleep(0.01), save_next(step / 10)) for step in range(-4, 6)])
        while not saves.done():
            models.refresh()
            found.append((models.current.version, models.answers(texts)[1]["label"].tolist()))
        saves.result()
    models.refresh()
    found.append((models.current.version, models.answers(texts)[1]["label"].tolist()))
    assert all(labels == written[version] for version, labels in found)
    assert found[-1] == [*written.items()][-1]
    assert models.error is None


def test_a_loop_of_links_at_the_start_is_an_error_of_one_sentence(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises((ValueError, FileNotFoundError)):
        models_at(tmp_path / "loop")
