"""What readers collect along the way: objects deep down, the first text, further facts, latencies of a tool's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

from data.formats.json_objects import JsonObject
from data.records import LatencyStats

Piece = TypeVar("Piece")
_STATISTICS = ("mean_s", "p50_s", "p90_s", "p95_s", "p99_s", "std_s")
_LATEST_S = 4_102_444_800
"""The year 2100: a larger number is no date in seconds since 1970."""


def below(item: Any, *keys: str) -> JsonObject:
    """The object below several keys; an empty one when the way breaks off."""
    for key in keys:
        item = item.get(key) if isinstance(item, dict) else None
    return item if isinstance(item, dict) else {}


def first_text(*values: object) -> str | None:
    """The first value that is a text with something in it."""
    return next((value for value in values if isinstance(value, str) and value), None)


def known(**facts: float | str | None) -> dict[str, float | str]:
    """Further facts, those that are known."""
    return {key: value for key, value in facts.items() if value is not None}


def own_latency(name: str, stats: LatencyStats | None) -> dict[str, float | str]:
    """A latency under the tool's own definition, as further facts: it must never stand for TTFT, TPOT, ITL or E2E."""
    if stats is None:
        return {}
    return {f"{name}.{key}": value for key in _STATISTICS if (value := getattr(stats, key)) is not None}


def utc_text(seconds: object) -> str | None:
    """Seconds since 1970 as date and time; a text is kept as it is."""
    if isinstance(seconds, str):
        return seconds or None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < _LATEST_S:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()
