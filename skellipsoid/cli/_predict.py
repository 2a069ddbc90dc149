"""The command ``predict``: label lines from standard input, or the texts of files.

Nothing here imports torch or scikit-learn; where the export beside a model is used, nothing else does.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from .._core.characters import printable
from .._core.messages import numbered
from .._core.warn import warn
from .._text_files.read import read_rows, read_texts
from .._text_files.write import save_rows, write_rows
from .._torch import machine
from ._beside import Predictor, exported_predictor
from ._given import LINES, NO_TEXT, in_groups, lines_of_input, noted, read_by, texts_of_file
from ._many_files import predict_files
from ._output import check_output

#: Names of the columns that predictions add to a file, by those of ``--json``.
_ADDED = {
    "label": "answer",
    "margin": "margin",
    "p_value": "p_value",
    "nearest_class": "nearest_class",
    "action": "action",
    **{f"candidate_{i}": f"candidate_{i}" for i in (1, 2, 3)},
    "neighbor_1": "nearest_text",
    "neighbor_label_1": "nearest_text_label",
}


def predict(options: argparse.Namespace) -> None:
    """Label lines from standard input, or the texts of a file."""
    kinds = read_by(options)
    options.keep_columns = options.keep_columns or options.save is not None
    # Every row of the file stays in its place, so that other programs find it.
    read: Any = partial(read_rows, **kinds, keeps_empty=True) if options.keep_columns else partial(read_texts, **kinds)
    given: Any = options.texts or None
    if options.out is None and not options.texts:
        given = read(options.data) if options.keep_columns else texts_of_file(options)
        if options.data is not None and not (given[1] if options.keep_columns else given):
            warn(f"{str(options.data)!r} {NO_TEXT}.")
    model = exported_predictor(options) or _whole(options)
    size = 1 if given is None and options.out is None and machine.is_terminal(sys.stdin) else LINES

    def records(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        for row, record in enumerate(chain.from_iterable(map(model.predict, in_groups(lines, size)))):
            if not options.open_only or record["label"] == model.open_label:
                yield row, record

    def predictions(path: Path, given: Any) -> Iterator[str] | Iterator[bytes]:
        if not options.keep_columns:
            return (_written(record, as_json=options.json) for _, record in records(given))
        table, texts, _ = given
        added = ((row, _added(record)) for row, record in records(texts))
        return write_rows(path, table, _added(next(model.predict([""]))), added)

    if options.save is not None:
        table, texts, _ = given
        added = ((row, _added(record)) for row, record in records(texts))
        save_rows(options.save, options.data, table, _added(next(model.predict([""]))), added)
        print(f"The predictions for {numbered(len(texts), 'row')} are in {options.save}")
        return
    if options.out is not None:
        predict_files(options, model.model_sha256, lambda path: predictions(path, read(path)))
        return
    written = _on_terminal if machine.is_terminal(sys.stdout) else str
    if given is None:
        given = lines_of_input() if machine.is_terminal(sys.stdin) else noted(lines_of_input())
    for line in predictions(options.data, given):
        print(written(line), flush=size == 1)
        check_output()


def _whole(options: argparse.Namespace) -> Predictor:
    """Load the saved model itself."""
    from ._use import saved_predictor

    return saved_predictor(options)


def _added(record: dict[str, Any]) -> dict[str, Any]:
    """Columns that a prediction adds to the row of a file."""
    return {name: record[key] for key, name in _ADDED.items() if key in record}


def _on_terminal(line: Any) -> str:
    """Escape what a terminal would obey; a file or a pipe gets the text as it is."""
    return re.sub(r"[^\t\n]+", lambda found: printable(found[0]), line)


def _written(record: dict[str, Any], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(record, ensure_ascii=False)
    *others, text = (value for name, value in record.items() if name != "unread")  # a note on standard error says it
    text = re.sub(r"[\r\n]+", " ", text)  # a text of a file may have several lines
    return "\t".join([*("" if value is None else printable(value) for value in others), text])
