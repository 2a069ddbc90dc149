"""``check_training_texts``: possible errors in training texts and labels, one sentence each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_consistent_length

from skellipsoid_runtime._containers import check_texts

from .._core.characters import is_visible, normalize_text
from .._core.labels import as_labels, cast_open_label, check_given
from .._core.messages import numbered
from .._core.pipelines import split_estimator
from .._core.spelling import forms, is_name_of_none
from .._core.texts import near_duplicates, variants
from .._core.validation import number
from .._encoders.supcon import SupConTextEncoder
from .._encoders.torch.tokens import Tokenizer
from .._text_files.headers import looks_like_header
from .findings import Finding, as_bunch, grouped, listed, named_class, named_groups, named_rows
from .joined import joined_labels
from .markup import markup
from .readable import find_unread, unread_message

#: Smallest number of different texts of a class; fewer do not determine its shape.
FEWEST_TEXTS = 5
#: Smallest proportion of variants of other texts in texts that were written for the training (studies/variants.py of
#: skellipsoid-bench: 0.68 to 0.75 of a chat bot's and of crowd-sourced ones, 0.04 to 0.41 of those that users wrote).
#: Classes of fewer texts are not looked at.
MOST_VARIANTS, FEWEST_OF_VARIANTS = 0.6, 10


def check_training_texts(
    texts: ArrayLike, y: ArrayLike, *, encoder: Any = None, open_label: int | str | None = None
) -> Bunch:
    """Check training texts and labels for possible errors.

    Nothing is changed: each finding names in one sentence the problem, its rows and the remedy. The weights of the
    embedding model are not loaded; ten thousand texts take a few seconds.

    Read more in the :ref:`User Guide <data_check>`.

    Parameters
    ----------
    texts : sequence of str of shape (n_samples,)
        List, tuple, NumPy array, pandas or polars Series, Arrow array, or a table of one column, as for
        ``SupConTextEncoder.fit``.
    y : array-like of shape (n_samples,)
        Labels.
    encoder : SupConTextEncoder or Pipeline that holds one, default=None
        Fitted or not; its embedding model limits the length of texts. ``None`` is ``SupConTextEncoder()``; if its
        model is not on this machine, lengths are not checked, and nothing is downloaded.
    open_label : int or str, default=None
        Label of real open samples. ``None`` is that of ``encoder``, −1 without an encoder. Cast to the kind of ``y``:
        −1 for numbers, ``"-1"`` for strings.

    Returns
    -------
    findings : :class:`~sklearn.utils.Bunch`
        Arrays of shape (n_findings,), so that ``pandas.DataFrame(findings)`` is a table; none without findings:

        - ``kind``: see below.
        - ``rows``: row numbers from 0, a tuple in ascending order.
        - ``label``: the label concerned, a tuple if several, ``None`` if all.
        - ``message``: one sentence, which names at most ten rows.

        Kinds, in this order, then by label:

        - ``"header"``: the first row looks like the names of columns, such as ``text`` and ``label``.
        - ``"open_label"``: the open label occurs nowhere, but another spelling of it does; or a class has a usual name
          of open samples, such as ``"oos"`` or ``"unknown"``.
        - ``"similar_labels"``: labels that differ only in case, blanks, hyphens, quotes, brackets or Unicode form
          (NFKC). The rows are those of the rarer spellings. The checks below treat them as one label.
        - ``"conflicting_labels"``: equal texts with several labels, one finding for each set of labels.
        - ``"joined_labels"``: a label that joins others, such as ``"a|b"``, ``"a, b"`` or ``"['a', 'b']"`` beside
          ``"a"`` and ``"b"``; also if they occur in joins alone.
        - ``"few_texts"``: a class of fewer than five different texts.
        - ``"empty_texts"``: texts without a visible character.
        - ``"markup"``: a tenth of the texts or more hold HTML or marks of entities, begin with a time, or quote an
          earlier message; or half of them begin or end with the same three words, or a tenth with the same eight, as
          mails do with a greeting, a signature or a disclaimer (:ref:`mails`).
        - ``"unread_texts"``: texts of which the embedding model reads nothing, such as ``"??"``, or emoji and letters
          that its vocabulary does not have: all of them get zeros.
        - ``"language"``: texts of a language whose words the embedding model hardly knows.
        - ``"long_texts"``: texts with more tokens than the embedding model reads.
        - ``"exact_duplicates"``: equal texts of one label: the same after case folding, Unicode normalisation (NFKC)
          and white space.
        - ``"near_duplicates"``: texts of one label whose characters are much more similar than those of its other
          texts.
        - ``"variants"``: most texts are variants of another text of their class, as if written for the training.
          Messages of users differ more, so more of them are rejected than such texts predict.

    Raises
    ------
    TypeError
        If ``encoder`` holds no ``SupConTextEncoder``.
    ValueError
        If ``texts`` is not a sequence of strings or is empty, or if ``y`` has another length, mixes numbers and strings
        or has missing labels: the errors of ``SupConTextEncoder.fit``.
    OSError
        If the embedding model of ``encoder`` is not found.

    See Also
    --------
    SupConTextEncoder : Finds near duplicates by their embeddings when it is fitted: ``groups_``.

    Notes
    -----
    Near duplicates are found as in a fit, at a false discovery rate of 5 %, but with TF-IDF weights of character
    n-grams instead of embeddings. Their cosine is at least 0.75. So paraphrases are not found. In a class with fewer
    than nine different texts, only texts that differ in punctuation are found.

    Examples
    --------
    >>> from skellipsoid import check_training_texts
    >>> texts = ["wake me at six", "Wake me at six", "dim the lamp", "lights off", "lamp on", "an alarm for noon"]
    >>> intents = ["alarm", "alarm", "light", "light", "light", "Alarm"]
    >>> findings = check_training_texts(texts, intents)
    >>> findings.kind.tolist()
    ['similar_labels', 'few_texts', 'few_texts', 'exact_duplicates']
    >>> print(findings.message[0])
    The labels 'alarm' (2 rows) and 'Alarm' (1 row) differ only in case, blanks, hyphens or quotes, ...
    """
    return find_problems(texts, y, encoder, open_label)


def find_problems(
    texts: ArrayLike,
    y: ArrayLike,
    encoder: Any,
    open_label: int | str | None,
    numbers: Sequence[int] | None = None,
    unit: str = "row",
) -> Bunch:
    """Do as ``check_training_texts``; messages name the rows by ``numbers`` of ``unit``, such as lines of a file."""
    checked = check_texts(texts)
    check_given(y, "check_training_texts")
    labels = as_labels(y)
    check_consistent_length(checked, labels)
    text_encoder = SupConTextEncoder() if encoder is None else _find_encoder(encoder)
    opened = cast_open_label(text_encoder.open_label if open_label is None else open_label, labels)
    data = _Data(checked, labels, opened, range(len(checked)) if numbers is None else numbers, unit)
    found = [
        *data.header,
        *_open_labels(data),
        *_similar_labels(data),
        *_conflicting_labels(data),
        *joined_labels(data.rows_of, data.open_label, data.place),
        *_few_texts(data),
        *_empty_texts(data),
        *markup(data.texts, data.rows, data.place),
        *_of_tokenizer(data, _tokenizer(text_encoder, local=encoder is None)),
        *_duplicates(data),
        *_variants(data),
    ]
    return as_bunch(found)


def _find_encoder(estimator: Any) -> SupConTextEncoder:
    """Find the text encoder in an estimator, fitted or not."""
    transformers, last = split_estimator(estimator)
    for step in (*transformers, last):
        if isinstance(step, SupConTextEncoder):
            return step
    if hasattr(estimator, "estimator"):  # of a search that is not fitted
        return _find_encoder(estimator.estimator)
    raise TypeError(
        f"encoder is a {type(estimator).__name__} without a SupConTextEncoder; pass a SupConTextEncoder or a Pipeline "
        "that holds one."
    )


class _Data:
    """Texts and labels, in the forms in which they are compared."""

    def __init__(
        self, texts: list[str], labels: NDArray[Any], open_label: Any, numbers: Sequence[int], unit: str
    ) -> None:
        self.texts, self._numbers, self._unit = texts, numbers, unit
        self.open_label = open_label
        self.labels = [str(label) if isinstance(label, str) else label for label in labels.tolist()]
        #: Empty for texts without a visible character.
        self.plain = [normalize_text(text) if is_visible(text) else "" for text in texts]
        self.header = list(self._find_header())
        self.rows = range(len(self.header), len(texts))
        self.rows_of = grouped(self.rows, self.labels.__getitem__)
        #: Label by label, the spelling that is kept of similar ones.
        self.spelling = {
            label: self._main(similar) for similar in grouped(self.rows_of, self._name).values() for label in similar
        }

    def _find_header(self) -> Iterator[Finding]:
        label = self.labels[0]
        is_text = isinstance(label, str)
        if is_text and looks_like_header(self.texts[0], label) and self.labels.count(label) == 1:
            place = self.place([0]).capitalize()
            message = (
                f"{place} is {self.texts[0]!r} with the label {label!r}, which look like names of columns; drop it."
            )
            yield Finding("header", [0], label, message)

    def _name(self, label: Any) -> Any:
        """Give the common form of all spellings of a label."""
        if not isinstance(label, str):
            return label
        shared, opened = forms(label), forms(str(self.open_label))[0]
        return opened if opened in shared else shared[0]

    def _main(self, similar: list[Any]) -> Any:
        if self.open_label in similar:
            return self.open_label
        return min(similar, key=lambda label: (-len(self.rows_of[label]), label))

    def label_of(self, row: int) -> Any:
        """Label of a row, in the spelling that is kept."""
        return self.spelling[self.labels[row]]

    def place(self, rows: list[int]) -> str:
        """Name rows for a message."""
        return named_rows([self._numbers[row] for row in rows], self._unit)

    def places(self, groups: list[list[int]]) -> str:
        """Name groups of rows for a message."""
        return named_groups([[self._numbers[row] for row in group] for group in groups], self._unit)


def _open_labels(data: _Data) -> Iterator[Finding]:
    wanted = set(forms(str(data.open_label)))
    for label, rows in sorted(data.rows_of.items()):
        if label == data.open_label or not isinstance(label, str):
            continue
        is_same = not wanted.isdisjoint(forms(label))
        if is_same and data.open_label not in data.rows_of:
            message = (
                f"The open label {data.open_label!r} occurs nowhere, but {label!r} does, in {data.place(rows)}, and is "
                f"trained as a class; pass {label!r} as the open label if these texts are of no class."
            )
        elif not is_same and is_name_of_none(label):
            message = (
                f"The label {label!r} in {data.place(rows)} is a usual name of open texts, but is trained as a class; "
                f"pass {label!r} as the open label if these texts are of no class."
            )
        else:
            continue
        yield Finding("open_label", rows, label, message)


def _similar_labels(data: _Data) -> Iterator[Finding]:
    for main, similar in sorted(grouped(data.rows_of, data.spelling.__getitem__).items()):
        if len(similar) == 1:
            continue
        rarer = sorted(set(similar) - {main})
        rows = sorted(chain(*(data.rows_of[label] for label in rarer)))
        names = listed([f"{label!r} ({numbered(len(data.rows_of[label]), 'row')})" for label in (main, *rarer)])
        effect = "only the first is open" if main == data.open_label else f"are trained as {len(similar)} classes"
        message = (
            f"The labels {names} differ only in case, blanks, hyphens or quotes, but {effect}; write {main!r} in "
            f"{data.place(rows)}."
        )
        yield Finding("similar_labels", rows, (main, *rarer), message)


def _conflicting_labels(data: _Data) -> Iterator[Finding]:
    found: dict[tuple[Any, ...], list[list[int]]] = defaultdict(list)
    for rows in grouped((row for row in data.rows if data.plain[row]), data.plain.__getitem__).values():
        labels = {data.label_of(row) for row in rows}
        if len(labels) > 1:
            found[tuple(sorted(labels))].append(rows)
    for names, groups in sorted(found.items()):
        message = (
            f"Equal texts have different labels ({listed([repr(label) for label in names])}) in "
            f"{data.places(groups)}; keep one label for each text."
        )
        yield Finding("conflicting_labels", sorted(chain(*groups)), names, message)


def _few_texts(data: _Data) -> Iterator[Finding]:
    for label, rows in sorted(grouped(data.rows, data.label_of).items()):
        texts = {data.plain[row] for row in rows} - {""}
        if label != data.open_label and len(texts) < FEWEST_TEXTS:
            message = (
                f"The class {label!r} has {numbered(len(texts), 'different text')}, in {data.place(rows)}; collect at "
                f"least {FEWEST_TEXTS}, or leave the class out."
            )
            yield Finding("few_texts", rows, label, message)


def _empty_texts(data: _Data) -> Iterator[Finding]:
    rows = [row for row in data.rows if not data.plain[row]]
    if rows:
        message = f"The texts in {data.place(rows)} are empty or blank; fill them in, or drop these rows."
        yield Finding("empty_texts", rows, None, message)


def _of_tokenizer(data: _Data, tokenizer: Tokenizer | None) -> Iterator[Finding]:
    """Find texts that the embedding model cannot read."""
    if tokenizer is None:
        return
    rows = [row for row in data.rows if data.plain[row]]
    counts = tokenizer.counts([data.texts[row] for row in rows])
    unread = find_unread([data.texts[row] for row in rows], counts, len(tokenizer.tokenizer))
    if lost := [rows[i] for i in unread.rows]:
        message = unread_message(data.place(lost), [data.texts[row] for row in lost])
        yield Finding("unread_texts", lost, None, message)
    if unread.language:
        yield Finding("language", rows, None, unread.language)
    if long := [row for row, count in zip(rows, counts.total, strict=True) if count > tokenizer.longest]:
        message = (
            f"The texts in {data.place(long)} have more tokens (up to {counts.total.max()}) than the "
            f"{tokenizer.longest} that the embedding model reads, and their ends are cut off; shorten them, or raise "
            "max_length if the model can read more."
        )
        yield Finding("long_texts", long, None, message)


def _tokenizer(encoder: SupConTextEncoder, *, local: bool) -> Tokenizer | None:
    if hasattr(encoder, "_backbone"):
        return Tokenizer.of_backbone(encoder._backbone)
    try:
        return Tokenizer.load(str(encoder.model_name), encoder.max_length, encoder.prompt, local=local)
    except OSError:
        if local:
            return None
        raise


def _duplicates(data: _Data) -> Iterator[Finding]:
    """Find exact and near duplicates of each label."""
    copies = grouped((row for row in data.rows if data.plain[row]), lambda row: (data.label_of(row), data.plain[row]))
    exact: dict[Any, list[list[int]]] = defaultdict(list)
    near: dict[Any, list[list[int]]] = defaultdict(list)
    for (label, _), rows in copies.items():
        if len(rows) > 1:
            exact[label].append(rows)
    # Sorted, so that the findings do not depend on the order of the rows.
    distinct = sorted(copies)
    for numbers in near_duplicates([text for _, text in distinct], number(label for label, _ in distinct)):
        near[distinct[numbers[0]][0]].append(sorted(chain(*(copies[distinct[i]] for i in numbers))))
    equal_texts = (
        "{} has equal texts in {}; by default training counts each of these groups as one text: drop the copies, or "
        "pass duplicates='each' to count all."
    )
    alike = "{} has nearly equal texts in {}; drop those that are copies of another."
    for kind, found, text in (("exact_duplicates", exact, equal_texts), ("near_duplicates", near, alike)):
        for label, groups in sorted(found.items()):
            message = text.format(named_class(label, data.open_label), data.places(sorted(groups)))
            yield Finding(kind, sorted(chain(*groups)), label, message)


def _variants(data: _Data) -> Iterator[Finding]:
    """Find whether most texts were written as variants of one another."""
    distinct = sorted({(data.label_of(row), data.plain[row]): row for row in data.rows if data.plain[row]}.items())
    counts = Counter(label for (label, _), _ in distinct)
    kept = [
        (pair, row) for pair, row in distinct if counts[pair[0]] >= FEWEST_OF_VARIANTS and pair[0] != data.open_label
    ]
    if len(kept) < FEWEST_TEXTS * FEWEST_OF_VARIANTS:
        return
    found = variants([text for (_, text), _ in kept], number(label for (label, _), _ in kept))
    if found.mean() >= MOST_VARIANTS:
        message = (
            f"{100 * found.mean():.0f} % of the texts are variants of another text of their class, as 68 to 75 % are "
            "of texts that were written for training, and 4 to 41 % of messages that users wrote: users will word "
            "theirs otherwise, and more of them will be rejected than a test with such texts predicts; once there "
            "are messages, label about 30 and pass them to learn_from_traffic (skellipsoid review, then learn)."
        )
        yield Finding(
            "variants", sorted(row for (_, row), is_one in zip(kept, found, strict=True) if is_one), None, message
        )
