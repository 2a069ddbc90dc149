"""Bounds for the rules of a tokenizer's JSON, so that none ends the process, hangs it, or fills its memory."""

import base64
import json
import math
import re
from collections.abc import Iterator
from typing import Any

#: Most letters of a string among the rules; the longest special tokens of usual models have about 30.
LONGEST_RULE = 100
#: Most rules for the normalisation, and for the division into words. Usual models have up to 6.
_MOST_RULES = 16
#: Most tokens besides the vocabulary. Usual models have up to some thousand; 200,000 take 13 seconds.
_MOST_ADDED = 2**14
#: Most letters of these tokens together, after the normalisation.
_MOST_ADDED_LETTERS = 2**20
#: Letters of the rules that add special tokens to a text, as JSON; those of usual models have up to 2,000.
_LONGEST_POST_PROCESSOR = 10_000
#: WordPiece needs the square of this many steps for a long word; usual is 100.
_LONGEST_WORD = 1000
#: Most letters that a normalisation makes of one. Unicode itself makes 18 of the letter U+FDFA.
MOST_GROWTH = 20
#: Most letters that each normalizer makes of one; ``Replace`` and ``Precompiled`` are looked at.
_GROWTH = {
    **dict.fromkeys(("Lowercase", "Nmt", "Prepend", "Replace", "Sequence", "Strip", "StripAccents", "Precompiled"), 1),
    **{"NFC": 3, "NFD": 4, "NFKC": 18, "NFKD": 18, "BertNormalizer": 4, "ByteLevel": 4},
}
#: Most letters that all normalizers could make of one before the result is measured; those of Albert come to 18 * 18.
_MOST_POSSIBLE_GROWTH = 500
#: Letters of a regular expression; those of usual models have up to 300.
_LONGEST_PATTERN = 500
#: Quantifiers of an alternative, of which those that repeat, and quantifiers and alternatives inside of groups of the
#: whole expression. Usual models have up to 4, 2 and 30.
_MOST_QUANTIFIERS, _MOST_REPEATS, _MOST_CHOICES = 4, 2, 40
_ESCAPE = r"\\(?:[pP]\{\^?\w+\}|[AdDnrsStwWzZ]|[^\w\s])"
_ONE = rf"(?:{_ESCAPE}|\[\^?(?:{_ESCAPE}|[^\[\]\\])+\]|[^\\\[\]()|?*+{{}}])"
#: A letter, a class of letters, or a group without quantifiers; and how often it stands.
_ITEM = re.compile(
    rf"(?P<bar>\|)|(?:(?P<one>{_ONE})|(?P<ahead>\(\?[=!]{_ONE}\))|(?P<group>\((?:\?i?:)?(?:{_ONE}|\|)+\)))"
    r"(?P<times>[?*+][+?]?|\{(?P<least>\d)(?:,\d?)?\})?"
)


def check_rules(rules: Any) -> None:
    """Raise an error over rules of a tokenizer, as in its JSON, that no usual model has.

    Raises
    ------
    ValueError
        If a rule is longer, more of them are there, or a normalisation lengthens texts more than usual models need,
        or if a regular expression could take more steps than the square of the length of a text.
    """
    for name in ("truncation", "padding"):
        if rules.get(name) is not None:
            raise ValueError(f"it has {name}, which save never writes")
    added = rules.get("added_tokens") or []
    if len(added) > _MOST_ADDED:
        raise ValueError(f"it adds {len(added)} tokens; at most {_MOST_ADDED} are allowed")
    if len(json.dumps(rules.get("post_processor"))) > _LONGEST_POST_PROCESSOR:
        raise ValueError(f"its post_processor has more than {_LONGEST_POST_PROCESSOR} letters")
    _check_strings(rules)
    for name, inside in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        if (found := len(list(_steps(rules.get(name), inside)))) > _MOST_RULES:
            raise ValueError(f"its {name} has {found} rules; at most {_MOST_RULES} are allowed")
    n_letters = possible_growth(rules.get("normalizer")) * sum(len(token["content"]) for token in added)
    if n_letters > _MOST_ADDED_LETTERS:
        raise ValueError(
            f"the tokens that it adds could have {n_letters:.0f} letters; at most {_MOST_ADDED_LETTERS} are allowed"
        )
    if rules["model"].get("max_input_chars_per_word", 0) > _LONGEST_WORD:
        raise ValueError(f"it looks for parts of words of more than {_LONGEST_WORD} letters")


def _steps(rule: Any, inside: str) -> Iterator[dict[str, Any]]:
    """Every rule of a sequence of sequences, these included."""
    if rule is not None:
        yield rule
        for step in rule.get(inside, ()):
            yield from _steps(step, inside)


