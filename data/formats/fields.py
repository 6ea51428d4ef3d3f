"""What a table column can mean: field codes with kind, target and the units it may come in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.errors import InputError
from calc.messages import Message, msg
from calc.units import GB, GIB, KILO, MEGA, MIB, MICRO, MILLI, SECONDS_PER_MINUTE

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "std", "max", "min")

UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "time": {"ms": MILLI, "s": 1.0, "us": MICRO, "ns": 1e-9, "min": float(SECONDS_PER_MINUTE)},
        "share": {"%": 0.01, "share": 1.0},
        "rate": {"/s": 1.0, "/min": 1 / SECONDS_PER_MINUTE},
        "bytes": {"GiB": float(GIB), "GB": float(GB), "MiB": float(MIB), "MB": float(MEGA), "kB": float(KILO)},
    }
)
"""Factor to the base unit (seconds, shares, per second, bytes) by kind."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One meaning a column can have."""

    code: str
    title: Message
    kind: str
    """text, count, number, time, share, rate, bytes or none."""
    target: str
    """Name in the record, or in its further facts."""
    has_statistic: bool = False

    @property
    def units(self) -> tuple[str, ...]:
        """Units to choose from; empty when the field has none."""
        return tuple(UNITS.get(self.kind, ()))


@dataclass(frozen=True, kw_only=True)
class ColumnMeaning:
    """What one column is: a field, which statistic of it, and the unit of its cells."""

    code: str
    statistic: str | None = None
    unit: str | None = None

    def __str__(self) -> str:
        statistic = f".{self.statistic}" if self.statistic else ""
        return f"{self.code}{statistic}:{self.unit}" if self.unit else f"{self.code}{statistic}"


IGNORE = "ignore"

_FIELDS: tuple[Field, ...] = (
    Field(code=IGNORE, title=msg("do not use"), kind="none", target=""),
    Field(code="model", title=msg("model"), kind="text", target="model"),
    Field(code="backend", title=msg("engine"), kind="text", target="backend"),
    Field(code="gpu", title=msg("GPU"), kind="text", target="gpu"),
    Field(code="gpu_count", title=msg("number of GPUs"), kind="count", target="gpu_count"),
    Field(code="date", title=msg("date"), kind="text", target="date"),
    Field(code="request_rate", title=msg("request rate, sent"), kind="rate", target="request_rate_per_s"),
    Field(code="max_concurrency", title=msg("concurrency"), kind="count", target="max_concurrency"),
    Field(code="num_prompts", title=msg("requests sent"), kind="count", target="num_prompts"),
    Field(code="completed", title=msg("requests completed"), kind="count", target="completed"),
    Field(code="failed", title=msg("requests failed"), kind="count", target="failed"),
    Field(code="success_share", title=msg("success rate"), kind="share", target="success_share"),
    Field(code="error_share", title=msg("error rate"), kind="share", target="error_share"),
    Field(code="duration", title=msg("duration of the run"), kind="time", target="duration_s"),
    Field(code="input_tokens", title=msg("prompt tokens"), kind="number", target="input_tokens", has_statistic=True),
    Field(code="output_tokens", title=msg("output tokens"), kind="number", target="output_tokens", has_statistic=True),
    Field(code="input_tokens_total", title=msg("prompt tokens, total"), kind="count", target="input_tokens_total"),
    Field(code="output_tokens_total", title=msg("output tokens, total"), kind="count", target="output_tokens_total"),
    Field(code="ttft", title=msg("TTFT"), kind="time", target="ttft", has_statistic=True),
    Field(code="tpot", title=msg("TPOT"), kind="time", target="tpot", has_statistic=True),
    Field(code="itl", title=msg("ITL"), kind="time", target="itl", has_statistic=True),
    Field(code="e2e", title=msg("E2E latency"), kind="time", target="e2e", has_statistic=True),
    Field(
        code="ambiguous_latency",
        title=msg("latency, of what is not said"),
        kind="time",
        target="latency_ambiguous",
        has_statistic=True,
    ),
    Field(code="prefill", title=msg("prefill time"), kind="time", target="prefill", has_statistic=True),
    Field(code="ambiguous_batch", title=msg("batch, not said of what"), kind="count", target="batch_ambiguous"),
    Field(code="request_throughput", title=msg("requests per second"), kind="rate", target="request_throughput_per_s"),
    Field(
        code="output_token_throughput",
        title=msg("output tokens per second"),
        kind="rate",
        target="output_token_throughput_per_s",
    ),
    Field(
        code="total_token_throughput",
        title=msg("prompt and output tokens per second"),
        kind="rate",
        target="total_token_throughput_per_s",
    ),
    Field(
        code="input_token_throughput",
        title=msg("prompt tokens per second"),
        kind="rate",
        target="input_token_throughput_per_s",
    ),
    Field(
        code="ambiguous_throughput",
        title=msg("throughput, of what is not said"),
        kind="rate",
        target="ambiguous_throughput_per_s",
    ),
    Field(
        code="user_token_rate", title=msg("tokens per second of one request"), kind="rate", target="user_tokens_per_s"
    ),
    Field(code="gpu_token_rate", title=msg("tokens per second of one GPU"), kind="rate", target="gpu_tokens_per_s"),
    Field(code="prefix_hit_share", title=msg("prefix hit rate"), kind="share", target="prefix_hit_share"),
    Field(code="kv_usage_share", title=msg("KV usage"), kind="share", target="kv_usage_share"),
    Field(code="gpu_memory_peak", title=msg("GPU memory, peak"), kind="bytes", target="gpu_memory_peak_bytes"),
    Field(code="gpu_busy_share", title=msg("GPU utilisation"), kind="share", target="gpu_busy_share"),
    Field(code="goodput", title=msg("goodput, requests per second"), kind="rate", target="goodput_per_s"),
    Field(code="slo_share", title=msg("share within the SLO"), kind="share", target="slo_share"),
    Field(code="request_index", title=msg("request number"), kind="none", target=""),
    Field(code="answer_text", title=msg("prompt or answer text, never stored"), kind="none", target=""),
    Field(code="start_time", title=msg("start of the request"), kind="text", target="start_time"),
    Field(code="end_time", title=msg("end of the request"), kind="text", target="end_time"),
)
"""Every meaning, in the order a page offers them."""

