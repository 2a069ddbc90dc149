"""Compares spellings of labels: equal names, nearly equal names, and usual names of no class."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from numpy.typing import NDArray

from .characters import normalize_text, without_ignored
from .labels import is_text
from .messages import cut, named
from .warn import warn

#: Usual names of no class, without blanks and punctuation, and parts of such names.
_NONE = {"-1", "none", "open", "other", "others", "unknown", "oos", "ood", "outofscope", "outofdomain", "nothing"}
#: First parts of such names with a slash: open/closed may be a class.
_GROUPS_OF_NONE = _NONE - {"open", "other", "others", "nothing"}
_PARTS_OF_NONE = ("fallback", "outofscope", "outofdomain", "defaultnegativeintent")
#: Characters that Unicode does not count among quotes and dashes.
_QUOTES, _MINUSES = "'\"`\u00b4\u02b9\u02ba\u02bc\u2032\u2033\u201a\u201e", "\u02d7\u2043\u2212\u2796"
#: A whole number in usual notations: with brackets, blanks, a sign before or after it, or a fraction of zeros.
_NUMBER = re.compile(r"([(\[{]?) *([-+]?) *(\d{1,18})(?:[.,](?:0{0,2}|0{4,}))? *(-?) *[)\]}]?")
#: Labels of at least this many letters and digits are nearly equal if one character differs.
_FEWEST_LETTERS = 5
#: Largest number of labels that a warning names.
_MOST_NAMED = 3


def refuse_other_spellings(
    labels: NDArray[Any], classes: NDArray[Any], open_label: Any, *, among_new: bool = False
) -> None:
    """Raise an error if a label is a known class or the open label in another spelling.

    Case, blanks, hyphens, underscores, dashes, quotes, brackets and the notation of a whole number are ignored. Labels
    that are numbers have one spelling.

    Parameters
    ----------
    labels : ndarray
        Labels of messages.
    classes : ndarray
        Known classes.
    open_label : int or str
    among_new : bool
        Whether new labels are also compared with one another, because they become classes.

    Raises
    ------
    ValueError
        The message names both spellings.
    """
    if not is_text(labels):
        return
    opened, known = str(open_label), set(map(str, classes.tolist()))
    new = sorted(set(map(str, labels.tolist())) - known - {opened})
    if not new:
        return
    spelled = {form: name for name in [*sorted(known), opened] for form in forms(name)}
    pairs = []
    for label in new:
        other = next((spelled[form] for form in forms(label) if form in spelled), None)
        if other is not None:
            what = "the open label " if other == opened else "the class " if other in known else ""
            pairs.append(f"{_shown(label, other)} beside {what}{cut(other)!r}")
        elif among_new:
            spelled |= dict.fromkeys(forms(label), label)
    if pairs:
        raise ValueError(
            f"Nearly equal names: {named('label', pairs)}; write them alike, or rename one of them if they are "
            "different classes."
        )


def refuse_lookalikes(labels: NDArray[Any], open_label: str) -> None:
    """Raise an error for training labels that look like the open label or another label, but differ.

    They differ by characters that Unicode declares ignorable, or by the notation of a number as the open label. Case
    and punctuation are allowed here: the check of the texts reports them.

    Raises
    ------
    ValueError
        The message names both labels.
    """
    if _NUMBER.fullmatch(open_label):
        refuse_other_spellings(labels, labels[:0], open_label)
    seen = {without_ignored(open_label): open_label}
    names = sorted({*map(str, labels.tolist())} - {open_label})
    pairs = [(name, other) for name in names if (other := seen.setdefault(without_ignored(name), name)) != name]
    if pairs:
        shown = [f"{_shown(name, other)} beside {cut(other)!r}" for name, other in pairs]
        raise ValueError(f"Names that look alike: {named('label', shown)}; write them alike.")


def strangers(labels: NDArray[Any], classes: NDArray[Any], open_label: Any) -> Counter[Any]:
    """Count the labels that are neither a known class nor the open label."""
    known = {*classes.tolist(), open_label}
    counts = Counter(str(label) if isinstance(label, str) else label for label in labels.tolist())
    return Counter({label: n for label, n in counts.items() if label not in known})


def warn_of_strangers(labels: NDArray[Any], classes: NDArray[Any], open_label: Any) -> None:
    """Warn of labels that are read as open because they are not a known class."""
    found = strangers(labels, classes, open_label)
    if found:
        most = found.most_common(_MOST_NAMED)
        names = [f"{cut(label)!r} ({n})" if isinstance(label, str) else f"{label!r} ({n})" for label, n in most]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        warn(
            f"{found.total()} of {len(labels)} labels count as open, because the classifier does not know "
            f"{', '.join(names)}{more}; write the name of a class, or {open_label!r} for a message of none."
        )


def forms(label: str) -> tuple[str, ...]:
    """Return the normal form of all spellings of a label; a number in brackets has two, as it may be negative."""
    shown = (character for character in without_ignored(normalize_text(label)) if not _is_dropped(character))
    text = "".join("-" if _is_dash(character) else character for character in shown).strip()
    number = _NUMBER.fullmatch(text)
    if number:
        opening, sign, digits, behind = number.groups()
        value = int(digits)
        if sign == "-" or behind:
            return (str(-value),)
        return (str(value), str(-value)) if opening == "(" and not sign else (str(value),)
    parts: list[str] = []
    for before, character, after in zip(f" {text}", text, f"{text[1:]} ", strict=False):
        follows_digit = bool(parts) and parts[-1].isdigit()
        if not _is_between(character):
            parts.append(character)
        elif after.isdigit() and follows_digit:
            parts.append(" ")  # 1-1 is not 11
        elif after.isdigit() and character == "-" and _is_between(before):
            parts.append("-")  # of a negative number
    return (unicodedata.normalize("NFKC", "".join(parts)) or text,)


def are_nearly_equal(first: str, second: str) -> bool:
    """Whether two labels differ in case, punctuation, the order of words or one letter alone."""
    return any(
        one == other or (min(len(one), len(other)) >= _FEWEST_LETTERS and _is_one_edit(one, other))
        for one, other in zip(_words(first), _words(second), strict=True)
        if one and other
    )


def nearly_equal(new: Iterable[str], known: Iterable[str]) -> list[tuple[str, str, bool]]:
    """Pairs of nearly equal names: a new one, another one, and whether this is a known one."""
    new, known = sorted(new), sorted(known)
    pairs = [(one, other, True) for one in new for other in known if are_nearly_equal(one, other)]
    return pairs + [(one, other, False) for one, other in combinations(new, 2) if are_nearly_equal(one, other)]


def is_name_of_none(label: str) -> bool:
    """Whether a label is a usual name of no class, such as ``Out of scope``, ``-1`` or ``?``."""
    names, group = set(forms(label)), set(forms(label.partition("/")[0]))  # of Rasa: out_of_scope/other
    is_none = not _NONE.isdisjoint(names) or not _GROUPS_OF_NONE.isdisjoint(group)
    return (
        is_none
        or any(part in name for name in names for part in _PARTS_OF_NONE)
        or bool(re.fullmatch(r"[?.…/\-–—\s]+", label))
    )


def warn_of_names_of_none(classes: NDArray[Any], open_label: Any) -> None:
    """Warn of classes that are trained, but have a usual name of no class."""
    found = [repr(str(name)) for name in classes.tolist() if isinstance(name, str) and is_name_of_none(name)]
    if found:
        names = ", ".join(found[:_MOST_NAMED]) + (
            f" and {len(found) - _MOST_NAMED} more" if found[_MOST_NAMED:] else ""
        )
        warn(
            f"y has classes with usual names of no class: {names}; give such samples the open label {open_label!r}, or "
            "rename the class."
        )


def says_none(label: str) -> bool:
    """Whether a label seems to mean that a message belongs to no class; wider than ``is_name_of_none``."""
    return is_name_of_none(label) or next(_words(label)) in _NONE or bool(re.match(r"(no|none)[\W_]", label.lower()))


def _is_dash(character: str) -> bool:
    return unicodedata.category(character) == "Pd" or character in _MINUSES


def _is_dropped(character: str) -> bool:
    """Whether a character is a quote or invisible."""
    return unicodedata.category(character) in {"Cf", "Pi", "Pf"} or character in _QUOTES


def _is_between(character: str) -> bool:
    """Whether a character is a blank, a control, a dash, an underscore or a bracket."""
    return unicodedata.category(character) in {"Zs", "Cc", "Pd", "Pc", "Ps", "Pe"}


def _shown(label: str, other: str) -> str:
    """Quote a label, and name a character that looks like another one."""
    odd = [c for c in label if not c.isascii() and c not in other and not _is_letter(c)]
    return f"{cut(label)!r} (with U+{ord(odd[0]):04X})" if odd else repr(cut(label))


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L" and bool(without_ignored(character))


def _words(label: str) -> Iterator[str]:
    """Letters and digits of a label, as written and with sorted words."""
    label = without_ignored(label)
    words = re.findall(r"[^\W_]+", normalize_text(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)))
    yield "".join(words)
    yield "".join(sorted(words))


def _is_one_edit(first: str, second: str) -> bool:
    """Whether one letter is added, missing, replaced, or swapped with the next one; digits must agree."""
    if re.findall(r"\d", first) != re.findall(r"\d", second):
        return False
    one, other = first, second
    for end in (0, -1):
        while one and other and one[end] == other[end]:
            one, other = (rest[1:] if end == 0 else rest[:-1] for rest in (one, other))
    return max(len(one), len(other)) <= 1 or (len(one) == len(other) == 2 and one == other[::-1])
