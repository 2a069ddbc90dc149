"""Small models to be saved, what a folder holds, and what may be changed in it."""

import copy
import hashlib
import json
from functools import reduce
from operator import getitem
from pathlib import Path

from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder

MANIFEST = "skellipsoid.json"


def snapshot(folder):
    """Every file below a folder with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def read_manifest(folder):
    """The manifest of a saved model, without its own hash."""
    manifest = json.loads((Path(folder) / MANIFEST).read_bytes())
    return {key: value for key, value in manifest.items() if key != "manifest_sha256"}


def write_manifest(folder, manifest):
    """Write a manifest as anyone can who wants to do harm: with a hash, and sizes of files, that fit."""
    if "sizes" in manifest:
        parts = Path(folder) / str(manifest.get("parts"))
        paths = {name: parts / name for name in manifest["sha256"]}
        manifest |= {"sizes": {name: path.stat().st_size if path.is_file() else 0 for name, path in paths.items()}}
    lines = json.dumps(manifest, indent=1).encode().removeprefix(b"{\n")
    digest = hashlib.sha256(lines).hexdigest().encode()
    (Path(folder) / MANIFEST).write_bytes(b'{"manifest_sha256": "' + digest + b'",\n' + lines)


def add_file(folder, name, content):
    """Put a file into a saved model, and its hash into the manifest."""
    manifest = read_manifest(folder)
    path = folder / manifest["parts"] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    write_manifest(folder, manifest)


def part(folder, name):
    """Path of a file below the folder of parts."""
    return folder / read_manifest(folder)["parts"] / name


def change_text_model(folder, change):
    """Change the description of the text model."""
    manifest = read_manifest(folder)
    change(manifest["model"]["steps"][0]["state"]["_backbone"]["text_model"])
    write_manifest(folder, manifest)


def setting(*keys_and_value):
    """A change of a description: the value at these keys."""
    *keys, last, value = keys_and_value

    def change(described):
        place = described
        for key in keys:
            place = place[key]
        place[last] = value

    return change


def make_encoder(model, finetune="head", **parameters):
    chosen = {"temperature": 0.3, "max_iter": 4, "learning_rate": 1e-3, "random_state": 0} | parameters
    return SupConTextEncoder(model, finetune=finetune, **chosen)


def make_pipeline(model, seed=0):
    encoder = make_encoder(model, n_components=6, random_state=seed)
    return Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=seed))])


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


REPLACEMENTS = [None, "x", -1, 0.5, 10**400, True, [], {}, {"array": "mean_"}, {"estimator": {"class": "PCA"}}, "gone"]


def alterations(model):
    """A third of all descriptions with one value replaced or gone: other ones at each place."""
    for i, path in enumerate(places(model)):
        if not path:
            continue
        for value in REPLACEMENTS[i % 3 :: 3]:
            changed = copy.deepcopy(model)
            place = reduce(getitem, path[:-1], changed)
            if value == "gone":
                del place[path[-1]]
            else:
                place[path[-1]] = value
            yield changed
