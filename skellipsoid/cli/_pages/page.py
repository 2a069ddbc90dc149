"""Writes an HTML page: one file, a template that is filled with one JSON, which a script shows as text."""

import base64
import html
import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any

from ..._core.files import replacing

#: Ending of the name of a page.
SUFFIX = ".html"


def saved_by(path: Path) -> str:
    """Name the file that the page at ``path`` saves."""
    return f"{path.stem}-labels.jsonl"


def write_page(path: Path, kind: str, title: str, data: dict[str, Any]) -> None:
    """Write a page.

    Parameters
    ----------
    path : Path
    kind : {"review", "groups", "report"}
        The script that shows the data.
    title : str
    data : dict
        What JSON can hold. The script finds a digest of it under ``"id"``.
    """
    style, script = _part("page.css"), _part("parts.js") + _part(f"{kind}.js")
    policy = f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}"
    content = json.dumps(data | {"id": sha256(_json(data).encode()).hexdigest()[:16]})
    page = Template(_part("page.html")).substitute(
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        title=html.escape(title),
        style=style,
        # Inside of a script element only "<" can end it.
        data=content.replace("<", "\\u003c"),
        script=script,
    )
    with replacing(path) as partial:
        partial.write_bytes(page.encode("utf-8", "replace"))


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def _source(text: str) -> str:
    """Give the source that allows this style or script alone in the content security policy."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
