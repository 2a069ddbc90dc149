"""``load_text_file``: texts and labels of a user's file."""

import os
import re
from pathlib import Path
from typing import Any

from sklearn.utils import Bunch

from .._text_files.read import read_table

#: Options of the command, which are parameters here.
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_NAMES = {"sheet": "sheet_name"}


def load_text_file(
    path: str | os.PathLike[str],
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    sheet_name: str | int | None = None,
    encoding: str | None = None,
    language: str | None = None,
    return_X_y: bool = False,
) -> Any:
    r"""Load texts and labels from all files that the command ``skellipsoid train`` reads.

    These are workbooks, CSV and tab-separated text, JSON lines, JSON and parquet, with a column of texts and one of
    labels; exports of annotation tools; and what bots are trained on: a Rasa project or file, an agent of Dialogflow
    ES or CX (zip or folder), LUIS, CLU, semantic-router, lines of fastText, a folder of classes. Read more in
    :ref:`foreign_files`.

    Parameters
    ----------
    path : str or path-like
        A file, a folder or a zip.
    text_column, label_column : str, default=None
        Name of a column, or its number from 1. ``None`` guesses, and says what it takes.
    sheet_name : str or int, default=None
        Sheet of a workbook: its name, or its number from 1. ``None`` is the first visible one.
    encoding : str, default=None
        Encoding of a text file, by a name that Python knows; ``None``: UTF-8, UTF-16 with a mark, or Windows-1252.
    language : str, default=None
        The language to read of a bot that has several, such as ``"de"``.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        - ``data`` : ndarray of str objects of shape (n_samples,): the texts
        - ``target`` : ndarray of str of shape (n_samples,): their labels
        - ``target_names`` : list of str: the different labels, in ascending order
        - ``DESCR`` : str: what was read of a bot; else empty
        - ``filename`` : str: the path

        Unlike in :func:`sklearn.datasets.load_files` the target is names, so that -1 can be no class.
    (data, target) : tuple of ndarray
        If ``return_X_y``.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If it is not clear what the texts and labels are, or if the file is damaged.

    Warns
    -----
    UserWarning
        What was guessed, and what was left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skellipsoid.datasets import load_text_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.csv"
    ...     _ = path.write_text("text,label\nhello,greet\nhi there,greet\nsee you,goodbye\n")
    ...     texts, labels = load_text_file(path, return_X_y=True)
    >>> texts.tolist()
    ['hello', 'hi there', 'see you']
    """
    try:
        found = read_table(
            Path(path),
            text_column=text_column,
            label_column=label_column,
            sheets=[] if sheet_name is None else [str(sheet_name)],
            encoding=encoding,
            language=language,
            says_read=False,
        )
    except ValueError as error:
        raise ValueError(
            _OPTION.sub(lambda option: _NAMES.get(option[1], option[1].replace("-", "_")), str(error))
        ) from error
    if return_X_y:
        return found.texts, found.labels
    return Bunch(
        data=found.texts,
        target=found.labels,
        target_names=sorted({*found.labels.tolist()}),
        DESCR=found.note,
        filename=os.fspath(path),
    )
