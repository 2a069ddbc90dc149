"""Results as a table: means of every method, tests, and the layout of the paper's Table 1 with the paper's numbers."""

from collections.abc import Iterable

from . import _layout
from ._cells import TableNumbers
from ._store import Record


class BenchmarkTable(TableNumbers):
    """Results in the layout of the paper's Table 1. Made by :func:`make_table`.

    Attributes
    ----------
    encoders, data, methods : list of str
        In the order of the results.
    ratios : list of float
        Rising.
    cells : dict
        :class:`Cell` by ``(encoder, data, method, ratio, metric)``; the ratio ``None`` is the average.
    reference : str
        The method that the others are tested against.
    summaries : list of Summary
        Every method over all its cases.
    comparisons : list of Comparison
        The reference against every other method.

    See Also
    --------
    make_table : Makes it.
    """

    def to_markdown(self) -> str:
        """Write the summaries, the tests and the cells as Markdown.

        Returns
        -------
        text : str
            In the cells: mean ± standard deviation over the seeds, the paper's number in brackets; the best of a column
            is bold, the second best underlined.
        """
        return _layout.to_text(self, _layout.MARKDOWN)

    def to_rst(self) -> str:
        """Write what ``to_markdown`` writes as reStructuredText.

        Returns
        -------
        text : str
            Without section headings, so that any page can include it. The second best of a column is italic.
        """
        return _layout.to_text(self, _layout.RST)

    def to_csv(self) -> str:
        """Write the cells as comma-separated values, each number in a column of its own.

        Returns
        -------
        text : str
        """
        return _layout.to_csv(self)

    def to_latex(self) -> str:
        r"""Write the cells as one ``table*`` for each encoder, with the packages ``booktabs`` and ``multirow``.

        Returns
        -------
        text : str
        """
        return _layout.to_latex(self)


def make_table(records: Iterable[Record], *, reference: str | None = None) -> BenchmarkTable:
    """Make tables of results: means, tests, and the layout of the paper's Table 1.

    Parameters
    ----------
    records : iterable of dict
        What ``run`` or ``read_results`` gave.
    reference : str, default=None
        The method that every other one is tested against. ``None``: ``"ellipsoid"`` if it is there, else the first.

    Returns
    -------
    table : BenchmarkTable

    Raises
    ------
    ValueError
        If there are no results, or none of the reference.

    See Also
    --------
    paired_test : The test. It assumes independent cases, but the seeds share test samples.

    Examples
    --------
    >>> from skellipsoid_bench import make_table, read_results
    >>> table = make_table(read_results("results.jsonl"))  # doctest: +SKIP
    >>> print(table.to_markdown())  # doctest: +SKIP
    """
    records = list(records)
    if not records:
        raise ValueError("There is no result to make a table of; run the benchmark first, or choose others.")
    methods = list(dict.fromkeys(record["method"] for record in records))
    if reference is None:
        reference = "ellipsoid" if "ellipsoid" in methods else methods[0]
    if reference not in methods:
        raise ValueError(f"reference={reference!r} has no result; the methods are {', '.join(methods)}.")
    return BenchmarkTable(records, reference)
