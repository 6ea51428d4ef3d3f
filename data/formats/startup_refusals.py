"""Why an engine refused to start, in its own words and in ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from calc.messages import Message, msg
from calc.startup.log import Refusal
from calc.units import GIB, MIB
from data.formats.redact import redact

WINDOW = 500
MAX_REFUSALS = 64
"""Places of one kind looked at; ranks and tracebacks repeat them."""
_N = r"(\d[\d,]{0,15}(?:\.\d{1,6})?)"
_NOT_FREE = re.compile(r"(?: [\w:]{1,20})? \(" + _N + "/" + _N + r" GiB\)[^\n]{0,60}?is less than desired")
_NEEDED = re.compile(
    r"[^(\n]{0,60}\(" + _N + r"\), \(?" + _N + r" GiB KV cache is needed[^(\n]{0,90}\(" + _N + r" GiB\)"
)
_STORED = re.compile(_N + r"\) is larger than the maximum number of tokens that can be stored in KV cache \(" + _N)
_ALLOCATE = re.compile(r"[^\n]{0,60}?Tried to allocate " + _N + r" ([MG])iB")


@dataclass(frozen=True, kw_only=True)
class FoundRefusal:
    """One refusal at one place."""

    kind: str
    text: Message
    words: str
    position: int

    def refusal(self, line_number: int) -> Refusal:
        """As part of the log."""
        return Refusal(kind=self.kind, text=self.text, line=self.words, line_number=line_number)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _no_room(_window: str) -> tuple[Message, str] | None:
    return msg("The engine refused to start: weights and runtime left no memory for the KV cache."), ""


def _not_free(window: str) -> tuple[Message, str] | None:
    found = _NOT_FREE.match(window)
    return found and (
        msg(
            "The engine refused to start: {free:gib} of {total:gib} were free, less than its memory fraction asks for.",
            free=_number(found[1]) * GIB,
            total=_number(found[2]) * GIB,
        ),
        found[0],
    )


def _needed(window: str) -> tuple[Message, str] | None:
    found = _NEEDED.match(window)
    return found and (
        msg(
            "The engine refused to start: one request of {length:tok} needs {needed:gib} of KV cache, {free:gib} "
            "were left.",
            length=_number(found[1]),
            needed=_number(found[2]) * GIB,
            free=_number(found[3]) * GIB,
        ),
        found[0],
    )


def _stored(window: str) -> tuple[Message, str] | None:
    found = _STORED.match(window)
    return found and (
        msg(
            "The engine refused to start: its length of {length:tok} is longer than the {stored:tok} its KV cache "
            "holds.",
            length=_number(found[1]),
            stored=_number(found[2]),
        ),
        found[0],
    )


def _out_of_memory(window: str) -> tuple[Message, str] | None:
    found = _ALLOCATE.match(window)
    if found is None:
        return msg("A GPU ran out of memory while the engine started."), ""
    size = _number(found[1]) * (GIB if found[2] == "G" else MIB)
    return msg("A GPU ran out of memory while the engine started: {size:gib} more were asked for.", size=size), found[0]


_READ = {
    "No available memory for the cache blocks": ("no_room", _no_room),
    "Not enough memory. Please try to increase --mem-fraction-static": ("no_room", _no_room),
    "Free memory on device": ("not_free", _not_free),
    "To serve at least one request": ("too_long", _needed),
    "The model's max seq len (": ("too_long", _stored),
    "CUDA out of memory": ("out_of_memory", _out_of_memory),
}
REFUSED = tuple(_READ)
"""Words a refusal begins with."""


def refusals_in(text: str) -> Iterator[FoundRefusal]:
    """Refusals, one of each kind and wording: its first place."""
    told = set()
    for words, (kind, read) in _READ.items():
        position = -1
        for _ in range(MAX_REFUSALS):
            position = text.find(words, position + 1)
            if position < 0:
                break
            found = read(text[position + len(words) : position + len(words) + WINDOW])
            if found and str(found[0]) not in told:
                told.add(str(found[0]))
                yield FoundRefusal(kind=kind, text=found[0], words=redact(words + found[1]), position=position)
