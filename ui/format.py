"""Base units to text: bytes, seconds and shares become GiB, ms and % here and nowhere else.

The same number is written in the same way on every page, in charts, tables and the sheet; numbers inside sentences
use the same table (``calc.messages.display``). ``None`` is "not measured", never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from calc.messages import display
from calc.units import KIB, MEGA, MIB
from ui.glossary import UNIT_WORDS
from ui.text import current, t, translator

Formatter: TypeAlias = Callable[[float | None], str]

_WHOLE_MONEY = 1000
"""From here on cents say nothing."""
_WHOLE_BINARY = 10
"""From ten KiB or MiB on a tenth says nothing."""


def missing() -> str:
    """What stands where a figure is not known."""
    return t("not measured")


def _shown(spec: str, value: float | None) -> str:
    return missing() if value is None else display(spec, value, translator(current()))


def gib(value_bytes: float | None) -> str:
    """Memory in GiB, one decimal."""
    return _shown("gib", value_bytes)


def _binary(value: float, prefixed: str) -> str:
    return f"{value:,.0f} {prefixed}" if value >= _WHOLE_BINARY else f"{value:,.3g} {prefixed}"


def mib(value_bytes: float | None) -> str:
    """Memory of one request in MiB."""
    return missing() if value_bytes is None else _binary(value_bytes / MIB, "MiB")


def kib(value_bytes: float | None) -> str:
    """Memory of one token in KiB."""
    return missing() if value_bytes is None else _binary(value_bytes / KIB, "KiB")


def gbps(value_bytes_per_s: float | None) -> str:
    """Bandwidth in GB/s (10^9)."""
    return _shown("gbps", value_bytes_per_s)


def tflops(value_per_s: float | None) -> str:
    """Compute in TFLOP/s (10^12)."""
    return _shown("tflops", value_per_s)


def ms(value_s: float | None) -> str:
    """TTFT, ITL and TPOT, in ms."""
    return _shown("ms", value_s)


def seconds(value_s: float | None) -> str:
    """End-to-end times, in s."""
    return _shown("s", value_s)


def percent(share: float | None) -> str:
    """A share (0-1) in per cent."""
    return _shown("pct", share)


def tokens(number: float | None) -> str:
    """A number of tokens."""
    return _shown("tok", number)


def count(number: float | None) -> str:
    """A whole number of things."""
    return _shown("count", number)


def decimal(number: float | None) -> str:
    """A plain number to three significant digits, such as a mean concurrency."""
    if number is None:
        return missing()
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three digits begin at 100


def rate(per_s: float | None) -> str:
    """Requests per second."""
    return _shown("rate", per_s)


def tokens_rate(per_s: float | None) -> str:
    """Tokens per second."""
    return _shown("toks", per_s)


def money(amount: float | None, currency: str) -> str:
    """An amount of money: cents from 1 up, three significant digits below, none from 1,000 up."""
    if amount is None:
        return missing()
    if abs(amount) >= _WHOLE_MONEY:
        return f"{amount:,.0f} {currency}"
    return f"{amount:.2f} {currency}" if abs(amount) >= 1 or amount == 0 else f"{amount:.3g} {currency}"


UNITS: Mapping[str, Formatter] = MappingProxyType(
    {
        "bytes": gib,
        "s": seconds,
        "share": percent,
        "tokens": tokens,
        "requests": count,
        "count": count,
        "number": decimal,
        "requests/s": rate,
        "tokens/s": tokens_rate,
        "bytes/s": gbps,
        "FLOP/s": tflops,
        "ms": ms,
        "KiB": kib,
        "MiB": mib,
    }
)
"""Unit code of a figure to the way it is written; ``ms``, ``KiB`` and ``MiB`` show seconds and bytes."""


def quantity(value: float | str | bool | None, code: str) -> str:
    """Any figure of the evidence list by its unit code; a unit not in the table is written behind the number."""
    match value:
        case None:
            return missing()
        case bool():
            return t("yes") if value else t("no")
        case str():
            return value
    if code in UNITS:
        return UNITS[code](value)
    return f"{decimal(value)} {unit(code)}".rstrip()


def unit(code: str) -> str:
    """A unit by its code, in the visitor's language where it is a word."""
    return t(UNIT_WORDS[code]) if code in UNIT_WORDS else code


def megahertz(hertz: float | None) -> str:
    """A clock in MHz."""
    return missing() if hertz is None else f"{hertz / MEGA:,.0f} MHz"


def band(low_high_bytes: tuple[float, float]) -> str:
    """From–to in GiB."""
    low, high = low_high_bytes
    return f"{gib(low)} – {gib(high)}"


PERCENT = 100


def percentile_name(share: float) -> str:
    """0.95 → P95."""
    return f"P{share * PERCENT:g}"
