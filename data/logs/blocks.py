"""The block hashes of a stored log as a trace for prefix reuse."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from calc.errors import InputError
from calc.messages import msg
from calc.reuse.trace import BlockTrace, IntArray, renumbered
from data.store.logs import request_log
from data.store.store import Store


def block_trace(store: Store, log_id: str) -> BlockTrace:
    """Requests of a log in the order of its file, with the blocks of their prompts; refused where it has none."""
    log = request_log(store.database, log_id)
    with store.database.reading() as cursor:
        rows = _columns(cursor, log_id)
        flat = cursor.execute(
            "SELECT unnest(block_hashes) AS id FROM (SELECT * FROM log_requests WHERE log_id = ? ORDER BY request)",
            [log_id],
        ).fetchnumpy()["id"]
    if not len(flat) or log.block_size_tokens is None:
        raise InputError(msg("{file} has no block hashes: what could be reused is not known.", file=log.name))
    ids, unique = renumbered(np.asarray(flat, dtype=np.int64))
    tenants, names = _codes(rows["tenant"])
    sessions, _ = _codes(rows["session_id"])
    return BlockTrace(
        block_size_tokens=log.block_size_tokens,
        offsets=np.concatenate([[0], np.cumsum(np.asarray(rows["blocks"], dtype=np.int64))]),
        block_ids=ids,
        unique_blocks=unique,
        prompt_tokens=np.asarray(rows["prompt_tokens"], dtype=np.int64),
        output_tokens=np.asarray(rows["output_tokens"], dtype=np.int64),
        arrival_s=np.asarray(rows["arrival_s"], dtype=np.float64),
        tenant=tenants,
        tenant_names=names,
        session=sessions,
        cached_tokens=_said(rows["cached_tokens"]),
    )


def _columns(cursor: duckdb.DuckDBPyConnection, log_id: str) -> dict[str, Any]:
    found: dict[str, Any] = cursor.execute(
        "SELECT arrival_s, prompt_tokens, output_tokens, coalesce(tenant, '') AS tenant, "
        "coalesce(session_id, '') AS session_id, coalesce(len(block_hashes), 0) AS blocks, "
        "coalesce(cached_tokens, -1) AS cached_tokens "
        "FROM log_requests WHERE log_id = ? ORDER BY request",
        [log_id],
    ).fetchnumpy()
    return found


def _said(cached_tokens: Any) -> IntArray | None:
    """What the engine said it found, -1 where it said nothing; ``None`` where it never did."""
    cached = np.asarray(cached_tokens, dtype=np.int64)
    return cached if (cached >= 0).any() else None


def _codes(words: Any) -> tuple[IntArray | None, tuple[str, ...]]:
    """A number for each word, -1 for none; ``None`` where there is no word at all."""
    names, codes = np.unique(words.astype(str), return_inverse=True)
    if names.tolist() == [""]:
        return None, ()
    none = int(names[0] == "")
    return codes.astype(np.int64) - none, tuple(str(name) for name in names[none:])
