"""Reads lines of fastText, and folders of one file or folder for each class."""

import re
from collections import defaultdict

from .bot_members import Member
from .bot_texts import BotText, BotTexts, counted

PREFIX = "__label__"
_FASTTEXT = re.compile(rf"((?:{PREFIX}\S+[ \t,]*)+)(.*)")
#: Names that files of texts end in.
_TEXTS = {"txt", "text", ""}


def read_fasttext(file: Member, encoding: str | None) -> BotTexts | None:
    """Read lines that begin with ``__label__`` and the name of a class."""
    lines = file.text(encoding).splitlines()
    filled = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    texts: list[BotText] = []
    for number, line in filled:
        match = _FASTTEXT.fullmatch(line)
        labels = match[1].replace(",", " ").split() if match else []
        if len(labels) != 1:
            found = f"{len(labels)} labels" if labels else "no label"
            raise ValueError(
                f"Line {number} of {file.name!r} has {found}, but each line needs one, such as '{PREFIX}greet hello'; "
                "keep one of them, or leave the line out."
            )
        texts.append(BotText(match[2].strip() if match else "", labels[0].removeprefix(PREFIX), file.name))
    given = [each for each in texts if each.text]
    return BotTexts("fastText", given, counted(len(texts) - len(given), "line", " without a text")) if given else None


def read_class_folder(files: list[Member], encoding: str | None) -> BotTexts | None:
    """Read one file of lines for each class, or one folder for each class with one text a file.

    Where each folder has a single file, its lines are the texts.
    """
    of_folder: dict[str, list[Member]] = defaultdict(list)
    other = [file.name for file in files if _suffix(file.name) not in _TEXTS]
    for file in files:
        if _suffix(file.name) in _TEXTS:
            of_folder["/".join(file.name.split("/")[:-1])].append(file)
    above = _common(list(of_folder))
    if not of_folder or len(other) >= sum(map(len, of_folder.values())):
        return None
    notes = counted(len(other), "file", " of another kind")
    if above in of_folder and len(of_folder) > 1:
        return None  # texts beside the folders of classes: which is it?
    if above in of_folder:
        classes = {file.name.rpartition("/")[2].rpartition(".")[0] or file.name: [file] for file in of_folder[above]}
    else:
        classes = {folder.removeprefix(above).strip("/"): of_folder[folder] for folder in of_folder}
    if len(classes) < 2:
        return None
    by_line = all(len(members) == 1 for members in classes.values())
    texts: list[BotText] = []
    for label, members in classes.items():
        for file in members:
            content = file.text(encoding)
            parts = content.splitlines() if by_line else [content]
            texts += [BotText(part.strip(), label, file.name) for part in parts if part.strip()]
    how = "each line a text" if by_line else "each file a text"
    return BotTexts("a folder of classes", texts, [how, *notes]) if texts else None


def _suffix(name: str) -> str:
    base = name.rpartition("/")[2]
    return base.rpartition(".")[2].lower() if "." in base else ""


def _common(folders: list[str]) -> str:
    """Folder that all are in: of a zip, perhaps the one that was packed."""
    parts = [folder.split("/") if folder else [] for folder in folders]
    if len(parts) == 1:
        return folders[0]
    shared: list[str] = []
    for level in zip(*parts, strict=False):
        if len({*level}) > 1:
            break
        shared.append(level[0])
    return "/".join(shared)
