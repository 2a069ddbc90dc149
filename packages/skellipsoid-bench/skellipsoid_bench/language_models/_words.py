"""Prompts for a language model, and the label that its answer names."""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from skellipsoid._core.characters import is_visible

Message = dict[str, str]

#: Thoughts that some models write before the answer.
_THOUGHTS = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
#: What some models put before a label.
_BEFORE = re.compile(r"^(the )?(class|label|answer|category|intent)( name)?( is)?\s*:?\s+")
_KEY = "label"
#: Marks and blanks around a label, at most.
_MOST_AROUND = 1000


class Vocabulary:
    """The labels as a model says them, and how its answers are read.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    open_word : str
        What it says for open.

    Raises
    ------
    ValueError
        If a label, or the open word, cannot be said.
    """

    def __init__(self, classes: NDArray[Any], open_word: str) -> None:
        _check_speakable(open_word, "open_word")
        self.open_word = open_word
        self.labels = [str(label) for label in classes.tolist()]
        rows: dict[str, str] = {}
        for label in self.labels:
            _check_speakable(label, "the label")
            if _folded(label) == _folded(open_word):
                raise ValueError(
                    f"The label {label!r} is what the language model is told to answer for open; pass another "
                    "open_word, or rename the class."
                )
            if rows.setdefault(_shown(label), label) != label:
                raise ValueError(
                    f"The labels {rows[_shown(label)]!r} and {label!r} look the same to a language model; rename one "
                    "of them."
                )
        words = [*self.labels, open_word]
        self._exact = {_shown(word): row for row, word in enumerate(words)}
        folded = [_folded(word) for word in words]
        self._folded = {word: row for row, word in enumerate(folded) if folded.count(word) == 1}

    @property
    def longest(self) -> int:
        """Bytes of the longest label, which no tokenizer divides into more tokens."""
        return max(len(word.encode()) for word in (*self.labels, self.open_word))

    def system(self, instruction: str | None, *, as_json: bool) -> str:
        """Write what all requests begin with."""
        how = (
            f'Answer with a JSON object {{"{_KEY}": "..."}} that holds exactly one name of this list.'
            if as_json
            else "Answer with exactly one name of this list, and with nothing else."
        )
        lines = [
            "Sort the message of a user into one of these classes.",
            *([] if instruction is None else [instruction]),
            "",
            *(f"- {label}" for label in self.labels),
            f"- {self.open_word} (for every message that belongs to no class above)",
            "",
            how,
        ]
        return "\n".join(lines)

    def messages(
        self, text: str, examples: Sequence[tuple[str, str]], instruction: str | None, as_json: bool
    ) -> list[Message]:
        """Write a request: what is equal in all requests first, then texts with their labels, the text last."""
        found = [{"role": "system", "content": self.system(instruction, as_json=as_json)}]
        for shown, label in examples:
            answer = json.dumps({_KEY: label}, ensure_ascii=False) if as_json else label
            found += [
                {"role": "user", "content": f"Message: {shown}"},
                {"role": "assistant", "content": answer},
            ]
        return [*found, {"role": "user", "content": f"Message: {text}"}]

    def read(self, answer: str) -> int | None:
        """Give the number of the class that an answer names, the number of classes for open, ``None`` for neither."""
        answer = _THOUGHTS.sub("", answer).strip()
        named = _labels_in_json(answer)
        for said in [answer, *answer.splitlines()[:1]] if named is None else named:
            if len(said) > 4 * self.longest + _MOST_AROUND:
                continue  # to fold megabytes would take minutes
            if _shown(said) in self._exact:
                return self._exact[_shown(said)]
            folded = _folded(said)
            for candidate in (folded, _BEFORE.sub("", folded)):
                if candidate in self._folded:
                    return self._folded[candidate]
        return None

    def schema(self) -> dict[str, Any]:
        """JSON schema of an answer."""
        return {
            "type": "object",
            "properties": {_KEY: {"type": "string", "enum": [*self.labels, self.open_word]}},
            "required": [_KEY],
            "additionalProperties": False,
        }

    def grammar(self) -> str:
        """Grammar of an answer, in the notation of llama.cpp (GBNF)."""
        words = (json.dumps(word, ensure_ascii=False) for word in (*self.labels, self.open_word))
        return f"root ::= {' | '.join(words)}"


def _labels_in_json(answer: str) -> list[str] | None:
    """Labels that a JSON answer names; ``None`` if it is no JSON."""
    if answer.startswith("```"):
        answer = re.sub(r"^```\w*\s*|\s*```$", "", answer)
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, str):
        return [found]
    if not isinstance(found, dict):
        return None  # the label may be a number
    value = found.get(_KEY)
    return [] if isinstance(value, dict | list) or value is None else [str(value)]


def _check_speakable(word: str, what: str) -> None:
    problem = ""
    if not is_visible(word):
        problem = "has no visible letter"
    elif any(unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs") for letter in word):
        problem = "holds a line break, a control character or half of a character"
    if problem:
        raise ValueError(f"A language model cannot say {what} {word!r}, which {problem}; use a name on one line.")


def _shown(word: str) -> str:
    return " ".join(unicodedata.normalize("NFC", word).split())


def _folded(word: str) -> str:
    """Give a word without case, quotes, marks at its ends, and kinds of blanks."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    return " ".join(re.sub(r"[\s_]+", " ", plain).strip(" .,;:!*-'\"`“”‘’«»()[]").split())
