"""Tables of GuideLLM: one header row up to 0.3, three of them (group, metric with unit, statistic) since 0.5."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

from calc.units import MILLI
from data.formats.collect import first_text, own_latency
from data.formats.csv_rows import cell_number, csv_rows, first_cells, named_rows
from data.formats.document import Document
from data.formats.guidellm_terms import flags_of, is_prefix_shared, load_of_label
from data.formats.json_objects import JsonObject, latency
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, LatencyStats, ReadResult

ONE_ROW, THREE_ROWS = "guidellm_csv_1row", "guidellm_csv_3row"
_HEADER_ROWS = 3
_VECTOR = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
"""What a cell of percentiles holds, as the older header spells it out; the P50 stands in a column of its own."""
_IN_VECTOR = {"p90": 7, "p95": 8, "p99": 9}
_VECTOR_LENGTH = 11
_NAMES = {"mean_s": "mean", "p50_s": "median", "p90_s": "p90", "p95_s": "p95", "p99_s": "p99", "std_s": "std dev"}

Cells: TypeAlias = Mapping[str, str]
Column: TypeAlias = Callable[[str, str], str]
"""Name of the column of a metric and one of its statistics."""

_TERMS = {
    "ttft": ("Time to first token ms", ("Time to First Token", "ms")),
    "tpot": ("Inter token latency ms", ("Inter Token Latency", "ms")),
    "including_first": ("Time per output token ms", ("Time per Output Token", "ms")),
    "e2e": ("Request latency", ("Request Latency", "Sec")),
    "requests": ("Requests per second", ("Server Throughput", "Requests/Sec")),
    "concurrency": ("Request concurrency", ("Server Throughput", "Concurrency")),
    "input": ("Prompt token count", ("Token Metrics", "Input Tokens")),
    "output": ("Output token count", ("Token Metrics", "Output Tokens")),
    "output_rate": ("Output tokens per second", ("Token Throughput", "Output Tokens/Sec")),
    "total_rate": ("Tokens per second", ("Token Throughput", "Total Tokens/Sec")),
}
"""Our name: the older column, and the newer group with its unit."""


def looks_like(document: Document) -> bool:
    """True when the header is GuideLLM's, in either form."""
    return not document.values and _form(first_cells(document.text)) is not None


def read(document: Document) -> ReadResult:
    """Every row: one benchmark of the sweep."""
    rows = csv_rows(document.text, document.name)
    start = next(index for index, row in enumerate(rows) if any(row))
    code = _form(rows[start]) or ONE_ROW
    height = _HEADER_ROWS if code == THREE_ROWS else 1
    header = rows[start] if code == ONE_ROW else _triples(rows[start : start + height])
    body = [(start + height + 1 + index, row) for index, row in enumerate(rows[start + height :]) if any(row)]
    pieces = zip((line for line, _ in body), named_rows(header, [row for _, row in body]), strict=True)
    return read_pieces(document, code, pieces, _run_1 if code == ONE_ROW else _run_3)


def _form(cells: list[str]) -> str | None:
    if "Successful Requests per second mean" in cells:
        return ONE_ROW
    return THREE_ROWS if {"Run Info", "Benchmark", "Timings"} <= set(cells) else None


def _triples(rows: list[list[str]]) -> list[str]:
    return ["|".join(cells) for cells in zip(*rows, strict=False)]


def _run_1(cells: Cells) -> BenchmarkRun:
    """A row under one header row."""
    name = cells.get("Name", "")
    return _run(
        cells,
        lambda term, statistic: f"Successful {_TERMS[term][0]} {statistic}",
        label=name,
        counts=("Successful Requests", "Errored Requests", "Incomplete Requests"),
        duration="Duration",
        extra={"name": name},
        model=first_text(_embedded(cells, "Worker").get("backend_model")),
        shared=is_prefix_shared(_embedded(cells, "Request Loader").get("data")),
    )


