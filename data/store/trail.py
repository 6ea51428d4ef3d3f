"""Who did what, and when: additions, deletions and their undoing, in the words of the people who did them."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from data.store.database import Database, insert, utc_now
from data.store.kinds import KINDS, NAMES
from data.store.records import Action

MAX_TOLD = 1000
"""Most entries of the trail read at once, newest first."""


@dataclass(frozen=True, kw_only=True)
class TrailEntry:
    """One thing somebody did."""

    action_id: str
    acted_at: str
    actor: str | None
    """None = done by a version that did not ask."""
    action: str
    """``add``, ``delete`` or ``undo``."""
    kind: str
    target_id: str
    name: str | None
    """What people call the row; None = it has no name."""
    reason: str | None


def act(
    db: Database, cursor: duckdb.DuckDBPyConnection, kind: str, target_id: str, action: str, reason: str = ""
) -> Action:
    """Record a deletion or its undoing."""
    done = Action(
        action_id=db.new_id(),
        kind=kind,
        target_id=target_id,
        action=action,
        acted_at=utc_now(),
        actor=db.actor(),
        reason=reason or None,
    )
    insert(cursor, "deletions", [vars(done)])
    return done


def added(db: Database, cursor: duckdb.DuckDBPyConnection, kind: str, target_id: str) -> None:
    """Record an addition, in the transaction that makes it."""
    row = {
        "action_id": db.new_id(),
        "kind": kind,
        "target_id": target_id,
        "actor": db.actor(),
        "acted_at": utc_now(),
    }
    insert(cursor, "additions", [row])


def trail(db: Database, most: int = MAX_TOLD) -> tuple[TrailEntry, ...]:
    """What was done, newest first."""
    rows = db.select(
        "SELECT action_id, acted_at, actor, 'add' AS action, kind, target_id, NULL AS reason FROM additions "
        "UNION ALL SELECT action_id, acted_at, actor, action, kind, target_id, reason FROM deletions "
        "ORDER BY action_id DESC LIMIT ?",
        [most],
    )
    names = _names(db, {row["kind"] for row in rows})
    return tuple(TrailEntry(**row, name=names.get((row["kind"], row["target_id"]))) for row in rows)


def _names(db: Database, kinds: set[str]) -> dict[tuple[str, str], str]:
    found = {}
    for kind in kinds & set(NAMES):
        table, column = KINDS[kind]
        for row in db.select(f"SELECT {column} AS id, {NAMES[kind]} AS name FROM {table}"):
            found[kind, row["id"]] = row["name"]
    return found
