"""What an engine said about its memory while it started: every figure with the words it was read from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from calc.messages import Message

T = TypeVar("T", float, str, bool)


@dataclass(frozen=True, kw_only=True)
class Seen(Generic[T]):
    """One figure of a log. Over ranks the one that binds is ``value``; the least and the most are kept beside it."""

    value: T
    line: str
    """The words it was read from and nothing else of the line, secrets removed."""
    line_number: int
    low: T
    high: T
    times: int = 1
    """How many lines said it, usually one a rank."""

    @property
    def differs(self) -> bool:
        """True when ranks said different things."""
        return self.low != self.high


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why the engine did not start."""

    kind: str
    """``no_room``, ``too_long``, ``not_free`` or ``out_of_memory``."""
    text: Message
    line: str
    line_number: int


@dataclass(frozen=True, kw_only=True)
class StartupLog:
    """One start of an engine; ``None`` = the log does not say. Bytes are those of one GPU."""

    engine: str
    starts: int = 1
    """Starts in the text; the last one is read."""
    lines: int = 0
    tells_settings: bool = False
    """True when the engine listed its arguments: what is not listed was left at the version's default."""
    version: Seen[str] | None = None
    model: Seen[str] | None = None
    gpu_memory_bytes: Seen[float] | None = None
    budget_bytes: Seen[float] | None = None
    memory_fraction: Seen[float] | None = None
    max_model_len_tokens: Seen[float] | None = None
    tp: Seen[float] | None = None
    pp: Seen[float] | None = None
    dp: Seen[float] | None = None
    ep: Seen[bool] | None = None
    dtype: Seen[str] | None = None
    quantization: Seen[str] | None = None
    kv_dtype: Seen[str] | None = None
    max_num_batched_tokens: Seen[float] | None = None
    max_num_seqs: Seen[float] | None = None
    block_size_tokens: Seen[float] | None = None
    padding_layers: Seen[float] | None = None
    prefix_caching: Seen[bool] | None = None
    eager: Seen[bool] | None = None
    spec_method: Seen[str] | None = None
    weights_bytes: Seen[float] | None = None
    consumed_bytes: Seen[float] | None = None
    """Weights and memory outside the tensor allocator together, where the engine logs only their sum."""
    activation_bytes: Seen[float] | None = None
    non_torch_bytes: Seen[float] | None = None
    graph_bytes: Seen[float] | None = None
    """What the captured graphs took."""
    graph_estimate_bytes: Seen[float] | None = None
    """What the engine set aside for graphs before it captured them."""
    graphs_in_budget: Seen[bool] | None = None
    kv_pool_bytes: Seen[float] | None = None
    num_blocks: Seen[float] | None = None
    kv_tokens: Seen[float] | None = None
    max_concurrency: Seen[float] | None = None
    concurrency_tokens: Seen[float] | None = None
    """The length ``max_concurrency`` was counted for."""
    free_bytes: Seen[float] | None = None
    """Free on the device when the start was over, or at its beginning where it was refused."""
    refusals: tuple[Refusal, ...] = ()

    def seen(self) -> dict[str, Seen[float] | Seen[str] | Seen[bool]]:
        """Every figure the log states, by field name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Seen)}


def number(seen: Seen[float] | None) -> float | None:
    """The figure that binds."""
    return None if seen is None else seen.value


def whole(seen: Seen[float] | None) -> int | None:
    """The figure that binds, as a whole number."""
    return None if seen is None else round(seen.value)
