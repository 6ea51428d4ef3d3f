"""The load, the targets and the prices of a JSON case, both ways."""

from __future__ import annotations

from typing import Any

from calc.errors import InputError
from calc.messages import msg
from calc.units import KILO
from calc.workload import (
    Arrivals,
    Closed,
    Empirical,
    Fixed,
    LengthDistribution,
    LogNormal,
    Mmpp,
    OpenLoop,
    PerMinute,
    Prices,
    Recorded,
    Slo,
    Uniform,
    Workload,
)
from data.case_fields import Fields, as_list, as_number

DISTRIBUTIONS = ("fixed", "uniform", "lognormal", "empirical")
"""How token lengths can be given."""
OPEN_LOOPS = ("poisson", "constant", "gamma")
ARRIVALS = ("closed", *OPEN_LOOPS, "per-minute", "mmpp", "trace")
"""How requests can arrive."""
RECORDED_LENGTHS = ("prompt_tokens", "output_tokens")
"""Of each request of a log, where it has them."""
TARGETS = ("ttft", "itl", "e2e")
PRICE_FACTS = ("region", "commitment", "source", "checked_on")
"""What is said about a price beside its amount and currency."""
PERCENT = 100
_MEDIAN_PERCENT = 50
_DIGITS = (3, 6, 9, 12, 15)


def scaled(value: float, divisor: float) -> float:
    """``value`` / ``divisor`` with the fewest decimals that multiply back to ``value``."""
    exact = value / divisor
    return next((short for digits in _DIGITS if (short := round(exact, digits)) * divisor == value), exact)


def unscaled(value: float, factor: float) -> float:
    """``value`` · ``factor`` with the fewest decimals that divide back to ``value``, e.g. seconds as milliseconds."""
    exact = value * factor
    return next((short for digits in _DIGITS if (short := round(exact, digits)) / factor == value), exact)


def read_workload(fields: Fields, http: bool | None = None) -> Workload:
    """The load; ``http`` is the case's own top-level field and wins over the workload's."""
    inner_http = fields.flag("http")
    measured_at = http if http is not None else inner_http
    idle = fields.child("idle_sessions")
    return Workload(
        prompt_tokens=_read_lengths(fields.needed_child("prompt_tokens")),
        output_tokens=_read_lengths(fields.needed_child("output_tokens")),
        arrivals=_read_arrivals(fields.needed_child("arrivals")),
        prefix_hit_share=fields.number("prefix_hit_share") or 0.0,
        num_requests=fields.whole("num_requests"),
        business_type=fields.text("business_type") or "custom",
        http=True if measured_at is None else measured_at,
        idle_share=(idle.number("share") or 0.0) if idle else 0.0,
        idle_context_tokens=idle.number("context_tokens") if idle else None,
    )


def _read_lengths(fields: Fields) -> LengthDistribution:
    match fields.one_of("distribution", DISTRIBUTIONS):
        case "fixed":
            return Fixed(value_tokens=fields.needed_number("value"))
        case "uniform":
            return Uniform(low_tokens=fields.needed_number("low"), high_tokens=fields.needed_number("high"))
        case "lognormal":
            return LogNormal(p50_tokens=fields.needed_number("p50"), p95_tokens=fields.needed_number("p95"))
        case _:
            return Empirical(quantiles=_read_quantiles(fields))


def _read_quantiles(fields: Fields) -> tuple[tuple[float, float], ...]:
    name = fields.name_of("quantiles")
    pairs = [as_list(pair, name) for pair in as_list(fields.needed("quantiles"), name)]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004 - a pair
        raise InputError(msg("{name} must be pairs [share, tokens]: correct the list.", name=name))
    return tuple((as_number(share, name), as_number(tokens, name)) for share, tokens in pairs)


def _read_arrivals(fields: Fields) -> Arrivals:
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
    return tuple(as_number(value, name) for value in as_list(fields.needed(key), name))


def _whole(fields: Fields, key: str) -> tuple[int, ...]:
    return tuple(round(value) for value in _numbers(fields, key))


