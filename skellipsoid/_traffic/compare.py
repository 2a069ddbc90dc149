"""Which predictions change from one model to the next: counts, confusions, and the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skellipsoid_runtime._containers import check_texts

from .._core.characters import printable
from .._core.labels import as_kind_of
from .._core.pipelines import less_class_offsets, read_estimator
from .._core.results import Result, html_table
from .explain import takes_texts

_MEMBERS = ("predict_known", "score_samples", "offset_", "class_offsets_", "classes_", "open_label_")
#: Of the report: pairs, and examples of each.
_N_PAIRS, _N_EXAMPLES, _WIDEST = 10, 2, 80


class _Predictions(NamedTuple):
    labels: NDArray[Any]
    margin: NDArray[np.float64]  # above the threshold, or below it
    classes: NDArray[Any]
    open_label: Any


def compare(
    before: Any,
    after: Any,
    X: ArrayLike,
    *,
    rename: Mapping[Any, Any] | None = None,
    repeats: Sequence[Any] = (),
) -> Comparison:
    """Compare the predictions of two fitted models for the same samples, for instance before a retrained one goes live.

    Parameters
    ----------
    before, after : open-set classifier, or Pipeline or search that ends in one
        Fitted on labels of one kind. Classes may be new, and may be missing. Another open label is no change.
    X : array-like of shape (n_samples, n_features), or n_samples texts
        Samples, for instance a week of traffic: features, or texts for text Pipelines.
    rename : mapping of label to label, default=None
        Classes of ``before`` that have another name in ``after``, such as ``{"lost_card": "card", "stolen_card":
        "card"}`` after a merge. A changed name is then no change.
    repeats : sequence of estimators, default=()
        Models that differ from ``before`` by chance alone: trained on the same data with other seeds. They show how
        much two trainings of the same model differ.

    Returns
    -------
    comparison : Comparison
        ``print(comparison)`` is a report to sign off. Its tables are Bunches of columns, for ``pandas.DataFrame``.

    Raises
    ------
    TypeError
        If an estimator does not end in an open-set classifier.
    ValueError
        If the labels of the models are of unlike kinds, or ``rename`` names a class that a model does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import EllipsoidOpenSetClassifier, compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 100, axis=0)
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> old = EllipsoidOpenSetClassifier(random_state=0).fit(X[:200], y[:200])
    >>> new = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> found = compare(old, new, X)
    >>> found.pairs.before[0], found.pairs.after[0]
    ('-1', 'c')
    """
    one, other = _predictions(before, X, "before"), _predictions(after, X, "after")
    as_kind_of(one.classes, other.classes, "The classes of before", "those of after")
    new_names = {one.open_label: other.open_label} | _checked_names(rename, one, other)

    def named(found: _Predictions) -> NDArray[np.object_]:
        return np.array([new_names.get(label, label) for label in found.labels.tolist()], dtype=object)

    old, new = named(one), np.array(other.labels.tolist(), dtype=object)
    repeat_shares = [float(np.mean(named(_predictions(model, X, "repeats")) != old)) for model in repeats]
    numbers = np.flatnonzero(old != new)
    # First what both models were sure of.
    sureness = np.minimum(np.abs(one.margin), np.abs(other.margin))[numbers]
    numbers = numbers[np.argsort(-sureness, kind="stable")]
    changed = Result(
        row=numbers,
        before=old[numbers],
        after=new[numbers],
        margin_before=one.margin[numbers],
        margin_after=other.margin[numbers],
    )
    if takes_texts(before):
        changed["text"] = np.array(check_texts(X), dtype=object)[numbers]
    counts = _count_pairs(old[numbers], new[numbers]), _count_classes(old, new)
    return Comparison(len(old), changed, *counts, repeat_shares, other.open_label)


def _predictions(estimator: Any, X: ArrayLike, name: str) -> _Predictions:
    """Read the predictions of a fitted model, and how far each score is above the threshold."""
    classifier, features = read_estimator(estimator, X, _MEMBERS, f"compare, as {name},")
    score, nearest = classifier.score_samples(features), classifier.predict_known(features)
    margin = less_class_offsets(classifier, score, nearest).astype(np.float64) - classifier.offset_
    return _Predictions(classifier.predict(features), margin, classifier.classes_, classifier.open_label_)


def _checked_names(rename: Mapping[Any, Any] | None, before: _Predictions, after: _Predictions) -> dict[Any, Any]:
    for pair in (rename or {}).items():
        for label, model, name in zip(pair, (before, after), ("before", "after"), strict=True):
            if label not in model.classes.tolist():
                raise ValueError(
                    f"rename names {label!r}, which is no class of {name}: pass a mapping of classes of before to "
                    "classes of after."
                )
    return dict(rename or {})


def _count_pairs(before: NDArray[Any], after: NDArray[Any]) -> Bunch:
    counts = Counter(zip(before.tolist(), after.tolist(), strict=True)).most_common()
    return Result(
        before=np.array([pair[0] for pair, _ in counts], dtype=object),
        after=np.array([pair[1] for pair, _ in counts], dtype=object),
        count=np.array([count for _, count in counts], dtype=np.int64),
    )


def _count_classes(before: NDArray[Any], after: NDArray[Any]) -> Bunch:
    is_changed = before != after
    columns = [before, after, before[is_changed], after[is_changed]]
    counts = [Counter(column.tolist()) for column in columns]
    labels = sorted(counts[0] | counts[1], key=lambda label: (-counts[2][label] - counts[3][label], label))
    found = {"label": np.array(labels, dtype=object)}
    for name, count in zip(("n_before", "n_after", "n_lost", "n_gained"), counts, strict=True):
        found[name] = np.array([count[label] for label in labels], dtype=np.int64)
    return Result(**found)


@dataclass(eq=False, repr=False)
class Comparison:
    """Predictions that differ between two models. :func:`skellipsoid.compare` makes it.

    Parameters
    ----------
    n_samples : int
        Samples that were compared.
    changed : :class:`~sklearn.utils.Bunch`
        A row for each sample whose prediction changed, first those that both models were sure of: ``row`` (in ``X``),
        ``before``, ``after`` (labels, by the names of ``after``), ``margin_before``, ``margin_after`` (score less the
        offset: negative where the prediction is open), and ``text`` where the models take texts.
    pairs : Bunch
        ``before``, ``after``, ``count``: how often one prediction became another, the most frequent first.
    classes : Bunch
        A row for each label, those that changed most first: ``label``, ``n_before``, ``n_after``, ``n_lost`` (samples
        that had it before only), ``n_gained`` (after only).
    repeat_shares : list of float
        Proportion of the predictions that each of ``repeats`` changes.
    open_label : int or str
        The label of open predictions, in ``before`` and ``after`` of the tables.

    See Also
    --------
    skellipsoid.plotting.ComparisonDisplay : Draws it.
    """

    n_samples: int
    changed: Bunch
    pairs: Bunch
    classes: Bunch
    repeat_shares: list[float]
    open_label: Any

    @property
    def n_changed(self) -> int:
        """Number of samples whose prediction changed."""
        return len(self.changed.row)

    @property
    def share_changed(self) -> float:
        """Proportion of the samples whose prediction changed; NaN for none."""
        return self.n_changed / self.n_samples if self.n_samples else float("nan")

    def __repr__(self) -> str:
        return f"<Comparison: {self.n_changed} of {self.n_samples} predictions changed>"

    def __str__(self) -> str:
        """Write the report: shares, the most frequent changes with examples, the classes that changed most."""
        lines = [f"{self.n_changed:,} of {self.n_samples:,} predictions changed ({self.share_changed:.2%})."]
        if self.repeat_shares:
            least, most = min(self.repeat_shares), max(self.repeat_shares)
            lines.append(f"Training again with other seeds changes {least:.2%} to {most:.2%}.")
        if self.n_changed:
            lines += ["", *self._pair_lines(), "", *self._class_lines()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"<p>{self.n_changed:,} of {self.n_samples:,} predictions changed</p>"
        return head + html_table(self.pairs) if self.n_changed else head

    def _pair_lines(self) -> list[str]:
        lines = ["Most frequent changes:"]
        texts = self.changed.get("text")
        for before, after, count in list(zip(*self.pairs.values(), strict=True))[:_N_PAIRS]:
            lines.append(f"{count:>7,}  {printable(before)} -> {printable(after)}")
            if texts is not None:
                is_pair = (self.changed.before == before) & (self.changed.after == after)
                lines += [f"           {_shorten(text)}" for text in texts[is_pair][:_N_EXAMPLES]]
        left = len(self.pairs.count) - _N_PAIRS
        return [*lines, f"         and {left} other changes"] if left > 0 else lines

    def _class_lines(self) -> list[str]:
        rows = [row for row in zip(*self.classes.values(), strict=True) if row[3] or row[4]]
        names = [printable(row[0]) for row in rows[:_N_PAIRS]]
        width = max(map(len, names))
        lines = ["Predictions that changed most:", f"{'':>{width + 2}}  before   after    lost  gained"]
        lines += [
            f"  {name:<{width}}" + "".join(f"{n:>8,}" for n in row[1:]) for name, row in zip(names, rows, strict=False)
        ]
        return [*lines, f"  and {len(rows) - _N_PAIRS} other predictions"] if len(rows) > _N_PAIRS else lines


def _shorten(text: str) -> str:
    """Return a text as a part of one line."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
