"""Reads the folder of an exported model: a manifest, and the files that it names with their SHA-256."""

import errno
import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ._hub import check_no_revision, download, has_hash, is_hub_name, is_whole, is_whole_manifest
from ._install import how_to_install
from ._version import __version__

MANIFEST = "skellipsoid_onnx.json"
FORMAT, FORMAT_VERSION = "skellipsoid-onnx", 1
GRAPH, TOKENIZER, TRAINING_FEATURES = "model.onnx", "tokenizer.json", "training_features.npy"
_KEYS = {
    *("manifest_sha256", "format", "format_version", "skellipsoid_version", "exported", "quantized", "sha256"),
    *("answers", "offset", "class_offsets", "held_out_scores", "n_features", "rows_at_once", "text", "training_texts"),
}
#: Of which saved model it was made, by the command ``skellipsoid export``; the zones of a model that asks back; and the
#: sizes of the files in bytes, which earlier exports do not name.
_OPTIONAL = {"made_of", "asking", "sizes"}
#: The most bytes of a file: of a graph what protocol buffers allow.
_MOST_BYTES = {MANIFEST: 2**28, GRAPH: 2**31, TOKENIZER: 2**28, TRAINING_FEATURES: 2**38}
#: How often a model is read that is replaced meanwhile.
_MOST_TRIES = 30

Files = dict[str, bytes]


def find(folder: str | Path, revision: str | None, token: str | bool | None) -> tuple[Path, str | None]:
    """Give the folder of a model, and ``user/name@COMMIT`` if it is on the hub alone, from where it is fetched.

    Raises
    ------
    ImportError
        If the hub's client is not installed.
    OSError
        If the hub does not give the model; the message says why.
    ValueError
        If the repository holds no exported model, or if a revision is given of a folder.
    """
    if not is_hub_name(folder):
        check_no_revision(folder, revision)
        return Path(folder), None
    name = str(folder)
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ImportError(
            f"There is no folder {name!r} here, and a model on the hub needs the package huggingface_hub, which is not "
            f"installed: {how_to_install('skellipsoid-runtime[hub]')}."
        )
    path = download(MANIFEST, name, revision, token, _allowed_sizes(MANIFEST), is_whole_manifest)
    if path is None:
        raise ValueError(
            f"The repository {name!r} on the hub holds no exported model: it has no {MANIFEST}; pass the name of one "
            "to which a folder was uploaded that skellipsoid.export_onnx wrote."
        )
    place = path.parent
    manifest = read_manifest(place)
    for each in (GRAPH, TOKENIZER, TRAINING_FEATURES):
        if each in manifest["sha256"]:
            sizes = _allowed_sizes(each, manifest)
            download(each, name, place.name, token, sizes, has_hash(manifest["sha256"][each], sizes))
    return place, f"{name}@{place.name}"


def read_model(folder: Path) -> tuple[dict[str, Any], Files]:
    """Read the manifest and every file that the model needs, each once; again if an export replaced them meanwhile.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it holds no exported model, or a damaged one, or if a file is missing or is not the one that was exported.
    """
    manifest = read_manifest(folder)
    for _ in range(_MOST_TRIES):
        needed = {GRAPH: True, TOKENIZER: manifest["text"], TRAINING_FEATURES: manifest["training_texts"]}
        try:
            return manifest, {
                name: _read_file(folder, name, manifest) for name, what in needed.items() if what is not None
            }
        except ValueError:
            before, manifest = manifest, read_manifest(folder)
            if manifest == before:
                raise
    raise ValueError(
        f"The model in {str(folder)!r} was replaced {_MOST_TRIES} times while it was opened; open it again later."
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an exported model, checked as far as to know that ``export_onnx`` wrote it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it holds no exported model, one of another format version, or a damaged one.
    """
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}; check the path of the exported model.")
    path = folder / MANIFEST
    try:
        content = _read(path, _allowed_sizes(MANIFEST))
    except OSError as error:
        raise ValueError(
            f"{str(folder)!r} is not an exported model: its {MANIFEST} cannot be read ({error.strerror}); pass a "
            "folder that skellipsoid.export_onnx wrote."
        ) from error
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); export the model again or take a copy of it.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{str(path)!r} was not written by skellipsoid.export_onnx; pass a folder that it wrote.")
    version = manifest.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        wrote = str(manifest.get("skellipsoid_version"))[:80]
        remedy = f"it was exported by skellipsoid {wrote}, install that version of skellipsoid-runtime"
        if wrote == __version__:
            remedy = f"a development version of {__version__} wrote it, export the model again"
        raise ValueError(
            f"The model in {str(folder)!r} has format version {str(version)[:80]}, this skellipsoid-runtime "
            f"({__version__}) reads version {FORMAT_VERSION}; {remedy}."
        )
    if not is_whole(content):
        raise ValueError(
            f"{str(path)!r} is damaged (its SHA-256 differs); export the model again or take a copy of it."
        )
    if unknown := sorted((manifest.keys() - _OPTIONAL) ^ _KEYS):
        raise ValueError(f"{str(path)!r} is damaged ({unknown[0]!r} is unknown or missing); do not trust this model.")
    if not isinstance(manifest["sha256"], dict):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument
            f"The manifest of the model in {str(folder)!r} is damaged (its hashes are a "
            f"{type(manifest['sha256']).__name__}); do not trust this model."
        )
    if not _are_sizes(manifest.get("sizes"), manifest["sha256"]):
        raise ValueError(f"{str(path)!r} is damaged (its sizes do not fit its files); do not trust this model.")
    return manifest


def _are_sizes(sizes: Any, named: dict[str, Any]) -> bool:
    """Whether these are sizes that the files may have; ``None``: an earlier export has none."""
    return sizes is None or (
        isinstance(sizes, dict)
        and sizes.keys() == named.keys()
        and all(type(size) is int and size in _allowed_sizes(name) for name, size in sizes.items())
    )


def _allowed_sizes(name: str, manifest: Mapping[str, Any] = MappingProxyType({})) -> range:
    """Give the bytes that a file may have: what the manifest says, if it does, or what any such file may have."""
    size = (manifest.get("sizes") or {}).get(name)
    return range(_MOST_BYTES.get(name, 2**28) + 1) if size is None else range(size, size + 1)


def _read_file(folder: Path, name: str, manifest: dict[str, Any]) -> bytes:
    """Read a file of an exported model: the bytes that have the hash of the manifest.

    Raises
    ------
    ValueError
        If it is missing, or is not the one that was exported.
    """
    try:
        content = _read(folder / name, _allowed_sizes(name, manifest))
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise ValueError(
                f"The file {name!r} of the model in {str(folder)!r} is damaged ({error.strerror}); copy it again."
            ) from error
        raise ValueError(
            f"The model in {str(folder)!r} lacks its file {name!r} ({error.strerror}); take a complete copy of it."
        ) from error
    if hashlib.sha256(content).hexdigest() != manifest["sha256"].get(name):
        raise ValueError(
            f"The file {name!r} of the model in {str(folder)!r} is damaged (its SHA-256 differs); copy it again."
        )
    return content


def _read(path: Path, sizes: range) -> bytes:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OSError(errno.EINVAL, "it is no file")
    with path.open("rb") as file:
        found = os.fstat(file.fileno()).st_size
        if found not in sizes:
            allowed = f"must have {sizes[0]}" if len(sizes) == 1 else f"may have {sizes[-1]}"
            raise OSError(errno.EFBIG, f"it has {found} bytes, but {allowed}")
        return file.read(found)
