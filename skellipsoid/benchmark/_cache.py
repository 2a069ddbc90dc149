"""Arrays kept on disk under the SHA-256 of everything that they were computed from."""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._identity import array_content, by_value

Arrays = Mapping[str, NDArray[Any]]


def content_key(*things: Any) -> str:
    """SHA-256 over arrays, lists of strings and whatever else has a value, each with its length."""
    digest = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
            content = array_content(thing)
        else:
            plain = thing.tolist() if isinstance(thing, np.ndarray) else thing
            content = json.dumps(by_value(plain), sort_keys=True).encode()
        digest.update(f"{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def kept_arrays(folder: Path, key: str, make: Callable[[], Arrays], names: Sequence[str] = ()) -> Arrays:
    """Give the arrays of a key, from the disk or by ``make``, also if those on the disk lack a name.

    A file is there whole or not at all, so that any number of processes may share the folder.
    """
    path = folder / f"{key}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if {*names} <= {*stored.files}:
                return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        pass
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile):
        path.unlink()  # damaged by something else than a kill
    arrays = make()
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{key}.{os.getpid()}.part"
    with part.open("wb") as target:
        np.savez(target, **arrays)  # type: ignore[arg-type]
    part.replace(path)
    return arrays
