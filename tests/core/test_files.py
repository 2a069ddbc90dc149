"""A file is replaced whole or not at all."""

import os
from contextlib import suppress

from skellipsoid._core.files import replacing


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
