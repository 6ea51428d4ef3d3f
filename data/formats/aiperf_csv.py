"""Tables of AIPerf and genai-perf: one table of distributions, an empty line, one of single values.

The unit stands behind the metric's name, numbers may have thousands separators, and columns come in any order. Tables
of GPU readings that may follow are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from data.formats.csv_rows import cell_number, csv_rows, first_cells
from data.formats.document import Document
from data.formats.nvidia_metrics import Metric, Metrics, filled, has_reasoning
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, ReadResult

_DISTRIBUTION = {"Metric", "avg", "min", "max"}
_HEAD_CHARACTERS = 20_000
_ROWS = (
    "time to first token",
    "inter token latency",
    "request latency",
    "output sequence length",
    "num output token",
    "input sequence length",
    "request throughput",
    "request count",
)
"""Beginnings of rows; one of them alone may stand in anybody's table."""
_NAME = re.compile(r"^(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?$")
_ONLY_AIPERF = frozenset({"benchmark_duration", "error_request_count", "inter_chunk_latency", "total_osl"})


def looks_like(document: Document) -> bool:
    """True when the header is a table of distributions and rows below it have the names of these tools."""
    cells = first_cells(document.text)
    if document.values or cells[:1] != ["Metric"] or not set(cells) >= _DISTRIBUTION or "GPU" in cells:
        return False
    head = document.text[:_HEAD_CHARACTERS].lower()
    return sum(f"\n{name}" in head for name in _ROWS) > 1


def read(document: Document) -> ReadResult:
    """The one load point of the file."""
    rows = csv_rows(document.text, document.name)
    metrics = dict(_metrics(rows))
    genai = _is_genai(rows, metrics)
    notes = [
        note
        for note, holds in (
            ("reasoning_tokens", has_reasoning(metrics)),
            ("thousands_separators", any("," in cell for row in rows for cell in row[1:])),
        )
        if holds
    ]
    run = BenchmarkRun(tool="genai-perf" if genai else "aiperf", failed=0)
    code = "genai_perf_csv" if genai else "aiperf_csv"
    return read_pieces(document, code, [(1, metrics)], lambda found: filled(run, found), notes)


def _metrics(rows: list[list[str]]) -> Iterator[tuple[str, Metric]]:
    """Metrics of the first two tables; an empty line ends one."""
    header: list[str] = []
    for row in rows:
        if row[:1] == ["Metric"]:
            header = row if "GPU" not in row else []
        elif not any(row):
            header = []
        elif header and row[0]:
            name, unit = _split(row[0])
            cells = dict(zip(header[1:], row[1:], strict=False))
            numbers = {("avg" if key == "Value" else key): cell_number(cell) for key, cell in cells.items()}
            yield name, Metric(unit=unit, statistics=numbers)


def _split(label: str) -> tuple[str, str | None]:
    """``Time to First Token (ms)`` as name and unit."""
    match = _NAME.match(label)
    if match is None:
        return label.lower(), None
    return match["name"].strip().lower().replace(" ", "_"), match["unit"]


def _is_genai(rows: list[list[str]], metrics: Metrics) -> bool:
    """genai-perf writes percentiles from high to low, AIPerf from low to high."""
    if _ONLY_AIPERF & set(metrics):
        return False
    header = next(row for row in rows if row[:1] == ["Metric"])
    return "p99" in header and "p25" in header and header.index("p99") < header.index("p25")
