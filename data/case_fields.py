"""A JSON object read field by field: a wrong type is one sentence naming the field, an unknown key is told."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from calc.errors import InputError
from calc.messages import Message, msg

LEAST_SHARE = 1e-9
"""Of its upper limit, the least a positive number may be; smaller ones make times of nothing or of for ever."""
MAX_TEXT_CHARACTERS = 500
"""Of a name or code: what a page and the sheet can still show."""
FIRST_SURROGATE, LAST_SURROGATE = "\ud800", "\udfff"
_DIGITS = (3, 6, 9, 12, 15)
_SHOWN_CHARACTERS = 40
"""How much of a wrong value an error repeats."""


def shown(value: Any) -> str:
    """``value`` as an error repeats it: short, and never a whole document."""
    try:
        text = repr(value)
    except RecursionError:
        return "…"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def as_object(value: Any, name: str) -> Mapping[str, Any]:
    """``value`` as a JSON object, or an :class:`InputError` naming it."""
    if not isinstance(value, Mapping):
        raise InputError(
            msg("{name} must be a JSON object, got {value}: put it in braces.", name=name, value=shown(value))
        )
    return value


def as_list(value: Any, name: str, most: int | None = None) -> Sequence[Any]:
    """``value`` as a JSON list of at most ``most`` entries, or an :class:`InputError` naming it."""
    if not isinstance(value, list | tuple):
        raise InputError(msg("{name} must be a list, got {value}: put it in brackets.", name=name, value=shown(value)))
    if most is not None and len(value) > most:
        raise InputError(
            msg(
                "{name} must have at most {limit:count} entries, got {number:count}: take a part of them.",
                name=name,
                limit=most,
                number=len(value),
            )
        )
    return value


def as_number(value: Any, name: str) -> float:
    """``value`` as a finite number; text, true/false, NaN and infinity are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise InputError(
            msg(
                "{name} must be a number, got {value}: write it without quotes or units.", name=name, value=shown(value)
            )
        )
    return float(value)


