"""What is kept of a log beside its requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from calc.messages import Message, msg
from data.logs.problems import Problems
from data.logs.relation import EPOCH_LEAST_S, time_scale
from data.logs.statements import Taken
from data.logs.understood import Understood
from data.store import codec as codec
from data.store.logs import messages_json

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_NAME = 200


def log_row(
    log: Understood, log_id: str, taken: Taken, start: float, problems: Problems, *, stored_at: str
) -> dict[str, Any]:
    """One row of ``request_logs``."""
    return {
        "log_id": log_id,
        "name": "".join(sign for sign in log.name if sign.isprintable())[:MAX_NAME] or "log",
        "format": log.format.code,
        "size_bytes": log.size_bytes,
        "requests": taken.requests,
        "first_at": _first_at(start / time_scale(log)),
        "duration_s": taken.last_s - taken.first_s,
        "block_size_tokens": log.block_size_tokens,
        "problem_rows": problems.rows,
        "problems": codec.problems_json(problems.told),
        "notes": messages_json(_notes(log, problems)),
        "declared": codec.to_json(dict(log.declared)),
        "stored_at": stored_at,
    }


def _first_at(start_s: float) -> str | None:
    """A time of day only where the log has dates."""
    if start_s < EPOCH_LEAST_S:
        return None
    try:
        return (EPOCH + timedelta(seconds=start_s)).isoformat(timespec="seconds")
    except OverflowError:
        return None


def _notes(log: Understood, problems: Problems) -> list[Message]:
    assumed = [
        msg("{column} was taken as {meaning}: say so if it is not.", column=asked.header, meaning=asked.assumed)
        for asked in log.questions
    ]
    bad = [msg("{rows:count} rows are no requests and were left out.", rows=problems.rows)] if problems.rows else []
    return [*log.notes, *assumed, *bad]
