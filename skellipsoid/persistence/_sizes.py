"""Checks sizes of the files of a model before reading, so that a wrong file costs neither time nor memory."""

import errno
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

#: Largest number of bytes of a file, by suffix: manifest or tokenizer, card, and weights or arrays.
_MOST_BYTES = {".json": 2**28, ".md": 2**28, ".safetensors": 2**38}


class WrongSizeError(ValueError):
    """The size of a file is not allowed."""


def any_size(name: str) -> range:
    """Return the allowed sizes of files of a kind, in bytes."""
    return range(_MOST_BYTES[Path(name).suffix] + 1)


def allowed_sizes(manifest: Mapping[str, Any], name: str) -> range:
    """Return the allowed size of a file: that in the manifest, or in one without sizes, that of its kind."""
    size = manifest.get("sizes", {}).get(name)
    return any_size(name) if size is None else range(size, size + 1)


def are_sizes(sizes: Any, names: Collection[str]) -> bool:
    """Whether these sizes of the files are allowed."""
    return (
        isinstance(sizes, dict)
        and {*sizes} == {*names}
        and all(type(size) is int and size in any_size(name) for name, size in sizes.items())
    )


def check_sizes(files: Mapping[str, bytes]) -> None:
    """Raise an error if ``load`` would refuse a file for its size."""
    for name, content in files.items():
        if len(content) not in any_size(name):
            raise ValueError(
                f"The estimator cannot be written, because load would refuse it ({name!r} would have {len(content)} "
                f"bytes, at most {any_size(name)[-1]} are allowed); fit it without keep_texts, or with fewer texts."
            )


def read_file(path: Path, sizes: range, below: Path | None = None) -> bytes:
    """Read a regular file of an allowed size; the folders between ``below`` and it must be folders too.

    Raises
    ------
    WrongSizeError
        If it has another size; it is not read then.
    OSError
        If it, or such a folder, is missing, or is a symbolic link, a pipe or a device, which are not waited for.
    """
    for folder in path.parents if below is not None else ():
        if folder == below:
            break
        if stat.S_ISLNK(folder.lstat().st_mode):
            raise OSError(errno.ELOOP, "its folder is a symbolic link")
    # Flags that Windows lacks, and does not need.
    flags = [getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")]
    try:
        handle = os.open(path, sum(flags, os.O_RDONLY))
    except OSError as error:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a symbolic link") from error
        raise
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if found.st_size not in sizes:
            allowed = f"must have {sizes[0]}" if len(sizes) == 1 else f"may have {sizes[-1]}"
            raise WrongSizeError(f"it has {found.st_size} bytes, but {allowed}")
        return file.read(found.st_size)
