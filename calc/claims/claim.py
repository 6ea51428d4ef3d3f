"""What a headline figure is: what was claimed, under which conditions, and what our models say of the same setup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.deployment import Deployment
from calc.engine import Engine
from calc.evidence import Provenance
from calc.hardware import Gpu
from calc.messages import Message
from calc.model import ModelSpec
from calc.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where the published setups take their models and GPUs from; calculation itself knows no catalogue."""

    model: Callable[[str, str | None], ModelSpec]
    """Hub id and weight dtype (None = as stored) → model."""
    gpu: Callable[[str], Gpu]
    engine: Engine

    def deploy(
        self, model: str, gpu: str, *, tp: int = 1, weights: str | None = None, kv: str | None = None
    ) -> Deployment:
        """One replica of a catalogue model."""
        return Deployment(model=self.model(model, weights), gpu=self.gpu(gpu), engine=self.engine, tp=tp, kv_dtype=kv)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One headline figure; ``claimed``, ``computed`` and ``span`` are ratios, or shares where ``is_share``."""

    code: str
    title: Message
    claimed: tuple[float, float]
    """Lowest and highest figure published; equal where there is one."""
    computed: float
    conditions: Message
    """The setup with its numbers."""
    working: Message
    """How the figure comes about, numbers put in."""
    source: Message
    counter: Message
    """A measurement, or a condition, where it does not hold."""
    span: tuple[float, float] | None = None
    """Lowest and highest over what the source leaves open."""
    assumed: Message | None = None
    """What the source does not state and was chosen here; ``None`` = all stated."""
    recalled: bool = False
    """True: figures remembered from the paper, not read again."""
    is_share: bool = False
    is_most: bool = False
    """Published as "up to"."""
    provenance: str = Provenance.ESTIMATED.value
    tolerance: float = 0.0
    """How far ``computed`` may be from the published range, relative, when nothing is left open."""

    @property
    def agrees(self) -> bool:
        """Whether our figure, or its span over what is left open, meets the published range."""
        low, high = self.span or (self.computed, self.computed)
        return low <= self.claimed[1] * (1 + self.tolerance) and high >= self.claimed[0] * (1 - self.tolerance)


@dataclass(frozen=True, kw_only=True)
class Yours:
    """The same ratio or share on the user's own scenario; ``value`` None = it does not apply."""

    value: float | None
    statement: Message


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A claim and what it would be elsewhere."""

    code: str
    claim: Callable[[Shelf], Claim]
    yours: Callable[[Scenario], Yours]
