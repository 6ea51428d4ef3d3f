"""When requests come, as a JSON case says it, both ways."""

from __future__ import annotations

from typing import Any

from calc.traffic import MAX_RECORDED, Arrivals, Closed, Mmpp, OpenLoop, PerMinute, Recorded
from data.case_fields import Fields, as_list, as_number, as_whole

OPEN_LOOPS = ("poisson", "constant", "gamma")
ARRIVALS = ("closed", *OPEN_LOOPS, "per-minute", "mmpp", "trace")
"""How requests can arrive."""
RECORDED_LENGTHS = ("prompt_tokens", "output_tokens")
"""Of each request of a log, where it has them."""


def read_arrivals(fields: Fields) -> Arrivals:
    """Arrivals, as their kind is given."""
    match fields.one_of("kind", ARRIVALS):
        case "closed":
            return Closed(concurrency=fields.needed_whole("concurrency"))
        case "per-minute":
            return PerMinute(rates_per_s=_numbers(fields, "rates_per_s"))
        case "mmpp":
            rates, stays = _numbers(fields, "rates_per_s"), _numbers(fields, "stays_s")
            return Mmpp(rates_per_s=rates, stays_s=stays)
        case "trace":
            given = {key: _whole(fields, key) for key in RECORDED_LENGTHS if fields.raw(key) is not None}
            return Recorded(times_s=_numbers(fields, "times_s"), **given)
        case kind:
            cv = fields.number("cv") if kind == "gamma" else None
            return OpenLoop(kind=kind, rate_per_s=fields.needed_number("rate_per_s"), cv=1.0 if cv is None else cv)


def _numbers(fields: Fields, key: str) -> tuple[float, ...]:
    name = fields.name_of(key)
    return tuple(as_number(value, name) for value in as_list(fields.needed(key), name, MAX_RECORDED))


def _whole(fields: Fields, key: str) -> tuple[int, ...]:
    name = fields.name_of(key)
    return tuple(as_whole(value, name) for value in as_list(fields.needed(key), name, MAX_RECORDED))


def write_arrivals(arrivals: Arrivals) -> dict[str, Any]:
    """As :func:`read_arrivals` reads it."""
    match arrivals:
        case Closed():
            return {"kind": "closed", "concurrency": arrivals.concurrency}
        case PerMinute():
            return {"kind": "per-minute", "rates_per_s": list(arrivals.rates_per_s)}
        case OpenLoop(kind="gamma"):
            return {"kind": "gamma", "rate_per_s": arrivals.rate_per_s, "cv": arrivals.cv}
        case OpenLoop():
            return {"kind": arrivals.kind, "rate_per_s": arrivals.rate_per_s}
        case Mmpp():
            return {"kind": "mmpp", "rates_per_s": list(arrivals.rates_per_s), "stays_s": list(arrivals.stays_s)}
        case Recorded():
            lengths = {key: list(getattr(arrivals, key)) for key in RECORDED_LENGTHS if getattr(arrivals, key)}
            return {"kind": "trace", "times_s": list(arrivals.times_s), **lengths}
