"""What people say about stored runs: facts their files leave out, and that a run the checks refuse may be used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import duckdb

from calc.errors import InputError, StoreError
from calc.messages import msg
from calc.poc.cells import CacheStrategy, Repetition, SessionGroup
from data.declared import merged
from data.records import RunDeclaration
from data.store import codec
from data.store.database import Database, insert, utc_now
from data.store.own import HIDDEN
from data.store.records import Confirmation, StoredDeclaration

FACTS = tuple(field.name for field in fields(RunDeclaration))
_AXES = {"strategy": CacheStrategy, "repetition": Repetition, "session_group": SessionGroup}


class Declarations:
    """Rows that are only added. Every method may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def declare(self, run_ids: Sequence[str], declaration: RunDeclaration, *, by: str) -> tuple[StoredDeclaration, ...]:
        """Say the same of several runs; what is left open stays as it was declared before.

        Where that changes nothing, nothing is added: a CI job may say the same every night.
        """
        before = self.newest()
        told = {run_id: before[run_id].declaration if run_id in before else None for run_id in run_ids}
        now = {run_id: merged(earlier, declaration) for run_id, earlier in told.items()}
        rows = [self._row(run_id, facts, by) for run_id, facts in now.items() if facts != told[run_id]]
        with self._db.writing() as cursor:
            _known(cursor, run_ids)
            insert(cursor, "run_declarations", rows)
        return tuple(_declaration(row) for row in rows)

    def _row(self, run_id: str, facts: RunDeclaration, by: str) -> dict[str, Any]:
        made = {"declaration_id": self._db.new_id(), "declared_by": by, "declared_at": utc_now()}
        return {**made, "run_id": run_id, **_facts(facts)}

    def newest(self) -> dict[str, StoredDeclaration]:
        """What counts, by run."""
        rows = self._db.select(
            "SELECT d.* FROM run_declarations d JOIN (SELECT run_id, max(declaration_id) AS declaration_id "
            f"FROM run_declarations WHERE declaration_id NOT IN ({HIDDEN}) GROUP BY run_id) n "
            "ON d.declaration_id = n.declaration_id"
        )
        return {row["run_id"]: _declaration(row) for row in rows}

    def history(self, run_id: str) -> tuple[StoredDeclaration, ...]:
        """Everything ever declared of a run, newest first."""
        query = "SELECT * FROM run_declarations WHERE run_id = ? ORDER BY declaration_id DESC"
        return tuple(_declaration(row) for row in self._db.select(query, [run_id]))

    def confirm(self, run_id: str, codes: Sequence[str], *, by: str, reason: str) -> Confirmation:
        """Let a run with these codes count as evidence, on somebody's word."""
        return self._say(run_id, codes, stands=True, by=by, reason=reason)

    def withdraw(self, run_id: str, *, by: str, reason: str) -> Confirmation:
        """Take that word back."""
        return self._say(run_id, (), stands=False, by=by, reason=reason)

    def confirmations(self) -> dict[str, Confirmation]:
        """What stands, by run."""
        rows = self._db.select(
            "SELECT c.* FROM run_confirmations c JOIN (SELECT run_id, max(confirmation_id) AS confirmation_id "
            f"FROM run_confirmations WHERE confirmation_id NOT IN ({HIDDEN}) GROUP BY run_id) n "
            "ON c.confirmation_id = n.confirmation_id WHERE c.stands"
        )
        return {row["run_id"]: _confirmation(row) for row in rows}

    def _say(self, run_id: str, codes: Sequence[str], *, stands: bool, by: str, reason: str) -> Confirmation:
        if not by.strip() or not reason.strip():
            raise InputError(msg("a name and a reason were expected: others must see who took the run as evidence."))
        row = {
            "confirmation_id": self._db.new_id(),
            "run_id": run_id,
            "codes": codec.to_json(list(codes)),
            "stands": stands,
            "confirmed_by": by.strip(),
            "confirmed_at": utc_now(),
            "reason": reason.strip(),
        }
        with self._db.writing() as cursor:
            _known(cursor, [run_id])
            insert(cursor, "run_confirmations", [row])
        return _confirmation(row)


def _known(cursor: duckdb.DuckDBPyConnection, run_ids: Sequence[str]) -> None:
    """Refuse ids of runs that were never stored."""
    query = "SELECT run_id FROM runs WHERE run_id IN (SELECT unnest(CAST(? AS VARCHAR[])))"
    known = {row[0] for row in cursor.execute(query, [list(run_ids)]).fetchall()}
    for run_id in run_ids:
        if run_id not in known:
            raise StoreError(msg("there is no run {id}: reload the page.", id=run_id))


def _facts(declaration: RunDeclaration) -> dict[str, Any]:
    found = {name: getattr(declaration, name) for name in FACTS}
    return {name: str(value) if name in _AXES and value is not None else value for name, value in found.items()}


def _declaration(row: Mapping[str, Any]) -> StoredDeclaration:
    facts: dict[str, Any] = {name: row[name] for name in FACTS}
    facts |= {name: kind(row[name]) for name, kind in _AXES.items() if row[name] is not None}
    return StoredDeclaration(
        declaration_id=row["declaration_id"],
        run_id=row["run_id"],
        declared_by=row["declared_by"],
        declared_at=row["declared_at"],
        declaration=RunDeclaration(**facts),
    )


def _confirmation(row: Mapping[str, Any]) -> Confirmation:
    return Confirmation(**{**row, "codes": tuple(json.loads(row["codes"]))})
