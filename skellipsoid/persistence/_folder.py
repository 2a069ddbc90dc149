"""Reads and writes the folder of a saved model, and removes the leftovers of interrupted saves."""

import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skellipsoid_runtime._hub import is_whole

from .._core.characters import printable
from .._core.files import holding, to_disk
from .._core.warn import warn
from .._version import __version__
from ._sizes import WrongSizeError, allowed_sizes, any_size, are_sizes, read_file

MANIFEST = "skellipsoid.json"
CARD = "README.md"
_LOCK = ".skellipsoid.lock"
#: Until the first release the format may change under this number.
FORMAT, FORMAT_VERSION = "skellipsoid", 1
#: Entries of the manifest; the hash of all others is first.
_KEYS = {
    *("manifest_sha256", "format", "format_version", "skellipsoid_version", "saved", "versions", "provenance"),
    *("parts", "model", "sha256", "readme_sha256"),
}
#: Sizes of the files in bytes; older models lack them.
_OPTIONAL = {"sizes"}
#: Files of a model below its folder of parts: arrays of an estimator, and weights and tokenizer of an embedding model.
_FILE = re.compile(r"(?:[A-Za-z0-9_.-]+/)+(?:arrays\.safetensors|text_model/(?:model\.safetensors|tokenizer\.json))")
PARTS = re.compile(r"parts-[0-9a-f]{16}")
_TEMPORARY = re.compile(rf"({re.escape(MANIFEST)}|{re.escape(CARD)})\.[0-9a-f]{{8}}\.tmp")
#: Largest number of characters of a text from a folder in a message.
_MOST_SHOWN = 300
#: What to do with a damaged file of the hub.
_REMEDY = "tell its owner, or delete {!r} if the cache is damaged, and load it again"
#: Largest number of files of a model: three of each step that has any.
_MOST_FILES = 1000
#: How often to read a model that is replaced during the reading.
_MOST_TRIES = 30
#: Without a lock, a save is regarded as dead after this many seconds.
_STALE = 24 * 3600

Files = dict[str, bytes]


@dataclass(frozen=True)
class CachedModel:
    """A model in the cache of the hub's client, where files are links; messages name the repository."""

    repository: str
    commit: str
    folder: Path

    def __str__(self) -> str:
        return self.repository


def read_model(source: Path | CachedModel, check: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], Files]:
    """Read the manifest, which ``check`` may refuse, then its files; once more if another save replaced them meanwhile.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it is not a saved model, or if a file is missing or damaged.
    """
    manifest, content = read_manifest(source)
    for _ in range(_MOST_TRIES):
        try:
            named_files(source, manifest)
            check(manifest)
            return manifest, _read_parts(source, manifest)
        except ValueError:
            before = content
            manifest, content = read_manifest(source)
            if content == before:
                raise
    raise ValueError(
        f"The model in {str(source)!r} was replaced {_MOST_TRIES} times while it was read; load it again later."
    )


def read_manifest(source: Path | CachedModel) -> tuple[dict[str, Any], bytes]:
    """Read the manifest of a model and its bytes, and check that ``save`` wrote it."""
    path = os.path.join(str(source), MANIFEST)
    if isinstance(source, Path) and not source.exists():
        raise FileNotFoundError(f"There is no folder {str(source)!r}; check the path of the saved model.")
    try:
        content = _read(source, MANIFEST, any_size(MANIFEST))
        manifest = json.loads(content, object_pairs_hook=_without_repetition)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(
            f"{str(source)!r} is not a saved model: it holds no {MANIFEST}; pass a folder that skellipsoid.save wrote."
        ) from error
    except OSError as error:
        raise ValueError(
            f"{path!r} cannot be read ({error.strerror}); take a copy of the model that consists of files."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path!r} is damaged ({error}); save the model again or take a copy of it.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path!r} was not written by skellipsoid.save; pass a folder that it wrote.")
    version = manifest.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        wrote = manifest.get("skellipsoid_version")
        remedy = f"it was written by skellipsoid {shown(wrote)}, install that"
        if wrote == __version__:
            remedy = f"a development version of {__version__} wrote it, fit the model again and save it"
        raise ValueError(
            f"The model in {str(source)!r} has format version {shown(version)}, this skellipsoid ({__version__}) reads "
            f"version {FORMAT_VERSION}; {remedy}."
        )
    if not is_whole(content):
        raise ValueError(f"{path!r} is damaged (its SHA-256 differs); save the model again or take a copy of it.")
    if unknown := sorted((manifest.keys() - _OPTIONAL) ^ _KEYS):
        raise ValueError(f"{path!r} is damaged ({unknown[0]!r} is unknown or missing); do not trust this model.")
    return manifest, content


