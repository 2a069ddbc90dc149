"""Workbooks as people hand them on: saved again by LibreOffice, with labels filled in."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest


def converted(path, kind):
    """Save a workbook by LibreOffice, in the same kind or another; skips where there is none."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("needs LibreOffice (Debian: libreoffice-calc-nogui)")
    folder = path.with_name(f"{path.stem}-{kind}")
    home = Path(path.parent / "office").as_uri()
    command = [program, f"-env:UserInstallation={home}", "--headless", "--convert-to", kind, "--outdir", folder, path]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return Path(folder / f"{path.stem}.{kind}")


def change_member(path, change, member="xl/worksheets/sheet1.xml"):
    """Change one member of a workbook."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[member] = change(members[member])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def fill_in(path, labels, column="B"):
    """Write labels below the header of an empty column of the first sheet, after the cell before it."""
    before = chr(ord(column) - 1)

    def change(content):
        def with_label(cell):
            row = int(cell[2])
            label = labels[row - 2] if 2 <= row < len(labels) + 2 else ""
            text = f'<c r="{column}{row}" t="inlineStr"><is><t>{escape(label)}</t></is></c>' if label else ""
            return cell[1] + text

        pattern = rf'(<c r="{before}(\d+)"[^>]*>.*?</c>)'
        return re.sub(pattern, with_label, content.decode(), flags=re.DOTALL).encode()

    change_member(path, change)
    return path