def write_workload(workload: Workload) -> dict[str, Any]:
    """The load as a case carries it (``http`` stands one level up)."""
    written: dict[str, Any] = {
        "prompt_tokens": _write_lengths(workload.prompt_tokens),
        "output_tokens": _write_lengths(workload.output_tokens),
        "arrivals": _write_arrivals(workload.arrivals),
        "prefix_hit_share": workload.prefix_hit_share,
    }
    if workload.num_requests is not None:
        written["num_requests"] = workload.num_requests
    if workload.business_type != "custom":
        written["business_type"] = workload.business_type
    if workload.idle_share or workload.idle_context_tokens is not None:
        written["idle_sessions"] = _write_idle(workload)
    return written


def _write_idle(workload: Workload) -> dict[str, float]:
    held = workload.idle_context_tokens
    return {"share": workload.idle_share} | ({} if held is None else {"context_tokens": held})


def _write_lengths(lengths: LengthDistribution) -> dict[str, Any]:
    match lengths:
        case Fixed():
            return {"distribution": "fixed", "value": lengths.value_tokens}
        case Uniform():
            return {"distribution": "uniform", "low": lengths.low_tokens, "high": lengths.high_tokens}
        case LogNormal():
            return {"distribution": "lognormal", "p50": lengths.p50_tokens, "p95": lengths.p95_tokens}
        case Empirical():
            return {"distribution": "empirical", "quantiles": [list(pair) for pair in lengths.quantiles]}


def _write_arrivals(arrivals: Arrivals) -> dict[str, Any]:
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


def read_slo(fields: Fields | None) -> Slo:
    """The targets ``ttft``, ``itl`` and ``e2e``, each as ``…_ms`` or ``…_s``, and a ``percentile`` (0.95, or 95)."""
    if fields is None:
        return Slo()
    percentile = fields.number("percentile")
    return Slo(
        **{f"{target}_s": _read_target(fields, target) for target in TARGETS},
        percentile_share=Slo.percentile_share if percentile is None else _as_share(percentile),
        source=fields.text("source") or "",
    )


def _read_target(fields: Fields, target: str) -> float | None:
    milliseconds, seconds = fields.number(f"{target}_ms"), fields.number(f"{target}_s")
    return seconds if milliseconds is None else milliseconds / KILO


def _as_share(percentile: float) -> float:
    return percentile / PERCENT if percentile >= _MEDIAN_PERCENT else percentile


def write_slo(slo: Slo) -> dict[str, Any]:
    """The targets that are set."""
    written: dict[str, Any] = {"percentile": slo.percentile_share}
    for key, value_s in (("ttft", slo.ttft_s), ("itl", slo.itl_s)):
        if value_s is not None:
            written |= _write_target(key, value_s)
    if slo.e2e_s is not None:
        written["e2e_s"] = slo.e2e_s
    return written | ({"source": slo.source} if slo.source else {})


def _write_target(target: str, value_s: float) -> dict[str, float]:
    """In milliseconds, or in seconds where no number of milliseconds reads back as the same target."""
    milliseconds = unscaled(value_s, KILO)
    return {f"{target}_ms": milliseconds} if milliseconds / KILO == value_s else {f"{target}_s": value_s}


def read_prices(fields: Fields | None) -> Prices:
    """``gpu_hour`` and its ``currency``, with what it is a price of and where it is from."""
    if fields is None:
        return Prices()
    return Prices(
        gpu_hour=fields.number("gpu_hour"),
        currency=fields.text("currency") or Prices.currency,
        **{key: fields.text(key) or "" for key in PRICE_FACTS},
    )


def write_prices(prices: Prices) -> dict[str, Any]:
    """The price when it is known."""
    written: dict[str, Any] = {"currency": prices.currency}
    if prices.gpu_hour is not None:
        written["gpu_hour"] = prices.gpu_hour
    return written | {key: text for key in PRICE_FACTS if (text := getattr(prices, key))}