FIELDS: Mapping[str, Field] = MappingProxyType({field.code: field for field in _FIELDS})


def _choices() -> Iterator[tuple[str, Message]]:
    for field in _FIELDS:
        for statistic in STATISTICS if field.has_statistic else (None,):
            for unit in field.units or (None,):
                meaning = ColumnMeaning(code=field.code, statistic=statistic, unit=unit)
                yield str(meaning), _title(field, statistic, unit)


def _title(field: Field, statistic: str | None, unit: str | None) -> Message:
    if statistic is None and unit is None:
        return field.title
    detail = " ".join(part for part in (statistic, unit) if part is not None)
    return msg("{field}, {detail}", field=field.title, detail=detail)


FIELD_CHOICES: Mapping[str, Message] = MappingProxyType(dict(_choices()))
"""Everything a user can say a column is (``ttft.p99:ms``, ``ignore`` …) with words for it."""


def parse_meaning(text: str, header: str) -> ColumnMeaning:
    """A meaning written as ``code``, ``code.statistic`` or ``code.statistic:unit``, e.g. ``ttft.p99:ms``."""
    named, _, unit = text.partition(":")
    code, _, statistic = named.partition(".")
    choice = FIELDS.get(code)
    if choice is None:
        raise InputError(
            msg("column {header}: {code} is no field, use one of {codes}.", header=header, code=code, codes=_codes())
        )
    if statistic and (not choice.has_statistic or statistic not in STATISTICS):
        raise InputError(
            msg(
                "column {header}: {statistic} is no statistic of {code}, use one of {known}.",
                header=header,
                statistic=statistic,
                code=code,
                known=", ".join(STATISTICS) if choice.has_statistic else "—",
            )
        )
    if unit and unit not in choice.units:
        raise InputError(
            msg(
                "column {header}: {unit} is no unit of {code}, use one of {known}.",
                header=header,
                unit=unit,
                code=code,
                known=", ".join(choice.units) or "—",
            )
        )
    return ColumnMeaning(code=code, statistic=statistic or _default_statistic(choice), unit=unit or None)


def _codes() -> str:
    return ", ".join(FIELDS)


def _default_statistic(choice: Field) -> str | None:
    return "mean" if choice.has_statistic else None
