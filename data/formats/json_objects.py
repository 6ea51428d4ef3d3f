"""What readers of JSON results share: the objects of a file, one load point each, and statistics under any names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from data.formats.document import Document
from data.formats.json_fields import fact, number
from data.formats.json_values import JsonValue
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, LatencyStats, ReadResult

JsonObject: TypeAlias = Mapping[str, Any]
LOOKED_AT = 1_000
"""Values among which a signature is looked for; every reader asks, and a file may hold 200,000."""


def objects(document: Document) -> Iterator[tuple[int, JsonObject]]:
    """Every object at the top level or in a list there, with the line where it starts."""
    return ((line, item) for line, item in _items(document.values) if isinstance(item, dict))


def first_objects(document: Document) -> Iterator[tuple[int, JsonObject]]:
    """The objects in which a signature is looked for."""
    return ((line, item) for line, item in islice(_items(document.head), LOOKED_AT) if isinstance(item, dict))


def _items(values: Iterable[JsonValue]) -> Iterator[tuple[int, Any]]:
    for value in values:
        for item in value.value if isinstance(value.value, list) else (value.value,):
            yield value.line, item


def has_all(item: JsonObject, keys: Iterable[str]) -> bool:
    """True when the object has every one of these keys."""
    return all(key in item for key in keys)


def any_object(document: Document, signature: Callable[[JsonObject], bool]) -> bool:
    """True when one of the first values of the file is an object with the signature of a tool."""
    return any(signature(item) for _, item in first_objects(document))


def read_runs(
    document: Document,
    code: str,
    *,
    signature: Callable[[JsonObject], bool],
    run: Callable[[JsonObject], BenchmarkRun],
    notes: Iterable[str] = (),
) -> ReadResult:
    """One load point of each object with the signature; an object that contradicts itself is listed with its line."""
    found = ((line, item) for line, item in objects(document) if signature(item))
    return read_pieces(document, code, found, run, notes)


def part(item: JsonObject, key: str) -> JsonObject:
    """The object below a key; an empty one when there is none."""
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def latency(item: JsonObject, names: Mapping[str, str], unit_s: float) -> LatencyStats | None:
    """Statistics under the tool's names (statistic of ours: their key), each times ``unit_s`` seconds.

    A mean of 0 is how tools write "not measured": then there is no such latency.
    """
    found = {ours: number(item, theirs) for ours, theirs in names.items()}
    known = {ours: value * unit_s for ours, value in found.items() if value is not None}
    centre = known.get("mean_s", known.get("p50_s"))
    return LatencyStats(**known) if known and centre != 0 else None


def per(total: float | None, count: float | None) -> float | None:
    """A share or mean, when both are known and there is something to divide by."""
    return None if total is None or not count else total / count


def has_zero(item: JsonObject, names: Iterable[Mapping[str, str]]) -> bool:
    """True when a mean or median is written as 0, which no latency is."""
    return any(number(item, each[ours]) == 0 for each in names for ours in ("mean_s", "p50_s") if ours in each)


def facts(item: JsonObject, names: Mapping[str, str]) -> dict[str, float | str]:
    """Single further facts (our name: their key), those that are numbers or short texts."""
    found = {ours: fact(item.get(theirs)) for ours, theirs in names.items()}
    return {ours: value for ours, value in found.items() if value is not None}
