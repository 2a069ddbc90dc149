"""One request to a server that speaks OpenAI's protocol: the format of answers, retries, errors in one sentence."""

import json
import os
import random
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from skellipsoid_runtime._containers import is_unicode

from ._answer_cache import Answer
from ._server_settings import CONSTRAINTS, Settings, origin_of
from ._words import Message, Vocabulary

#: Answers of a server that does not know a way to limit answers.
_UNKNOWN_FORMAT = {400, 404, 415, 422, 500, 501}
#: Seconds before the first retry; each further one waits twice as long, at most as long as the last number.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
_LONGEST_REASON = 200
#: Bytes of an answer. A name has few, and the thoughts before it some hundred thousand.
_LARGEST = 4 * 2**20
_MOST_TOKENS = 10**12
#: Headers that are sent; the client adds others, also from the environment.
_HEADERS_SENT = {
    *("host", "connection", "accept", "accept-encoding", "content-type", "content-length", "user-agent"),
    *("authorization", "x-stainless-raw-response"),
}
#: Sent where no key is needed; the client insists on one.
_NO_KEY = "none"


class RequestError(Exception):
    """A request that failed for good.

    Parameters
    ----------
    kind : type
        Of the error to raise for a user.
    reason, remedy : str
        What happened, and what to do: two parts of a sentence.
    status : int, default=None
        Of the HTTP answer.

    Attributes
    ----------
    row : int or None
        Of the text that was asked about.
    """

    def __init__(self, kind: type[Exception], reason: str, remedy: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.remedy, self.status = kind, reason, remedy, status
        self.row: int | None = None


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
            raise ImportError(
                "PromptOpenSetClassifier asks a server by the package openai: pip install 'skellipsoid-bench[llm]'."
            ) from error
        self._openai, self._settings, self._vocabulary, self._stop = openai, settings, vocabulary, stop
        self._key = _read_key(settings.api_key_env)
        self._client = openai.OpenAI(
            base_url=settings.base_url,
            api_key=self._key or _NO_KEY,
            max_retries=0,
            timeout=settings.timeout,
            http_client=openai.DefaultHttpxClient(
                timeout=settings.timeout, event_hooks={"request": [self._check_request], "response": [_read_limited]}
            ),
        )
        self._lock, self.n_retries, self.has_answered = threading.Lock(), 0, False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @property
    def patience(self) -> float:
        """Seconds after which no request is still under way, with all of its retries."""
        return (self._settings.max_retries + 1) * (self._settings.timeout + 2 * LONGEST_WAIT)

    def find_constraint(self, wanted: str, messages: Callable[[bool], list[Message]]) -> tuple[str, Answer]:
        """Ask once, with the strictest format of answers that the server knows; give it, and the answer."""
        *stricter, last = CONSTRAINTS if wanted == "auto" else (wanted,)
        for way in stricter:
            try:
                return way, self.ask(way, messages, may_be_unknown=True)
            except RequestError as error:
                if error.status not in _UNKNOWN_FORMAT:
                    raise
        return last, self.ask(last, messages)

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
            ask = self._client.chat.completions.with_raw_response.create
            # The client would make objects of all that is in an answer, however much that is.
            return self._read(ask(model=given.model, messages=messages, extra_body=dict(body)).content), None, False
        except RequestError as error:
            return error, None, False
        except openai.APIStatusError as error:
            return self._of_status(error.status_code, _text_of(error)), _retry_after(error), _may_pass(error)
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, RequestError):  # older clients wrap errors of hooks
                return error.__cause__, None, False
            what = f"no answer within timeout={given.timeout:g} seconds"
            is_slow = isinstance(error, openai.APITimeoutError)
            if not is_slow:
                what = f"no connection: {self._clean(str(error.__cause__ or error))}"
            remedy = "check base_url, and that the server runs" + (", or pass a larger timeout" if is_slow else "")
            # An address that never answered is wrong rather than busy.
            return RequestError(ConnectionError, what, remedy), None, self.has_answered or is_slow
        except (openai.OpenAIError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            what = f"an answer that is not of OpenAI's protocol: {self._clean(str(error))}"
            remedy = "check base_url, which often ends in /v1"
            return RequestError(ConnectionError, what, remedy), None, False

    def _check_request(self, request: Any) -> None:
        """Let nothing go to another origin, which a redirect may name, and no header that was not asked for."""
        origin = origin_of(str(request.url))
        if origin != origin_of(self._settings.base_url):
            what = f"the server sends requests on to another origin, {origin!r}"
            raise RequestError(ConnectionError, what, "pass that as base_url, if your texts may go there")
        for name in {*request.headers} - _HEADERS_SENT:
            del request.headers[name]
        request.headers.update({"Authorization": f"Bearer {self._key or _NO_KEY}", "Accept-Encoding": "identity"})

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

    def _read(self, content: bytes) -> Answer:
        response = json.loads(content)
        text = response["choices"][0]["message"].get("content")
        usage = response.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        counts = [
            source.get(name) or 0
            for source, name in ((usage, "prompt_tokens"), (usage, "completion_tokens"), (details, "cached_tokens"))
        ]
        for count in counts:
            if not isinstance(count, int | float) or not 0 <= count <= _MOST_TOKENS:
                what = f"an answer with a usage that counts {self._clean(repr(count)[:20])} tokens"
                raise RequestError(ConnectionError, what, "check base_url, and the server")
        if not isinstance(text, str):
            text = ""  # parts of several kinds are no name
        if not is_unicode(text):
            what = "an answer with half of a character (a lone surrogate)"
            raise RequestError(ValueError, what, "leave this text out, or ask another model")
        return Answer(self._mask(text), *map(int, counts))

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

    def _mask(self, text: str) -> str:
        """Leave out the key, wherever a server repeats it."""
        return text.replace(self._key, "***") if self._key else text

    def _clean(self, text: str) -> str:
        """Make one short line of what a server says, without the key, and without what a terminal would obey."""
        short = " ".join(self._mask(text).split())[:_LONGEST_REASON].rstrip(" .")
        return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in short)


def _read_limited(response: Any) -> None:
    """Read an answer, unless it is larger than one can be; the client by itself would read all."""
    packed = response.headers.get("content-encoding", "identity").lower()
    if packed != "identity":
        what = f"an answer compressed as {packed[:20]!r}, which was not asked for"
        raise RequestError(ConnectionError, what, "switch compression off in the server, or in the proxy before it")
    content = bytearray()
    for part in response.stream:
        content += part
        if len(content) > _LARGEST:
            what = f"an answer of more than {_LARGEST // 2**20} MiB"
            raise RequestError(ConnectionError, what, "check base_url, and that request_options asks for less")
    response.stream.close()
    # The class of streams that are bytes; its package depends on the version of the client.
    response.stream = type(response.request.stream)(bytes(content))


def _read_key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        msg = f"the environment variable {variable} is not set"
        raise RequestError(PermissionError, msg, "put the key into it, or pass api_key_env=None for a server without")
    if not re.fullmatch(r"[!-~]+", key):
        msg = f"the environment variable {variable} holds blanks, line breaks or letters that no key has"
        raise RequestError(PermissionError, msg, "put the key alone into it")
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
