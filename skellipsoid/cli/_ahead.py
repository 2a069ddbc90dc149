"""Checks of the options and files of a command, before torch and scikit-learn are imported, which takes seconds."""

import argparse
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from skellipsoid_runtime._hub import check_no_revision, is_hub_name

from .._core.files import check_folder as check_place
from .._core.files import check_spreadsheet, members_path, real_file
from .._core.messages import numbered
from .._core.warn import silenced
from .._text_files.columns import choose_columns
from .._text_files.decode import UnclearEncodingError
from .._text_files.read import PARQUET, read_file, read_labels, read_rows
from .._text_files.workbooks.package import first_sheet, is_workbook
from .._text_files.workbooks.write_workbook import MEMBERS_SHEET, SUFFIX, check_workbook
from ..persistence._folder import is_vacant, read_manifest
from ._beside import FOLDER
from ._given import read_by
from ._pages.page import SUFFIX as PAGE

#: Commands that change their model, which so cannot be one of the hub.
_CHANGE = {"add", "remove", "merge", "learn", "set-threshold"}
#: Commands that read lines of standard input where there is no file.
_LINES = {"predict", "traffic", "set-threshold", "review", "monitor", "compare"}
#: Files up to this size in bytes are read here, to see whether they can be.
_MOST_BYTES = 20e6


def check_ahead(options: argparse.Namespace) -> None:
    """Check the options and files of a command.

    Raises
    ------
    OSError, ValueError, ImportError
        If it cannot be done, in one sentence.
    """
    name = options.command
    checks: dict[str, Callable[[argparse.Namespace], object]] = {
        "predict": _check_predict,
        "set-threshold": _check_threshold,
        "export": _check_export,
    }
    if name in checks:
        checks[name](options)
    _check_outputs(options)
    for each in ("model", "before", "after"):
        if (folder := getattr(options, each, None)) is not None:
            _check_model(folder, options)
    _check_given(options)


