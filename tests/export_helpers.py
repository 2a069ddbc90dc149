"""What the tests of exported models have in common: of the runtime, of ``export``, and of ``predict`` with one."""

import hashlib
import json

from skellipsoid.cli import main
from skellipsoid.persistence._folder import manifest_bytes

STALE = "was not made of the model as it is now"
MANIFEST = "skellipsoid_onnx.json"
#: What ``predict`` prints for one text, by each model of the command's tests.
ANSWER = "alarm\twake me at six\n"


def run(capsys, *words):
    """Status, output and notes of a command."""
    return main(list(map(str, words))), *capsys.readouterr()


def content_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damage(model):
    """Cut the largest file of a model off, so that it cannot be loaded: its export, if there is one, alone answers."""
    parts = [model / name for name in content_of(model) if not name.startswith("onnx")]
    largest = max(parts, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-100])


def remedy(model, *, is_ours=True):
    """How the note ends that the export beside a model is not used; what comes before it is the reason."""
    command = f"skellipsoid export --model {model}"
    what = (
        f"export it again with {command}, or remove the folder 'onnx' in it"
        if is_ours
        else f"move the folder 'onnx' in it elsewhere, and export it with {command}"
    )
    return f"so the model itself is loaded, which takes longer; {what}.\n"


def manifest_of(folder):
    return json.loads((folder / MANIFEST).read_bytes())


def changed_manifest(folder, **changes):
    """Change the manifest of an export, and its hash, as another hand would; ``...`` removes."""
    manifest = manifest_of(folder) | changes
    del manifest["manifest_sha256"]
    kept = {name: value for name, value in manifest.items() if value is not ...}
    (folder / MANIFEST).write_bytes(manifest_bytes(kept))


def replaced(folder, name, content):
    """Replace a file of a model, and its hash in the manifest, as an attacker would."""
    (folder / name).write_bytes(content)
    manifest = manifest_of(folder)
    sizes = manifest["sizes"] | {name: len(content)}
    changed_manifest(folder, sha256=manifest["sha256"] | {name: hashlib.sha256(content).hexdigest()}, sizes=sizes)
