"""The team's own models, GPUs and prices. Every addition is a version; older ones stay and can be opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calc.errors import StoreError
from calc.messages import msg
from data.store import codec as codec
from data.store.database import Database, insert, utc_now
from data.store.kinds import OWN_TABLES
from data.store.records import Action, OwnEntry
from data.store.rows import own_entry
from data.store.trail import act as act
from data.store.trail import added

HIDDEN = (
    "SELECT d.target_id FROM deletions d JOIN (SELECT target_id, max(action_id) AS action_id FROM deletions "
    "GROUP BY target_id) latest ON d.target_id = latest.target_id AND d.action_id = latest.action_id "
    "WHERE d.action = 'delete'"
)
"""Ids whose latest action is a deletion."""


def add_own(
    db: Database, kind: str, name: str, entry: Mapping[str, Any], *, source: str, checked_on: str = ""
) -> OwnEntry:
    """One more version of ``name``; equal content and source as its newest version adds nothing."""
    newest = next((row for row in own_versions(db, kind) if row.name == name), None)
    if newest and (newest.entry, newest.source, newest.checked_on) == (dict(entry), source, checked_on):
        return newest
    row = {
        "entry_id": db.new_id(),
        "name": name,
        "entry": codec.to_json(dict(entry)),
        "source": source,
        "added_at": utc_now(),
        "checked_on": checked_on,
    }
    with db.writing() as cursor:
        insert(cursor, OWN_TABLES[kind], [row])
        added(db, cursor, kind, row["entry_id"])
    return own_entry(row | {"version": 1 if newest is None else newest.version + 1})


def own_versions(db: Database, kind: str) -> tuple[OwnEntry, ...]:
    """Every visible version, by name, newest first. Versions are numbered in order of addition, hidden ones too."""
    rows = db.select(
        f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY name ORDER BY entry_id) AS version "
        f"FROM {OWN_TABLES[kind]}) WHERE entry_id NOT IN ({HIDDEN}) ORDER BY name, entry_id DESC"
    )
    return tuple(own_entry(row) for row in rows)


def newest_of_each(rows: Sequence[OwnEntry]) -> tuple[OwnEntry, ...]:
    """The first row of each name."""
    return tuple({row.name: row for row in reversed(rows)}[name] for name in dict.fromkeys(row.name for row in rows))


def remove_own(db: Database, kind: str, name: str) -> tuple[Action, ...]:
    """Hide every version of a name, whole or not at all."""
    ids = [row.entry_id for row in own_versions(db, kind) if row.name == name]
    if not ids:
        raise StoreError(msg("there is no {name} to remove: reload the page.", name=name))
    with db.writing() as cursor:
        return tuple(act(db, cursor, kind, entry_id, "delete") for entry_id in ids)


def undo_all(db: Database, deleted: Sequence[Action]) -> tuple[Action, ...]:
    """Bring several rows back, whole or not at all."""
    with db.writing() as cursor:
        return tuple(act(db, cursor, action.kind, action.target_id, "undo") for action in deleted)
