"""Somebody's own table of results: any separator, English, Chinese or German headers, one load point a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calc.messages import msg
from data.formats.cells import Cells, read_cells
from data.formats.columns import Column, resolve_columns
from data.formats.document import Document
from data.formats.fields import FIELDS, IGNORE
from data.formats.judge import HAND_MADE
from data.formats.per_request import is_per_request, one_run
from data.formats.result import finish
from data.formats.row_checks import LATENCIES, RefusedRow, check_row
from data.formats.table import Row, Table
from data.records import BenchmarkRun, LatencyStats, ReadResult, RowProblem

FORMAT = "generic_csv"
_KEPT_STATISTICS = ("mean", "p50", "p90", "p95", "p99", "std")
_COUNTS = (
    "gpu_count",
    "max_concurrency",
    "num_prompts",
    "completed",
    "failed",
    "input_tokens_total",
    "output_tokens_total",
)
_RESULTS = (
    "completed",
    "failed",
    "success_share",
    "request_throughput_per_s",
    "input_token_throughput_per_s",
    "output_token_throughput_per_s",
    "ambiguous_throughput_per_s",
    "total_token_throughput_per_s",
)
"""What a run can find out besides latencies."""
_AVERAGE = ("avg", "average", "mean")
_AMBIGUOUS = {"ambiguous_latency": "latency_ambiguous", "ambiguous_batch": "batch_ambiguous"}
"""Note codes of columns that are kept under a name of their own and never used as a TTFT, an E2E or a concurrency."""
_RECORD_FIELDS = frozenset(BenchmarkRun.__dataclass_fields__)


def read_table(document: Document, table: Table, corrections: Mapping[str, str] | None = None) -> ReadResult:
    """Every row as a load point; a table of single requests as one."""
    columns, problems = _used(resolve_columns(table, corrections), table)
    problems = [*document.problems, *problems]
    taken = list(_taken(table, columns, problems))
    cells = [row for row, _ in taken]
    notes = _notes(columns, cells)
    if is_per_request(columns):
        return finish(document, FORMAT, one_run(cells), problems, (*notes, "per_request_file"))
    return finish(document, FORMAT, _means_in_flight([run for _, run in taken]), problems, notes)


def _means_in_flight(runs: Sequence[BenchmarkRun]) -> list[BenchmarkRun]:
    """Where a row's concurrency has decimals the column holds means, and a round one beside it is no cap either."""
    if not any(run.achieved_concurrency is not None for run in runs):
        return list(runs)
    return [
        replace(run, max_concurrency=None, achieved_concurrency=float(run.max_concurrency))
        if run.max_concurrency is not None and run.achieved_concurrency is None
        else run
        for run in runs
    ]


def _taken(table: Table, columns: Sequence[Column], problems: list[RowProblem]) -> Iterator[tuple[Cells, BenchmarkRun]]:
    """Rows that can be used, as cells and as a load point; the others go to ``problems``."""
    nominal = any(column.nominal for column in columns)
    single = is_per_request(columns)
    for row in table.rows:
        try:
            cells = read_cells(row, columns, len(table.headers))
            run = _run(row, cells, nominal)
            check_row(run)
            if not (single or _says_something(run)):
                raise RefusedRow(msg("no latency and no rate stands in this row: nothing was measured."))
        except RefusedRow as refused:
            problems.append(RowProblem(line=row.line, reason=refused.reason))
            continue
        yield cells, run


def _says_something(run: BenchmarkRun) -> bool:
    """Whether a load point holds a result, a failed attempt included."""
    measured = (getattr(run, name) for name in (*LATENCIES, *_RESULTS))
    return bool(run.extra) or any(value is not None for value in measured)


