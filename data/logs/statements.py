"""The statements that bring a log into the tables, and what they look up on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from data.logs.formats import CHAT, PARENT
from data.logs.incoming import Incoming
from data.logs.meanings import DURATIONS, TEXTS
from data.logs.relation import MAX_TEXT, field_sql, in_range, raw_time, relation, text, time_scale
from data.logs.roots import conversation_roots
from data.logs.understood import Understood

OPTIONAL = (
    "session_id", "turn", "tenant", "model", "business_line", "status", "cancelled", "retries", "streaming", "ttft",
    "e2e", "itl", "cached_tokens", "system_prompt_id", "block_hashes",
)  # fmt: skip
"""Fields of a request that a log may have, in the order of the table."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A log as it is read in one attempt. ``careful``: bad rows are told apart instead of ending the attempt."""

    log: Understood
    incoming: Incoming
    careful: bool
    first_request: int = 0
    """Number of its first row: of a second half, the rows before it (and empty lines, if any)."""

    def second_half(self, path: Path, lines: int) -> Reading:
        """The rest of a log that was cut after so many lines."""
        sample = replace(self.log.sample, skip_lines=0)
        return replace(
            self,
            log=replace(self.log, sample=sample),
            incoming=replace(self.incoming, path=path),
            first_request=lines - self.log.sample.skip_lines,
        )

    @property
    def source(self) -> str:
        """The table function; of a CSV read with care, lines that cannot be split are set aside."""
        is_csv = self.log.sample.container == "csv"
        typed = is_csv or not self.careful
        return relation(self.log, self.incoming, typed=typed, rejects=is_csv and self.careful)

    @property
    def time(self) -> str:
        """The time of a row as a number."""
        return raw_time(self.log, typed=not self.careful)

    def field(self, name: str) -> str:
        """The value of a field of a row."""
        return field_sql(self.log, name, typed=not self.careful)

    @property
    def is_request(self) -> str:
        """Whether a row has what every request has."""
        whole = in_range(self.field("prompt_tokens"), self.field("output_tokens"))
        return f"coalesce(isfinite(CAST({self.time} AS DOUBLE)) AND {whole}, FALSE)"

    @property
    def good_rows(self) -> str:
        """What stands behind FROM."""
        return f"{self.source} WHERE {self.is_request}" if self.careful else self.source


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What came into the table."""

    requests: int
    first_s: float
    last_s: float
    out_of_range: int
    """Requests with a length, a time or a name that none can have."""


def earliest(cursor: duckdb.DuckDBPyConnection, reading: Reading, *, exact: bool) -> float:
    """The earliest time, or that of the first row, as a number in the unit of the raw times."""
    if exact:
        query = f"SELECT min({reading.time}) FROM {reading.good_rows}"
    else:
        query = f"SELECT {reading.time} FROM {reading.source} LIMIT 1"
    found = cursor.execute(query).fetchall()
    start: float | None = found[0][0] if found else None
    return start if start is not None and math.isfinite(start) else 0


def insertion(reading: Reading, start: float, rest: Reading | None = None) -> str:
    """All requests into the table, numbered in the order of the file; its two halves are read side by side."""
    selected = " UNION ALL ".join(_selection(one, start) for one in (reading, rest) if one is not None)
    return f"INSERT INTO log_requests {selected}"


def _selection(reading: Reading, start: float) -> str:
    fields = {name: reading.field(name) for name in OPTIONAL}
    if has_chats(reading.log):
        fields["session_id"] = "CAST(? AS VARCHAR[])[row_number() OVER ()]"
    return (
        f"SELECT {text(reading.incoming.log_id)}, row_number() OVER () - 1 + {reading.first_request}, "
        f"({reading.time} - {start!r}) / {time_scale(reading.log)!r}, {reading.field('prompt_tokens')}, "
        f"{reading.field('output_tokens')}, {', '.join(fields.values())} FROM {reading.good_rows}"
    )


def session_roots(cursor: duckdb.DuckDBPyConnection, reading: Reading) -> list[Sequence[str]]:
    """The parameter of :func:`insertion`: for each request the first of its conversation, where the log has parents."""
    if not has_chats(reading.log):
        return []
    query = f"SELECT {reading.field(CHAT)}, {reading.field(PARENT)} FROM {reading.good_rows}"
    return [conversation_roots(cursor.execute(query).fetchall())]


def has_chats(log: Understood) -> bool:
    """Whether conversations are told by the request that a request goes on from."""
    return {CHAT, PARENT} <= {column.field for column in log.columns}


def took(cursor: duckdb.DuckDBPyConnection, log_id: str) -> Taken:
    """Counts over what was just inserted."""
    durations = " OR ".join(f"NOT isfinite({name}_s) OR {name}_s < 0" for name in DURATIONS)
    wrong = f"NOT ({in_range('prompt_tokens', 'output_tokens')}) OR NOT isfinite(arrival_s) OR {durations}"
    wrong += "".join(f" OR length({name}) > {MAX_TEXT}" for name in TEXTS)
    found = cursor.execute(
        f"SELECT count(*), min(arrival_s), max(arrival_s), count(*) FILTER ({wrong}) FROM log_requests "
        "WHERE log_id = ?",
        [log_id],
    ).fetchall()[0]
    return Taken(requests=found[0], first_s=found[1] or 0.0, last_s=found[2] or 0.0, out_of_range=found[3])
