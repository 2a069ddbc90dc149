"""Recognises a workbook by its first bytes, and unpacks its members within bounds."""

import zipfile
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

#: Bytes of the members that are read, once they are unpacked.
MOST_BYTES = 200_000_000
_ZIP, OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Streams of old containers, in UTF-16: what is locked, and what is no workbook.
_LOCKED, _SHEETS = "EncryptedPackage".encode("utf-16-le"), [name.encode("utf-16-le") for name in ("Workbook", "Book")]
#: Files in a zip archive, by a member that they hold, and what to do with them.
_NO_WORKBOOK = {
    "xl/workbook.bin": "is a binary workbook; save it as .xlsx",
    "index/document.iwa": "is a document of Numbers; export it as .xlsx",
    "word/document.xml": "is a Word document; copy its table into a workbook",
    "ppt/presentation.xml": "is a presentation; copy its texts into a workbook",
}


class Package(NamedTuple):
    """A workbook before its cells are read."""

    #: ``"xlsx"``, ``"ods"`` or ``"xls"``.
    kind: str
    content: bytes
    #: Members of a zip archive, by their names in lower case.
    members: dict[str, zipfile.ZipInfo]


def is_workbook(path: Path) -> bool:
    """Whether a file begins as workbooks do; a pipe, which can be read but once, is none."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(OLD)).startswith((_ZIP, OLD))
    except OSError:  # whoever reads it says so
        return False


def first_sheet(path: Path) -> list[str]:
    """Choose the first sheet of a workbook without a word on the others; nothing of other files."""
    return ["1"] if is_workbook(path) else []


def open_package(content: bytes, path: Path) -> Package:
    """Recognise a workbook.

    Raises
    ------
    ValueError
        If it is another file of the same first bytes, if it is locked, or if it is damaged.
    """
    if content.startswith(OLD):
        if _LOCKED in content:
            raise ValueError(locked(path))
        if not any(name in content for name in _SHEETS):
            raise ValueError(f"{str(path)!r} is no workbook, but another file of Microsoft Office; save it as .xlsx.")
        return Package("xls", content, {})
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            members = {_plain(each.filename).lower(): each for each in archive.infolist()}
    except Exception as error:  # of a damaged archive, zipfile raises many types
        raise ValueError(damaged(path)) from error
    if "xl/workbook.xml" in members:
        return Package("xlsx", content, members)
    for name, sentence in _NO_WORKBOOK.items():
        if name in members:
            raise ValueError(f"{str(path)!r} {sentence}.")
    kind = _unpacked(content, members, ["mimetype"], path).get("mimetype", b"")
    if "content.xml" in members and b"opendocument.spreadsheet" in kind:
        manifest = _unpacked(content, members, ["meta-inf/manifest.xml"], path).get("meta-inf/manifest.xml", b"")
        if b"encryption-data" in manifest:
            raise ValueError(locked(path))
        return Package("ods", content, members)
    raise ValueError(f"{str(path)!r} is a zip archive and no workbook; unpack it.")


def unpack(package: Package, names: list[str], path: Path) -> dict[str, bytes]:
    """Give the contents of members that are there, by their names in lower case.

    Raises
    ------
    ValueError
        If they take too many bytes, or if one is damaged or locked.
    """
    return _unpacked(package.content, package.members, names, path)


def _unpacked(content: bytes, members: dict[str, zipfile.ZipInfo], names: list[str], path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for name in (name for name in names if name in members):
            if members[name].flag_bits & 1:
                raise ValueError(locked(path))
            try:
                with archive.open(members[name]) as member:
                    found[name] = member.read(left + 1)
            except Exception as error:
                raise ValueError(damaged(path)) from error
            left -= len(found[name])
            if left < 0:
                raise ValueError(
                    f"{str(path)!r} unpacks to more than {MOST_BYTES // 1_000_000} MB; save the sheet as 'CSV UTF-8', "
                    "or split it."
                )
    return found


def packed(members: dict[str, bytes]) -> bytes:
    """Pack members that were checked, and nothing else: what reads them sees what was checked."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def target_of(target: str) -> str:
    """Name the member that a relation of the workbook leads to."""
    return _plain(target if target.startswith("/") else f"xl/{target}")


def damaged(path: Path) -> str:
    """Say that a workbook cannot be read."""
    return f"{str(path)!r} is a damaged workbook; take a complete copy of it, or open it and save it again as .xlsx."


def locked(path: Path) -> str:
    """Say that a workbook has a password."""
    return f"{str(path)!r} is locked by a password; save a copy without one."


def _plain(name: str) -> str:
    parts: list[str] = []
    for part in name.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
