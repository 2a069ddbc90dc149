"""Downloads files of a repository on the Hugging Face hub with the hub's client, and its cache, settings and log-in."""

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

_PART = "[A-Za-z0-9_](?:[A-Za-z0-9_]|[-.](?![-.]))*(?<![-.])"
#: Names of repositories.
NAME = re.compile(f"{_PART}/{_PART}")
#: Of a manifest: the hash of its other lines.
FIRST_LINE = re.compile(rb'\{"manifest_sha256": "([0-9a-f]{64})",\n')
_COMMIT = re.compile("[0-9a-f]{40}")
#: Names of branches and tags, as Git allows them.
_REVISION = re.compile(r"(?!.*(?:\.\.|//|/$|\.$))[\w.+/-]{1,200}")
_PORTS = {"http": 80}
#: Time for a connection.
_SECONDS = 10.0
_LOGIN = "log in with `hf auth login` or set HF_TOKEN"


def is_hub_name(place: Any) -> bool:
    """Whether a place is a text of the form ``user/name``, and nothing here has this path."""
    return isinstance(place, str) and bool(NAME.fullmatch(place)) and not os.path.lexists(place)


def check_no_revision(place: Any, revision: str | None) -> None:
    """Refuse a revision of what is no repository, which would be loaded at whatever revision it is."""
    if revision is not None:
        raise ValueError(
            f"revision={revision!r} is one of a repository on the hub, but {str(place)!r} is a path on this machine; "
            "leave revision out, or pass a name such as 'user/name' that is no path here."
        )


def is_whole(manifest: bytes) -> bool:
    """Whether the first line of a manifest, of a saved or an exported model, has the hash of all others."""
    first = FIRST_LINE.match(manifest)
    return first is not None and hashlib.sha256(manifest[first.end() :]).hexdigest() == first[1].decode()


def is_whole_manifest(path: Path) -> bool:
    """Whether a file is a whole manifest."""
    return is_whole(path.read_bytes())


def has_hash(expected: object, sizes: range) -> Callable[[Path], bool]:
    """Give a function that says whether a file has an allowed size, in bytes, and a SHA-256."""

    def is_whole(path: Path) -> bool:
        if path.stat().st_size not in sizes:
            return False
        with path.open("rb") as file:
            return bool(hashlib.file_digest(file, "sha256").hexdigest() == expected)

    return is_whole


