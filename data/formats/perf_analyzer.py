"""Tables of Triton's perf_analyzer (``-f``): one row a concurrency or request rate, all times in microseconds."""

from __future__ import annotations

from collections.abc import Mapping

from calc.units import MICRO
from data.formats.csv_rows import cell_number, csv_rows, first_cells, named_rows
from data.formats.document import Document
from data.formats.json_objects import latency
from data.formats.pieces import read_pieces
from data.records import BenchmarkRun, ReadResult

_SIGNS = frozenset({"Inferences/Second", "Client Send"})
_NAMES = {
    "mean_s": "Avg latency",
    "p50_s": "p50 latency",
    "p90_s": "p90 latency",
    "p95_s": "p95 latency",
    "p99_s": "p99 latency",
}
_PARTS = {
    "client_send_s": "Client Send",
    "network_s": "Network+Server Send/Recv",
    "server_queue_s": "Server Queue",
    "server_compute_input_s": "Server Compute Input",
    "server_compute_infer_s": "Server Compute Infer",
    "server_compute_output_s": "Server Compute Output",
    "client_receive_s": "Client Recv",
}


def looks_like(document: Document) -> bool:
    """True when the columns are inferences per second and the parts of latency."""
    return not document.values and set(first_cells(document.text)) >= _SIGNS


def read(document: Document) -> ReadResult:
    """Every row, in the file's order: the tool sorts them by throughput."""
    rows = csv_rows(document.text, document.name)
    start = next(index for index, row in enumerate(rows) if any(row))
    body = [(start + 2 + index, row) for index, row in enumerate(rows[start + 1 :]) if any(row)]
    named = named_rows(rows[start], [row for _, row in body])
    pieces = zip((line for line, _ in body), named, strict=True)
    return read_pieces(document, "perf_analyzer_csv", pieces, _run)


def _run(cells: Mapping[str, str]) -> BenchmarkRun:
    """A row. The tool gives up when a request fails, so its results have no failures unless it counts them."""
    numbers = {name: cell_number(cell) for name, cell in cells.items()}
    users, failed = numbers.get("Concurrency"), numbers.get("Failed Request Count")
    parts = {ours: numbers.get(theirs) for ours, theirs in _PARTS.items()}
    return BenchmarkRun(
        tool="perf_analyzer",
        max_concurrency=None if users is None else round(users),
        request_rate_per_s=numbers.get("Request Rate"),
        failed=0 if failed is None else round(failed),
        request_throughput_per_s=numbers.get("Inferences/Second"),
        e2e=latency(numbers, _NAMES, MICRO),
        extra={ours: value * MICRO for ours, value in parts.items() if value is not None},
        flags=("no_token_metrics",),
    )
