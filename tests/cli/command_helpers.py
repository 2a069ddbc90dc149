"""What tests of several commands have in common."""

from export_helpers import content_of

from skellipsoid.cli import main


def done(capsys, *arguments):
    """Run, expect status 0, and give the output."""
    capsys.readouterr()
    status, (out, err) = main(list(map(str, arguments))), capsys.readouterr()
    assert status == 0, err
    return out


def fails(capsys, *arguments):
    """Run, expect status 2, and give the one sentence on standard error."""
    capsys.readouterr()
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("skellipsoid: ")
    assert err.count("\n") == 1
    return err


def refuses(capsys, folder, *arguments):
    """Run, expect that nothing in a folder changes, and give the one sentence on standard error."""
    before = content_of(folder)
    error = fails(capsys, *arguments)
    assert content_of(folder) == before
    return error
