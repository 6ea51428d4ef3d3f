"""A log of arrivals as the scenario's fields keep it: one line a request, ``time`` or ``time,prompt,output``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from data.arrival_log import ArrivalLog, read_arrival_log
from data.case_traffic import RECORDED_LENGTHS
from ui.typed.numbers import plain

MAX_SCREEN_ARRIVALS = 20_000
"""Arrivals of a log on the screen: every change of a slider carries them along. Scripts take ten times as many."""
KEPT_LOGS = 16


def parse_trace(text: str) -> dict[str, Any]:
    """The arrivals of a case."""
    if not text.strip():
        raise InputError(msg("The log of arrivals is empty: paste its times at the side, or choose another kind."))
    log = _read(text)
    lengths = {key: list(getattr(log, key)) for key in RECORDED_LENGTHS if getattr(log, key)}
    return {"kind": "trace", "times_s": list(log.times_s), **lengths}


@lru_cache(KEPT_LOGS)
def _read(text: str) -> ArrivalLog:
    return read_arrival_log(text.encode(errors="replace"), "log", MAX_SCREEN_ARRIVALS)


def trace_text(arrivals: Mapping[str, Any]) -> str:
    """As :func:`parse_trace` reads them."""
    keys = ["times_s", *(key for key in RECORDED_LENGTHS if arrivals.get(key))]
    head = [] if keys[1:] in ([], ["prompt_tokens"], [*RECORDED_LENGTHS]) else [",".join(keys)]
    rows = zip(*(arrivals[key] for key in keys), strict=True)
    return "\n".join([*head, *(",".join(plain(cell) for cell in row) for row in rows)])
