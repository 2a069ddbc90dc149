"""Promise: a folder that was changed at random is refused by one sentence, or answers as the saved model does.

Never a crash, never other answers; where this test does not end, a folder made ``load`` hang.
``SKELLIPSOID_DAMAGES=10000`` tries as many changes.
"""

import os
import shutil

import numpy as np
import pytest
from persistence_helpers import MANIFEST

from skellipsoid import load, save

N_DAMAGES = int(os.environ.get("SKELLIPSOID_DAMAGES", "200"))


def _flip(content, rng):
    changed = np.frombuffer(content, np.uint8).copy()
    for _ in range(rng.choice([1, 1, 1, 8])):
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return changed.tobytes()


def _cut(content, rng):
    first, last = np.sort(rng.integers(len(content) + 1, size=2))
    return content[:first] if rng.random() < 0.5 else content[:first] + content[last:]


def _insert(content, rng):
    place, size = rng.integers(len(content) + 1), rng.integers(1, 100)
    return content[:place] + rng.bytes(size) + content[place:]


def _damage(folder, rng):
    """Change one file of a model, or two; says what was done."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    path = folder / MANIFEST if rng.random() < 0.4 else paths[rng.integers(len(paths))]
    changes = {"bits": _flip, "cut": _cut, "insert": _insert}
    kind = rng.choice([*changes, "swap", "delete", "folder", "link"])
    if kind in changes:
        path.write_bytes(changes[kind](path.read_bytes(), rng))
    elif kind == "swap":
        second = paths[rng.integers(len(paths))]
        contents = path.read_bytes(), second.read_bytes()
        second.write_bytes(contents[0])
        path.write_bytes(contents[1])
    else:
        path.unlink()
        if kind != "delete":
            path.mkdir() if kind == "folder" else path.symlink_to(path.with_name("elsewhere"))
    return f"{kind} in {path.relative_to(folder)}"


@pytest.fixture
def models(pipeline, classifier, queries, blobs, tmp_path):
    """Two saved models with what they are asked and what they answer."""
    found = []
    for name, model, probes in (("texts", pipeline, queries), ("features", classifier, blobs[0])):
        save(model, tmp_path / name)
        found.append((tmp_path / name, probes, load(tmp_path / name).score_samples(probes)))
    return found


def test_a_folder_that_was_changed_is_refused_or_answers_as_before(models, tmp_path):
    n_refused = 0
    for seed in range(N_DAMAGES):
        rng = np.random.default_rng(seed)
        source, probes, answers = models[seed % 3 > 0]
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        what = f"seed {seed}: {_damage(folder, rng)}"
        try:
            loaded = load(folder)
        except (ValueError, FileNotFoundError) as error:
            message = str(error)
            assert message.isprintable(), what  # one line, that is
            assert message.endswith("."), f"{what}: {message}"
            n_refused += 1
        else:
            np.testing.assert_array_equal(loaded.score_samples(probes), answers, err_msg=what)
    assert n_refused > N_DAMAGES / 2