def _check_model(folder: Path, options: argparse.Namespace) -> None:
    if not is_hub_name(folder.as_posix()) or options.command in {*_CHANGE, "monitor"}:
        check_no_revision(folder.as_posix(), getattr(options, "revision", None))
        read_manifest(folder)


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written where the user says, or in the format of that name."""
    save, state = getattr(options, "save", None), getattr(options, "state", None)
    if options.command in ("review", "traffic", "compare"):
        if save is not None:
            _check_table(save, options)
        if save is not None and options.command != "compare":
            check_unlabelled(save)
    elif options.command == "predict":
        if save is not None:
            check_workbook(save)
    elif options.command in ("train", "demo"):
        check_folder(save, overwrite=options.overwrite)
    elif save is not None:
        check_folder(save, overwrite=None)
    if state is not None:
        real_file(state)
    out = getattr(options, "out", None)
    if out is not None and os.path.lexists(out) and not out.is_dir():
        raise NotADirectoryError(f"--out {str(out)!r} is a file, where a folder is to be; name a folder.")


def _check_table(path: Path, options: argparse.Namespace) -> None:
    """Refuse a name to which no table, workbook or page can be written."""
    checks = {} if options.command == "compare" else {SUFFIX: check_workbook, PAGE: check_place}
    checks.get(path.suffix.lower(), check_spreadsheet)(path)


def _check_given(options: argparse.Namespace) -> None:
    """Read the files of texts to see their errors, unless they are large."""
    data, label = getattr(options, "data", None), getattr(options, "label_column", None)
    if options.command in _LINES and data is None:
        of_file = {"--label-column": label, "--text-column": options.text_column, "--encoding": options.encoding}
        for name in (
            name for name, value in (of_file | {"--sheet": options.sheet or None}).items() if value is not None
        ):
            what = {"--encoding": "is that", "--sheet": "names a sheet"}.get(name, "names a column")
            raise ValueError(f"{name} {what} of the file of --data; pass a file, or leave {name} out.")
    log = getattr(options, "log", None)
    if options.command == "learn" and log is None:
        for name, value in {"--sheet": options.sheet, "--text-column": options.text_column}.items():
            if value:
                raise ValueError(f"{name} is that of the log; pass --log, or leave {name} out.")
    if log is not None:
        _try(log, lambda: read_rows(log, **read_by(options)))
    if data is None or (options.command == "predict" and options.out is not None):
        return
    columns = getattr(options, "text_column", None), label
    if options.command in ("train", "demo", "evaluate"):
        _try(data, lambda: _read_two(options, bots=True, language=options.language))
    elif options.command == "add" and columns == (None, None):
        how = {"sheets": options.sheet or first_sheet(data), "bots": True, "language": options.language}
        _try(data, lambda: read_file(data, "group", "label", encoding=options.encoding, **how))
    elif options.command == "add":
        _try(data, lambda: _read_two(options, bots=True, language=options.language))
    elif options.command == "learn":
        _try(data, lambda: read_file(data, "message", "label", encoding=options.encoding, is_partial=True))
    elif label is not None:
        _try(data, lambda: _read_two(options, is_partial=True))
    elif options.command not in ("predict", "monitor"):  # these read it before they load the model
        _try(data, lambda: read_rows(data, **read_by(options)))


def _try(path: Path, read: Callable[[], object]) -> None:
    """Read a file to see its errors; warnings come with the second reading. A pipe can be read only once."""
    if not path.exists() or path.is_dir() or (path.is_file() and path.stat().st_size < _MOST_BYTES):
        with silenced(), suppress(UnclearEncodingError):  # the labels of the model may decide it, once it is loaded
            read()


def _read_two(options: argparse.Namespace, **how: Any) -> None:
    columns = options.text_column, options.label_column
    table = read_file(options.data, *columns, encoding=options.encoding, sheets=options.sheet, **how)
    if table.n_columns and table.rows:
        choose_columns(table, options.data, *columns)


def _check_predict(options: argparse.Namespace) -> None:
    """Refuse options of ``predict`` that do not go together."""
    others = [name for name in ("scores", "explain", "json") if getattr(options, name)]
    if options.texts and options.data is not None:
        msg = "There are texts on the command line and in the file of --data; leave one of them out."
    elif options.out is not None and options.data is None:
        msg = "--out takes the predictions for the files of --data; pass a file or a pattern, or leave --out out."
    elif options.save is not None and (problem := _save_problem(options, others)):
        msg = problem
    elif not options.keep_columns:
        return
    elif options.data is None:
        msg = "--keep-columns keeps the columns of the file of --data; pass a file, or leave --keep-columns out."
    elif others:
        msg = f"--keep-columns writes all scores in the format of the file; leave --{others[0]} out."
    elif options.out is None and options.data.suffix.lower() in PARQUET:
        msg = "--keep-columns writes parquet to files alone; pass --out with a folder for them."
    elif options.out is None and options.save is None and is_workbook(options.data):
        msg = "--keep-columns writes workbooks to files alone; pass --save with a .xlsx, or --out with a folder."
    else:
        return
    raise ValueError(msg)


def _save_problem(options: argparse.Namespace, others: list[str]) -> str | None:
    """Say why the predictions cannot be saved in a workbook, if they cannot."""
    save: Path = options.save
    if options.data is None:
        return "--save writes the rows of the file of --data; pass a file, or leave --save out."
    if others or options.out is not None:
        return f"--save writes all columns to one workbook; leave --{(others or ['out'])[0]} out."
    if save.suffix.lower() != SUFFIX:
        return (
            f"--save writes a workbook, and {str(save)!r} does not end in {SUFFIX}; name one, or redirect the output."
        )
    if save.exists() and options.data.exists() and save.samefile(options.data):
        return f"--save {str(save)!r} is the file of --data, which it would replace; name another."
    return None


def _check_threshold(options: argparse.Namespace) -> None:
    """Raise an error unless the options name one threshold."""
    of_log = options.data is not None or options.open_share is not None
    n_ways = of_log + (options.rejection_rate is not None) + options.undo
    if n_ways != 1 and not (n_ways == 0 and options.miss_rate is not None):
        raise ValueError(
            "set-threshold sets one threshold; pass --data with a log and --label-column or "
            "--open-share, or one of --open-share, --rejection-rate and --undo."
        )
    if options.miss_rate is not None and options.rejection_rate is not None:
        raise ValueError(
            "--miss-rate needs a model of the traffic, which --rejection-rate does not fit; leave one of them out."
        )
    if options.data is not None and options.label_column is None and options.open_share is None:
        raise ValueError(
            "A log without labels does not say where the threshold belongs, since known texts that are worded unlike "
            "the training texts look like open ones; pass --label-column with labels of about 30 of its texts, or "
            "--open-share."
        )


def _check_export(options: argparse.Namespace) -> None:
    """Refuse options of ``export`` that do not go together."""
    beside = (options.model / FOLDER).resolve()
    is_beside = options.out is None or options.out.resolve() == beside
    if options.quantize and is_beside:
        msg = (
            "--quantize changes predictions a little, and predict never uses such an export by itself; pass --out with "
            f"{'a' if options.out is None else 'another'} folder for it, or leave --quantize out."
        )
    elif options.out is None and options.overwrite:
        msg = "--overwrite replaces the export in the folder of --out; name the folder, or leave --overwrite out."
    elif is_beside and is_hub_name(options.model.as_posix()):
        folder = options.model.as_posix()
        msg = f"There is no folder {folder!r} here; for a model on the hub pass --out with a folder."
    else:
        return
    raise ValueError(msg)


def check_folder(folder: Path | None, *, overwrite: bool | None) -> str | None:
    """Refuse a folder that the model cannot be written to, before hours of training.

    Gives the hash of the model that is to be replaced, if there is one. ``None``: the command replaces none.
    """
    if folder is None:
        if overwrite:
            raise ValueError(
                "--overwrite replaces the model in the folder of --save; name the folder, or leave --overwrite out."
            )
        return None
    replaced = None
    if os.path.lexists(folder):
        replaced = None if is_vacant(folder) else _check_replaced(folder, overwrite=overwrite)
        place = folder
    else:
        place = next(parent for parent in folder.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryDirectory(dir=place):
            pass
    except OSError as error:
        raise OSError(f"--save {str(folder)!r} cannot be written ({error.strerror}); pass another folder.") from error
    return replaced


def _check_replaced(folder: Path, *, overwrite: bool | None) -> str:
    """Refuse what exists, unless it is a saved model that may be replaced; gives its hash."""
    if overwrite is None:
        raise FileExistsError(f"{str(folder)!r} exists; pass a new folder to --save.")
    if not overwrite:
        raise FileExistsError(
            f"{str(folder)!r} exists; pass --overwrite to replace a model that was saved there, or another folder."
        )
    try:
        found: str = read_manifest(folder)[0]["manifest_sha256"]
    except (OSError, ValueError) as error:
        raise FileExistsError(
            f"{str(folder)!r} holds no saved model, and --overwrite replaces nothing else; pass another folder."
        ) from error
    return found


def check_unlabelled(path: Path) -> None:
    """Refuse to overwrite labels; those of a page are kept by a browser alone, so no page is overwritten."""
    if path.suffix.lower() == PAGE:
        if os.path.lexists(path):
            raise FileExistsError(
                f"{str(path)!r} exists, and labels that a browser keeps may belong to it; pass another file to --save."
            )
        return
    places = [(path, first_sheet(path)), (members_path(path), [])]
    if is_workbook(path):
        places[1:] = (
            [(path, [MEMBERS_SHEET])] if MEMBERS_SHEET in read_file(path, "label", sheets=places[0][1]).names else []
        )
    for name, sheets in places:
        table = read_file(name, "label", sheets=sheets) if name.exists() else None
        if table is not None and "label" in table.names:
            n_labels = sum(map(bool, read_labels(table.named_cells("label"))))
            if n_labels:
                held = numbered(n_labels, "label")
                raise FileExistsError(
                    f"{str(name)!r} holds {held}, which --save would overwrite; pass another file to it."
                )
