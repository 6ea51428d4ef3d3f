"""The first rows of a Parquet file, read by a connection of its own that may open that file only."""

from __future__ import annotations

from pathlib import Path

import duckdb

from calc.errors import UnreadableFile
from calc.messages import msg
from data.logs.relation import name, text
from data.logs.sample import MAX_COLUMNS, SAMPLE_ROWS, Sample
from data.logs.understood import known_header

MAX_ROWS = 200_000_000
"""Rows of a log; a few bytes of Parquet can claim any number."""


def sample_of_parquet(path: Path, file: str) -> Sample:
    """Headers, types, and some rows of the columns whose header says something; texts are not looked at."""
    config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": "512MB", "threads": 1}
    try:
        with duckdb.connect(config=config) as connection:
            connection.execute("SET allowed_paths = [?]", [str(path)])
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            return _sample(connection, text(str(path)), file)
    except duckdb.Error as error:
        raise UnreadableFile(
            msg("{file}: a Parquet file was expected, but it cannot be read: export it again.", file=file)
        ) from error


def _sample(connection: duckdb.DuckDBPyConnection, path: str, file: str) -> Sample:
    rows = connection.execute(f"SELECT sum(num_rows) FROM parquet_file_metadata({path})").fetchall()[0][0] or 0
    if rows > MAX_ROWS:
        raise UnreadableFile(
            msg("{file}: it says it has {rows:count} rows, at most {most:count} are read.", file=file, rows=rows,
                most=MAX_ROWS)
        )  # fmt: skip
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({path})").fetchall()[:MAX_COLUMNS]
    types = {str(row[0]): str(row[1]) for row in described}
    wanted = [header for header in types if known_header(header)]
    lists = {header for header in wanted if types[header].endswith("[]")}
    cells = [f"{name(header)}" if header in lists else f"CAST({name(header)} AS VARCHAR)" for header in wanted]
    query = f"SELECT {', '.join(cells) or 'NULL'} FROM read_parquet({path}) LIMIT {SAMPLE_ROWS}"
    found = connection.execute(query).fetchall()
    return Sample(
        container="parquet",
        headers=tuple(types),
        rows=tuple(dict(zip(wanted, row, strict=False)) for row in found),
        keys={},
        types=types,
    )
