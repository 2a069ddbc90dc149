"""Results that a notebook shows as tables."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.utils import Bunch

#: Rows of a table that are shown.
_MOST_ROWS = 20
#: Characters of a cell that are shown.
_WIDEST = 120


class Result(Bunch):
    """A :class:`~sklearn.utils.Bunch` that a notebook shows as a table: columns of one length, or names and values."""

    def to_dict(self, orient: str = "records") -> list[dict[str, Any]]:
        """Give the rows as dicts of Python's own values, which ``json`` writes.

        Parameters
        ----------
        orient : {"records"}, default="records"
            The only form.

        Returns
        -------
        rows : list of dict
            One for each row. A result that is names and values is a single row.
        """
        if orient != "records":
            raise ValueError(f"orient={orient!r} is not allowed: use 'records', a list with a dict for each row.")
        columns = {name: _plain(value) for name, value in self.items()}
        lengths = {len(value) if _is_column(value) else -1 for value in self.values()}
        if len(lengths) != 1 or lengths == {-1}:
            return [columns]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _repr_html_(self) -> str:
        lengths = {len(value) if _is_column(value) else -1 for value in self.values()}
        if len(lengths) == 1 and lengths != {-1}:
            return html_table(self)
        shown = {name: _short(value) if _is_column(value) else value for name, value in self.items()}
        return html_table({"": list(shown), "value": list(shown.values())})


def _plain(value: Any) -> Any:
    """Turn NumPy's values into Python's, and tuples into lists, at any depth."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return [_plain(each) for each in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.item()) if value.dtype != object else value.item()
    return str(value) if isinstance(value, str) else value


def html_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Write columns of one length as an HTML table, the first rows of long ones.

    Parameters
    ----------
    columns : dict of sequence
        Column by its name.
    """
    n_rows = len(next(iter(columns.values())))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = zip(*(column[:_MOST_ROWS] for column in columns.values()), strict=True)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>" for row in rows)
    left = f"<p>{_MOST_ROWS} of {n_rows:,} rows</p>" if n_rows > _MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _short(value: Any) -> str:
    """Say what an array is that has no place in a cell."""
    shape = np.shape(value) if isinstance(value, np.ndarray) else (len(value),)
    return f"{type(value).__name__}, {' × '.join(map(str, shape))}"


def _cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    text = f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
