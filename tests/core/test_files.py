"""A file is replaced whole or not at all."""

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


def test_a_table_of_text(tmp_path):
    write_table(tmp_path / "a.tsv", ["a", "b"], [["1", "2\t3"]])
    write_table(tmp_path / "a.csv", ["a", "b"], [["1", "2\t3"]], delimiter=",")
    assert (tmp_path / "a.tsv").read_bytes() == b'a\tb\n1\t"2\t3"\n'
    assert (tmp_path / "a.csv").read_bytes() == b"a,b\n1,2\t3\n"
