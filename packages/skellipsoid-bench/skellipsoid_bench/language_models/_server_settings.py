"""Where and how to ask: parameters that cannot be used, and those that hold a secret."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from skellipsoid_runtime._containers import is_unicode

#: Ways to limit answers to the labels, the strictest first; ``"none"`` only asks for it.
CONSTRAINTS = ("json_schema", "grammar", "none")
#: Fields that the classifier sets.
_OURS = {"model", "messages", "stream", "n", "response_format", "grammar", "extra_headers", "extra_query", "extra_body"}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
#: Names of fields that hold a key or a password, without case and marks.
_SECRET_NAME = re.compile(
    r"x?(api|access|auth|bearer|hf|id|refresh|secret|session|subscription)?(key|token)|auth|pass"
    r"|.*(apikey|accesskey|secretkey|privatekey|passwd|password|passphrase|secret|credentials?|authorization|bearer)"
)
#: Names of fields that hold whatever a server wants to know of whom asks.
_HEADERS = re.compile(r".*(headers?|cookies?)")
#: Keys of companies, and what stands in headers.
_SECRET_VALUE = re.compile(
    r"(?<![A-Za-z0-9])((sk|gsk|pplx|nvapi|ghp|gho)[-_][\w./-]{16,}|(hf_|xai-|AIza)[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,}"
    r"|(?i:bearer|basic)\s+\S{8,})"
)
#: Letters of a key that is recognised wherever it stands; a shorter one may be a word.
_SHORTEST_KEY = 10


class Settings(NamedTuple):
    """Where and how to ask: the parameters of the same names of ``PromptOpenSetClassifier``."""

    base_url: str
    model: str
    api_key_env: str | None
    timeout: float
    max_retries: int
    request_options: Mapping[str, Any] | None


def check_settings(settings: Settings, instruction: str | None) -> None:
    """Raise one sentence if a parameter cannot be used; nothing that may be a key is repeated in it.

    Raises
    ------
    ValueError
    """
    check_secrets(settings.base_url, settings.model, settings.api_key_env, settings.request_options)
    if origin_of(settings.base_url) is None:
        raise ValueError(
            f"base_url={settings.base_url!r} is no address of a server; it begins with http:// or https:// and often "
            "ends in /v1, such as http://localhost:8000/v1."
        )
    unknown = sorted(_OURS & {*(settings.request_options or {})})
    if unknown:
        raise ValueError(f"request_options holds {unknown[0]!r}, which the classifier sets itself; leave it out.")
    try:
        options = json.dumps(settings.request_options, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"request_options cannot be sent as JSON ({error}); use numbers, strings, lists and dictionaries of them."
        ) from error
    if not is_unicode(options + settings.model + (instruction or "")):
        raise ValueError(
            "request_options, model or instruction holds half of a character (a lone surrogate); replace it."
        )


def check_secrets(base_url: Any, model: Any, api_key_env: Any, request_options: Any) -> None:
    """Raise one sentence, which repeats no secret, if a parameter of any kind holds one.

    Raises
    ------
    ValueError
    """
    if isinstance(api_key_env, str) and not _VARIABLE.fullmatch(api_key_env):
        raise ValueError(
            "api_key_env is no name of an environment variable in capital letters, such as OPENAI_API_KEY; put the key "
            "into a variable, and pass the name of the variable, never the key."
        )
    try:
        parts = urlsplit(base_url)
        has_more = bool(parts.username or parts.password or parts.query or parts.fragment)
    except (ValueError, TypeError, AttributeError):
        has_more = False
    if has_more:
        raise ValueError(
            "base_url holds a user name, a password or a query, which would be shown and stored with the estimator; "
            "pass the address alone, and a key by api_key_env."
        )
    key = os.environ.get(api_key_env, "").strip() if isinstance(api_key_env, str) else ""
    for name, value in {"base_url": base_url, "model": model, "request_options": request_options}.items():
        for field, found in _fields(name, value):
            if _is_secret(field, found, key):
                where = "" if field == name or _is_secret("", field, key) else f" in the field {field!r}"
                raise ValueError(
                    f"{name} holds something{where} in which a key or a password would be shown, pickled and saved "
                    "with the estimator; leave it out, put it into an environment variable, and pass the name of the "
                    "variable as api_key_env."
                )


def origin_of(url: str) -> str | None:
    """Scheme, host and port of an address; ``None`` if it is none."""
    try:
        parts = urlsplit(url)
        port = {"http": 80, "https": 443}.get(parts.scheme) if parts.port is None else parts.port
    except ValueError:
        return None
    is_plain = parts.scheme in ("http", "https") and parts.hostname and port
    return f"{parts.scheme}://{parts.hostname}:{port}" if is_plain else None


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of everything in a parameter, at any depth."""
    waiting, seen = [(name, value)], set()
    while waiting:
        field, found = waiting.pop()
        yield field, found
        if isinstance(found, Mapping | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            inner = found.items() if isinstance(found, Mapping) else ((field, each) for each in found)
            waiting += [(str(inner_name), each) for inner_name, each in inner]


def _is_secret(name: str, value: Any, key: str) -> bool:
    said = [name, value] if isinstance(value, str) else [name]
    if any(_SECRET_VALUE.search(text) or (len(key) >= _SHORTEST_KEY and key in text) for text in said):
        return True
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    is_named = _HEADERS.fullmatch(plain) or (isinstance(value, str) and _SECRET_NAME.fullmatch(plain))
    return bool(value and is_named)
