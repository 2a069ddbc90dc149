"""What tests of several commands have in common."""

from skellipsoid.cli import main


def fails(capsys, *arguments):
    """Run, expect status 2, and give the one sentence on standard error."""
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("skellipsoid: ")
    assert err.count("\n") == 1
    return err
