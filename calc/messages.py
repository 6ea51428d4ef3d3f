"""Sentences that travel with results: a msgid and its numbers, turned into text only where they are shown.

`calc`, `data` and `probe` speak through :func:`msg`; the English msgid is the catalogue key, and numbers keep
their base unit until a display spec in the msgid says how to print them: ``"{over_bytes:gib} over the limit"``.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from calc.units import GB, GIB, MILLI, TERA

Translate: TypeAlias = Callable[[str], str]


_WHOLE_MS = 100
"""From here on a tenth of a millisecond says nothing."""


_WHOLE_TFLOPS = 10
"""Below it, a CPU or one layer, the first digits after the point are all there is."""
_WHOLE_PERCENT = 100
"""From here on a tenth of a per cent says nothing."""


def _gib(value: float) -> str:
    return f"{value / GIB:,.1f} GiB"


def _ms(value: float) -> str:
    ms = value / MILLI
    return f"{ms:,.0f} ms" if ms >= _WHOLE_MS else f"{ms:,.1f} ms"


def _tflops(value: float) -> str:
    tflops = value / TERA
    return f"{tflops:,.0f} TFLOP/s" if tflops >= _WHOLE_TFLOPS else f"{tflops:.3g} TFLOP/s"


def _percent(value: float) -> str:
    percent = value * 100
    return f"{percent:,.0f} %" if abs(percent) >= _WHOLE_PERCENT else f"{percent:.3g} %"


DISPLAY: Mapping[str, Callable[[float], str | Message]] = MappingProxyType(
    {
        "gib": _gib,
        "gbps": lambda v: f"{v / GB:,.1f} GB/s",
        "tflops": _tflops,
        "ms": _ms,
        "s": lambda v: f"{v:,.2f} s",
        "pct": _percent,
        "count": lambda v: f"{v:,.0f}",
        "tok": lambda v: msg("{number:,.0f} tokens", number=v),
        "rate": lambda v: msg("{number:,.2f} requests/s", number=v),
        "toks": lambda v: msg("{number:,.0f} tokens/s", number=v),
    }
)
"""Display specs for numbers inside a sentence; inputs are bytes, bytes/s, FLOP/s, seconds, shares or counts.
Units that are words are messages, because other languages have other words."""


def _same(text: str) -> str:
    return text


def display(spec: str, value: float, translate: Translate = _same) -> str:
    """``value`` in its base unit as ``spec`` prints it, its unit in the language of ``translate``."""
    shown = DISPLAY[spec](value)
    return shown.text(translate) if isinstance(shown, Message) else shown


MAX_SHOWN_CHARACTERS = 240
"""Of one value in a sentence: a name or a number of thousands of characters must not drown what is wrong with it."""


class _Formatter(string.Formatter):
    def __init__(self, translate: Translate) -> None:
        self._translate = translate

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, Message):
            return value.text(self._translate)
        if format_spec in DISPLAY:
            return display(format_spec, value, self._translate)
        shown = str(super().format_field(value, format_spec))
        return shown if len(shown) <= MAX_SHOWN_CHARACTERS else shown[: MAX_SHOWN_CHARACTERS - 1] + "…"


@dataclass(frozen=True)
class Message:
    """One sentence for a user: English template and the numbers in it."""

    msgid: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def text(self, translate: Translate = _same) -> str:
        """The sentence in the language of ``translate`` (gettext), numbers formatted."""
        return _Formatter(translate).vformat(translate(self.msgid), (), self.params)

    def __str__(self) -> str:
        return self.text()


def msg(msgid: str, /, **params: Any) -> Message:
    """A sentence for a user. The literal ``msgid`` is extracted for translation."""
    return Message(msgid, params)
