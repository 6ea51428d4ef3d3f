"""What a table column can mean: field codes with kind, target and the units it may come in."""

from __future__ import annotations

from collections.abc import Mapping
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
class FieldChoice:
    """One meaning a column can be given."""

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

FIELD_CHOICES: tuple[FieldChoice, ...] = (
    FieldChoice(code=IGNORE, title=msg("do not use"), kind="none", target=""),
    FieldChoice(code="model", title=msg("model"), kind="text", target="model"),
    FieldChoice(code="backend", title=msg("engine"), kind="text", target="backend"),
    FieldChoice(code="gpu", title=msg("GPU"), kind="text", target="gpu"),
    FieldChoice(code="gpu_count", title=msg("number of GPUs"), kind="count", target="gpu_count"),
    FieldChoice(code="date", title=msg("date"), kind="text", target="date"),
    FieldChoice(code="request_rate", title=msg("request rate, sent"), kind="rate", target="request_rate_per_s"),
    FieldChoice(code="max_concurrency", title=msg("concurrency"), kind="count", target="max_concurrency"),
    FieldChoice(code="num_prompts", title=msg("requests sent"), kind="count", target="num_prompts"),
    FieldChoice(code="completed", title=msg("requests completed"), kind="count", target="completed"),
    FieldChoice(code="failed", title=msg("requests failed"), kind="count", target="failed"),
    FieldChoice(code="success_share", title=msg("success rate"), kind="share", target="success_share"),
    FieldChoice(code="error_share", title=msg("error rate"), kind="share", target="error_share"),
    FieldChoice(code="duration", title=msg("duration of the run"), kind="time", target="duration_s"),
    FieldChoice(
        code="input_tokens", title=msg("prompt tokens"), kind="number", target="input_tokens", has_statistic=True
    ),
    FieldChoice(
        code="output_tokens", title=msg("output tokens"), kind="number", target="output_tokens", has_statistic=True
    ),
    FieldChoice(
        code="input_tokens_total", title=msg("prompt tokens, total"), kind="count", target="input_tokens_total"
    ),
    FieldChoice(
        code="output_tokens_total", title=msg("output tokens, total"), kind="count", target="output_tokens_total"
    ),
    FieldChoice(code="ttft", title=msg("TTFT"), kind="time", target="ttft", has_statistic=True),
    FieldChoice(code="tpot", title=msg("TPOT"), kind="time", target="tpot", has_statistic=True),
    FieldChoice(code="itl", title=msg("ITL"), kind="time", target="itl", has_statistic=True),
    FieldChoice(code="e2e", title=msg("E2E latency"), kind="time", target="e2e", has_statistic=True),
    FieldChoice(
        code="request_throughput", title=msg("requests per second"), kind="rate", target="request_throughput_per_s"
    ),
    FieldChoice(
        code="output_token_throughput",
        title=msg("output tokens per second"),
        kind="rate",
        target="output_token_throughput_per_s",
    ),
    FieldChoice(
        code="total_token_throughput",
        title=msg("prompt and output tokens per second"),
        kind="rate",
        target="total_token_throughput_per_s",
    ),
    FieldChoice(
        code="input_token_throughput",
        title=msg("prompt tokens per second"),
        kind="rate",
        target="input_token_throughput_per_s",
    ),
    FieldChoice(
        code="ambiguous_throughput",
        title=msg("throughput, of what is not said"),
        kind="rate",
        target="ambiguous_throughput_per_s",
    ),
    FieldChoice(
        code="user_token_rate", title=msg("tokens per second of one request"), kind="rate", target="user_tokens_per_s"
    ),
    FieldChoice(
        code="gpu_token_rate", title=msg("tokens per second of one GPU"), kind="rate", target="gpu_tokens_per_s"
    ),
    FieldChoice(code="prefix_hit_share", title=msg("prefix hit rate"), kind="share", target="prefix_hit_share"),
    FieldChoice(code="kv_usage_share", title=msg("KV usage"), kind="share", target="kv_usage_share"),
    FieldChoice(code="gpu_memory_peak", title=msg("GPU memory, peak"), kind="bytes", target="gpu_memory_peak_bytes"),
    FieldChoice(code="gpu_busy_share", title=msg("GPU utilisation"), kind="share", target="gpu_busy_share"),
    FieldChoice(code="goodput", title=msg("goodput, requests per second"), kind="rate", target="goodput_per_s"),
    FieldChoice(code="slo_share", title=msg("share within the SLO"), kind="share", target="slo_share"),
    FieldChoice(code="request_index", title=msg("request number"), kind="none", target=""),
    FieldChoice(code="answer_text", title=msg("prompt or answer text, never stored"), kind="none", target=""),
    FieldChoice(code="start_time", title=msg("start of the request"), kind="text", target="start_time"),
    FieldChoice(code="end_time", title=msg("end of the request"), kind="text", target="end_time"),
)
"""Every meaning, in the order a page offers them."""

FIELDS: Mapping[str, FieldChoice] = MappingProxyType({choice.code: choice for choice in FIELD_CHOICES})


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


def _default_statistic(choice: FieldChoice) -> str | None:
    return "mean" if choice.has_statistic else None
