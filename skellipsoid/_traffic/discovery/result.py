"""What was discovered: groups of open samples, as tables and as files."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.files import members_path, unused_name, write_spreadsheet
from ..._core.results import html_table

#: Typical texts in the file of groups.
_N_EXAMPLES = 3
#: Columns of the two files that ``to_tsv`` writes.
GROUP_COLUMNS = (
    *("group", "proposed_name", "label", "rows", "distinct", "part_of"),
    *(f"example_{i}" for i in range(1, _N_EXAMPLES + 1)),
    *("mixed", "members", "run"),
)
MEMBER_COLUMNS = ("group", "proposed_name", "label", "text", "score", "run")
#: Names of columns, and rows.
_Rows = tuple[Sequence[str], list[list[Any]]]


@dataclass(frozen=True, eq=False)
class DiscoveredClasses:
    """Groups of the samples that a classifier rejects. :func:`skellipsoid.discover_classes` makes it.

    Groups are numbered from 0, the one with the most samples first.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Group of each sample; −1 if it is in none. These samples are known (``is_open`` is false) or noise.
    is_open : ndarray of shape (n_samples,)
        Whether ``predict`` rejects.
    scores : ndarray of shape (n_samples,)
        How typical each sample is of its group: the cosine between the sample and the mean of the group's other
        samples, both relative to the middle of all classes. NaN for samples in no group.
    texts : ndarray of shape (n_samples,), of objects, or None
        The texts, as given.
    names : list of str of length n_groups
        Proposed name of each group: its most telling words, or ``"group 1"`` and so on without texts.
    sizes, distinct_sizes : ndarray of shape (n_groups,)
        Number of samples of each group, and of different ones. Repeated samples form no group by being many.
    coherence : ndarray of shape (n_groups,)
        Mean score of the different samples of each group: 1 if they are equal, about 0 if they have nothing in common.
    words : list of list of str of length n_groups
        Most telling words of each group, the best first; empty without texts.
    representatives : list of ndarray of length n_groups
        Rows of the most typical different samples of each group, the best first.
    nearest_class : ndarray of shape (n_groups,)
        Known class that is most likely to be the same class as the group.
    log_ratio : ndarray of shape (n_groups,)
        Log-likelihood ratio of "the group is of its nearest class" against "it is another class".
    is_part : ndarray of shape (n_groups,)
        Whether ``log_ratio`` is positive: then the group is rather a part of that class than something new.
    is_mixed : ndarray of shape (n_groups,)
        Whether ``coherence`` is below .5: then the samples have little in common.
    first_rows : ndarray of shape (n_samples,)
        The row that each open sample repeats; its own number if it repeats none, −1 for samples that are not open.

    See Also
    --------
    discover_classes : Makes it from a fitted classifier.
    skellipsoid.plotting.DiscoveryDisplay : Draws it.
    """

    labels: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    scores: NDArray[np.float64]
    texts: NDArray[Any] | None
    names: list[str]
    sizes: NDArray[np.int64]
    distinct_sizes: NDArray[np.int64]
    coherence: NDArray[np.float64]
    words: list[list[str]]
    representatives: list[NDArray[np.int64]]
    nearest_class: NDArray[Any]
    log_ratio: NDArray[np.float64]
    is_part: NDArray[np.bool_]
    is_mixed: NDArray[np.bool_]
    first_rows: NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.names)

    @property
    def is_noise(self) -> NDArray[np.bool_]:
        """Samples that are open and in no group, (n_samples,)."""
        return np.asarray(self.is_open & (self.labels < 0))

    def __repr__(self) -> str:
        n_groups = f"{self.n_groups} group{'' if self.n_groups == 1 else 's'}"
        n_inside, n_open = int(self.sizes.sum()), int(self.is_open.sum())
        return f"<DiscoveredClasses: {n_inside} of {n_open} open samples are in {n_groups}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}</p>{html_table(self.table())}"

    def _in_order(self) -> list[int]:
        """Numbers of the groups in the order in which they are read: new ones, parts of known classes, mixed ones."""
        found: list[int] = np.lexsort((self.is_part, self.is_mixed)).tolist()
        return found

    def _different(self) -> NDArray[np.int64]:
        """Rows of the different samples that are in groups: group by group, the most typical of each first."""
        rows = np.flatnonzero((self.labels >= 0) & (self.first_rows == np.arange(len(self.labels))))
        return rows[np.lexsort((rows, -self.scores[rows], self.labels[rows]))]

    def _lines(self) -> dict[int, tuple[int, str, str]]:
        """Group, text in one line, and score of each different sample, by its row."""
        return {
            row: (
                int(self.labels[row]),
                str(row) if self.texts is None else _one_line(self.texts[row]),
                f"{self.scores[row]:.4f}",
            )
            for row in self._different().tolist()
        }

    def _run(self) -> str:
        """Name these members: other ones have another name."""
        lines = repr([*self._lines().values()])
        return f"r{sha256(lines.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

    def table(self) -> dict[str, list[Any]]:
        """Columns of one line per group, which ``pandas.DataFrame`` accepts.

        Returns
        -------
        columns : dict of list
            ``group``, ``proposed_name``, ``rows``, ``distinct``, ``coherence``, ``words``, ``example`` (a text, or a
            row number), ``nearest_class``, ``is_part`` and ``is_mixed``.
        """
        first = [int(numbers[0]) for numbers in self.representatives]
        return {
            "group": list(range(self.n_groups)),
            "proposed_name": list(self.names),
            "rows": self.sizes.tolist(),
            "distinct": self.distinct_sizes.tolist(),
            "coherence": self.coherence.tolist(),
            "words": [" ".join(words) for words in self.words],
            "example": first if self.texts is None else [self.texts[row] for row in first],
            "nearest_class": self.nearest_class.tolist(),
            "is_part": self.is_part.tolist(),
            "is_mixed": self.is_mixed.tolist(),
        }

    def to_tsv(self, path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]] | None = None) -> None:
        """Write two tables of text: one line for each group, to be labelled, and beside it the members.

        The file of groups has the columns ``group``, ``proposed_name``, ``label`` (empty: fill it in), ``rows`` and
        ``distinct`` (the number of samples, and of different ones), ``part_of`` (the known class that the group is
        rather a part of, or empty; such groups come last), ``example_1`` to ``example_3`` (typical texts, or row
        numbers), ``mixed`` (``"mixed"`` or empty; these come after all others), ``members`` (the name of the other
        file) and ``run`` (the same in both files, and another one for other members).

        The other file is named ``groups-members.tsv`` if ``path`` is ``groups.tsv``. It has a line for each different
        text of a group, the most typical first: ``group``, ``proposed_name``, ``label`` (empty), ``text`` (or the row
        number), ``score`` and ``run``. Every run of white space in a text becomes one blank. A cell that contains a
        quotation mark is quoted, as the module ``csv`` and pandas expect. One that a spreadsheet would run, since it
        begins with ``=``, ``+``, ``-`` or ``@`` and is no number, gets an apostrophe before it.

        Parameters
        ----------
        path : str or path-like
            Existing files are replaced once the new ones are complete. Both have commas if it ends in ``.csv``, else
            tabs.
        columns : mapping of str to sequence of length n_samples, default=None
            Further columns of the file of members, such as the numbers of the messages. The name of one that the file
            has already gets ``log_`` before it, and a number after it where that is taken, too.

        Raises
        ------
        ValueError
            If ``path`` ends like the name of a file that is no text, such as ``.xlsx``.
        OSError
            If it cannot be written.
        """
        path = Path(path)
        other = members_path(path)
        groups, members = self.written(other.name, columns or {})
        write_spreadsheet(other, *members)
        write_spreadsheet(path, *groups)

    def written(self, members_name: str, columns: Mapping[str, Sequence[Any]]) -> tuple[_Rows, _Rows]:
        """Names and rows of the two tables of ``to_tsv``: groups and members, which ``members_name`` leads to."""
        own: dict[str, Sequence[Any]] = {}
        for name, cells in columns.items():
            taken = {*MEMBER_COLUMNS, *own, *columns} - {name}
            own[unused_name(f"log_{name}", taken) if name in MEMBER_COLUMNS else name] = cells
        names, lines, run = [_one_line(name) for name in self.names], self._lines(), self._run()
        members = [
            [group, names[group], "", *line, run, *(_one_line(str(cells[row])) for cells in own.values())]
            for row, (group, *line) in lines.items()
        ]
        groups = []
        for group in self._in_order():
            examples = [text for of_group, text, _ in lines.values() if of_group == group][:_N_EXAMPLES]
            counts = self.sizes[group], self.distinct_sizes[group]
            part_of = _one_line(str(self.nearest_class[group])) if self.is_part[group] else ""
            examples += [""] * (_N_EXAMPLES - len(examples))
            mixed = "mixed" if self.is_mixed[group] else ""
            groups.append([group, names[group], "", *counts, part_of, *examples, mixed, members_name, run])
        return (GROUP_COLUMNS, groups), ([*MEMBER_COLUMNS, *own], members)


def _one_line(text: str) -> str:
    """Make every run of white space and control characters one blank."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
