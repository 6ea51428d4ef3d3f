"""inference-perf's list of single requests, summed up here; what was asked and answered is dropped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from data.formats.collect import below
from data.formats.document import Document
from data.formats.json_objects import JsonObject, any_object, objects, part
from data.formats.pieces import read_pieces
from data.formats.request_columns import RequestColumns
from data.formats.request_figures import Column, column, figure, summed_up
from data.records import BenchmarkRun, ReadResult

_SIGNS = frozenset({"info", "computed_metrics"})
_NOTES = ("per_request_file_aggregate_locally", "stages_not_told_apart")


def looks_like(document: Document) -> bool:
    """True when the file lists requests with their start, end and error."""
    return any_object(document, _has_signature)


def read(document: Document) -> ReadResult:
    """The load point that all requests make together."""
    columns = RequestColumns()
    for _, item in objects(document):
        if not _has_signature(item):
            continue
        if item.get("error") is None:
            _add(columns, item)
        else:
            columns.failed += 1
    sent = columns.answered + columns.failed
    run = BenchmarkRun(tool="inference-perf", num_prompts=sent, completed=columns.answered, flags=("needs_companion",))
    return read_pieces(
        document, "inference_perf_per_request", [(1, columns.figures())], lambda found: summed_up(found, run), _NOTES
    )


def _has_signature(item: JsonObject) -> bool:
    timed = all(isinstance(item.get(key), int | float) for key in ("start_time", "end_time"))
    return timed and "error" in item and (bool(_SIGNS & set(item)) or {"request", "response"} <= set(item))


def _add(columns: RequestColumns, item: JsonObject) -> None:
    """An answered request."""
    started, ended = figure(item.get("start_time")), figure(item.get("end_time"))
    times = _token_times(item)
    columns.add(
        ttft_s=_ttft(item, times, started),
        e2e_s=ended - started,
        tpot_s=part(item, "computed_metrics").get("time_per_output_token"),
        input_tokens=_tokens(item, "request_metrics", "input_tokens"),
        output_tokens=_tokens(item, "response_metrics", "output_tokens"),
        started_s=started,
        ended_s=ended,
    )
    columns.add_gaps(np.diff(times))


def _ttft(item: JsonObject, times: Column, started: float) -> float:
    """As computed by the tool, else from the first token; a request answered in one piece has none."""
    computed = figure(part(item, "computed_metrics").get("time_to_first_token"))
    if not math.isnan(computed) or times.size <= 1:
        return computed
    return float(times[0]) - started


def _token_times(item: JsonObject) -> Column:
    """When each token came, on the client's clock; early versions keep it directly below ``info``."""
    places = (below(item, "info", "response_metrics"), below(item, "info"))
    listed = next((place["output_token_times"] for place in places if "output_token_times" in place), None)
    times = column(listed) if isinstance(listed, list) else np.empty(0)
    return times if np.isfinite(times).all() else np.empty(0)


def _tokens(item: JsonObject, group: str, name: str) -> Any:
    """Token counts of the newest shape first."""
    places = (
        part(item, "computed_metrics"),
        below(item, "info", group, "text"),
        below(item, "info", group),
        below(item, "info"),
    )
    return next((place[name] for place in places if place.get(name) is not None), None)
