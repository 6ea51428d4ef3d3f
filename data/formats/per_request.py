"""A table with one request a row: summed up here into the one load point it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from data.formats.cells import Cells
from data.formats.columns import Column as TableColumn
from data.formats.judge import HAND_MADE
from data.formats.request_figures import Column, RequestFigures, column, summed_up
from data.records import BenchmarkRun

_SIGNS = frozenset({"request_index", "answer_text", "start_time", "end_time"})
_ONE_REQUEST = ("ttft", "e2e", "tpot")


def is_per_request(columns: Sequence[TableColumn]) -> bool:
    """True when the columns describe single requests: a number, text or times of one, a latency, and no concurrency."""
    codes = {each.meaning.code for each in columns}
    return bool(codes & _SIGNS) and bool(codes.intersection(_ONE_REQUEST)) and "max_concurrency" not in codes


def one_run(rows: Sequence[Cells]) -> list[BenchmarkRun]:
    """The load point; rows without any latency are failed requests."""
    answered = [cells for cells in rows if any((code, "mean") in cells.values for code in _ONE_REQUEST)]
    if not rows:
        return []
    known = BenchmarkRun(
        tool=HAND_MADE, model=next((cells.texts["model"] for cells in rows if "model" in cells.texts), None)
    )
    return [summed_up(_figures(answered, failed=len(rows) - len(answered)), known)]


def _figures(answered: Sequence[Cells], *, failed: int) -> RequestFigures:
    return RequestFigures(
        ttft_s=_column(answered, "ttft"),
        e2e_s=_column(answered, "e2e"),
        tpot_s=_column(answered, "tpot"),
        input_tokens=_column(answered, "input_tokens"),
        output_tokens=_column(answered, "output_tokens"),
        started_s=_moments(answered, "start_time"),
        ended_s=_moments(answered, "end_time"),
        failed=failed,
    )


def _column(rows: Sequence[Cells], code: str) -> Column:
    return column(cells.values.get((code, "mean")) for cells in rows)


def _moments(rows: Sequence[Cells], code: str) -> Column:
    return column(_moment(cells.texts.get(code)) for cells in rows)


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
