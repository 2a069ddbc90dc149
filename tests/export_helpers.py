"""What the tests of the command ``export``, and of ``predict`` with an export, have in common."""

from skellipsoid.cli import main

STALE = "was not made of the model as it is now"
MANIFEST = "skellipsoid_onnx.json"


def run(capsys, *words):
    """Status, output and notes of a command."""
    return main(list(map(str, words))), *capsys.readouterr()


def content_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remedy(model):
    """How the note ends that the export beside a model is not used; what comes before it is the reason."""
    return (
        "so the model itself answers, which takes longer to start; export it again with skellipsoid export --model "
        f"{model}, or remove the folder 'onnx' in it.\n"
    )
