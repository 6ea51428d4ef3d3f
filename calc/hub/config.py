"""Reading a Hub ``config.json``: typed, bounded access to its fields; what is not usable is named in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import InputError
from calc.messages import msg

MAX_SIZE = 100_000_000
"""Largest width, count or vocabulary accepted: far above any published model (largest vocabulary 262,208)."""
MAX_POSITIONS = 1_000_000_000
"""Longest context accepted; the longest published is 10,485,760."""
MAX_LAYERS = 1_000
"""Most layers accepted; the deepest published decoder has 126."""
MAX_HEADS = 100_000
"""Most attention heads accepted."""
MAX_EXPERTS = 10_000
"""Most experts accepted; the largest published count is 896."""
TEXT_PARTS = ("text_config", "llm_config", "language_config")
"""Where multimodal configs keep the language model."""
THINKER_PART = "thinker_config"
"""Where models that also speak (Qwen Omni) keep the part that reads and writes text."""


@dataclass(frozen=True)
class Fields:
    """The language part of a config, with the outer part behind it for what the inner one leaves out."""

    inner: Mapping[str, Any]
    outer: Mapping[str, Any]

    @property
    def is_multimodal(self) -> bool:
        """True when the language model is one part of a larger checkpoint."""
        return self.inner is not self.outer

    def renamed(self, aliases: Mapping[str, str]) -> Fields:
        """The same fields, those under a family's own names also under the usual ones; usual names present win."""
        found = {usual: self._dotted(own) for own, usual in aliases.items() if self.raw(usual) is None}
        known = {usual: value for usual, value in found.items() if value is not None}
        if not known:
            return self
        inner = {**self.inner, **known}
        return Fields(inner, self.outer if self.is_multimodal else inner)

    def _dotted(self, name: str) -> Any:
        part, _, rest = name.partition(".")
        return self.mapping(part).get(rest) if rest else self.raw(part)

    def raw(self, *names: str) -> Any:
        """First value present and not null under ``names``, inner part first."""
        for part in (self.inner, self.outer):
            for name in names:
                if part.get(name) is not None:
                    return part[name]
        return None

    def integer(self, *names: str, default: int | None = None, low: int = 1, high: int = MAX_SIZE) -> int:
        """A whole number in ``low … high`` under one of ``names``; missing without default is an error."""
        value = self.raw(*names)
        if value is None:
            if default is None:
                raise InputError(
                    msg("the config has no {name}: add it, or use the model's full config.json.", name=names[0])
                )
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(
                msg("{name} must be a whole number, got {value!r}: correct the config.", name=names[0], value=value)
            )
        if value != int(value) or not low <= value <= high:
            raise InputError(
                msg(
                    "{name} must be a whole number from {low:count} to {high:count}, got {value}: correct the config.",
                    name=names[0],
                    low=low,
                    high=high,
                    value=value,
                )
            )
        return int(value)

    def optional(self, *names: str, high: int = MAX_SIZE) -> int | None:
        """Like :meth:`integer`, ``None`` when absent, null or 0."""
        value = self.raw(*names)
        return self.integer(*names, low=0, high=high) or None if value is not None else None

    def flag(self, *names: str, default: bool) -> bool:
        """A true/false field."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            raise InputError(
                msg("{name} must be true or false, got {value!r}: correct the config.", name=names[0], value=value)
            )
        return bool(value)

    def text(self, *names: str) -> str:
        """A string field, "" when absent."""
        value = self.raw(*names)
        return value if isinstance(value, str) else ""

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """A nested object, empty when absent."""
        value = self.raw(*names)
        return value if isinstance(value, Mapping) else {}

    def listing(self, name: str, length: int) -> Sequence[Any] | None:
        """A per-layer list of exactly ``length`` entries, ``None`` when absent or empty."""
        value = self.raw(name)
        if value is None or (isinstance(value, Sequence) and not value):
            return None
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) < length:
            raise InputError(
                msg("{name} must be a list with one entry per layer ({length}): correct it.", name=name, length=length)
            )
        return value[:length]


def read_fields(config: Mapping[str, Any]) -> Fields:
    """Fields of ``config``, whose language part may be nested (multimodal checkpoints)."""
    if not isinstance(config, Mapping) or not config:
        raise InputError(msg("the model config must be a JSON object like a Hub config.json: paste the whole file."))
    thinker = config.get(THINKER_PART)
    if isinstance(thinker, Mapping):
        config = {**config, **thinker, "architectures": config.get("architectures")}
    for name in TEXT_PARTS:
        part = config.get(name)
        if isinstance(part, Mapping) and part:
            return Fields(part, config)
    return Fields(config, config)
