"""Hostile clients at ``skellipsoid-serve`` for some minutes, and what an honest client gets beside them.

They are those of ``tests/hostile_clients.py``, on the loopback interface. Of the resident memory the study says what
glibc's allocator has given out (arrays, weights, onnxruntime's own arena) and what it keeps free, by ``mallinfo2`` in
the server's process, and what ``malloc_trim`` gives back at the end.

python studies/serve_hostile.py --minutes 10
python studies/serve_hostile.py --minutes 10 --environment MALLOC_ARENA_MAX=1
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets, export_onnx

ROOT = Path(__file__).parents[3]
#: Runs in the server's process: every second what the allocator has given out and keeps free, in MiB.
_WATCH = """
import ctypes, os, threading, time
from pathlib import Path

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

def watch(folder):
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Info
    with open(folder / "allocator.txt", "w", buffering=1) as file:
        while not (folder / "trim").exists():
            found = library.mallinfo2()
            print(time.time(), (found.uordblks + found.hblkhd) / 2**20, found.fordblks / 2**20, file=file)
            time.sleep(1)
    library.malloc_trim(0)
    (folder / "trimmed").touch()

if folder := os.environ.pop("WATCHED_IN", None):
    threading.Thread(target=watch, args=[Path(folder)], daemon=True).start()
"""
#: The most MiB that the server may grow by after the first three tenths of the time.
MOST_MIB = 10


def main():
    """Export a model, serve it under attack, and print the figures; the status is 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--environment", nargs="*", default=[], metavar="NAME=VALUE", help="variables of the server")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile_clients import attack, memory
    from serve_helpers import running

    texts, intents = datasets.load_assistant_intents(return_X_y=True)
    pipe = make_pipeline(SupConTextEncoder(finetune="none"), EllipsoidOpenSetClassifier(random_state=0))
    pipe.fit(texts, intents)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(_WATCH, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
        environment |= {"WATCHED_IN": name} | dict(each.split("=", 1) for each in options.environment)
        export_onnx(pipe, folder / "exported")
        limits = {"body_seconds": 5, "max_connections": 200, "log": folder / "answers.jsonl"}
        with running(folder / "exported", folder, environment, **limits) as server:
            started = memory(server)
            begin = time.time()
            found = {"started": started} | attack(server, texts[:20].tolist(), 60 * options.minutes)
            found |= _allocated(folder / "allocator.txt", begin) | {"in the end": memory(server)}
            (folder / "trim").touch()
            while not (folder / "trimmed").exists():
                time.sleep(0.1)
            found["after malloc_trim"] = memory(server)
    for each, value in found.items():
        shown = " ".join(f"{part:.0f}" for part in value) if isinstance(value, list) else value
        print(f"{each}: {value:.1f}" if isinstance(value, float) else f"{each}: {shown}")
    return int(found["statuses"] != {200} or found["wrong"] > 0 or found["late growth"] > MOST_MIB)


def _allocated(path, begin):
    """Give what the allocator had given out, and kept free: medians of tenths of the time."""
    rows = np.loadtxt(path)
    parts = np.array_split(rows[rows[:, 0] >= begin], 10)
    return {
        name: [float(np.median(part[:, column])) for part in parts] for name, column in (("given out", 1), ("free", 2))
    }


if __name__ == "__main__":
    sys.exit(main())
