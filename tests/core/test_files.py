"""A file is replaced whole or not at all: here those of the groups that were discovered."""

import errno
import os

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, discover_classes


@pytest.fixture(scope="module")
def groups():
    """Two groups of open samples."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(5), 30)
    X = 9 * rng.normal(size=(5, 4))[y] + rng.normal(size=(150, 4))
    return discover_classes(EllipsoidOpenSetClassifier(random_state=0).fit(X[y < 3], y[y < 3]), X[y >= 3])


@pytest.fixture
def path(tmp_path):
    """A file that is there already."""
    (tmp_path / "groups.tsv").write_text("old")
    return tmp_path / "groups.tsv"


def test_a_file_is_replaced_once_it_is_complete_and_on_the_disk(groups, path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_size, path.read_text())))
    groups.to_tsv(path)
    members = path.with_name("groups-members.tsv")
    assert synced == [(members.stat().st_size, "old"), (path.stat().st_size, "old")]
    assert sorted(path.parent.iterdir()) == [members, path]
    assert path.read_text().count("\n") == 1 + groups.n_groups


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))], ids=lambda error: str(error)
)
def test_a_file_stays_as_it_was_if_the_new_one_fails(groups, path, monkeypatch, error):
    def fail(handle):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)) as caught:
        groups.to_tsv(path)
    assert (path.read_text(), [*path.parent.iterdir()]) == ("old", [path])
    if isinstance(error, OSError):  # of a full disk, which knows no name
        assert caught.value.filename == str(path.with_name("groups-members.tsv"))


def test_an_error_names_the_file_that_was_asked_for(groups, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        groups.to_tsv(tmp_path / "nowhere" / "groups.tsv")
    assert caught.value.filename == str(tmp_path / "nowhere" / "groups-members.tsv")
