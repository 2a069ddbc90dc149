"""The files of a folder, of a zip, or a single file, by name, within bounds of size and number."""

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .._core.messages import named
from .._core.no_text import check_is_text

#: Bytes of one file, and of all files of a zip together.
MOST_BYTES, MOST_UNPACKED = 50_000_000, 200_000_000
#: Files of a zip, and of a folder.
MOST_MEMBERS, MOST_FILES = 10_000, 200_000
#: Folders that hold programs, and no training texts.
_OF_PROGRAMS = {"node_modules", "venv", "__pycache__", "__MACOSX"}
#: What spreadsheets are, which are zips too.
_OF_SHEETS = {"[Content_Types].xml", "mimetype", "Index.zip", "Index/Document.iwa"}


class Member(NamedTuple):
    """A file: its name with ``/``, and what reads it."""

    name: str
    read: Callable[[], bytes]

    def text(self, encoding: str | None, marker: str = "") -> str:
        """Read the file as text: UTF-8, UTF-16 with a mark, or of the encoding that the user names.

        A file without the ``marker`` of a format is empty, whatever it holds.
        """
        content = self.read()
        if encoding is None:
            encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        if not encoding.lower().startswith("utf-16") and marker.encode() not in content:
            return ""
        check_is_text(content, Path(self.name), may_be_page=True)
        try:
            return content.decode(encoding)
        except LookupError as error:
            raise ValueError(
                f"--encoding {encoding!r} is not known; pass a name of Python's, such as cp1251, gb18030 or shift_jis."
            ) from error
        except UnicodeError as error:
            number = content[: getattr(error, "start", 0)].count(b"\n") + 1
            raise ValueError(
                f"Line {number} of {self.name!r} is not {encoding.removesuffix('-sig').upper()}; name the encoding of "
                "the files with --encoding, such as cp1252, or save the file as UTF-8."
            ) from error


class Members(NamedTuple):
    """Files in the order of their names, and what of the place is not read at all."""

    files: list[Member]
    notes: list[str]


def of_file(path: Path) -> Members:
    """Give a single file. Its name keeps its folders, which name the intent of some files."""
    return Members([Member(path.absolute().as_posix(), lambda: _read(path))], [])


def _read(path: Path) -> bytes:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(
            f"{str(path)!r} has {path.stat().st_size / 1e6:.0f} MB, but files of bots may have {MOST_BYTES / 1e6:.0f} "
            "MB; divide it."
        )
    return path.read_bytes()


def of_folder(path: Path) -> Members:
    """Give the files below a folder; hidden ones and those of programs are left out, links are not followed."""
    files: list[Member] = []
    links: list[str] = []
    for folder, folders, names in os.walk(path):
        place = Path(folder)
        linked = [place / name for name in (*folders, *names) if (place / name).is_symlink()]
        links += [link.relative_to(path).as_posix() for link in linked]
        folders[:] = sorted(name for name in folders if not (name in _OF_PROGRAMS or name.startswith(".")))
        for name in sorted(names):
            file = place / name
            if not name.startswith(".") and not file.is_symlink() and file.is_file():
                files.append(Member(file.relative_to(path).as_posix(), lambda file=file: _read(file)))  # type: ignore[misc]
        if len(files) > MOST_FILES:
            raise ValueError(f"{str(path)!r} holds more than {MOST_FILES:,} files; name the folder of the texts.")
    return Members(files, [f"{named('link', sorted(links))} not followed"] if links else [])


def of_zip(path: Path) -> Members | None:
    """Give the files of a zip, which are read and never unpacked; ``None`` for a workbook, or a damaged one."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        if path.suffix.lower() != ".zip":
            return None
        raise ValueError(f"{str(path)!r} is a damaged zip ({error}); take a complete copy of it.") from error
    members = [info for info in archive.infolist() if not info.is_dir()]
    if not _OF_SHEETS.isdisjoint(info.filename for info in members):
        return None
    if len(members) > MOST_MEMBERS:
        raise ValueError(
            f"{str(path)!r} holds {len(members):,} files, but a zip may hold {MOST_MEMBERS:,}; unpack it and pass the "
            "folder."
        )
    room = [MOST_UNPACKED]
    unpacked = cache(lambda name: _unpacked(archive, archive.getinfo(name), path, room))
    files = [
        Member(info.filename, lambda info=info: unpacked(info.filename))  # type: ignore[misc]
        for info in sorted(members, key=lambda info: info.filename)
        if not any(part in _OF_PROGRAMS or part.startswith(".") for part in info.filename.split("/"))
    ]
    inner = [file.name for file in files if file.name.lower().endswith(".zip")]
    if inner:
        raise ValueError(f"{str(path)!r} holds another zip, {inner[0]!r}; unpack it and pass that one or the folder.")
    locked = [info.filename for info in members if info.flag_bits & 1]
    if locked:
        raise ValueError(f"{str(path)!r} has a password, as for {locked[0]!r}; unpack it and pass the folder.")
    return Members(files, [])


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, room: list[int]) -> bytes:
    """Read a file of a zip, and count what all of them have given: sizes that the zip itself names may be wrong."""
    most = min(MOST_BYTES, room[0])
    try:
        with archive.open(info) as file:
            content = b"".join(_chunks(file.read, most))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise ValueError(f"{info.filename!r} of {str(path)!r} cannot be read ({error}); unpack it yourself.") from error
    room[0] -= len(content)
    if len(content) > most:
        raise ValueError(
            f"{info.filename!r} of {str(path)!r} is too large: one file may have {MOST_BYTES / 1e6:.0f} MB, all "
            f"files of a zip {MOST_UNPACKED / 1e6:.0f} MB; unpack it, divide it, and pass the folder."
        )
    return content


def _chunks(read: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    size = 0
    while size <= most and (chunk := read(1 << 20)):
        size += len(chunk)
        yield chunk
