"""Recognises which bot wrote a file, a folder or a zip, and reads its texts with a sentence on what was read."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from .._core.messages import numbered
from .._core.no_text import check_is_text
from .bot_members import MOST_BYTES, Member, Members, of_file, of_folder, of_zip
from .bot_texts import BotText, BotTexts, files_of
from .dialogflow import read_dialogflow, read_dialogflow_cx
from .luis import read_luis
from .plain_files import PREFIX, read_class_folder, read_fasttext
from .rasa import read_rasa

#: Bytes of a file by which fastText is recognised.
_HEAD = 4096
PAGE = "the page 'Coming from something else' of the guide"
_READERS = (read_dialogflow, read_dialogflow_cx, read_rasa, read_luis)


class BotRead(NamedTuple):
    """Texts, a sentence on what was read and what was not, and whether something was left out."""

    texts: list[BotText]
    note: str
    is_cut: bool


def read_bot(path: Path, language: str | None = None, encoding: str | None = None) -> BotRead | None:
    """Read the texts of a bot's file, folder or zip.

    Parameters
    ----------
    path : Path
    language : str, default=None
        The one to read of several.
    encoding : str, default=None
        Encoding of the files; ``None``: UTF-8, or UTF-16 with a mark.

    Returns
    -------
    found : BotRead or None
        ``None`` if no bot wrote it.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a file is damaged or too large, if it is of a kind that is not read, or holds several languages.
    """
    found = _found(path, encoding)
    if found is None:
        if language is not None:
            raise ValueError(f"{str(path)!r} names no language of its texts; leave --language out.")
        return None
    bot, members = found
    texts, other = _of_language(path, bot.texts, language)
    n_copies = _copies(texts)
    parts = [
        f"{bot.kind}, {numbered(len({text.label for text in texts}), 'intent')}, {len(texts):,} "
        f"text{'' if len(texts) == 1 else 's'} of {numbered(files_of(texts), 'file')}",
        *bot.notes,
        *members.notes,
        *([f"{other:,} texts of other languages not read"] if other else []),
        *([f"{n_copies:,} {'copy' if n_copies == 1 else 'copies'} across files"] if n_copies else []),
    ]
    note = f"{str(path)!r}: {'; '.join(parts)}."
    return BotRead(texts, note, any(word in note for word in (" left out", " not read", " not followed")))


def _found(path: Path, encoding: str | None) -> tuple[BotTexts, Members] | None:
    if path.is_dir():
        return _of_several(path, of_folder(path), encoding)
    if not path.is_file():
        return None  # a pipe is read but once
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        members = of_zip(path)
        return None if members is None else _of_several(path, members, encoding)
    members, suffix = of_file(path), path.suffix.lower()
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(PREFIX.encode()):
        found = read_fasttext(members.files[0], encoding)
        return (found, members) if found else None
    is_object = suffix == ".json" and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    is_object &= path.stat().st_size <= MOST_BYTES  # records of a table may be more
    if not (suffix in {".yml", ".yaml", ".md"} or is_object or "_usersays_" in path.name):
        return None
    check_is_text(head, path)
    found = _of_bot(path, members.files, encoding)
    if found is None and suffix in {".yml", ".yaml"}:
        raise ValueError(
            f"{str(path)!r} is YAML without intents below 'nlu', as Rasa writes them; pass the file or folder that has "
            f"them, or a table ({PAGE})."
        )
    return (found, members) if found else None


def _of_several(path: Path, members: Members, encoding: str | None) -> tuple[BotTexts, Members]:
    found = _of_bot(path, members.files, encoding) or read_class_folder(members.files, encoding)
    if found is None:
        raise ValueError(
            f"{str(path)!r} holds no training texts of a kind that is read; pass one file of texts and labels, or a "
            f"Rasa project, a Dialogflow agent, or one folder or .txt file for each class ({PAGE})."
        )
    return found, members


def _of_bot(path: Path, files: list[Member], encoding: str | None) -> BotTexts | None:
    found = [each for each in (read(files, encoding) for read in _READERS) if each is not None]
    if len(found) > 1:
        kinds = " and ".join(each.kind for each in found)
        raise ValueError(f"{str(path)!r} holds texts of {kinds}; pass the file or folder of one of them.")
    return found[0] if found else None


def _of_language(path: Path, texts: list[BotText], language: str | None) -> tuple[list[BotText], int]:
    """Texts of the language that is asked for, or of the only one, and how many others there are."""
    counts = Counter(text.language.lower() for text in texts)
    listed = ", ".join(f"{name or 'none named'} ({count:,})" for name, count in counts.most_common())
    if language is None:
        if len(counts) > 1:
            example = next(name for name, _ in counts.most_common() if name)
            raise ValueError(
                f"{str(path)!r} holds texts of {len(counts)} languages: {listed}; choose one, such as --language "
                f"{example}."
            )
        return texts, 0
    if not any(counts):
        raise ValueError(f"{str(path)!r} names no language of its texts; leave --language out.")
    if language.lower() not in counts:
        raise ValueError(f"--language {language} is none of {str(path)!r}, which holds {listed}; name one of these.")
    chosen = [text for text in texts if text.language.lower() == language.lower()]
    return chosen, len(texts) - len(chosen)


def _copies(texts: list[BotText]) -> int:
    """Count the texts that an earlier file holds with the same label."""
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    for text in texts:
        files[text.text, text.label].add(text.file)
    return sum(len(each) - 1 for each in files.values())
