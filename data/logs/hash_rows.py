"""One row of a trace with block hashes: Mooncake, Bailian, Dynamo, AIPerf, or the same fields under usual names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from calc.lengths import MAX_TOKENS

HASHES = ("hash_ids", "input_sequence_hashes", "block_hashes", "prefix_hashes", "block_hash_ids", "hashes", "block_ids")
PROMPT = ("input_length", "input_tokens", "prompt_tokens", "prompt_length", "isl", "num_prompt_tokens")
OUTPUT = ("output_length", "output_tokens", "completion_tokens", "generated_tokens", "osl", "num_output_tokens")
CACHED = ("cached_tokens", "num_cached_tokens", "cached_prompt_tokens")
BLOCK_SIZE = ("trace_block_size", "block_size", "block_size_tokens", "hash_block_size")
SESSION = ("session_id", "conversation_id", "session", "chat_session_id")
TENANT = ("tenant", "tenant_id", "cache_salt", "org_id", "customer", "business_line", "user_id")
TIMES = {
    "request_received_ms": 1000.0,
    "created_time": 1000.0,
    "arrival_s": 1.0,
    "timestamp_s": 1.0,
    "timestamp_ms": 1000.0,
    "arrival_time": 1.0,
    "t_s": 1.0,
    "time": 1.0,
}
"""Fields of a request's time and units per second; `timestamp` alone is told by what stands beside it."""
_MS_PER_S = 1000.0


@dataclass(frozen=True, kw_only=True)
class HashRow:
    """What a trace says of one request."""

    hashes: Sequence[object]
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    arrival_s: float | None
    block_size_tokens: int | None
    session: str | None
    parent: str | None
    """The turn before in Bailian's traces, whose turns have ids of their own (`session`)."""
    tenant: str | None


def hash_row(fields: Mapping[str, Any]) -> HashRow | None:
    """The row, or None where it is no request or names no blocks (an event of another kind)."""
    flat = _flat(fields)
    hashes = _first(flat, HASHES)
    if not isinstance(hashes, list) or any(isinstance(one, dict | list) for one in hashes):
        return None
    return HashRow(
        hashes=hashes,
        prompt_tokens=_count(_first(flat, PROMPT)),
        output_tokens=_count(_first(flat, OUTPUT)),
        cached_tokens=_count(_first(flat, CACHED)),
        arrival_s=_seconds(flat),
        block_size_tokens=_count(_first(flat, BLOCK_SIZE)),
        session=_text(flat.get("chat_id")) or _text(_first(flat, SESSION)),
        parent=_text(flat.get("parent_chat_id")),
        tenant=_text(_first(flat, TENANT)),
    )


def _flat(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Dynamo wraps a request in an event, and what is needed to play it again in the request."""
    event = fields.get("event")
    if not isinstance(event, dict):
        return fields
    request = event.get("request")
    if not isinstance(request, dict):
        return {}
    inner = [event.get("agent_context"), request.get("replay"), request]
    return {key: value for part in inner if isinstance(part, dict) for key, value in part.items()}


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _count(value: object) -> int | None:
    """A whole number from 0 to the longest prompt there is; anything else is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MAX_TOKENS else None


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


def _seconds(fields: Mapping[str, Any]) -> float | None:
    """Seconds from any zero. Mooncake's `timestamp` is in milliseconds, Bailian's in seconds."""
    for name, per_s in TIMES.items():
        if name in fields:
            return _number(fields[name], per_s)
    return _number(fields.get("timestamp"), 1.0 if "chat_id" in fields else _MS_PER_S)


def _number(value: object, per_s: float) -> float | None:
    if isinstance(value, str):
        try:
            stamp = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value / per_s
