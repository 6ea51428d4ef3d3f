"""Rows of request logs: what is kept of a log beside its requests, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import StoreError
from calc.messages import Message, msg
from data.store import codec as codec
from data.store.database import Database
from data.store.own import HIDDEN, act
from data.store.records import Action

KIND = "request_log"


@dataclass(frozen=True, kw_only=True)
class AddedLog:
    """What became of a log."""

    log_id: str
    requests: int
    problem_rows: int
    already_there: bool


@dataclass(frozen=True, kw_only=True)
class StoredLog:
    """A log and what was said about it."""

    log_id: str
    name: str
    format: str
    size_bytes: int
    requests: int
    first_at: str | None
    """When it begins, ISO text in UTC; ``None`` where its times are no dates."""
    duration_s: float
    block_size_tokens: int | None
    problem_rows: int
    problems: tuple[Mapping[str, Any], ...]
    """Some of the rows not taken: ``line`` and ``reason``."""
    notes: tuple[Message, ...]
    declared: Mapping[str, str]
    stored_at: str


def request_logs(db: Database) -> tuple[StoredLog, ...]:
    """Logs, newest first."""
    rows = db.select(f"SELECT * FROM request_logs WHERE log_id NOT IN ({HIDDEN}) ORDER BY stored_at DESC, log_id")
    return tuple(_stored(row) for row in rows)


def request_log(db: Database, log_id: str) -> StoredLog:
    """One log."""
    found = next((log for log in request_logs(db) if log.log_id == log_id), None)
    if found is None:
        raise StoreError(msg("there is no request log {id}: choose one from the list.", id=log_id[:12]))
    return found


def restore_log(db: Database, log_id: str) -> AddedLog | None:
    """A log that is there already becomes visible again; ``None`` when it is not there."""
    rows = db.select("SELECT requests, problem_rows FROM request_logs WHERE log_id = ?", [log_id])
    if not rows:
        return None
    with db.writing() as cursor:
        if cursor.execute(f"SELECT 1 WHERE ? IN ({HIDDEN})", [log_id]).fetchall():
            act(db, cursor, KIND, log_id, "undo")
    return AddedLog(log_id=log_id, already_there=True, **rows[0])


def undo_log(db: Database, deleted: Action) -> Action:
    """Bring a deleted log back."""
    with db.writing() as cursor:
        return act(db, cursor, deleted.kind, deleted.target_id, "undo")


def messages_json(messages: Sequence[Message]) -> str:
    """Sentences, translatable."""
    return codec.to_json([{"msgid": message.msgid, "params": dict(message.params)} for message in messages])


def _stored(row: Mapping[str, Any]) -> StoredLog:
    notes = tuple(Message(note["msgid"], note["params"]) for note in json.loads(row["notes"]))
    kept = {"notes": notes, "problems": codec.problems_from_json(row["problems"])}
    return StoredLog(**{**row, **kept, "declared": json.loads(row["declared"])})
