"""``predict --out``: the predictions for many files, each in its own file, so that an interrupted run goes on."""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from glob import glob
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from .._core.files import replacing, to_disk
from .._core.messages import numbered
from .._text_files.workbooks.package import is_workbook
from .._text_files.workbooks.write_workbook import SUFFIX
from .._torch.progress import progress_bar
from ..persistence._folder import locked

#: The options of the run whose predictions a folder holds, and which predictions belong to which content of a file.
_REQUEST, _JOURNAL = "predict.json", "predict.answered"
#: Options that change no prediction: where model, texts and predictions are, and what is printed.
_CHANGE_NO_PREDICTION = {"command", "model", "revision", "data", "texts", "save", "out", "quiet"}
#: A file that is being written, as ``replacing`` names it.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def predict_files(
    options: argparse.Namespace, model_sha256: str, predict: Callable[[Path], Iterable[str] | Iterable[bytes]]
) -> None:
    """Predict each file of ``--data`` that has no predictions yet, or that has changed since.

    Another run on the same folder waits. What a run that was killed left half written is removed.

    Parameters
    ----------
    options : Namespace
    model_sha256 : str
        Hash of the model, as it was loaded: the folder of ``--model`` may hold another one by now.
    predict : callable
        Gives the lines of the predictions for a file, or all bytes.
    """
    files = _files(options.data)
    _check_targets(files, options)
    folder: Path = options.out
    with locked(folder) as is_alone:
        _check_request(folder, _request(options, model_sha256))
        if is_alone:
            for left in filter(lambda path: _TEMPORARY.fullmatch(path.name), folder.iterdir()):
                left.unlink()
        records = _records(folder)
        waiting = [path for path in files if not _has_predictions(_target(folder, path, options), path, records)]
        with progress_bar(len(files), "Files", "file", verbose=not options.quiet) as progress:
            progress.update(len(files) - len(waiting))
            for path in waiting:
                source = _digest(path)
                _write_predictions(_target(folder, path, options), predict(path), source)
                progress.update()
    done = len(files) - len(waiting)
    there = f"; {done} had their predictions already" if done else ""
    print(f"The predictions for {numbered(len(waiting), 'file')} are in {folder}{there}")


def _files(data: Path) -> list[Path]:
    """Files that a path or a pattern names.

    Raises
    ------
    ValueError
        If there is none.
    """
    files = [data] if data.exists() else [Path(name) for name in sorted(glob(str(data), recursive=True))]
    files = [path for path in files if path.is_file()]
    if not files:
        raise ValueError(
            f"--data {str(data)!r} names no file; pass a file or a pattern in quotes, such as 'part-*.parquet'."
        )
    return files


def _check_targets(files: list[Path], options: argparse.Namespace) -> None:
    """Refuse files whose predictions would be in one file, also where a file system ignores the case of letters."""
    names: dict[str, Path] = {}
    for path in files:
        other = names.setdefault(_target(Path(), path, options).name.casefold(), path)
        if other != path:
            what = "have the same name" if other.name == path.name else "differ too little in their names"
            raise ValueError(
                f"{str(other)!r} and {str(path)!r} {what}, and the predictions for both would be in one file; "
                "give each an --out of its own."
            )


def _target(folder: Path, path: Path, options: argparse.Namespace) -> Path:
    if options.keep_columns and is_workbook(path):
        return folder / f"{path.stem}{SUFFIX}"
    if options.keep_columns:
        return folder / (f"{path.name}l" if path.suffix.lower() == ".json" else path.name)
    return folder / f"{path.name}.{'jsonl' if options.json else 'tsv'}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _records(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Read which predictions belong to which content of a file, by the name of their file."""
    found = defaultdict(list)
    path = folder / _JOURNAL
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
            found[record["file"]].append(record)
        except (ValueError, KeyError, TypeError):  # cut off by a kill, before its predictions were there
            continue
    return found


def _has_predictions(target: Path, source: Path, records: dict[str, list[dict[str, str]]]) -> bool:
    """Whether a file has predictions for what it now holds.

    Raises
    ------
    ValueError
        If its predictions are not as they were written: nothing says whether they can be replaced.
    """
    if not target.exists():
        return False
    found = _digest(target)
    sources = [record.get("source_sha256") for record in records[target.name] if record.get("sha256") == found]
    if not sources:
        raise ValueError(
            f"{str(target)!r} is not as predict wrote it ({target.stat().st_size} bytes; it was cut off or edited); "
            "remove it to predict its texts again, or move it elsewhere."
        )
    return _digest(source) in sources


def _request(options: argparse.Namespace, model_sha256: str) -> dict[str, Any]:
    """Give all that the predictions depend on: the model, and every option that is not known to change none."""
    return {"model_sha256": model_sha256} | {
        name: value for name, value in vars(options).items() if name not in _CHANGE_NO_PREDICTION
    }


def _check_request(folder: Path, request: dict[str, Any]) -> None:
    """Write the request into a new folder; an old one must hold predictions of the same model with the same options.

    Raises
    ------
    ValueError
        If it holds anything else.
    """
    path = folder / _REQUEST
    if not path.exists():
        if any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise ValueError(
                f"--out {str(folder)!r} is not empty, and holds no predictions of predict --out; choose a new folder."
            )
        with replacing(path) as partial:
            partial.write_text(f"{json.dumps(request)}\n", encoding="utf-8")
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        before = None
    # Options that an earlier version lacked had their default, which is none.
    if not isinstance(before, dict) or before != {
        name: value for name, value in request.items() if value or name in before
    }:
        what = (
            "another model"
            if isinstance(before, dict) and before.get("model_sha256") != request["model_sha256"]
            else "other options"
        )
        raise ValueError(f"--out {str(folder)!r} holds predictions of {what}; choose a new folder, or remove that one.")


def _write_predictions(target: Path, lines: Iterable[str] | Iterable[bytes], source: str) -> None:
    """Write a file at once, after a record of the content that it is for."""
    written, journal = sha256(), target.parent / _JOURNAL
    with replacing(target) as partial:
        with partial.open("xb") as file:
            for line in lines:
                content = line if isinstance(line, bytes) else f"{line}\n".encode(errors="replace")
                written.update(content)
                file.write(content)
        record = {"file": target.name, "sha256": written.hexdigest(), "source_sha256": source}
        with journal.open("a", encoding="utf-8") as records:
            records.write(f"\n{json.dumps(record)}")  # the line before may be cut off
        to_disk(journal)
