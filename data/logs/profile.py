"""The profile of a stored log: columns for the arithmetic, and by SQL what is told by names."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from calc.lengths import FloatArray, IntArray
from calc.profile.codes import dense_codes
from calc.profile.columns import LogColumns
from calc.profile.prefixes import PrefixProfile, prefix_profile
from calc.profile.profile import Behaviour, LogProfile, Part, Parts, log_profile
from data.logs.blocks import block_trace
from data.store.logs import request_log
from data.store.store import Store

NAMES = ("tenant", "model", "business_line")
SHOWN_PARTS = 50
"""Parts kept of a kind; the count tells how many there are."""
DURATIONS = ("ttft_s", "e2e_s", "itl_s")
MAX_BLOCKS = 50_000_000
"""Hashes looked at at once: what a gigabyte holds."""


def profile_log(store: Store, log_id: str) -> LogProfile:
    """Everything that a log says of its load."""
    request_log(store.database, log_id)
    with store.database.reading() as cursor:
        has = _present(cursor, log_id)
        columns = _columns(cursor, log_id, has)
        parts = {name: _parts(cursor, log_id, name) for name in NAMES if has[name]}
        behaviour = _behaviour(cursor, log_id, has)
    return log_profile(columns, parts=parts, behaviour=behaviour, prefixes=_prefixes(store, log_id, has))


def _present(cursor: duckdb.DuckDBPyConnection, log_id: str) -> dict[str, int]:
    """How many requests tell each optional thing."""
    names = [*NAMES, *DURATIONS, "session_id", "cached_tokens", "status", "cancelled", "retries", "streaming",
             "system_prompt_id", "block_hashes"]  # fmt: skip
    counts = ", ".join(f"count({name})" for name in names)
    found = cursor.execute(
        f"SELECT {counts}, coalesce(sum(len(block_hashes)), 0) FROM log_requests WHERE log_id = ?", [log_id]
    ).fetchall()[0]
    return dict(zip([*names, "blocks"], found, strict=True))


def _columns(cursor: duckdb.DuckDBPyConnection, log_id: str, has: dict[str, int]) -> LogColumns:
    wanted = ["request", "arrival_s", "prompt_tokens", "output_tokens", *(name for name in DURATIONS if has[name])]
    wanted += ["coalesce(cached_tokens, -1) AS cached_tokens"] if has["cached_tokens"] else []
    wanted += ["hash(session_id) AS session, session_id IS NOT NULL AS in_session"] if has["session_id"] else []
    query = f"SELECT {', '.join(wanted)} FROM log_requests WHERE log_id = ?"
    rows = _in_file_order(dict(cursor.execute(query, [log_id]).fetchnumpy()))
    session = dense_codes(rows["session"], rows["in_session"]) if "session" in rows else None
    return LogColumns(
        arrival_s=_floats(rows["arrival_s"]),
        prompt_tokens=_ints(rows["prompt_tokens"]),
        output_tokens=_ints(rows["output_tokens"]),
        cached_tokens=_ints(rows["cached_tokens"]) if "cached_tokens" in rows else None,
        session=session,
        **{name: _floats(rows[name]) for name in DURATIONS if name in rows},
    )


def _in_file_order(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows come as they were stored; sorting is needed only where that is another order."""
    request = np.asarray(rows.pop("request"))
    if np.all(request[1:] > request[:-1]):
        return rows
    order = np.argsort(request)
    return {name: values[order] for name, values in rows.items()}


def _floats(values: Any) -> FloatArray:
    """Unknown as NaN."""
    filled: FloatArray = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    return filled


def _ints(values: Any) -> IntArray:
    return np.asarray(values, dtype=np.int64)


def _parts(cursor: duckdb.DuckDBPyConnection, log_id: str, name: str) -> Parts:
    rows = cursor.execute(
        f"SELECT {name}, count(*) AS n, sum(prompt_tokens), sum(output_tokens) FROM log_requests "
        f"WHERE log_id = ? AND {name} IS NOT NULL GROUP BY {name} ORDER BY n DESC, {name}",
        [log_id],
    ).fetchall()
    requests, prompt, output = (sum(row[i] for row in rows) for i in (1, 2, 3))
    largest = tuple(
        Part(
            name=row[0], requests=row[1], share=row[1] / requests,
            prompt_tokens_share=int(row[2]) / max(int(prompt), 1),
            output_tokens_share=int(row[3]) / max(int(output), 1),
        )
        for row in rows[:SHOWN_PARTS]
    )  # fmt: skip
    return Parts(count=len(rows), largest=largest, requests=requests)


def _behaviour(cursor: duckdb.DuckDBPyConnection, log_id: str, has: dict[str, int]) -> Behaviour:
    query = (
        "SELECT avg(streaming::INTEGER), avg((status = 'failed')::INTEGER), avg((status = 'cancelled')::INTEGER), "
        "avg(cancelled::INTEGER), avg((retries > 0)::INTEGER), avg(retries) FROM log_requests WHERE log_id = ?"
    )
    streaming, failed, by_status, cancelled, retried, retries = cursor.execute(query, [log_id]).fetchall()[0]
    same, prompts = _system_prompts(cursor, log_id) if has["system_prompt_id"] else (None, None)
    return Behaviour(
        streaming_share=streaming,
        failed_share=failed,
        cancelled_share=cancelled if cancelled is not None else by_status,
        retried_share=retried,
        mean_retries=retries,
        same_system_prompt_share=same,
        system_prompts=prompts,
    )


def _system_prompts(cursor: duckdb.DuckDBPyConnection, log_id: str) -> tuple[float | None, int | None]:
    rows = cursor.execute(
        "SELECT max(n) / sum(n), count(*) FROM (SELECT count(*) AS n FROM log_requests "
        "WHERE log_id = ? AND system_prompt_id IS NOT NULL GROUP BY system_prompt_id)",
        [log_id],
    ).fetchall()
    return float(rows[0][0]), int(rows[0][1])


def _prefixes(store: Store, log_id: str, has: dict[str, int]) -> PrefixProfile | None:
    return prefix_profile(block_trace(store, log_id)) if 0 < has["blocks"] <= MAX_BLOCKS else None