def download(
    name: str,
    repository: str,
    revision: str | None,
    token: str | bool | None,
    sizes: range,
    is_whole: Callable[[Path], bool] = Path.is_file,
) -> Path | None:
    """Give the path of a file in the cache of the hub's client, which fetches it if need be.

    The file lies in a folder ``snapshots/COMMIT``. ``None``: the repository has no such file. What ``is_whole`` says is
    damaged, as what lies in the cache may be, is fetched once more if the hub can be asked.

    Raises
    ------
    ValueError
        If the revision is no name of one, or if the file on the hub has other ``sizes``, in bytes; it is not fetched.
    FileNotFoundError
        If there is no such repository or revision.
    PermissionError
        If the hub refuses access.
    ConnectionError
        If the file is not in the cache, and the hub cannot be asked.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    if revision is not None and not _REVISION.fullmatch(revision):
        raise ValueError(
            f"revision={revision[:80]!r} is no name of a branch, tag or commit; pass one, or leave revision out."
        )
    options: Any = {"revision": revision, "token": token, "library_name": "skellipsoid"}
    if revision is not None and _COMMIT.fullmatch(revision):  # what is in the cache needs no network
        with suppress(LocalEntryNotFoundError):
            found = Path(hf_hub_download(repository, name, local_files_only=True, **options))
            if is_whole(found):
                return found
    reason = "" if constants.HF_HUB_OFFLINE else _no_connection(constants.ENDPOINT)
    is_asked = not (reason or constants.HF_HUB_OFFLINE)
    try:
        with _one_sentence(repository, revision, reason):
            on_hub: Any = hf_hub_download(repository, name, dry_run=True, **options) if is_asked else None
            if on_hub is None or not on_hub.will_download or on_hub.file_size is None or on_hub.file_size in sizes:
                found = Path(hf_hub_download(repository, name, local_files_only=bool(reason), **options))
                if not is_asked or is_whole(found):
                    return found
                return Path(hf_hub_download(repository, name, force_download=True, **options))
    except EntryNotFoundError:
        return None
    allowed = f"must have {sizes[0]}" if len(sizes) == 1 else f"may have {sizes[-1]}"
    raise ValueError(
        f"The file {name!r} of the model {repository!r} on the hub has {on_hub.file_size} bytes, but {allowed}, and is "
        "not downloaded; do not trust this model."
    )


def _no_connection(address: str) -> str:
    """Say why there is no connection to the hub, whose client would try for half a minute; empty if there is one."""
    place = urlsplit(address)
    if getproxies().keys() & {place.scheme, "all"}:
        return ""
    try:
        with socket.create_connection((place.hostname or "", place.port or _PORTS.get(place.scheme, 443)), _SECONDS):
            return ""
    except OSError as error:
        return error.strerror or str(error)


@contextmanager
def _one_sentence(repository: str, revision: str | None, no_connection: str) -> Iterator[None]:
    """Turn the errors of the hub's client, which writes paragraphs, into one sentence each."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise PermissionError(
            f"The model {repository!r} on the hub is gated, and you have no access; ask for it on the page of the "
            f"model, and {_LOGIN}."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"There is no folder {repository!r} here, and no such model on the hub that you can read; check the name, "
            f"and {_LOGIN} if the model is private."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(
            f"The model {repository!r} on the hub has no revision {revision!r}; pass one of its branches or tags, or "
            "the whole hash of a commit."
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, http_error()) as error:
        if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
            raise
        raise _not_asked(repository, error, no_connection) from error
    except (OSError, ValueError) as error:  # what the hub says does not fit what it gives, or the name is none
        if isinstance(error, OSError) and error.errno is not None:  # such as a full disk
            raise
        raise ConnectionError(
            f"The model {repository[:80]!r} cannot be fetched from the hub ({reason_of(error)[0]}); check the name, "
            "and try again."
        ) from error


def _not_asked(repository: str, error: Exception, no_connection: str) -> OSError:
    where = f"The model {repository!r} is no folder here and not complete in the hub's cache, and"
    if not no_connection and is_offline(error):
        return ConnectionError(
            f"{where} HF_HUB_OFFLINE forbids to ask the hub; check the name, or load the model once without it."
        )
    reason, status = (no_connection, None) if no_connection else reason_of(error)
    if status in (401, 403):
        return PermissionError(
            f"{where} the hub refuses access ({reason}); {_LOGIN}, or pass token=False if the model is public and a "
            "token has expired."
        )
    return ConnectionError(f"{where} the hub cannot be asked ({reason}); check the name and the network.")


def http_error() -> type[Exception]:
    """Give the base of all errors of the library by which the hub's client speaks HTTP, whichever that is."""
    from huggingface_hub.errors import HfHubHTTPError

    return HfHubHTTPError.__bases__[0]


def is_offline(error: BaseException | None) -> bool:
    """Whether an error of the hub's client comes from ``HF_HUB_OFFLINE``."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    return error is not None and (isinstance(error, OfflineModeIsEnabled) or is_offline(error.__cause__))


def reason_of(error: BaseException) -> tuple[str, int | None]:
    """Give the first line of what is behind an error of the hub's client, and the HTTP status, if any."""
    while error.__cause__ is not None and getattr(error, "response", None) is None:
        error = error.__cause__
    answer = getattr(error, "response", None)
    status = getattr(answer, "status_code", None)
    text = " ".join((str(error).splitlines() or [""])[0].split())[:200].rstrip(" .:")
    return text or type(error).__name__, status
