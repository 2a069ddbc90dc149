"""Hostile clients at ``skellipsoid-serve`` for some minutes, and what an honest client gets beside them.

They are those of ``tests/hostile_clients.py``, on the loopback interface.

python studies/serve_hostile.py --minutes 10
python studies/serve_hostile.py --minutes 10 --environment MALLOC_ARENA_MAX=1
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from sklearn.pipeline import make_pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets, export_onnx

ROOT = Path(__file__).parents[3]
#: The most MiB that the server may grow by after the first three tenths of the time.
MOST_MIB = 10


def main():
    """Export a model, serve it under attack, and print the figures; the status is 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--environment", nargs="*", default=[], metavar="NAME=VALUE", help="variables of the server")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from hostile_clients import attack
    from serve_helpers import running

    texts, intents = datasets.load_assistant_intents(return_X_y=True)
    pipe = make_pipeline(SupConTextEncoder(finetune="none"), EllipsoidOpenSetClassifier(random_state=0))
    pipe.fit(texts, intents)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= dict(each.split("=", 1) for each in options.environment)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export_onnx(pipe, folder / "exported")
        limits = {"body_seconds": 5, "max_connections": 200, "log": folder / "answers.jsonl"}
        with running(folder / "exported", folder, environment, **limits) as server:
            found = attack(server, texts[:20].tolist(), 60 * options.minutes)
    for each, value in found.items():
        shown = " ".join(f"{part:.0f}" for part in value) if isinstance(value, list) else value
        print(f"{each}: {value:.1f}" if isinstance(value, float) else f"{each}: {shown}")
    return int(found["statuses"] != {200} or found["wrong"] > 0 or found["late growth"] > MOST_MIB)


if __name__ == "__main__":
    sys.exit(main())
