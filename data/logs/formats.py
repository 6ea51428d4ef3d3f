"""Logs and traces with a format of their own: what marks them, and what their columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from calc.messages import Message, msg
from data.logs.sample import Sample

CHAT, PARENT = "chat", "parent_chat"
"""Columns that name a request and the one it goes on from; sessions are made of them."""


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """A format: the headers that mark it, and the meaning of each column it has."""

    code: str
    title: str
    marks: Set[str]
    """Headers it must have, in lower case; of nested JSON only their last key."""
    columns: Mapping[str, str]
    """Header in lower case → meaning."""
    block_size_tokens: int | None = None
    only: tuple[str, str] | None = None
    """Last key and value of the records that are requests."""
    zero_output_failed: bool = False
    """Whether a request without output tokens is one that failed."""
    notes: tuple[Message, ...] = field(default=())


AZURE = LogFormat(
    code="azure",
    title="Azure LLM inference trace",
    marks={"timestamp", "contexttokens", "generatedtokens"},
    columns={"timestamp": "time_iso", "contexttokens": "prompt_tokens", "generatedtokens": "output_tokens"},
)
MOONCAKE = LogFormat(
    code="mooncake",
    title="Mooncake trace",
    marks={"timestamp", "input_length", "output_length", "hash_ids"},
    columns={
        "timestamp": "time_ms",
        "input_length": "prompt_tokens",
        "output_length": "output_tokens",
        "hash_ids": "block_hashes",
        "session_id": "session_id",
    },
    block_size_tokens=512,
)
BAILIAN = LogFormat(
    code="bailian",
    title="Bailian trace",
    marks={"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length"},
    columns={
        "timestamp": "time_s",
        "input_length": "prompt_tokens",
        "output_length": "output_tokens",
        "chat_id": CHAT,
        "parent_chat_id": PARENT,
        "type": "business_line",
        "turn": "turn",
        "hash_ids": "block_hashes",
    },
    block_size_tokens=16,
)
BURSTGPT = LogFormat(
    code="burstgpt",
    title="BurstGPT trace",
    marks={"timestamp", "request tokens", "response tokens", "log type"},
    columns={
        "timestamp": "time_s",
        "session id": "session_id",
        "elapsed time": "e2e_s",
        "model": "model",
        "request tokens": "prompt_tokens",
        "response tokens": "output_tokens",
        "log type": "business_line",
    },
    zero_output_failed=True,
    notes=(msg("A request without response tokens is one that failed."),),
)
SERVEGEN = LogFormat(
    code="servegen",
    title="ServeGen sample",
    marks={"t_s", "tenant", "input_tokens", "output_tokens"},
    columns={
        "t_s": "time_s",
        "tenant": "tenant",
        "input_tokens": "prompt_tokens",
        "output_tokens": "output_tokens",
    },
)
DYNAMO = LogFormat(
    code="dynamo",
    title="Dynamo request trace v1",
    marks={"schema", "event_type", "request_received_ms", "input_tokens", "output_tokens"},
    columns={
        "request_received_ms": "time_ms",
        "input_tokens": "prompt_tokens",
        "output_tokens": "output_tokens",
        "session_id": "session_id",
        "model": "model",
        "cached_tokens": "cached_tokens",
        "ttft_ms": "ttft_ms",
        "total_time_ms": "e2e_ms",
        "avg_itl_ms": "itl_ms",
        "input_sequence_hashes": "block_hashes",
    },
    block_size_tokens=16,
    only=("event_type", "request_end"),
    notes=(msg("Only events that end a request are requests; events of tools are left out."),),
)
FORMATS = (DYNAMO, BAILIAN, MOONCAKE, AZURE, BURSTGPT, SERVEGEN)
GENERIC = LogFormat(code="generic", title="Request log", marks=set(), columns={})


def format_of(sample: Sample) -> LogFormat:
    """The format that the headers mark, else the generic one."""
    keys = {last_key(sample, header) for header in sample.headers}
    return next((one for one in FORMATS if one.marks <= keys), GENERIC)


def last_key(sample: Sample, header: str) -> str:
    """The header in lower case; of nested JSON its last key."""
    path = [key for key in sample.keys.get(header, (header,)) if key not in ("value", "values")]
    return (path[-1] if path else header).strip().lower()