def shown(value: Any) -> str:
    """Shorten a value from a folder, or an error about it, for a message."""
    text = printable(" ".join(str(value).split()))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def manifest_bytes(manifest: dict[str, Any]) -> bytes:
    """Encode a manifest as JSON; the first line has the hash of all other lines."""
    lines = json.dumps(manifest, indent=1).encode().removeprefix(b"{\n")
    return b'{"manifest_sha256": "' + sha256(lines).encode() + b'",\n' + lines


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name stands twice among {sorted(found)[:3]}")
    return found


def named_files(source: Path | CachedModel, manifest: dict[str, Any]) -> dict[str, str]:
    """Path of each file that a manifest names, by its name below the folder of parts.

    Raises
    ------
    ValueError
        If ``save`` never writes such a name.
    """
    path, parts, expected = os.path.join(str(source), MANIFEST), manifest["parts"], manifest["sha256"]
    if not (isinstance(parts, str) and PARTS.fullmatch(parts) and isinstance(expected, dict)):
        raise ValueError(f"{path!r} is damaged; save the model again or take a copy of it.")
    if len(expected) > _MOST_FILES:
        raise ValueError(
            f"{path!r} names {len(expected)} files, but save writes at most {_MOST_FILES}; do not trust this model."
        )
    for name in expected:
        if not _FILE.fullmatch(name) or {".", ".."} & {*name.split("/")}:
            raise ValueError(f"{path!r} names a file that save never writes ({name!r}); do not trust this model.")
    if "sizes" in manifest and not are_sizes(manifest["sizes"], expected):
        raise ValueError(f"{path!r} is damaged (its sizes do not fit its files); do not trust this model.")
    return {name: f"{parts}/{name}" for name in expected}


def _read_parts(source: Path | CachedModel, manifest: dict[str, Any]) -> Files:
    """Read and check every file that the manifest names."""
    files: Files = {}
    for name, path in named_files(source, manifest).items():
        try:
            files[name] = _read(source, path, allowed_sizes(manifest, name))
            reason = "" if sha256(files[name]) == manifest["sha256"][name] else "its SHA-256 differs"
        except WrongSizeError as error:
            reason = str(error)
        except OSError as error:
            raise ValueError(
                f"The model in {str(source)!r} lacks its file {name!r} ({error.strerror}); take a complete copy of it."
            ) from error
        if reason:
            remedy = "copy it again" if isinstance(source, Path) else _REMEDY.format(str(source.folder.parents[1]))
            raise ValueError(f"The file {name!r} of the model in {str(source)!r} is damaged ({reason}); {remedy}.")
    return files


def _read(source: Path | CachedModel, name: str, sizes: range) -> bytes:
    if isinstance(source, CachedModel):
        return read_file((source.folder / name).resolve(), sizes)
    return read_file(source / name, sizes, below=source)


def write_files(files: Files, folder: Path) -> None:
    """Write files by relative path."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def sha256(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def explained_failure(target: Path, n_bytes: int) -> Iterator[None]:
    """Add the folder and the needed space to errors of writing."""
    try:
        yield
    except OSError as error:
        msg = (
            f"The model cannot be written to {str(target)!r} ({error.strerror or error}); it needs {n_bytes / 1e6:.1f} "
            "MB: free some space, or pass another folder. What was there before is unchanged."
        )
        failure = type(error)(msg)
        failure.errno = error.errno
        raise failure from error


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Create a folder and lock it against other saves; yields whether it is locked, if the file system has locks."""
    with ExitStack() as stack:
        is_locked = False
        while not is_locked:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                is_locked = stack.enter_context(holding(folder / _LOCK, waits=True))
            except FileNotFoundError:  # another save failed, and removed the folder before it was held
                continue
            except (OSError, NotImplementedError):  # on a file system without locks
                break
        yield is_locked


