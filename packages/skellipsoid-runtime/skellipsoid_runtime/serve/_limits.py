"""What a request may hold: read no further than that, and checked before a model sees it."""

import asyncio
from typing import Annotated, Any

from fastapi import HTTPException, Request
from pydantic import BaseModel, Field, ValidationError, create_model, model_validator

from ._settings import Settings

#: Kinds of errors of pydantic that say that something is too long.
_TOO_LONG = {"too_long", "string_too_long"}
#: Bytes of a body that is always read.
_SMALL = 2**15
#: Of all bodies that are larger and arrive at a time, so many times the largest one.
_MOST_HELD = 8


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


class Reader:
    """Reads requests within limits.

    FastAPI's own way reads a body of any length, and its errors repeat the input.
    """

    def __init__(self, settings: Settings) -> None:
        text = Annotated[str, Field(min_length=1, max_length=settings.max_text)]
        texts = Annotated[list[text], Field(min_length=1, max_length=settings.max_texts)]
        self._query = create_model(
            "LimitedQuery",
            __base__=Query,
            text=(text | None, None),
            texts=(texts | None, None),
        )
        self._settings = settings
        self._n_held = 0
        #: For the page of the interface.
        self.schema: dict[str, Any] = self._query.model_json_schema()

    async def read(self, request: Request) -> Query:
        """Read and check a request.

        Raises
        ------
        ClientDisconnect
            If the client goes before the end.
        HTTPException
            408 if the body does not arrive, 413 if something is too long, 415 for what does not call itself JSON,
            422 for what is no text or list of texts, 429 if too many large bodies arrive.
        """
        # A page of another site can send other types, without asking, to servers that its reader's browser reaches.
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HTTPException(415, "the header content-type must be application/json")
        body = await self._body(request)
        try:
            query = self._query.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[:1]
            status = 413 if {found["type"] for found in first} <= _TOO_LONG else 422
            raise HTTPException(status, first) from None
        if sum(map(len, query.asked())) > self._settings.max_characters:
            raise HTTPException(413, f"the texts have more than {self._settings.max_characters} characters")
        return query

    async def _body(self, request: Request) -> bytearray:
        body = bytearray()
        n_held = 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._settings.max_body:
                        raise HTTPException(413, f"the body has more than {self._settings.max_body} bytes")
                    if len(body) > _SMALL:
                        self._n_held += len(body) - n_held
                        n_held = len(body)
                        if self._n_held > _MOST_HELD * self._settings.max_body:
                            raise HTTPException(429, "too many large bodies arrive; try again", {"retry-after": "1"})
        except TimeoutError:
            raise HTTPException(
                408, f"the body did not arrive within {self._settings.body_seconds:g} seconds", {"connection": "close"}
            ) from None
        finally:
            self._n_held -= n_held
        return body
