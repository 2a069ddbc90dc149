"""Chooses the columns of texts and labels of a table: as the user says, by their names, or by their cells."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from .._core.messages import cut, named, shortened
from .headers import rank_label, rank_text
from .text_table import Table, cell_text, is_scalar

#: Rows that a guess looks at, and columns that a message lists.
_SAMPLE, _MOST_LISTED = 1000, 8
#: Letters of an example.
_LONGEST_EXAMPLE = 30
#: Largest mean number of letters of the labels, and smallest mean number of rows with a label.
_LONGEST_LABEL, _FEWEST_ROWS = 40, 2
#: Of fewer rows nothing is concluded from their values being all different.
_FEW = 10
#: The header that needs no message.
_PLAIN = ["text", "label"]
_WORD = re.compile(r"[^\W\d_]{2,}")
#: Columns of a log of skellipsoid-serve, which holds the texts as well if it was asked to.
_OF_SERVER = {"time", "model", "answer", "score", "nearest_class"}


def choose_columns(table: Table, path: Path, text: str | None, label: str | None) -> tuple[int, int, bool]:
    """Choose the columns of texts and labels, numbered from 0, and say whether they were guessed.

    Parameters
    ----------
    table : Table
    path : Path
        For messages.
    text, label : str or None
        Names, or numbers from 1; ``None`` is guessed.

    Raises
    ------
    ValueError
        If a named column is not there, or if it is not clear which to take.
    """
    given = [
        None if wanted is None else find_column(table, path, wanted, option)
        for wanted, option in ((text, "--text-column"), (label, "--label-column"))
    ]
    if given[0] is not None and given[0] == given[1]:
        raise ValueError(
            f"--text-column and --label-column both name column {table.titled(given[0])}; name two columns."
        )
    if table.n_columns < 2:
        raise ValueError(
            f"{str(path)!r} has one column, {_shown(table, 0)}, but a text and a label are needed; add a column."
        )
    profiles = _Profiles(table)
    found_text, found_label = _guess(profiles, *given)
    if found_text is None or found_label is None:
        raise ValueError(_unclear(table, path, found_text, found_label))
    for column in {found_text, found_label}:
        if table.names and table.names[column] and given[column == found_label] is None:
            find_column(table, path, table.names[column], ("--text-column", "--label-column")[column == found_label])
    if profiles.are_wrong_way_round(found_text, found_label):
        raise ValueError(_wrong_way_round(table, path, found_text, found_label))
    is_plain = table.n_columns == 2 and found_text == 0 and [name.lower() for name in table.names] in ([], _PLAIN)
    return found_text, found_label, None in given and not is_plain


def choose_text_column(table: Table, path: Path, text: str | None) -> tuple[int, bool]:
    """Choose the column of texts of a table without labels; else as above."""
    if text is not None:
        return find_column(table, path, text, "--text-column"), False
    if table.n_columns == 1:
        return 0, table.header > 0
    if set(table.names) >= _OF_SERVER and "text" not in table.names:
        raise ValueError(
            f"{str(path)!r} is a log of skellipsoid-serve without texts; start the server with --log-texts, and read "
            "what it writes from then on."
        )
    profiles = _Profiles(table)
    found = _pick(profiles, table.text_columns, set(), rank_text, profiles.is_textual)
    if found is None:
        raise ValueError(
            f"It is not clear which column of {str(path)!r} holds the texts; choose with --text-column from "
            f"{_listed(table, table.text_columns)}."
        )
    if table.names and table.names[found]:
        find_column(table, path, table.names[found], "--text-column")
    return found, True


def find_column(table: Table, path: Path, wanted: str, option: str) -> int:
    """Find a column by its name, in any case if that is clear, or by its number."""
    for key in (str, str.casefold):
        found = [i for i, name in enumerate(table.names) if key(name) == key(wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = " and ".join(str(i + 1) for i in found)
            raise ValueError(
                f"{option} {cut(wanted)!r} is the name of columns {numbers} of {str(path)!r}; pass the number of one."
            )
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= table.n_columns:
        return int(wanted) - 1
    raise ValueError(
        f"{option} {cut(wanted)!r} is no column of {str(path)!r}; pass the name or number of one: {_listed(table)}."
    )


def check_single(table: Table, path: Path, *names: str) -> None:
    """Refuse a header that holds one of the names, by which a command reads, more than once."""
    for name in names:
        places = [i + 1 for i, each in enumerate(table.names) if each == name]
        if len(places) > 1:
            raise ValueError(
                f"The header of {str(path)!r} holds {name!r} {len(places)} times, in {named('column', places)}; rename "
                "those that are not meant."
            )


class _Profiles:
    """What the columns of a table hold, in a sample of its rows."""

    def __init__(self, table: Table) -> None:
        rows = table.rows[:: -(-len(table.rows) // _SAMPLE) or 1]
        self.table = table._replace(rows=rows)

    def filled(self, column: int) -> list[str]:
        """Cells of a column that are not empty."""
        return [cell for cell in self.table.cells(column) if cell]

    def is_textual(self, column: int) -> bool:
        """Whether most cells have several words and are different."""
        cells = self.filled(column)
        return self.n_words(column) >= 2 and 2 * len(set(cells)) > len(cells)

    def n_words(self, column: int) -> int:
        """Median number of words."""
        counts = sorted(len(_WORD.findall(cell)) for cell in self.filled(column))
        return counts[len(counts) // 2] if counts else 0

    def is_labelling(self, column: int) -> bool:
        """Whether a column has short values that come back."""
        cells = self.filled(column)
        n_values = len(set(cells))
        return 2 <= n_values <= len(cells) / _FEWEST_ROWS and sum(map(len, cells)) <= _LONGEST_LABEL * len(cells)

    def are_all_different(self, column: int) -> bool:
        """Whether no value of a column comes back, among enough of them."""
        cells = self.filled(column)
        return len(cells) >= _FEW and len(set(cells)) == len(cells)

    def are_swapped(self) -> bool:
        """Whether the second of two columns is texts and the first is labels."""
        distinct = [len(set(self.filled(column))) for column in (0, 1)]
        return self.is_labelling(0) and distinct[1] > 2 * distinct[0] and self.n_words(1) > max(1, self.n_words(0))

    def are_wrong_way_round(self, text: int, label: int) -> bool:
        """Whether most texts are short and come back, and most labels are several words and different."""
        texts = self.filled(text)
        come_back = _FEWEST_ROWS * len(set(texts)) <= len(texts)
        are_short = sum(map(len, texts)) <= _LONGEST_LABEL * len(texts)
        return len(self.filled(label)) >= _FEW and come_back and are_short and self.is_textual(label)


def _guess(profiles: _Profiles, text: int | None, label: int | None) -> tuple[int | None, int | None]:
    """Guess what is not named; ``None`` stays where it is not clear."""
    table = profiles.table
    if table.n_columns == 2:
        return _guess_of_two(profiles, text, label)
    if text is None:
        text = _pick(profiles, table.text_columns, {label}, rank_text, profiles.is_textual)
    if label is None:
        label = _pick(profiles, table.label_columns, {text}, rank_label, profiles.is_labelling)
        if label is not None and not table.label_columns and table.names and rank_label(table.names[label]) <= 0:
            label = None  # short values that come back may be a channel or a status
    return text, label


def _guess_of_two(profiles: _Profiles, text: int | None, label: int | None) -> tuple[int, int | None]:
    """Guess the order of two columns: by names, then by what they hold, then the text first."""
    names = profiles.table.names or ["", ""]
    if label is not None:
        return 1 - label, label
    is_named = text is not None
    if text is None:
        first, second = (rank_text(name) - max(0, rank_label(name)) for name in names)
        text = int(first < second if first != second else profiles.are_swapped())
    other, rank = names[1 - text], rank_label(names[1 - text])
    if other and (rank < 0 or (not rank and not is_named and profiles.are_all_different(1 - text))):
        return text, None  # such as channel or id, and text
    return text, 1 - text


def _pick(
    profiles: _Profiles,
    among: Sequence[int],
    taken: set[int | None],
    rank: Callable[[str], int],
    fits: Callable[[int], bool],
) -> int | None:
    """Pick the column with the best name; among equals the only one whose cells fit.

    ``among``: the columns of a tool of annotation; empty: all.
    """
    free = [column for column in among or range(profiles.table.n_columns) if column not in taken]
    if among and len(free) < 2:
        return free[0] if free else None
    ranks = {column: rank(profiles.table.names[column]) if profiles.table.names else 0 for column in free}
    highest = max(ranks.values())
    best = [column for column in free if ranks[column] == highest]
    if len(best) == 1 and ranks[best[0]]:
        return best[0]
    fitting = [column for column in best if fits(column)]
    return fitting[0] if len(fitting) == 1 else None


def _unclear(table: Table, path: Path, text: int | None, label: int | None) -> str:
    missing = {"--text-column": ("the texts", text), "--label-column": ("the labels", label)}
    options = [option for option, (_, found) in missing.items() if found is None]
    what = " and which ".join(missing[option][0] for option in options)
    among = [*(() if text is not None else table.text_columns), *(() if label is not None else table.label_columns)]
    return (
        f"It is not clear which column of {str(path)!r} holds {what}; choose with {' and '.join(options)} from "
        f"{_listed(table, among)}, or write the two columns to a file of their own."
    )


def _wrong_way_round(table: Table, path: Path, text: int, label: int) -> str:
    def called(column: int) -> str:
        return repr(table.names[column]) if table.names and table.names[column] else str(column + 1)

    return (
        f"The texts of {str(path)!r}, from column {table.titled(text)}, are short and come back, and most labels, from "
        f"column {table.titled(label)}, are several words and different, so the columns are the wrong way round; pass "
        f"--text-column {called(label)} --label-column {called(text)}."
    )


def _listed(table: Table, columns: Sequence[int] = ()) -> str:
    """List the columns, or some of them, with an example of each."""
    columns = columns or range(table.n_columns)
    shown = [_shown(table, column) for column in columns[:_MOST_LISTED]]
    more = len(columns) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _shown(table: Table, column: int) -> str:
    cells = (cell_text(row[column]) for row in table.rows if is_scalar(row[column]))
    example = next(filter(None, cells), None)
    name = f"{column + 1} {cut(table.names[column])!r}" if table.names and table.names[column] else str(column + 1)
    if example is None and (held := next((row[column] for row in table.rows if not is_scalar(row[column])), None)):
        return f"{name} ({'a list' if isinstance(held, list | tuple) else 'an object'})"
    return f"{name} ({'empty' if example is None else f'such as {shortened(example, _LONGEST_EXAMPLE)!r}'})"
