"""One request to a server that speaks OpenAI's protocol: the format of answers, retries, errors in one sentence."""

import json
import os
import random
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ._cache import Answer
from ._words import Message, Vocabulary

#: Ways to limit answers to the labels, the strictest first; ``"none"`` only asks for it.
CONSTRAINTS = ("json_schema", "grammar", "none")
#: Answers of a server that does not know a way to limit answers.
_UNKNOWN_FORMAT = {400, 404, 415, 422, 500, 501}
#: Seconds before the first retry; each further one waits twice as long, at most as long as the last number.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
#: Fields that this module sets.
_OURS = {"model", "messages", "stream", "n", "response_format", "grammar", "extra_headers", "extra_query", "extra_body"}
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_LONGEST_REASON = 200
#: Sent where no key is needed; the client insists on one.
_NO_KEY = "none"


class Settings(NamedTuple):
    """Where and how to ask: the parameters of the same names of ``PromptOpenSetClassifier``."""

    base_url: str
    model: str
    api_key_env: str | None
    timeout: float
    max_retries: int
    request_options: Mapping[str, Any] | None


class RequestError(Exception):
    """A request that failed for good.

    Parameters
    ----------
    kind : type
        Of the error to raise for a user.
    reason : str
        What happened, and what to do: two parts of a sentence.
    """

    def __init__(self, kind: type[Exception], reason: str, remedy: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.remedy, self.status = kind, reason, remedy, status


def check_settings(settings: Settings) -> None:
    """Raise one sentence if a parameter cannot be used; nothing that may be a key is repeated in it.

    Raises
    ------
    ValueError
    """
    try:
        parts = urlsplit(settings.base_url)
        is_plain = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        has_more = bool(parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        is_plain, has_more = False, False
    if has_more:
        msg = (
            "base_url holds a user name, a password or a query, which would be shown and stored with the estimator; "
            "pass the address alone, and a key by api_key_env."
        )
        raise ValueError(msg)
    if not is_plain:
        msg = (
            f"base_url={settings.base_url!r} is no address of a server; it begins with http:// or https:// and often "
            "ends in /v1, such as http://localhost:8000/v1."
        )
        raise ValueError(msg)
    if settings.api_key_env is not None and not _VARIABLE.fullmatch(settings.api_key_env):
        msg = (
            "api_key_env is no name of an environment variable in capital letters, such as OPENAI_API_KEY; put the key "
            "into a variable, and pass the name of the variable, never the key."
        )
        raise ValueError(msg)
    unknown = sorted(_OURS & {*(settings.request_options or {})})
    if unknown:
        msg = f"request_options holds {unknown[0]!r}, which the classifier sets itself; leave it out."
        raise ValueError(msg)
    try:
        json.dumps(settings.request_options, allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"request_options cannot be sent as JSON ({error}); use numbers, strings, lists and dictionaries of them."
        raise ValueError(msg) from error


class Server:
    """A server that answers with labels.

    Parameters
    ----------
    settings : Settings
    vocabulary : Vocabulary
    stop : threading.Event
        Ends waiting before a retry.

    Raises
    ------
    ImportError
        If the package openai is not installed.
    RequestError
        If the environment variable with the key is not set.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary, stop: threading.Event) -> None:
        try:
            import openai
        except ImportError as error:
            msg = "PromptOpenSetClassifier asks a server by the package openai: pip install 'skellipsoid[llm]'."
            raise ImportError(msg) from error
        self._openai, self._settings, self._vocabulary, self._stop = openai, settings, vocabulary, stop
        self._key = _read_key(settings.api_key_env)
        self._client = openai.OpenAI(
            base_url=settings.base_url, api_key=self._key or _NO_KEY, max_retries=0, timeout=settings.timeout
        )
        self._lock, self.n_retries, self.has_answered = threading.Lock(), 0, False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def find_constraint(self, wanted: str, messages: Callable[[bool], list[Message]]) -> tuple[str, Answer]:
        """Ask once, with the strictest format of answers that the server knows; give it, and the answer."""
        ways = CONSTRAINTS if wanted == "auto" else (wanted,)
        for way in ways:
            try:
                return way, self.ask(way, messages, may_be_unknown=way != ways[-1])
            except RequestError as error:
                if way == ways[-1] or error.status not in _UNKNOWN_FORMAT:
                    raise
        raise AssertionError

    def ask(
        self, constraint: str, messages: Callable[[bool], list[Message]], *, may_be_unknown: bool = False
    ) -> Answer:
        """Ask once, and again after errors that may pass.

        Some servers answer a field that they do not know as an error of their own (500): with ``may_be_unknown``, one
        such answer is enough of a reason to ask once more, and two to give up.

        Raises
        ------
        RequestError
        """
        body, said = self._body(constraint), messages(constraint == "json_schema")
        wait = FIRST_WAIT
        for attempt in range(self._settings.max_retries + 1):
            problem, pause, passes = self._try(said, body)
            if isinstance(problem, Answer):
                self.has_answered = True
                return problem
            is_unknown = may_be_unknown and problem.status == 500 and attempt > 0
            if not passes or is_unknown or attempt == self._settings.max_retries or self._stop.is_set():
                raise problem
            with self._lock:
                self.n_retries += 1
            # Requests that failed together do not come back together.
            self._stop.wait(pause if pause is not None else wait * random.uniform(0.5, 1))
            wait = min(2 * wait, LONGEST_WAIT)
        raise AssertionError

    def _try(self, said: list[Message], body: Mapping[str, Any]) -> tuple[Answer | RequestError, float | None, bool]:
        """Ask once; gives the answer or the error, how long to wait, and whether the error may pass."""
        openai, given = self._openai, self._settings
        messages: Any = said
        try:
            response = self._client.chat.completions.create(model=given.model, messages=messages, extra_body=dict(body))
            return self._read(response), None, False
        except openai.APIStatusError as error:
            return self._of_status(error.status_code, _text_of(error)), _retry_after(error), _may_pass(error)
        except openai.APIConnectionError as error:
            what = f"no answer within timeout={given.timeout:g} seconds"
            is_slow = isinstance(error, openai.APITimeoutError)
            if not is_slow:
                what = f"no connection: {self._clean(str(error.__cause__ or error))}"
            remedy = "check base_url, and that the server runs" + (", or pass a larger timeout" if is_slow else "")
            # An address that never answered is wrong rather than busy.
            return RequestError(ConnectionError, what, remedy), None, self.has_answered or is_slow
        except (openai.OpenAIError, ValueError, LookupError, TypeError, AttributeError) as error:
            what = f"an answer that is not of OpenAI's protocol: {self._clean(str(error))}"
            remedy = "check base_url, which often ends in /v1"
            return RequestError(ConnectionError, what, remedy), None, False

    def _body(self, constraint: str) -> dict[str, Any]:
        as_json = constraint == "json_schema"
        body: dict[str, Any] = {"temperature": 0, "max_tokens": self._vocabulary.longest + (32 if as_json else 16)}
        body |= self._settings.request_options or {}
        if as_json:
            schema = {"name": "answer", "strict": True, "schema": self._vocabulary.schema()}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif constraint == "grammar":
            body["grammar"] = self._vocabulary.grammar()
        return {name: value for name, value in body.items() if value is not None}

    def _read(self, response: Any) -> Answer:
        text = response.choices[0].message.content
        usage = getattr(response, "usage", None)
        details = getattr(usage, "prompt_tokens_details", None)
        counts = (
            getattr(source, name, None) or 0
            for source, name in ((usage, "prompt_tokens"), (usage, "completion_tokens"), (details, "cached_tokens"))
        )
        # Parts of several kinds are no name.
        return Answer(self._clean(text if isinstance(text, str) else "", None), *map(int, counts))

    def _of_status(self, status: int, reason: str) -> RequestError:
        given = self._settings
        kind: type[Exception] = ConnectionError
        remedy = "try again later; fewer requests at once (n_concurrent) may help"
        if status in (401, 403):
            kind = PermissionError
            variable = "of another variable" if given.api_key_env else "as api_key_env='OPENAI_API_KEY', for instance"
            remedy = f"put a valid key into an environment variable, and pass its name {variable}"
        elif status == 404:
            kind, remedy = ValueError, f"check base_url, which often ends in /v1, and model={given.model!r}"
        elif 400 <= status < 500 and status not in (408, 409, 429):
            kind = ValueError
            remedy = "check model, request_options and constraint, and shorten texts that are too long for the model"
        return RequestError(kind, f"HTTP {status}: {self._clean(reason)}", remedy, status)

    def _clean(self, text: str, longest: int | None = _LONGEST_REASON) -> str:
        """Leave out the key, wherever a server repeats it; in a message, also shorten to one line."""
        if self._key:
            text = text.replace(self._key, "***")
        return text if longest is None else " ".join(text.split())[:longest].rstrip(" .")


def _read_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        msg = f"the environment variable {variable} is not set"
        raise RequestError(PermissionError, msg, "put the key into it, or pass api_key_env=None for a server without")
    return key


def _text_of(error: Any) -> str:
    """Give what a server says of an error, in the shapes that servers have."""
    body = error.body
    for name in ("error", "message", "detail"):
        if isinstance(body, Mapping) and name in body:
            body = body[name]
    return str(body or error.response.reason_phrase)


def _may_pass(error: Any) -> bool:
    """Whether a request may succeed when it is repeated; an account without money does not fill itself."""
    status: int = error.status_code
    if status in (408, 409, 429):
        return bool(error.code != "insufficient_quota")
    return status >= 500 and status != 501


def _retry_after(error: Any) -> float | None:
    """Seconds that a server asks to wait."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), 2 * LONGEST_WAIT) if seconds == seconds else None