def _run_3(cells: Cells) -> BenchmarkRun:
    """A row under three header rows."""
    strategy = cells.get("Benchmark|Strategy|", "")
    arguments = _embedded(cells, "Runtime Info|Arguments|").get("spec")
    return _run(
        cells,
        lambda term, statistic: "|".join((_TERMS[term][1][0], f"Successful {_TERMS[term][1][1]}", statistic.title())),
        label=_labelled(cells, strategy),
        counts=tuple(f"Request Counts|{outcome}|" for outcome in ("Successful", "Errored", "Incomplete")),
        duration="Timings|Duration|Sec",
        extra={"strategy": strategy},
        model=first_text(_embedded(cells, "Run Info|Backend|").get("model")),
        shared=is_prefix_shared(arguments.get("data") if isinstance(arguments, dict) else None),
    )


def _labelled(cells: Cells, strategy: str) -> str:
    """``constant`` of 0.5 with its rate, which stands in the profile's list at the place of this run."""
    profile, place = _embedded(cells, "Run Info|Profile|"), _count(cells, "Run Info|Run Index|")
    amounts = profile.get("streams") or profile.get("rate")
    if "@" in strategy or not isinstance(amounts, list) or place is None or not 0 <= place < len(amounts):
        return strategy
    return f"{strategy}@{amounts[place]}"


def _run(
    cells: Cells,
    column: Column,
    *,
    label: str,
    counts: tuple[str, ...],
    duration: str,
    extra: dict[str, float | str],
    model: str | None,
    shared: bool,
) -> BenchmarkRun:
    completed, failed, incomplete = (_count(cells, name) for name in counts)
    load = load_of_label(label)
    units = {"ttft": MILLI, "tpot": MILLI, "including_first": MILLI, "e2e": 1.0}
    found = {name: _latency(cells, column, name, unit) for name, unit in units.items()} if completed != 0 else {}
    means = {name: cell_number(cells.get(column(name, "mean"), "")) for name in _TERMS}
    return BenchmarkRun(
        tool="guidellm",
        model=model,
        request_rate_per_s=load.rate_per_s,
        request_rate_is_infinite=load.all_at_once,
        max_concurrency=load.concurrency,
        num_prompts=sum(value for value in (completed, failed, incomplete) if value is not None) or None,
        completed=completed,
        failed=failed,
        incomplete=incomplete,
        duration_s=cell_number(cells.get(duration, "")),
        input_tokens_mean=means["input"] if completed != 0 else None,
        output_tokens_mean=means["output"] if completed != 0 else None,
        achieved_concurrency=means["concurrency"],
        request_throughput_per_s=means["requests"],
        output_token_throughput_per_s=means["output_rate"],
        total_token_throughput_per_s=means["total_rate"],
        ttft=found.get("ttft"),
        tpot=found.get("tpot"),
        e2e=found.get("e2e"),
        extra=extra
        | own_latency("itl", found.get("tpot"))
        | own_latency("guidellm_tpot_incl_first", found.get("including_first")),
        flags=flags_of(found.get("including_first") is not None, shared=shared),
    )


def _count(cells: Cells, name: str) -> int | None:
    value = cell_number(cells.get(name, ""))
    return None if value is None else round(value)


def _latency(cells: Cells, column: Column, term: str, unit_s: float) -> LatencyStats | None:
    known = {statistic: cells.get(column(term, statistic), "") for statistic in ("mean", "median", "std dev")}
    vector = cells.get(column(term, _VECTOR)) or cells.get(column(term, "percentiles"), "")
    numbers: dict[str, float | None] = {statistic: cell_number(cell) for statistic, cell in known.items()}
    return latency(numbers | _percentiles(vector), _NAMES, unit_s)


def _percentiles(vector: str) -> dict[str, float | None]:
    """P90, P95 and P99 of a cell such as ``[0.1, …, 0.9]``."""
    cells = vector.strip("[] ").split(",")
    if len(cells) != _VECTOR_LENGTH:
        return {}
    return {name: cell_number(cells[place].strip()) for name, place in _IN_VECTOR.items()}


def _embedded(cells: Cells, name: str) -> JsonObject:
    """A cell that holds JSON; an empty object when it does not."""
    try:
        value = json.loads(cells.get(name, ""))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
