"""Notes below a table: which methods were told the traffic, which results are old, which are missing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._identity import answers_of
from ._methods import PROTOCOL, of_package
from ._store import Record, grouped


def notes(records: Sequence[Record]) -> list[str]:
    """Give the sentences below the table of one encoder."""
    return [*_told(records), *_older(records), *_missing(records)]


def _told(records: Sequence[Record]) -> Iterator[str]:
    """Say which methods were told what of the traffic; those that cannot be told have no such parameters."""
    found: dict[str, list[str]] = {}
    for (method,), rows in grouped(records, "method").items():
        given = dict(_values(rows[0]["params"]))
        if given:
            said = ", ".join(f"{name} {_written(given[name])}" for name in PROTOCOL if name in given)
            found.setdefault(said, []).append(method)
    if found:
        listed = "; ".join(f"{said}: {', '.join(methods)}" for said, methods in found.items())
        yield f"What methods were told of the traffic: {listed}. The others have no such parameters."


def _values(params: Any) -> Iterator[tuple[str, Any]]:
    """Find what a method was told, in its parameters or in those of an estimator inside it."""
    if isinstance(params, Mapping):
        for name, value in params.items():
            if name.rsplit("__", 1)[-1] in PROTOCOL:
                yield name.rsplit("__", 1)[-1], value
            else:
                yield from _values(value)
    elif isinstance(params, list):
        for value in params:
            yield from _values(value)


def _written(value: Any) -> str:
    if value is None:
        return "not told"
    return " to ".join(f"{part:g}" for part in (value if isinstance(value, list) else [value]))


def _older(records: Sequence[Record]) -> Iterator[str]:
    """Say which methods of the package give other predictions today than when these results were made."""
    found = [name for (name,), rows in grouped(records, "method").items() if any(map(_is_older, rows))]
    if found:
        yield f"Run before these methods changed, and not anew: {'; '.join(found)}."


def _is_older(record: Record) -> bool:
    """Whether an estimator of the package, with none inside it, has other parameters or another version today."""
    kind, params = of_package(record["estimator"]), record["params"]
    if kind is None or any(isinstance(value, Mapping) for value in params.values()):
        return False
    has_gone = not params.keys() <= kind().get_params().keys()
    return has_gone or record.get("answers_version", {}) != answers_of(kind(**params))


def _missing(records: Sequence[Record]) -> Iterator[str]:
    """Say which methods have fewer cases than others: their means are not of the same cases."""
    cases = {
        method: set(grouped(rows, "data", "ratio", "seed")) for (method,), rows in grouped(records, "method").items()
    }
    every = set().union(*cases.values())
    lacking = [f"{method} {len(found)}" for method, found in cases.items() if found != every]
    if lacking:
        yield (
            f"Incomplete: of {len(every)} cases have {', '.join(lacking)}, so that these means and ranks are not of "
            "the same cases as the others."
        )
