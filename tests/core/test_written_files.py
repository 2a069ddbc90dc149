"""Files for people are where the user said, whole or not at all, and no spreadsheet runs what strangers wrote."""

import csv
import os
import re
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skellipsoid._core.files import check_sheet, guarded, replacing, unguarded, write_sheet


def read(path, delimiter="\t"):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_a_link_stays_and_the_file_that_it_leads_to_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.tsv"
    link.symlink_to(tmp_path / "there" / "real.tsv")  # which is not there yet
    for number in range(2):
        write_sheet(link, ["a"], [[number]])
        assert link.is_symlink()
        assert read(tmp_path / "there" / "real.tsv") == [["a"], [str(number)]]
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["real.tsv"]


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
        check_sheet(path)
    with pytest.raises(OSError, match=words), replacing(path) as partial:
        partial.write_text("a")
    assert (os.lstat(path).st_ino, os.lstat(path).st_mode) == (before.st_ino, before.st_mode)


def test_the_rights_of_a_file_stay(tmp_path):
    path = tmp_path / "private.tsv"
    path.touch(0o600)
    write_sheet(path, ["a"], [["b"]])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_csv_has_commas_and_a_mark_for_excel(tmp_path):
    write_sheet(tmp_path / "a.csv", ["größe", "b"], [["1,5", "x\ty"]])
    assert (tmp_path / "a.csv").read_bytes() == '\ufeffgröße,b\n"1,5",x\ty\n'.encode()


@pytest.mark.parametrize("name", ["a.xlsx", "a.XLS", "a.json", "a.parquet"])
def test_a_name_of_another_format_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"names a \.\w+ file, but a table of text is written"):
        write_sheet(tmp_path / name, ["a"], [["b"]])
    assert not any(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        check_sheet(tmp_path / "nowhere" / "a.tsv")


@pytest.mark.parametrize(
    "cell", ['=HYPERLINK("x")', "+1+1", "-2+3", "@SUM(1)", "\t=1", "'=1", "''-x", "-", "=", "+49 30 1"]
)
def test_what_a_spreadsheet_runs_is_guarded(cell):
    assert guarded(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-1", "+5", "-0.25", "-2,5", "a=b", "it's", "'quoted'", "", "wake me"])
def test_what_no_spreadsheet_runs_stays_as_it_is(cell):
    assert guarded(cell) == cell


@given(st.text("=+-@'\t\r 1a,.", max_size=6) | st.text(max_size=10))
@settings(max_examples=100, deadline=None)
def test_a_guarded_cell_comes_back_and_is_not_run(cell):
    written = guarded(cell)
    assert unguarded(written) == cell
    assert not re.match(r"[=+\-@\t\r]", written) or re.fullmatch(r"[-+]?\d+([.,]\d+)?", written)
