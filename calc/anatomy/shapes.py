"""Shapes that a plain rate may hide: how the rate of public traces jumps between calm and rush."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.messages import Message, msg
from calc.workload import Mmpp


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A rate that jumps between states, as it was fitted to a trace; only the ratio of the rates is used."""

    title: Message
    rates_per_s: tuple[float, ...]
    stays_s: tuple[float, ...]
    source: str

    def at(self, rate_per_s: float) -> Mmpp:
        """Arrivals of this shape with another mean rate."""
        fitted = Mmpp(rates_per_s=self.rates_per_s, stays_s=self.stays_s)
        factor = rate_per_s / fitted.rate_per_s
        return Mmpp(rates_per_s=tuple(rate * factor for rate in self.rates_per_s), stays_s=self.stays_s)


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "conversation": Shape(
            title=msg("Conversations, like Azure's of 2023"),
            rates_per_s=(4.62, 7.02),
            stays_s=(117.0, 72.0),
            source="Azure LLM inference trace 2023, conversations: two-state fit (EM) to counts per second of one hour",
        ),
        "code": Shape(
            title=msg("Code completion, like Azure's of 2023"),
            rates_per_s=(0.011, 9.9),
            stays_s=(22.0, 7.6),
            source="Azure LLM inference trace 2023, code: two-state fit (EM) to counts per second of one hour",
        ),
        "kimi": Shape(
            title=msg("Conversations, like Kimi's of 2024"),
            rates_per_s=(2.84, 3.71),
            stays_s=(47.0, 90.0),
            source="Mooncake conversation trace 2024: two-state fit (EM) to counts in 3 s of one hour",
        ),
    }
)
"""Poisson inside each state: the burstiness of these traces is a rate that changes over seconds to minutes."""
