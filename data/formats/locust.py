"""Tables of Locust: statistics by name of request; failures, exceptions and the history belong to them.

Milliseconds, rounded by the tool. Percentiles include failed requests, and a streamed answer is timed up to its
headers, which shows when a row of times to first token is slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calc.units import MILLI
from data.formats.collect import own_latency
from data.formats.csv_rows import cell_number, csv_rows, first_cells, named_rows
from data.formats.document import Document
from data.formats.json_objects import latency
from data.formats.pieces import read_pieces
from data.formats.result import companion
from data.records import BenchmarkRun, LatencyStats, ReadResult

STATS = "locust_stats_csv"
_COMPANIONS = {
    "locust_stats_history": ("Timestamp", "User Count"),
    "locust_failures": ("Method", "Name", "Error", "Occurrences"),
    "locust_exceptions": ("Count", "Message", "Traceback"),
}
_NAMES = {"mean_s": "mean", "p50_s": "p50", "p90_s": "90%", "p95_s": "95%", "p99_s": "99%"}
_ALL = "Aggregated"
_FIRST_TOKEN = ("ttft", "first token", "first_token", "time to first")


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One line of the statistics."""

    name: str
    kind: str
    sent: float | None
    failed: float | None
    rate: float | None
    stats: LatencyStats | None

    @property
    def is_all(self) -> bool:
        """True of the line that pools every name."""
        return self.name in (_ALL, "Total")

    @property
    def is_first_token(self) -> bool:
        """True of a line that the test itself added for times to first token."""
        label = f"{self.kind} {self.name}".lower()
        return any(word in label for word in _FIRST_TOKEN)


def looks_like(document: Document) -> bool:
    """True when the header is one of Locust's."""
    return not document.values and _code(first_cells(document.text)) is not None


def read(document: Document) -> ReadResult:
    """Every line of the statistics, the pooled one too; the other tables hold no load point."""
    code = _code(first_cells(document.text)) or STATS
    if code != STATS:
        return companion(document, code, warned=False)
    table = csv_rows(document.text, document.name)
    start = next(index for index, row in enumerate(table) if any(row))
    body = [(start + 2 + index, row) for index, row in enumerate(table[start + 1 :]) if any(row)]
    rows = [_row(cells) for cells in named_rows(table[start], [row for _, row in body])]
    pieces = zip((line for line, _ in body), rows, strict=True)
    return read_pieces(document, STATS, pieces, lambda row: _run(row, rows))


def _code(cells: Sequence[str]) -> str | None:
    names = {cell.lower() for cell in cells}
    for code, signs in _COMPANIONS.items():
        if {sign.lower() for sign in signs} <= names:
            return code
    timed = {"median response time", "average response time"} <= names
    return STATS if timed and names & {"request count", "# requests"} else None


def _row(cells: Mapping[str, str]) -> _Row:
    lower = {name.lower(): cell for name, cell in cells.items()}
    numbers = {name: cell_number(cell) for name, cell in lower.items()}
    mean = numbers.get("average response time")
    median = numbers.get("50%")
    figures = numbers | {"mean": mean, "p50": numbers.get("median response time") if median is None else median}
    sent = _first(numbers, "request count", "# requests")
    kind = lower.get("type") or lower.get("method") or ""
    return _Row(
        name=lower.get("name", ""),
        kind="" if kind == "None" else kind,
        sent=sent,
        failed=_first(numbers, "failure count", "# failures"),
        rate=numbers.get("requests/s"),
        stats=latency(figures, _NAMES, MILLI) if sent else None,
    )


def _first(numbers: Mapping[str, float | None], *names: str) -> float | None:
    return next((numbers[name] for name in names if numbers.get(name) is not None), None)


def _run(row: _Row, rows: Sequence[_Row]) -> BenchmarkRun:
    sent, failed = _whole(row.sent), _whole(row.failed)
    headers_only = _is_headers_only(row, rows)
    whole = not (headers_only or row.is_first_token or row.is_all)
    return BenchmarkRun(
        tool="locust",
        num_prompts=sent,
        completed=sent - failed if sent is not None and failed is not None and failed <= sent else None,
        failed=failed,
        request_throughput_per_s=row.rate,
        ttft=row.stats if row.is_first_token else None,
        e2e=row.stats if whole else None,
        extra={"row": f"{row.kind} {row.name}".strip()[:200]} | own_latency("latency", row.stats),
        flags=_flags(row, rows, headers_only=headers_only),
    )


def _flags(row: _Row, rows: Sequence[_Row], *, headers_only: bool) -> tuple[str, ...]:
    named = {
        "mixed_stages": row.is_all and sum(not other.is_all for other in rows) > 1,
        "failures_in_percentiles": bool(row.failed),
        "headers_only": headers_only,
        "no_token_metrics": True,
    }
    return tuple(code for code, fires in named.items() if fires)


def _is_headers_only(row: _Row, rows: Sequence[_Row]) -> bool:
    """A whole answer cannot be faster than its first token."""
    own = row.stats.p50_s if row.stats else None
    firsts = [other.stats.p50_s for other in rows if other.is_first_token and other.stats]
    if own is None or row.is_first_token or row.is_all:
        return False
    return any(first is not None and first > own for first in firsts)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