def _check_strings(rules: Any, name: str = "") -> None:
    """Raise an error over a string that is longer than usual models need."""
    if name == "pattern" and isinstance(rules, dict) and "Regex" in rules:
        _shortest_match(rules["Regex"])
    elif isinstance(rules, dict):
        for key, rule in rules.items():
            if key not in ("vocab", "merges", "precompiled_charsmap"):
                _check_strings(rule, key)
    elif isinstance(rules, list):
        for rule in rules:
            _check_strings(rule)
    elif isinstance(rules, str) and len(rules) > LONGEST_RULE:
        raise ValueError(f"one of its rules has {len(rules)} letters; at most {LONGEST_RULE} are allowed")


def possible_growth(normalizer: Any) -> float:
    """Most letters that a normalisation could make of one."""
    growths: list[float] = []
    for rule in _steps(normalizer, "normalizers"):
        if rule["type"] not in _GROWTH:
            raise ValueError(f"its normalizer is {str(rule['type'])[:80]!r}; allowed are {', '.join(_GROWTH)}")
        growths.append(_GROWTH[rule["type"]])
        if rule["type"] == "Replace":
            pattern, n_letters = rule["pattern"], len(rule["content"])
            shortest = _shortest_match(pattern["Regex"]) if "Regex" in pattern else len(pattern["String"])
            growths.append(max(1, n_letters / shortest) if shortest else 1 + n_letters)
        elif rule["type"] == "Precompiled" and rule["precompiled_charsmap"] is not None:
            growths.append(_longest_replacement(rule["precompiled_charsmap"]))
    if (growth := math.prod(growths)) > _MOST_POSSIBLE_GROWTH:
        raise ValueError(
            f"its normalizer could make a text {growth:.0f} times as long; at most {_MOST_POSSIBLE_GROWTH} is allowed"
        )
    return growth


def _longest_replacement(charsmap: str) -> int:
    """Letters of the longest string in a table of replacements: after a trie, whose size stands first."""
    content = base64.b64decode(charsmap, validate=True)
    n_bytes = int.from_bytes(content[:4], "little")
    if len(content) < 4 or n_bytes % 4 or n_bytes > len(content) - 4:
        raise ValueError(f"its precompiled_charsmap names {n_bytes} bytes, but has {len(content)}")
    return max(len(text) for text in content[4 + n_bytes :].decode(errors="replace").split("\0")) or 1


def _shortest_match(pattern: Any) -> int:
    """Letters of the shortest text that a regular expression surely needs.

    Raises
    ------
    ValueError
        If it is none of the usual form, in which a search takes at most as many steps as the text has letters, times
        a constant: a quantifier stands only after a letter or a class of letters (``?`` also after a group), an
        alternative has one group at most, and nothing that a text could lack follows its second repetition.
    """
    alternatives: list[list[re.Match[str]]] = [[]]
    place = 0
    while isinstance(pattern, str) and (item := _ITEM.match(pattern, place)):
        place = item.end()
        if item["bar"]:
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    n_choices = sum(bool(item["times"]) + (item["group"] or "").count("|") for each in alternatives for item in each)
    if (
        not isinstance(pattern, str)
        or place < len(pattern)
        or len(pattern) > _LONGEST_PATTERN
        or n_choices > _MOST_CHOICES
        or not all(map(_is_usual, alternatives))
    ):
        raise ValueError(f"its pattern {str(pattern)[:80]!r} is none of the usual form, and could take too long")
    return min(sum(map(_least, each)) for each in alternatives)


def _is_usual(alternative: list[re.Match[str]]) -> bool:
    """Whether a search for an alternative of a regular expression takes few steps for each letter of a text."""
    times = [(item["times"] or "")[:1] for item in alternative]
    repeats = [i for i, each in enumerate(times) if each in ("*", "+", "{")]
    return (
        sum(map(bool, times)) <= _MOST_QUANTIFIERS
        and len(repeats) <= _MOST_REPEATS
        and all(alternative[i]["one"] for i in repeats)
        and (len(repeats) < _MOST_REPEATS or set(times[repeats[-1] + 1 :]) <= {"?"})
        and sum(bool(item["group"]) for item in alternative) <= 1
    )


def _least(item: re.Match[str]) -> int:
    """Letters that a part of a regular expression needs; those of a group are not counted."""
    if not item["one"] or re.fullmatch(r"[\^$]|\\[AzZ]", item["one"]) or (item["times"] or "")[:1] in ("?", "*"):
        return 0
    return int(item["least"] or 1)
