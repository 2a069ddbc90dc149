"""The folder of an exported model: whether it may be replaced, and writing all files or none.

All imports are fast here, because ``predict`` reads of which model an export was made.
"""

import glob
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from skellipsoid_runtime._folder import GRAPH, MANIFEST, TOKENIZER, TRAINING_FEATURES

from .._core.files import remove_stale, to_disk
from ..persistence._folder import Files, explained_failure, write_files

#: Files that tokenizers in other languages read beside ``tokenizer.json``.
SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "config.json")
_WRITTEN = {MANIFEST, GRAPH, TRAINING_FEATURES, TOKENIZER, *SETTINGS}


def check_target(target: Path, *, overwrite: bool) -> None:
    """Raise an error for a folder that must not be replaced: only those that ``export_onnx`` wrote are."""
    names = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if not (names or (target.exists() and not target.is_dir())):
        return
    if MANIFEST not in names:
        raise FileExistsError(f"{str(target)!r} exists and is not an empty folder; export into a new folder.")
    if not overwrite:
        raise FileExistsError(f"{str(target)!r} holds an exported model; overwrite it, or export into a new folder.")
    if others := sorted(names - _WRITTEN):
        raise FileExistsError(
            f"{str(target)!r} holds {others[0]!r} beside an exported model, which would be lost; move it elsewhere, or "
            "export into a new folder."
        )


def write_export(target: Path, files: Files) -> None:
    """Write files into a folder beside the target, which then replaces it."""
    made = [folder for folder in target.parents if not folder.exists()]  # the innermost first
    # Outside of the temporary folder, which is removed whatever happens.
    before = target.with_name(f".{target.name}.{secrets.token_hex(4)}.before")
    try:
        with explained_failure(target, sum(map(len, files.values()))):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_stale(target.parent, f".{glob.escape(target.name)}-????????")
            with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
                model = Path(beside, "model")
                model.mkdir()
                write_files(files, model)
                to_disk(model)
                _take_place(model, target, before)
    except BaseException as error:
        for folder in made:
            with suppress(OSError):  # another process has written into it
                folder.rmdir()
        if before.exists() and not (target / MANIFEST).exists():
            cause = error.__cause__ or error
            raise OSError(
                f"The new export cannot be moved to {str(target)!r}, nor can the earlier one be moved back "
                f"({getattr(cause, 'strerror', None) or type(cause).__name__}); the earlier one is complete in "
                f"{str(before)!r}, rename that folder to {target.name!r}."
            ) from error
        raise
    finally:
        if (target / MANIFEST).exists():  # the new export, or one that another process wrote meanwhile
            shutil.rmtree(before, ignore_errors=True)


def _take_place(new: Path, target: Path, before: Path) -> None:
    """Replace an empty folder or an earlier export by a new folder; the earlier one is restored if that fails."""
    if not target.exists() or not any(target.iterdir()):
        new.replace(target)
        return
    try:
        target.replace(before)
        new.replace(target)
    except BaseException:
        if before.exists() and not target.exists():
            before.replace(target)
        raise
    # A folder that a killed process left between its two moves is older than the present one.
    remove_stale(target.parent, f".{glob.escape(target.name)}.????????.before")