def as_whole(value: Any, name: str) -> int:
    """``value`` as a whole number; 8.0 counts as 8."""
    if as_number(value, name) % 1:
        raise InputError(msg("{name} must be a whole number, got {value}: correct it.", name=name, value=shown(value)))
    return int(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def scaled(value: float, divisor: float) -> float:
    """``value`` / ``divisor`` with the fewest decimals that multiply back to ``value``."""
    exact = value / divisor
    return next((short for digits in _DIGITS if (short := round(exact, digits)) * divisor == value), exact)


def unscaled(value: float, factor: float) -> float:
    """``value`` · ``factor`` with the fewest decimals that divide back to ``value``, e.g. seconds as milliseconds."""
    exact = value * factor
    return next((short for digits in _DIGITS if (short := round(exact, digits)) / factor == value), exact)


def plain_json(value: Any) -> Any:
    """``value`` with null for NaN and infinities, which JSON has not; real config.json files hold some."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def is_writable(text: str) -> bool:
    """Whether UTF-8 can hold it: JSON can name half a character (a lone surrogate), which no file or screen can."""
    return not any(FIRST_SURROGATE <= character <= LAST_SURROGATE for character in text)


class Fields:
    """One JSON object. A field that is absent or null reads as ``None``."""

    def __init__(self, value: Any, name: str = "") -> None:
        self._values = as_object(value, name or "a case")
        self._name = name
        self._asked: set[str] = set()
        self._children: list[Fields] = []

    def name_of(self, key: str) -> str:
        """The field as an error names it, e.g. ``workload.arrivals.cv``."""
        return f"{self._name}.{key}" if self._name else key

    def raw(self, key: str) -> Any:
        """The field as it came."""
        self._asked.add(key)
        return self._values.get(key)

    def number(self, key: str) -> float | None:
        """A finite number."""
        value = self.raw(key)
        return None if value is None else as_number(value, self.name_of(key))

    def positive(self, key: str, limit: float) -> float | None:
        """A number above 0 and at most ``limit``; one in a thousand million of ``limit`` counts as none."""
        value = self.number(key)
        if value is not None and not limit * LEAST_SHARE <= value <= limit:
            raise InputError(
                msg(
                    "{name} must be between {least:,g} and {limit:,g}, got {value:,g}: check its unit.",
                    name=self.name_of(key),
                    least=limit * LEAST_SHARE,
                    limit=limit,
                    value=value,
                )
            )
        return value

    def whole(self, key: str) -> int | None:
        """A whole number."""
        value = self.raw(key)
        return None if value is None else as_whole(value, self.name_of(key))

    def count(self, key: str, limit: int) -> int | None:
        """A whole number from 1 to ``limit``."""
        value = self.whole(key)
        if value is not None and not 1 <= value <= limit:
            raise InputError(
                msg(
                    "{name} must be between 1 and {limit:count}, got {value}: correct it.",
                    name=self.name_of(key),
                    limit=limit,
                    value=shown(value),
                )
            )
        return value

    def text(self, key: str) -> str | None:
        """A text."""
        value = self.raw(key)
        if value is not None and not isinstance(value, str):
            raise InputError(
                msg("{name} must be text, got {value}: put it in quotes.", name=self.name_of(key), value=shown(value))
            )
        if value is not None:
            self._check_text(key, value)
        return value

    def _check_text(self, key: str, text: str) -> None:
        if len(text) > MAX_TEXT_CHARACTERS:
            raise InputError(
                msg(
                    "{name} must be at most {limit:count} characters long, got {number:count}: shorten it.",
                    name=self.name_of(key),
                    limit=MAX_TEXT_CHARACTERS,
                    number=len(text),
                )
            )
        if not is_writable(text):
            raise InputError(
                msg(
                    "{name} holds a broken character ({value}): type it again.",
                    name=self.name_of(key),
                    value=shown(text),
                )
            )

    def flag(self, key: str) -> bool | None:
        """True or false; 1 and "yes" are refused."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            raise InputError(
                msg(
                    "{name} must be true or false, got {value}: correct it.", name=self.name_of(key), value=shown(value)
                )
            )
        return value

    def child(self, key: str) -> Fields | None:
        """A JSON object inside this one."""
        value = self.raw(key)
        if value is None:
            return None
        self._children.append(Fields(value, self.name_of(key)))
        return self._children[-1]

    def children(self, key: str, most: int) -> tuple[Fields, ...]:
        """A list of at most ``most`` JSON objects inside this one; empty where it is absent."""
        value = self.raw(key)
        if value is None:
            return ()
        name = self.name_of(key)
        inside = [Fields(one, f"{name}[{place}]") for place, one in enumerate(as_list(value, name, most))]
        self._children.extend(inside)
        return tuple(inside)

    def share(self, key: str) -> float | None:
        """A number from 0 to 1."""
        value = self.number(key)
        if value is not None and not 0 <= value <= 1:
            raise InputError(
                msg(
                    "{name} must be a share between 0 and 1, got {value:,g}: 0.3 means three in ten.",
                    name=self.name_of(key),
                    value=value,
                )
            )
        return value

    def within(self, key: str, most: float) -> float | None:
        """A number from 0 to ``most``."""
        value = self.number(key)
        if value is not None and not 0 <= value <= most:
            raise InputError(
                msg(
                    "{name} must be between 0 and {limit:,g}, got {value:,g}: correct it.",
                    name=self.name_of(key),
                    limit=most,
                    value=value,
                )
            )
        return value

    def whole_within(self, key: str, most: int, least: int = 0) -> int | None:
        """A whole number from ``least`` to ``most``."""
        value = self.whole(key)
        if value is not None and not least <= value <= most:
            raise InputError(
                msg(
                    "{name} must be a whole number from {least} to {limit:count}, got {value}: correct it.",
                    name=self.name_of(key),
                    least=least,
                    limit=most,
                    value=shown(value),
                )
            )
        return value

    def choice(self, key: str, choices: Collection[str], usual: str) -> str:
        """One of the texts in ``choices``; ``usual`` where it is absent."""
        return usual if self.raw(key) is None else self.one_of(key, choices)

    def needed(self, key: str) -> Any:
        """The field as it came; an :class:`InputError` when it is absent."""
        value = self.raw(key)
        if value is None:
            raise InputError(msg("{name} is missing: add it.", name=self.name_of(key)))
        return value

    def needed_child(self, key: str) -> Fields:
        """A JSON object inside this one that must be there."""
        self.needed(key)
        child = self.child(key)
        assert child is not None  # needed() has seen it
        return child

    def needed_text(self, key: str) -> str:
        """A text that must be there."""
        self.needed(key)
        return self.text(key) or ""

    def needed_number(self, key: str) -> float:
        """A finite number that must be there."""
        return as_number(self.needed(key), self.name_of(key))

    def needed_whole(self, key: str) -> int:
        """A whole number that must be there."""
        return as_whole(self.needed(key), self.name_of(key))

    def one_of(self, key: str, choices: Collection[str]) -> str:
        """One of the texts in ``choices``; it must be there."""
        value = self.needed(key)
        if not isinstance(value, str) or value not in choices:
            raise InputError(
                msg(
                    "{name} must be one of {choices}, got {value}: choose one.",
                    name=self.name_of(key),
                    choices=", ".join(choices),
                    value=shown(value),
                )
            )
        return value

    def unknown(self) -> tuple[Message, ...]:
        """One note for each key nobody asked for, here and in the objects inside."""
        own = [
            msg("The field {name} is not known here and was not used.", name=self.name_of(str(key)))
            for key in self._values
            if key not in self._asked
        ]
        return tuple(own) + tuple(note for child in self._children for note in child.unknown())
