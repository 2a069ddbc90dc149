"""``predict --out``: the answers to many files, each in a file of its own, so that an interrupted run goes on."""

import argparse
import json
import os
import secrets
from collections.abc import Callable, Iterable
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any

from .._engine.common.progress import progress_bar
from .._text_files import read_texts
from ..persistence._folder import MANIFEST

#: What was asked of the run whose answers a folder holds.
_REQUEST = "predict.json"


def answer_files(options: argparse.Namespace, answers: Callable[[list[str]], Iterable[str]]) -> None:
    """Answer each file of ``--data`` that has no answers yet.

    Parameters
    ----------
    options : Namespace
    answers : callable
        Gives a line for each text.
    """
    files = _files(options.data)
    folder: Path = options.out
    _check_request(folder, _request(options))
    waiting = [path for path in files if _is_older(_target(folder, path, options), path)]
    with progress_bar(len(files), "Files", "file", verbose=not options.quiet) as progress:
        progress.update(len(files) - len(waiting))
        for path in waiting:
            _write(_target(folder, path, options), answers(read_texts(path, text_column=options.text_column)))
            progress.update()
    done = len(files) - len(waiting)
    there = f"; {done} had their answers already" if done else ""
    print(f"The answers to {len(waiting)} file{'' if len(waiting) == 1 else 's'} are in {folder}{there}")


def _files(data: Path) -> list[Path]:
    """Files that a path or a pattern names.

    Raises
    ------
    ValueError
        If there is none, or two have the same name.
    """
    files = [data] if data.exists() else [Path(name) for name in sorted(glob(str(data), recursive=True))]
    files = [path for path in files if path.is_file()]
    if not files:
        msg = f"--data {str(data)!r} names no file; pass a file or a pattern in quotes, such as 'part-*.parquet'."
        raise ValueError(msg)
    names: dict[str, Path] = {}
    for path in files:
        if names.setdefault(path.name, path) != path:
            msg = (
                f"{str(names[path.name])!r} and {str(path)!r} have the same name, but the answers to both would be in "
                "one file; answer each folder with an --out of its own."
            )
            raise ValueError(msg)
    return files


def _target(folder: Path, path: Path, options: argparse.Namespace) -> Path:
    return folder / f"{path.name}.{'jsonl' if options.json else 'tsv'}"


def _is_older(target: Path, source: Path) -> bool:
    """Whether answers are missing, or the file changed after them."""
    return not target.exists() or target.stat().st_mtime_ns < source.stat().st_mtime_ns


def _request(options: argparse.Namespace) -> dict[str, Any]:
    model = sha256((options.model / MANIFEST).read_bytes()).hexdigest()
    return {"model_sha256": model} | {
        name: getattr(options, name) for name in ("scores", "explain", "json", "text_column")
    }


def _check_request(folder: Path, request: dict[str, Any]) -> None:
    """Make the folder, or make sure that it holds answers of the same model with the same options.

    Raises
    ------
    ValueError
        If it holds anything else.
    """
    path = folder / _REQUEST
    if not path.exists():
        if folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            msg = f"--out {str(folder)!r} is not empty, and holds no answers of predict --out; choose a new folder."
            raise ValueError(msg)
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, [json.dumps(request)])
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        before = None
    if before != request:
        what = (
            "another model"
            if isinstance(before, dict) and before.get("model_sha256") != request["model_sha256"]
            else "other options"
        )
        msg = f"--out {str(folder)!r} holds answers of {what}; choose a new folder, or remove that one."
        raise ValueError(msg)


def _write(target: Path, lines: Iterable[str]) -> None:
    """Write a file at once: until it is complete it has another name."""
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with partial.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
