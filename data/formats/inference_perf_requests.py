"""inference-perf's list of single requests, summed up here; what was asked and answered is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from data.formats.collect import below, read_pieces
from data.formats.document import Document
from data.formats.json_objects import JsonObject, objects, part
from data.formats.request_figures import Column, RequestFigures, column, summed_up
from data.records import BenchmarkRun, ReadResult

_SIGNS = frozenset({"info", "computed_metrics"})
_NOTES = ("per_request_file_aggregate_locally", "stages_not_told_apart")


def looks_like(document: Document) -> bool:
    """True when the file lists requests with their start, end and error."""
    return any(_has_signature(item) for _, item in objects(document))


def read(document: Document) -> ReadResult:
    """The load point that all requests make together."""
    requests = [item for _, item in objects(document) if _has_signature(item)]
    answered = [item for item in requests if item.get("error") is None]
    figures = _figures(answered, failed=len(requests) - len(answered))
    run = BenchmarkRun(
        tool="inference-perf", num_prompts=len(requests), completed=len(answered), flags=("needs_companion",)
    )
    return read_pieces(
        document, "inference_perf_per_request", [(1, figures)], lambda found: summed_up(found, run), _NOTES
    )


def _has_signature(item: JsonObject) -> bool:
    timed = all(isinstance(item.get(key), int | float) for key in ("start_time", "end_time"))
    return timed and "error" in item and (bool(_SIGNS & set(item)) or {"request", "response"} <= set(item))


def _figures(answered: Sequence[JsonObject], *, failed: int) -> RequestFigures:
    started = column(item.get("start_time") for item in answered)
    ended = column(item.get("end_time") for item in answered)
    times = [_token_times(item) for item in answered]
    return RequestFigures(
        ttft_s=_ttft(answered, times, started),
        e2e_s=_positive(ended - started),
        tpot_s=column(part(item, "computed_metrics").get("time_per_output_token") for item in answered),
        gaps_s=_positive(np.concatenate([np.diff(each) for each in times])) if times else np.empty(0),
        input_tokens=column(_tokens(item, "request_metrics", "input_tokens") for item in answered),
        output_tokens=column(_tokens(item, "response_metrics", "output_tokens") for item in answered),
        started_s=started,
        ended_s=ended,
        failed=failed,
    )


def _ttft(answered: Sequence[JsonObject], times: Sequence[Column], started: Column) -> Column:
    """As computed by the tool, else from the first token; a request answered in one piece has none."""
    computed = column(part(item, "computed_metrics").get("time_to_first_token") for item in answered)
    first = np.array([each[0] if each.size > 1 else np.nan for each in times]) - started
    return np.where(np.isfinite(computed), computed, _positive(first))


def _positive(seconds: Column) -> Column:
    return np.where(seconds >= 0, seconds, np.nan)


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
