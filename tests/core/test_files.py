"""A file is replaced whole or not at all."""

import errno
import os
from contextlib import suppress

import pytest

from skellipsoid._core.files import replacing, write_table


def test_a_file_is_replaced_once_it_is_complete_and_on_the_disk(tmp_path, monkeypatch):
    synced, path = [], tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    with replacing(path) as partial:
        partial.write_text("longer")
        assert path.read_text() == "old"
    assert (path.read_text(), synced, list(tmp_path.iterdir())) == ("longer", [6], [path])


def test_a_file_stays_as_it_was_if_the_new_one_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with suppress(KeyboardInterrupt), replacing(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "nowhere" / "file.tsv"
    with pytest.raises(FileNotFoundError) as caught:
        write_table(path, ["a", "b"], [["1", "2"]])
    assert caught.value.filename == str(path)


def test_an_error_of_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, replacing(tmp_path / "file.tsv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(tmp_path / "file.tsv")


def test_what_a_killed_process_has_left_is_removed_once_it_is_old(tmp_path):
    path = tmp_path / "file[1].tsv"
    old, new, other = (
        tmp_path / f".{name}.tmp" for name in ("file[1].tsv.0123abcd", "file[1].tsv.4567abcd", "x.89abcdef")
    )
    for left in (old, new, other):
        left.write_text("half")
    for left in (old, other):
        os.utime(left, (0, 0))
    write_table(path, ["a"], [["1"]])
    assert sorted(tmp_path.iterdir()) == sorted([path, new, other])


def test_a_table_of_text(tmp_path):
    write_table(tmp_path / "a.tsv", ["a", "b"], [["1", "2\t3"]])
    write_table(tmp_path / "a.csv", ["a", "b"], [["1", "2\t3"]], delimiter=",")
    assert (tmp_path / "a.tsv").read_bytes() == b'a\tb\n1\t"2\t3"\n'
    assert (tmp_path / "a.csv").read_bytes() == b"a,b\n1,2\t3\n"
