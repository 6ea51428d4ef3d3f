"""Rows of the store: a load point flattened to columns and back, sentences kept translatable as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from calc.messages import Message
from data.records import BenchmarkRun, GpuMetrics, Histogram, LatencyStats, MetricsSnapshot, RowProblem, RunWarning

LATENCIES = ("ttft", "tpot", "itl", "e2e")
_STATS = tuple(field.name for field in fields(LatencyStats))
_JSON_FIELDS = ("extra", "flags")
_PLAIN = tuple(f.name for f in fields(BenchmarkRun) if f.name not in (*LATENCIES, *_JSON_FIELDS))
RUN_COLUMNS = (*_PLAIN, *(f"{name}_{stat}" for name in LATENCIES for stat in _STATS), *_JSON_FIELDS)
"""Columns of a load point in the ``runs`` table, beside its ids."""


def run_row(run: BenchmarkRun) -> dict[str, Any]:
    """A load point as column values."""
    row = {name: getattr(run, name) for name in _PLAIN}
    for name in LATENCIES:
        stats = getattr(run, name)
        row |= {f"{name}_{stat}": None if stats is None else getattr(stats, stat) for stat in _STATS}
    return row | {"extra": to_json(dict(run.extra)), "flags": to_json(list(run.flags))}


def run_from_row(row: Mapping[str, Any]) -> BenchmarkRun:
    """The load point back from its columns; a latency without one known statistic is ``None``."""
    values: dict[str, Any] = {name: row[name] for name in _PLAIN}
    values |= {name: _stats_from_row(row, name) for name in LATENCIES}
    return BenchmarkRun(**values, extra=json.loads(row["extra"]), flags=tuple(json.loads(row["flags"])))


def _stats_from_row(row: Mapping[str, Any], name: str) -> LatencyStats | None:
    known = {stat: row[f"{name}_{stat}"] for stat in _STATS if row[f"{name}_{stat}"] is not None}
    return LatencyStats(**known) if known else None


def warnings_json(warnings: Sequence[RunWarning]) -> str:
    """Findings on one load point, sentences with their numbers so that any language can show them."""
    return to_json([_warning(w) for w in warnings])


def warnings_from_json(text: str) -> tuple[RunWarning, ...]:
    """The findings back."""
    return tuple(
        RunWarning(code=w["code"], severity=w["severity"], text=_message_from(w["text"]), fields=tuple(w["fields"]))
        for w in json.loads(text)
    )


def problems_json(problems: Sequence[RowProblem]) -> str:
    """Rows not taken."""
    return to_json([{"line": p.line, "reason": _message(p.reason)} for p in problems])


def problems_from_json(text: str) -> tuple[Mapping[str, Any], ...]:
    """Rows not taken: ``line`` and ``reason`` (a message)."""
    return tuple({"line": p["line"], "reason": _message_from(p["reason"])} for p in json.loads(text))


def snapshot_json(snapshot: MetricsSnapshot) -> str:
    """A metrics snapshot; infinity as the last histogram bound is written as text."""
    return to_json(_plain(snapshot))


def snapshot_from_json(text: str) -> MetricsSnapshot:
    """The snapshot back."""
    raw = json.loads(text)
    stats = {f.name: LatencyStats(**raw[f.name]) for f in fields(MetricsSnapshot) if _is_stats(raw.get(f.name))}
    histograms = {name: _histogram(value) for name, value in raw.pop("histograms").items()}
    gpus = tuple(GpuMetrics(**gpu) for gpu in raw.pop("gpus"))
    return MetricsSnapshot(**(raw | stats), histograms=histograms, gpus=gpus)


def to_json(value: Any) -> str:
    """Compact JSON that any reader accepts: no NaN, no infinity, Chinese as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _is_stats(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == set(_STATS)


def _histogram(raw: Mapping[str, Any]) -> Histogram:
    return Histogram(
        bounds=tuple(float(bound) for bound in raw["bounds"]),
        counts=tuple(raw["counts"]),
        total=raw["total"],
        count=raw["count"],
    )


def _plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, infinity as text."""
    if isinstance(value, LatencyStats | Histogram | GpuMetrics | MetricsSnapshot):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return "inf" if value == float("inf") else value


def _warning(warning: RunWarning) -> dict[str, Any]:
    return {
        "code": warning.code,
        "severity": warning.severity,
        "text": _message(warning.text),
        "fields": list(warning.fields),
    }


def _message(message: Message) -> dict[str, Any]:
    params = {k: _message(v) if isinstance(v, Message) else v for k, v in message.params.items()}
    return {"msgid": message.msgid, "params": params}


def _message_from(raw: Mapping[str, Any]) -> Message:
    params = {k: _message_from(v) if isinstance(v, dict) else v for k, v in raw["params"].items()}
    return Message(raw["msgid"], params)
