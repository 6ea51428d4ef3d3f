"""The profile of a stored log: columns for the arithmetic, and by SQL what is told by names."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from calc.lengths import FloatArray, IntArray
from calc.profile.codes import dense_codes
from calc.profile.columns import LogColumns
from calc.profile.prefixes import prefix_profile
from calc.profile.profile import Behaviour, Cached, LogProfile, Part, Parts, log_profile
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
        told = _told(cursor, log_id)
        columns = _columns(cursor, log_id, told)
        parts = {name: _parts(cursor, log_id, name) for name in NAMES if told[name]}
        behaviour = _behaviour(cursor, log_id, told)
    cached = _cached(told) if told["cached_tokens"] else None
    prefixes = prefix_profile(block_trace(store, log_id)) if 0 < told["blocks"] <= MAX_BLOCKS else None
    return log_profile(columns, parts=parts, behaviour=behaviour, cached=cached, prefixes=prefixes)


def _cached(told: dict[str, Any]) -> Cached | None:
    """Of the requests whose prompt can hold what was found."""
    beyond = int(told["cached_beyond"])
    return Cached(tokens=int(told["cached"] or 0), prompt_tokens=int(told["cached_of"] or 0), beyond=beyond)


def _told(cursor: duckdb.DuckDBPyConnection, log_id: str) -> dict[str, Any]:
    """How many requests tell each optional thing, and what is told by one pass over them."""
    names = [*NAMES, *DURATIONS, "session_id", "cached_tokens", "system_prompt_id"]
    query = (
        f"SELECT {', '.join(f'count({name}) AS {name}' for name in names)}, count(*) AS requests, "
        "coalesce(sum(len(block_hashes)), 0) AS blocks, "
        "sum(cached_tokens) FILTER (cached_tokens <= prompt_tokens) AS cached, "
        "sum(prompt_tokens) FILTER (cached_tokens <= prompt_tokens) AS cached_of, "
        "count(*) FILTER (cached_tokens > prompt_tokens) AS cached_beyond, avg(streaming::INTEGER) AS streaming, "
        "avg((status = 'failed')::INTEGER) AS failed, avg((status = 'cancelled')::INTEGER) AS by_status, "
        "avg(cancelled::INTEGER) AS cancelled, avg((retries > 0)::INTEGER) AS retried, avg(retries) AS retries "
        "FROM log_requests WHERE log_id = ?"
    )
    found = cursor.execute(query, [log_id])
    return dict(zip((column[0] for column in found.description), found.fetchall()[0], strict=True))


def _columns(cursor: duckdb.DuckDBPyConnection, log_id: str, told: dict[str, Any]) -> LogColumns:
    wanted = ["request", "arrival_s", "prompt_tokens", "output_tokens", *(name for name in DURATIONS if told[name])]
    wanted += ["hash(session_id) AS session"] if told["session_id"] else []
    wanted += ["session_id IS NOT NULL AS in_session"] if 0 < told["session_id"] < told["requests"] else []
    query = f"SELECT {', '.join(wanted)} FROM log_requests WHERE log_id = ?"
    rows = _in_file_order(dict(cursor.execute(query, [log_id]).fetchnumpy()))
    session = dense_codes(rows["session"], rows.get("in_session")) if "session" in rows else None
    return LogColumns(
        arrival_s=_floats(rows["arrival_s"]),
        prompt_tokens=_ints(rows["prompt_tokens"]),
        output_tokens=_ints(rows["output_tokens"]),
        session=session,
        **{name: _floats(rows[name]) for name in DURATIONS if name in rows},
    )


def _in_file_order(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows come as they were stored; sorting is needed only where that is another order."""
    request = np.asarray(rows.pop("request"))
    if np.all(request[1:] > request[:-1]):
        return rows
    order = _places(request)
    return {name: values[order] for name, values in rows.items()}


def _places(request: IntArray) -> IntArray:
    """Where each request stands; numbers without a gap, which is usual, need no sorting."""
    if int(request.max()) + 1 != len(request):
        return np.argsort(request)
    order = np.empty(len(request), np.int64)
    order[request] = np.arange(len(request))
    return order


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


def _behaviour(cursor: duckdb.DuckDBPyConnection, log_id: str, told: dict[str, Any]) -> Behaviour:
    same, prompts = _system_prompts(cursor, log_id) if told["system_prompt_id"] else (None, None)
    return Behaviour(
        streaming_share=told["streaming"],
        failed_share=told["failed"],
        cancelled_share=told["by_status"] if told["cancelled"] is None else told["cancelled"],
        retried_share=told["retried"],
        mean_retries=told["retries"],
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
