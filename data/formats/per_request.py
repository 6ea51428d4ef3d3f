"""A table with one request a row: summed up here into the one load point it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from data.formats.cells import Cells
from data.formats.columns import Column
from data.formats.judge import HAND_MADE
from data.records import BenchmarkRun, LatencyStats

_SIGNS = frozenset({"request_index", "answer_text", "start_time", "end_time"})
_ONE_REQUEST = ("ttft", "e2e", "tpot")


def is_per_request(columns: Sequence[Column]) -> bool:
    """True when the columns describe single requests: a number, text or times of one, a latency, and no concurrency."""
    codes = {column.meaning.code for column in columns}
    return bool(codes & _SIGNS) and bool(codes.intersection(_ONE_REQUEST)) and "max_concurrency" not in codes


def one_run(rows: Sequence[Cells]) -> list[BenchmarkRun]:
    """The load point; rows without any latency are failed requests."""
    answered = [cells for cells in rows if any((code, "mean") in cells.values for code in _ONE_REQUEST)]
    if not rows:
        return []
    duration = _duration(answered)
    return [
        BenchmarkRun(
            tool=HAND_MADE,
            model=next((cells.texts["model"] for cells in rows if "model" in cells.texts), None),
            num_prompts=len(rows),
            completed=len(answered),
            failed=len(rows) - len(answered),
            duration_s=duration,
            input_tokens_mean=_mean(answered, "input_tokens"),
            output_tokens_mean=_mean(answered, "output_tokens"),
            request_throughput_per_s=len(answered) / duration if duration else None,
            ttft=_stats(_column(answered, "ttft")),
            tpot=_stats(_tpot(answered)),
            e2e=_stats(_column(answered, "e2e")),
        )
    ]


def _column(rows: Sequence[Cells], code: str) -> NDArray[np.float64]:
    return np.array([c.values[code, "mean"] for c in rows if (code, "mean") in c.values], dtype=np.float64)


def _mean(rows: Sequence[Cells], code: str) -> float | None:
    values = _column(rows, code)
    return float(values.mean()) if values.size else None


def _tpot(rows: Sequence[Cells]) -> NDArray[np.float64]:
    """As written, else (E2E − TTFT) / (output tokens − 1), its definition."""
    written = _column(rows, "tpot")
    if written.size:
        return written
    keys = (("e2e", "mean"), ("ttft", "mean"), ("output_tokens", "mean"))
    known = [[cells.values[key] for key in keys] for cells in rows if all(key in cells.values for key in keys)]
    return np.array([(e2e - ttft) / (tokens - 1) for e2e, ttft, tokens in known if tokens > 1], dtype=np.float64)


def _stats(values: NDArray[np.float64]) -> LatencyStats | None:
    if not values.size:
        return None
    p50, p90, p95, p99 = (float(p) for p in np.percentile(values, (50, 90, 95, 99)))
    return LatencyStats(
        mean_s=float(values.mean()), p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99, std_s=float(values.std())
    )


def _duration(rows: Sequence[Cells]) -> float | None:
    """From the first start to the last end, when every request has both."""
    starts = [_moment(cells.texts.get("start_time")) for cells in rows]
    ends = [_moment(cells.texts.get("end_time")) for cells in rows]
    known_starts = [s for s in starts if s is not None]
    known_ends = [e for e in ends if e is not None]
    if not rows or len(known_starts) < len(rows) or len(known_ends) < len(rows):
        return None
    span = max(known_ends) - min(known_starts)
    return span if span > 0 else None


def _moment(text: str | None) -> float | None:
    """Seconds of an epoch number or an ISO date and time."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text.replace("/", "-")).timestamp()
    except ValueError:
        return None
