"""The numbered schema files, each applied once and recorded."""

from __future__ import annotations

from pathlib import Path

import duckdb

from calc.errors import StoreError
from calc.messages import msg

SCHEMA_FOLDER = Path(__file__).parent.parent / "schema"


def migrate(connection: duckdb.DuckDBPyConnection, now: str, folder: Path = SCHEMA_FOLDER) -> tuple[int, ...]:
    """Apply the schema files that this database has not seen; returns their numbers."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_versions "
        "(version BIGINT NOT NULL, name VARCHAR NOT NULL, applied_at VARCHAR NOT NULL)"
    )
    done = {row[0] for row in connection.execute("SELECT version FROM schema_versions").fetchall()}
    files = {int(path.name.split("_", 1)[0]): path for path in sorted(folder.glob("[0-9]*_*.sql"))}
    _refuse_newer(done, set(files))
    pending = tuple(sorted(set(files) - done))
    for version in pending:
        _apply(connection, version, files[version], now)
    return pending


def _refuse_newer(done: set[int], known: set[int]) -> None:
    if done - known:
        raise StoreError(
            msg(
                "the database has schema {found:count}, this version knows up to {known:count}: update Plimsoll.",
                found=max(done),
                known=max(known, default=0),
            )
        )


def _apply(connection: duckdb.DuckDBPyConnection, version: int, path: Path, now: str) -> None:
    """One file in one transaction: it is there whole or not at all."""
    connection.execute("BEGIN TRANSACTION")
    try:
        connection.execute(path.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO schema_versions VALUES (?, ?, ?)", [version, path.name, now])
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
