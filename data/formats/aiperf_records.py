"""AIPerf's ``profile_export.jsonl``: one request a line, summed up here; warm-up requests are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from calc.messages import Message
from calc.units import NANO
from data.formats.document import Document
from data.formats.json_fields import text
from data.formats.json_objects import JsonObject, any_object, objects, part
from data.formats.nvidia_metrics import Metric, seconds_of
from data.formats.pieces import read_pieces
from data.formats.request_columns import RequestColumns
from data.formats.request_figures import column, summed_up
from data.formats.row_checks import RefusedRow
from data.records import BenchmarkRun, ReadResult, RowProblem

_SIGNS = frozenset({"x_request_id", "request_start_ns", "benchmark_phase", "credit_phase", "worker_id", "timestamp_ns"})
_PHASES = ("benchmark_phase", "credit_phase", "phase_kind", "phase_name")
_TIMES = (("time_to_first_token", "ttft"), ("request_latency",), ("inter_token_latency",), ("inter_chunk_latency",))
_NOTE = "per_request_file_aggregate_locally"


def looks_like(document: Document) -> bool:
    """True when the file begins with a request and its metrics."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """The load point that all requests make together."""
    columns, refused = RequestColumns(), list[RowProblem]()
    for line, item in objects(document):
        if not _has_signature(item) or _is_warmup(item):
            continue
        reason = _without_unit(item)
        if reason is not None:
            refused.append(RowProblem(line=line, reason=reason))
        elif _failed(item):
            columns.failed += 1
        else:
            _add(columns, item)
    sent = columns.answered + columns.failed
    run = BenchmarkRun(tool="aiperf", num_prompts=sent, completed=columns.answered)
    checked = replace(document, problems=(*document.problems, *refused))
    pieces = [(1, columns.figures())] if sent else []
    return read_pieces(checked, "aiperf_records_jsonl", pieces, lambda found: summed_up(found, run), [_NOTE])


def _has_signature(item: JsonObject) -> bool:
    metadata = item.get("metadata")
    return isinstance(metadata, dict) and isinstance(item.get("metrics"), dict) and not _SIGNS.isdisjoint(metadata)


def _without_unit(item: JsonObject) -> Message | None:
    """Why a request cannot be taken: one of its times has no unit."""
    try:
        for names in _TIMES:
            name, entry = _metric(item, names)
            if entry:
                _unit_s(text(entry, "unit"), name)
    except RefusedRow as refused:
        return refused.reason
    return None


def _is_warmup(item: JsonObject) -> bool:
    metadata = part(item, "metadata")
    return "warmup" in [metadata.get(key) for key in _PHASES]


def _failed(item: JsonObject) -> bool:
    return item.get("error") is not None or part(item, "metadata").get("was_cancelled") is True


def _add(columns: RequestColumns, item: JsonObject) -> None:
    """An answered request."""
    columns.add(
        ttft_s=_second(*_metric(item, _TIMES[0])),
        e2e_s=_second(*_metric(item, _TIMES[1])),
        tpot_s=_second(*_metric(item, _TIMES[2])),
        input_tokens=_tokens(item, "input_sequence_length"),
        output_tokens=_tokens(item, "output_sequence_length", "output_token_count"),
        started_s=_moment(item, ("request_start_ns", "timestamp_ns"), "min_request_timestamp"),
        ended_s=_moment(item, ("request_end_ns",), "max_response_timestamp"),
    )
    name, entry = _metric(item, _TIMES[3])
    gaps = entry.get("value")
    if isinstance(gaps, list) and gaps:
        columns.add_gaps(column(gaps) * _unit_s(text(entry, "unit"), name))


def _metric(item: JsonObject, names: Iterable[str]) -> tuple[str, JsonObject]:
    """The first of these metrics that the request has."""
    metrics = item["metrics"]
    for name in names:
        entry = metrics.get(name)
        if entry and isinstance(entry, dict):
            return name, entry
    return "", {}


@lru_cache(maxsize=256)
def _unit_s(unit: str | None, name: str) -> float:
    """The same few units stand at every request; one that is none is refused each time."""
    return seconds_of(Metric(unit=unit), name)


def _second(name: str, entry: JsonObject) -> float | None:
    value = _float(entry.get("value"))
    return None if value is None else value * _unit_s(text(entry, "unit"), name)


def _tokens(item: JsonObject, *names: str) -> object:
    return _metric(item, names)[1].get("value")


def _moment(item: JsonObject, keys: Iterable[str], metric: str) -> float | None:
    """Seconds on the client's clock, from nanoseconds since 1970."""
    metadata = part(item, "metadata")
    for key in keys:
        moment = _float(metadata.get(key))
        if moment is not None:
            return moment * NANO
    moment = _float(_metric(item, (metric,))[1].get("value"))
    return None if moment is None else moment * NANO


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
