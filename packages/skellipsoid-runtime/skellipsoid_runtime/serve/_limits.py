"""Limits of a request: how much of it is read, and the checks before a model sees it."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import HTTPException, Request
from pydantic import AfterValidator, BaseModel, Field, ValidationError, create_model, model_validator
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ._settings import Settings

#: Kinds of errors of pydantic that say that something is too long.
_TOO_LONG = {"too_long", "string_too_long"}
#: Bytes of a body that is always read.
_SMALL = 2**15
#: Bytes of all larger bodies that arrive at a time, in units of the largest body that is allowed.
_MOST_HELD = 8
_CLOSE = {"connection": "close"}


class Query(BaseModel):
    """What a client asks: one text, or several."""

    text: str | None = None
    texts: list[str] | None = None

    @model_validator(mode="after")
    def _has_one(self) -> "Query":
        if (self.text is None) == (self.texts is None):
            raise ValueError("pass either text or texts")
        return self

    def asked(self) -> list[str]:
        """Give the texts as a list."""
        return [self.text] if self.texts is None else self.texts  # type: ignore[list-item]


def _with_text(text: str) -> str:
    """Refuse blanks as an empty text is refused."""
    if not text.strip():
        raise ValueError("a text must have a character that is no blank")
    return text


@dataclass(eq=False)
class _Body:
    """A body that arrives."""

    client: str
    deadline: asyncio.Timeout
    content: bytearray = field(default_factory=bytearray)
    #: Whether another body needs its place.
    is_ended: bool = False


class Bodies:
    """The larger ones of all bodies that arrive at a time.

    Where they hold more than they may, the oldest body of the address that holds the most ends. So no address keeps the
    bodies of another one out.

    Parameters
    ----------
    most : int
        Bytes of all of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        #: The oldest first.
        self._held: dict[_Body, int] = {}

    def grow(self, body: _Body) -> None:
        """Count a body anew; if all of them are too large, another one is ended.

        Raises
        ------
        TimeoutError
            If it is ended itself.
        """
        if len(body.content) > _SMALL:
            self._held[body] = len(body.content)
        while sum(self._held.values()) > self._most:
            by_client: Counter[str] = Counter()
            for each, n_bytes in self._held.items():
                by_client[each.client] += n_bytes
            ((most, _),) = by_client.most_common(1)
            oldest = next(each for each in self._held if each.client == most)
            del self._held[oldest]
            oldest.is_ended = True
            oldest.content.clear()
            if not oldest.deadline.expired():  # its task may not have been told yet
                oldest.deadline.reschedule(0)
        if body.is_ended:
            raise TimeoutError

    def forget(self, body: _Body) -> None:
        """Count a body no more."""
        self._held.pop(body, None)


class Reader:
    """Reads requests within limits.

    FastAPI's own way reads a body of any length, and its errors repeat the input.
    """

    def __init__(self, settings: Settings) -> None:
        text = Annotated[str, Field(min_length=1, max_length=settings.max_text), AfterValidator(_with_text)]
        texts = Annotated[list[text], Field(min_length=1, max_length=settings.max_texts)]
        self._query = create_model(
            "LimitedQuery",
            __base__=Query,
            text=(text | None, None),
            texts=(texts | None, None),
        )
        self._settings = settings
        self._bodies = Bodies(_MOST_HELD * settings.max_body)
        #: For the page of the interface.
        self.schema: dict[str, Any] = self._query.model_json_schema()

    async def read(self, request: Request) -> Query:
        """Read and check a request.

        Raises
        ------
        ClientDisconnect
            If the client goes before the end.
        HTTPException
            400 for UTF-16, 408 if the body does not arrive, 413 if something is too long, 415 for what does not call
            itself JSON in UTF-8 as it is, 422 for what is no text or list of texts, 429 if too many
            large bodies arrive.
        """
        self._check_head(request.headers)
        body = await self._body(request)
        if not (found := json.detect_encoding(body)).startswith("utf-8"):
            raise HTTPException(400, f"the body is {found.upper()[:6]}; send JSON in UTF-8")
        try:
            query = self._query.model_validate_json(body.removeprefix(b"\xef\xbb\xbf"))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[:1]
            status = 413 if {found["type"] for found in first} <= _TOO_LONG else 422
            raise HTTPException(status, first) from None
        if sum(map(len, query.asked())) > self._settings.max_characters:
            raise HTTPException(413, f"the texts have more than {self._settings.max_characters} characters")
        return query

    def _check_head(self, headers: Headers) -> None:
        """Refuse what need not be read."""
        kind, *parameters = headers.get("content-type", "").split(";")
        # A page of another site can send other types, without asking, to servers that its reader's browser reaches.
        if kind.strip().lower() != "application/json":
            raise HTTPException(415, "the header content-type must be application/json")
        for each in parameters:
            name, _, value = each.partition("=")
            if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
                raise HTTPException(415, "the charset of content-type must be utf-8")
        if headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
            raise HTTPException(415, "the body must be sent without content-encoding", {"accept-encoding": "identity"})
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._settings.max_body:
            # Who waits for 100 sends nothing then; everybody else may go on, and is not read.
            raise self._too_long(_CLOSE if "expect" in headers else None)

    def _too_long(self, headers: dict[str, str] | None = None) -> HTTPException:
        return HTTPException(413, f"the body has more than {self._settings.max_body} bytes", headers)

    async def _body(self, request: Request) -> bytearray:
        deadline = asyncio.timeout(self._settings.body_seconds)
        body = _Body(request.client.host if request.client else "", deadline)
        try:
            async with deadline:
                async for chunk in request.stream():
                    body.content += chunk
                    if len(body.content) > self._settings.max_body:
                        raise self._too_long()
                    self._bodies.grow(body)
        except TimeoutError:
            if body.is_ended:
                raise HTTPException(429, "too many large bodies arrive; try again", {"retry-after": "1"}) from None
            raise HTTPException(
                408, f"the body did not arrive within {self._settings.body_seconds:g} seconds", _CLOSE
            ) from None
        finally:
            self._bodies.forget(body)
        return body.content


class OneLength:
    """Refuses requests that tell the length of their body in two ways, whatever their address.

    A proxy in front may go by the other one, and take the rest of the body for the next request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self._app
        if scope["type"] == "http" and {b"content-length", b"transfer-encoding"} <= {
            name for name, _ in scope["headers"]
        }:
            detail = "the request has content-length and transfer-encoding; send one of them"
            app = JSONResponse({"detail": detail}, 400, _CLOSE)
        await app(scope, receive, send)