def is_vacant(target: Path) -> bool:
    """Whether a folder does not exist, or holds only leftovers of a killed save."""
    return not os.path.lexists(target) or (target.is_dir() and all(_is_unfinished(path) for path in target.iterdir()))


def check_target(target: Path, overwrite: bool) -> None:
    """Raise an error for a folder that must not be replaced: only models that ``save`` wrote are."""
    if is_vacant(target):
        return
    if not overwrite:
        raise FileExistsError(
            f"{str(target)!r} exists; pass overwrite=True to replace a model that was saved there, or another folder."
        )
    try:
        read_manifest(target)
    except ValueError as error:
        raise FileExistsError(
            f"{str(target)!r} holds something other than a saved model, which is left alone; pass another folder."
        ) from error


def check_unchanged(target: Path, loaded: str | None) -> None:
    """Raise an error if the manifest in a folder does not have this hash; ``None``: if there is a model."""
    check_target(target, overwrite=True)
    if _present(target).get("manifest_sha256", loaded) != loaded:
        raise FileExistsError(
            f"The model in {str(target)!r} was changed meanwhile, and this change is not written; run the command "
            "again, to change the model as it is now."
        )


def write_model(target: Path, manifest: dict[str, Any], files: Files, card: bytes, *, is_locked: bool) -> None:
    """Write the new parts beside the old ones, if there are any; then replace the manifest, which names them."""
    parts, path, old = manifest["parts"], target / CARD, _present(target)
    own = old.get("readme_sha256")
    present = sha256(path.read_bytes()) if path.is_file() and not path.is_symlink() else None
    # A card that save did not write, or that was changed since, is kept as the user's.
    writes_card = isinstance(own, list) and present in own if present else not os.path.lexists(path)
    suffix = f"{secrets.token_hex(4)}.tmp"
    new_manifest, new_card = target / f"{MANIFEST}.{suffix}", target / f"{CARD}.{suffix}"
    try:
        write_files(files, target / parts)
        if writes_card:
            new_card.write_bytes(card)
            to_disk(new_card)
        # The hash of the present card, too: if this save is killed before replacing it, the next save recognises it.
        hashes = [sha256(card), present] if present else [sha256(card)]
        new_manifest.write_bytes(manifest_bytes(manifest | {"readme_sha256": hashes if writes_card else []}))
        to_disk(target / parts)
        to_disk(new_manifest)
        new_manifest.replace(target / MANIFEST)
    except BaseException:
        if _present(target).get("parts") != parts:
            shutil.rmtree(target / parts, ignore_errors=True)
        new_manifest.unlink(missing_ok=True)
        new_card.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # the new manifest is there in any case
        to_disk(target, below=False)
    if writes_card:
        try:
            new_card.replace(path)
        except OSError as error:
            new_card.unlink(missing_ok=True)
            warn(f"The model is saved, but its model card {str(path)!r} cannot be written ({error}).")
    with suppress(OSError):  # leftovers are harmless, and the next save removes them
        _remove_replaced(target, parts, str(old.get("parts")), is_locked=is_locked)


def _present(target: Path) -> dict[str, Any]:
    """Read the manifest of the model in a folder, empty without one."""
    return read_manifest(target)[0] if os.path.lexists(target / MANIFEST) else {}


def _is_unfinished(path: Path) -> bool:
    """Whether a file or folder is only part of an unfinished save: parts, or a file before it is renamed."""
    return path.name == _LOCK or bool((PARTS if path.is_dir() else _TEMPORARY).fullmatch(path.name))


def _remove_replaced(target: Path, parts: str, replaced: str, *, is_locked: bool) -> None:
    """Remove every folder of parts but one, and the leftovers of interrupted saves.

    ``is_locked``: no other save is running; otherwise only replaced or old files are removed.
    """
    for old in target.iterdir():
        is_nobodys = is_locked or old.name == replaced or _is_stale(old)
        if old.name in (parts, _LOCK) or not _is_unfinished(old) or not is_nobodys:
            continue
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def _is_stale(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _STALE
    except OSError:
        return False
