"""A calibration as a scenario carries it: by how much costs differ from the assumed ones, and where that was measured.

Nothing here knows how it was fitted; it is small enough for a link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from calc.errors import InputError
from calc.messages import Message, msg

UNCALIBRATED = "uncalibrated"
"""The name every prediction carries that rests on generic constants."""
MOST_TIMES = 1000.0
"""Largest factor a scenario may carry, either way: the network cost alone spans that much."""
MOST_STEPS = 1000.0


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Costs as multiples of those assumed without measurements (1 = as assumed), all of one kind moved together."""

    memory: float = 1.0
    """Reading weights, KV cache and activations: 1 / share of bandwidth reached."""
    compute: float = 1.0
    """Matrix products and prefill attention: 1 / share of peak FLOP/s reached."""
    link: float = 1.0
    """Collectives between GPUs, latency and transfer."""
    step: float = 1.0
    """Launches of a step's kernels and the engine's own code, once per step."""
    sequence: float = 1.0
    """Per running sequence and step: sampling, detokenising, scheduling."""
    request: float = 1.0
    """Once per admitted request."""
    network: float = 1.0
    """Client, HTTP and tokeniser, once per request."""
    first_token_steps: float = 0.0
    """Mean steps by which a stream starts later than simulated; gaps between its tokens stay.

    Warm vLLM 0.15 over HTTP shows 2.77 steps in all (n = 50); engines with deeper pipelines show more.
    """

    def __post_init__(self) -> None:
        for name, value in self.times().items():
            if not (math.isfinite(value) and 1 / MOST_TIMES <= value <= MOST_TIMES):
                raise InputError(
                    msg(
                        "calibration factor {name} must be between {least:.3g} and {most:.3g}, got {value}: fit again.",
                        name=name,
                        least=1 / MOST_TIMES,
                        most=MOST_TIMES,
                        value=value,
                    )
                )
        if not (math.isfinite(self.first_token_steps) and abs(self.first_token_steps) <= MOST_STEPS):
            raise InputError(
                msg(
                    "first-token steps of a calibration must be at most {most:.3g}, got {value}: fit again.",
                    most=MOST_STEPS,
                    value=self.first_token_steps,
                )
            )

    def times(self) -> dict[str, float]:
        """The multiples by name, without the steps of the first token."""
        return {code: getattr(self, code) for code in CODES if code != "first_token_steps"}


CODES = tuple(one.name for one in fields(Factors))
"""Codes of all factors, in the order in which they are told."""

MEANINGS: Mapping[str, Message] = {
    "memory": msg("reading memory"),
    "compute": msg("computing"),
    "link": msg("exchange between GPUs"),
    "step": msg("engine and launches, per step"),
    "sequence": msg("engine, per sequence and step"),
    "request": msg("engine, per request"),
    "network": msg("client, HTTP and tokeniser"),
    "first_token_steps": msg("delay of the first token"),
}
"""Each factor in words."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What was measured: a calibration says most about exactly this."""

    model: str
    gpu: str
    """Catalogue id."""
    engine: str
    engine_version: str
    weight_dtype: str
    kv_dtype: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: bool = False


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Factors with their origin."""

    source: str
    """File, tool or person the measurements are from."""
    date: str
    """ISO day of the measurements, or of the fit where they have none."""
    points: int
    """Measured load points behind it."""
    scope: Scope
    factors: Factors = field(default_factory=Factors)
    not_identified: tuple[str, ...] = ()
    """Factors that the points could not tell; they stayed near what is assumed."""

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise InputError(msg("a calibration needs a source: name the file or the person it is from."))
        if self.points < 1:
            raise InputError(msg("a calibration needs at least one measured point, got {value}.", value=self.points))

    @property
    def name(self) -> str:
        """How predictions name it: source and day."""
        return f"{self.source}, {self.date}" if self.date else self.source