def _used(columns: Sequence[Column], table: Table) -> tuple[tuple[Column, ...], list[RowProblem]]:
    """Columns that carry something; of two with the same meaning the first, and the other is named."""
    used: dict[tuple[str, str | None], Column] = {}
    problems: list[RowProblem] = []
    for column in columns:
        key = (column.meaning.code, column.meaning.statistic)
        if column.meaning.code == IGNORE:
            continue
        if key not in used:
            used[key] = column
            continue
        left_out, used[key] = _left_out(used[key], column)
        reason = msg(
            "column {header} means the same as {first} and was not used: say which one counts.",
            header=left_out.header,
            first=used[key].header,
        )
        problems.append(RowProblem(line=table.header_line, reason=reason))
    return tuple(used.values()), problems


def _left_out(first: Column, second: Column) -> tuple[Column, Column]:
    """The column left out and the one used: that which spells its meaning out (``request_throughput`` beside ``qps``)
    or says its statistic (``avg_latency`` beside ``total_latency``), else the first."""
    spelled = [_is_spelled_out(each) for each in (first, second)]
    return (first, second) if spelled == [False, True] else (second, first)


def _is_spelled_out(column: Column) -> bool:
    letters = _letters(column.header)
    return column.meaning.code.replace("_", "") in letters or letters.startswith(_AVERAGE)


def _letters(header: str) -> str:
    return "".join(character for character in header.lower() if character.isalnum())


def _run(row: Row, cells: Cells, nominal: bool) -> BenchmarkRun:
    values: dict[str, Any] = {name: text for name, text in cells.texts.items() if name in _RECORD_FIELDS}
    values |= {name: _stats(cells, name) for name in LATENCIES}
    extra: dict[str, float | str] = {}
    for (code, statistic), value in cells.values.items():
        target = FIELDS[code].target
        if code in LATENCIES and statistic in _KEPT_STATISTICS:
            continue
        if code in ("input_tokens", "output_tokens"):
            target = f"{target}_{statistic}"
        elif statistic is not None:
            target = f"{target}_{statistic}_s"
        if target == "max_concurrency" and (value == 0 or value != round(value)):
            values |= {"achieved_concurrency": value} if value else {}  # a mean, or no cap at all
            continue
        (values if target in _RECORD_FIELDS else extra)[target] = round(value) if target in _COUNTS else value
    if "error_share" in extra:
        values.setdefault("success_share", 1 - float(extra.pop("error_share")))
    _complete_lengths(values)
    if "failed_point" in cells.flags:
        extra["failed_point"] = "yes"
    return BenchmarkRun(
        tool=HAND_MADE,
        **values,
        request_rate_is_infinite=cells.infinite_rate,
        extra=extra,
        line=row.line,
        flags=_flags(cells, nominal),
    )


def _complete_lengths(values: dict[str, Any]) -> None:
    """Mean lengths of totals over the requests that completed, their definition."""
    for name in ("input_tokens", "output_tokens"):
        total, completed = values.get(f"{name}_total"), values.get("completed")
        if total is not None and completed:
            values.setdefault(f"{name}_mean", total / completed)


def _stats(cells: Cells, name: str) -> LatencyStats | None:
    known = {f"{s}_s": cells.values[name, s] for s in _KEPT_STATISTICS if (name, s) in cells.values}
    return LatencyStats(**known) if known else None


def _flags(cells: Cells, nominal: bool) -> tuple[str, ...]:
    declared = sorted(cells.flags - {"failed_point"})
    return (*declared, "lengths_nominal") if nominal else tuple(declared)


def _notes(columns: Sequence[Column], rows: Sequence[Cells]) -> tuple[str, ...]:
    notes = {note for cells in rows for note in cells.notes}
    if any(column.decimal_comma for column in columns):
        notes.add("decimal_comma")
    if any(column.assumed for column in columns):
        notes.add("columns_assumed")
    notes.update(note for column in columns if (note := _AMBIGUOUS.get(column.meaning.code)) is not None)
    if any("failed_point" in cells.flags for cells in rows):
        notes.add("failed_point")
    return tuple(sorted(notes))
