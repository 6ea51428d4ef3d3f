"""A request log that is given, in words: what it was taken for and what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping

from calc.messages import Message
from data.logs.formats import FORMATS, GENERIC
from data.logs.understood import Understood
from ui.text import t

UNITS: Mapping[str, Message | str] = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns", "iso": "2026-11-30 12:00",
                                      "dmy": "31/12/2026", "mdy": "12/31/2026"}  # fmt: skip


def field_name(field: str) -> str:
    """What a column can hold."""
    return {
        "time": t("Time of arrival"),
        "prompt_tokens": t("Prompt tokens"),
        "output_tokens": t("Output tokens"),
        "session_id": t("Session"),
        "chat": t("Request id"),
        "parent_chat": t("Request before it"),
        "turn": t("Turn"),
        "tenant": t("Tenant"),
        "model": t("Model"),
        "business_line": t("Business line"),
        "status": t("Status"),
        "cancelled": t("Cancelled"),
        "retries": t("Retries"),
        "streaming": t("Streaming"),
        "ttft": "TTFT",
        "e2e": "E2E",
        "itl": "ITL",
        "cached_tokens": t("Cached tokens"),
        "system_prompt_id": t("System prompt id"),
        "block_hashes": t("Block hashes"),
        "ignore": t("not used"),
    }.get(field, field)


def choice(code: str) -> str:
    """A meaning with its unit, as it is chosen."""
    field, _, unit = code.rpartition("_")
    return f"{field_name(field)} ({UNITS[unit]})" if field and unit in UNITS else field_name(code)


def format_title(code: str) -> str:
    """The name of a format."""
    return next((one.title for one in FORMATS if one.code == code), t("Request log"))


def understood_sentence(log: Understood) -> str:
    """What the file was taken for."""
    names = {"csv": "CSV", "jsonl": "JSON Lines", "json": "JSON", "parquet": "Parquet"}
    title = t("Request log") if log.format is GENERIC else log.format.title
    return t(
        "{title}, {kind}, {size:count} bytes: {used:count} of {columns:count} columns are used.",
        title=title,
        kind=names[log.sample.container],
        size=log.size_bytes,
        used=len(log.columns),
        columns=len(log.sample.headers),
    )


def columns(log: Understood) -> list[Mapping[str, str]]:
    """Each used column, its meaning, and some of its cells."""
    cells = log.shown()
    return [
        {
            t("Column"): column.header,
            t("Taken as"): choice(column.code),
            t("First rows"): " · ".join(row[column.header] for row in cells[:3]),
        }
        for column in log.columns
    ]


def missing(log: Understood) -> str:
    """Which needed columns were not found."""
    return t(
        "Not found: {fields}. Say below which columns they are.", fields=t(", ").join(map(field_name, log.missing))
    )
