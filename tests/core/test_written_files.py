"""Files for people are where the user said, whole or not at all, and no spreadsheet runs what strangers wrote."""

import csv
import errno
import os
import re
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skellipsoid import DiscoveredClasses
from skellipsoid._core.files import guarded, unguarded


def read(path, delimiter="\t"):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def save(path, text="wake me", name="a"):
    """Write a table of one group of one text, and one of its members beside it."""
    one, no_words = np.ones(1), [[]]
    numbers = np.zeros(1, dtype=int)
    found = DiscoveredClasses(
        *(numbers, numbers == 0, one, np.array([text], dtype=object), [name], 1 + numbers, 1 + numbers, one, no_words),
        *([numbers], np.array(["light"]), one, numbers > 0, numbers == 0, numbers),
    )
    found.to_tsv(path)


@pytest.fixture
def path(tmp_path):
    """A file that is there already."""
    (tmp_path / "groups.tsv").write_text("old")
    return tmp_path / "groups.tsv"


def test_a_file_is_replaced_once_it_is_complete_and_on_the_disk(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_size, path.read_text())))
    save(path)
    members = path.with_name("groups-members.tsv")
    assert synced == [(members.stat().st_size, "old"), (path.stat().st_size, "old")]
    assert sorted(path.parent.iterdir()) == [members, path]
    assert path.read_text().count("\n") == 2


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))], ids=lambda error: str(error)
)
def test_a_file_stays_as_it_was_if_the_new_one_fails(path, monkeypatch, error):
    def fail(handle):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)) as caught:
        save(path)
    assert (path.read_text(), [*path.parent.iterdir()]) == ("old", [path])
    if isinstance(error, OSError):  # of a full disk, which knows no name
        assert caught.value.filename == str(path.with_name("groups-members.tsv"))


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        save(tmp_path / "nowhere" / "groups.tsv")
    assert caught.value.filename == str(tmp_path / "nowhere" / "groups-members.tsv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device", "folder", "loop"])
def test_what_is_no_file_is_refused_and_stays(tmp_path, kind):
    path = tmp_path / "out"
    if kind in ("pipe", "link to a pipe"):
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe") if kind != "pipe" else (tmp_path / "pipe").rename(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    before = os.lstat(path)
    words = {"folder": "a folder", "loop": "a link to itself"}.get(kind, "a device or a pipe")
    with pytest.raises(OSError, match=re.escape(f"{str(path)!r} is {words}, where a file is to be written; name a f")):
        save(path)
    assert (os.lstat(path).st_ino, os.lstat(path).st_mode) == (before.st_ino, before.st_mode)


def test_the_rights_of_a_file_stay(tmp_path):
    path = tmp_path / "private.tsv"
    path.touch(0o600)
    save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_csv_has_commas_and_a_mark_for_excel(tmp_path):
    save(tmp_path / "a.csv", text="größe; 1,5", name='a "b"')
    content = (tmp_path / "a.csv").read_bytes().decode()
    assert content.startswith("\ufeffgroup,proposed_name,label,")
    assert content.splitlines()[1].startswith('0,"a ""b""",,1,1,,"größe; 1,5",,,mixed,a-members.csv,r')


@pytest.mark.parametrize("cell", ['=HYPERLINK("x")', "+1+1", "-2+3", "@SUM(1)", "'=1", "''-x", "-", "=", "+49 30 1"])
def test_what_a_spreadsheet_runs_is_guarded(tmp_path, cell):
    save(tmp_path / "a.tsv", text=cell)
    assert read(tmp_path / "a.tsv")[0]["example_1"] == f"'{cell}"


@given(st.text("=+-@'\t\r 1a,.", max_size=6) | st.text(max_size=10))
@settings(max_examples=100, deadline=None)
def test_a_guarded_cell_comes_back_and_is_not_run(cell):
    written = guarded(cell)
    assert unguarded(written) == cell
    assert not re.match(r"[=+\-@\t\r]", written) or re.fullmatch(r"[-+]?\d+([.,]\d+)?", written)


@pytest.mark.parametrize("name", ["a.xlsx", "a.XLS", "a.json", "a.parquet"])
def test_a_name_of_another_format_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"is a \.\w+ file, but the table is written as text"):
        save(tmp_path / name)
    assert not (tmp_path / name).exists()
