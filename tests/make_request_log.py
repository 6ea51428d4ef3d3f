"""A made-up request log of any size: ``python tests/make_request_log.py FILE [ROWS]``, CSV, thirteen columns, one seed.

Arrivals are Poisson at 12 per second with a daily tide; lengths lognormal; sessions of a few turns; forty tenants of
very different weight. The same rows every time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np

ROWS = 5_000_000
SEED = 20_261_130
BEGIN = "2026-10-03 00:00:00"
RATE_PER_S = 12.0
DAY_S = 86_400
COLUMNS = (
    "timestamp", "prompt_tokens", "output_tokens", "session_id", "turn", "tenant", "model", "business_line", "status",
    "stream", "ttft_ms", "e2e_ms", "cached_tokens",
)  # fmt: skip

_SELECT = f"""
COPY (
    SELECT TIMESTAMP '{BEGIN}' + to_microseconds(at_us) AS "timestamp", prompt AS prompt_tokens,
        output AS output_tokens,
        's' || session AS session_id, turn, 'tenant-' || tenant AS tenant,
        CASE WHEN tenant % 3 = 0 THEN 'qwen3-32b' ELSE 'llama-3.1-8b' END AS model,
        ['chat', 'search', 'code', 'batch'][1 + tenant % 4] AS business_line,
        CASE WHEN luck < 0.985 THEN 'ok' WHEN luck < 0.995 THEN 'cancelled' ELSE 'error' END AS status,
        luck * 100 % 1 < 0.8 AS stream, ttft AS ttft_ms, e2e AS e2e_ms, cached AS cached_tokens
    FROM made
) TO '{{path}}' (FORMAT csv, HEADER true)
"""


def make(path: Path, rows: int = ROWS) -> Path:
    """Write the log."""
    made = _columns(rows, np.random.default_rng(SEED))
    with duckdb.connect() as connection:
        connection.register("made", made)
        connection.execute(_SELECT.format(path=path))
    return path


def _columns(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    prompt = np.clip(np.exp(rng.normal(6.8, 1.1, rows)), 1, 120_000).astype(np.int64)
    output = np.clip(np.exp(rng.normal(5.2, 0.9, rows)), 1, 8_000).astype(np.int64)
    ttft = np.round(40 + prompt * 0.05 * rng.gamma(2.0, 0.5, rows), 3)
    return {
        "at_us": _arrivals_us(rows, rng),
        "prompt": prompt,
        "output": output,
        "session": np.arange(rows) // 3 + rng.integers(0, 50, rows),
        "turn": np.arange(rows) % 3 + 1,
        "tenant": np.minimum(rng.zipf(1.6, rows), 40),
        "luck": rng.random(rows),
        "ttft": ttft,
        "e2e": np.round(ttft + output * 18.0, 3),
        "cached": (prompt * rng.beta(1.0, 2.0, rows)).astype(np.int64) // 16 * 16,
    }


def _arrivals_us(rows: int, rng: np.random.Generator) -> np.ndarray:
    gaps_s = rng.exponential(1 / RATE_PER_S, rows)
    tide = 1 + 0.5 * np.sin(2 * np.pi * np.cumsum(gaps_s) / DAY_S)
    return (np.cumsum(gaps_s / tide) * 1e6).astype(np.int64)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
