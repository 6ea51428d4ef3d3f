"""Model × GPUs × parallel split × engine settings: what is started, before any load."""

from __future__ import annotations

from dataclasses import dataclass, field

from calc.cache.kv import shares_across_stages
from calc.engine import Engine
from calc.errors import ImpossibleDeployment
from calc.hardware import Gpu
from calc.messages import msg
from calc.model import LayerGroup, ModelSpec
from calc.serving import Serving
from calc.startup.measured import MeasuredMemory

MAX_GPUS = 4096
"""Most GPUs of one deployment accepted here."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """``gpu_count`` = tp · pp · dp · (replicas + prefill replicas). ``None`` = the engine version's own default."""

    model: ModelSpec
    gpu: Gpu
    engine: Engine
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: bool = False
    replicas: int = 1
    memory_fraction: float | None = None
    max_model_len_tokens: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size_tokens: int | None = None
    kv_dtype: str | None = None
    weight_dtype: str | None = None
    """``None`` = as the checkpoint stores them."""
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    kv_pool_bytes_per_gpu: int | None = None
    """If given, replaces the estimated pool."""
    kv_tokens: int | None = None
    """If given, the pool of one replica in tokens, as the engine logged it."""
    measured_memory: MeasuredMemory | None = None
    """A start-up log that stands in for the estimate wherever it matches this deployment."""
    spec_method: str | None = None
    """Speculative decoding, as the engine names it (``mtp``, ``ngram``, ``eagle3`` …); ``None`` = off."""
    spec_tokens: int = 0
    """Tokens speculated per step."""
    hybrid_kv: bool | None = None
    """``False`` = local-attention layers keep every token too (vLLM ``--disable-hybrid-kv-cache-manager``)."""
    serving: Serving = field(default_factory=Serving)
    """Offload tiers, speculation, split prefill, routing, batching."""
    other_args: str = ""
    """Engine arguments that change nothing counted here, as JSON: kept, so that a saved scenario names them too."""

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_split()
        self._check_heads()
        self._check_settings()

    def _check_sizes(self) -> None:
        for name, value in (("TP", self.tp), ("PP", self.pp), ("DP", self.dp), ("replicas", self.replicas)):
            if not 1 <= value <= MAX_GPUS:
                raise ImpossibleDeployment(
                    msg(
                        "{name} must be between 1 and {limit:count}, got {value}: correct it.",
                        name=name,
                        limit=MAX_GPUS,
                        value=value,
                    )
                )
        if self.gpu_count > MAX_GPUS:
            raise ImpossibleDeployment(
                msg(
                    "{count:count} GPUs are more than the {limit:count} this tool plans for: use fewer.",
                    count=self.gpu_count,
                    limit=MAX_GPUS,
                )
            )

    def _check_split(self) -> None:
        if self.model.heads % self.tp:
            raise ImpossibleDeployment(
                msg(
                    "TP {tp} does not divide the {heads} attention heads of {model}: choose TP from {choices}.",
                    tp=self.tp,
                    heads=self.model.heads,
                    model=self.model.name,
                    choices=", ".join(str(n) for n in divisors(self.model.heads)),
                )
            )
        if self.pp > self.model.layers:
            raise ImpossibleDeployment(
                msg(
                    "PP {pp} is more than the {layers} layers of {model}: use fewer stages.",
                    pp=self.pp,
                    layers=self.model.layers,
                    model=self.model.name,
                )
            )
        if self.pp > 1 and shares_across_stages(self.model, self.pp):
            raise ImpossibleDeployment(
                msg(
                    "PP {pp} puts layers of {model} apart from the layers whose cache they read: use fewer stages.",
                    pp=self.pp,
                    model=self.model.name,
                )
            )

    def _check_heads(self) -> None:
        """Engines give each rank whole heads: KV heads are divided or copied evenly, recurrent ones divided."""
        uneven = next((g for g in self.model.groups if not heads_fit(g, self.tp)), None)
        if uneven is None:
            return
        state = uneven.state if uneven.state is not None and uneven.state.heads % self.tp else None
        raise ImpossibleDeployment(
            msg(
                "TP {tp} does not fit the {heads} {kind} heads of {model}: choose TP from {choices}.",
                tp=self.tp,
                heads=uneven.kv_heads if state is None else state.heads,
                kind=msg("KV") if state is None else msg("recurrent"),
                model=self.model.name,
                choices=", ".join(
                    str(n) for n in divisors(self.model.heads) if all(heads_fit(g, n) for g in self.model.groups)
                ),
            )
        )

    def _check_settings(self) -> None:
        if self.memory_fraction is not None and not 0 < self.memory_fraction <= 1:
            raise ImpossibleDeployment(
                msg(
                    "memory fraction must be above 0 and at most 1, got {value}: 0.9 is usual.",
                    value=self.memory_fraction,
                )
            )
        for name, number in (
            ("max model length", self.max_model_len_tokens),
            ("max batched tokens", self.max_num_batched_tokens),
            ("max sequences", self.max_num_seqs),
            ("block size", self.block_size_tokens),
            ("KV tokens", self.kv_tokens),
        ):
            if number is not None and number < 1:
                raise ImpossibleDeployment(
                    msg("{name} must be at least 1, got {value}: correct it.", name=name, value=number)
                )

    @property
    def gpus_per_replica(self) -> int:
        """GPUs one engine replica occupies."""
        return self.tp * self.pp * self.dp

    @property
    def gpu_count(self) -> int:
        """GPUs of the whole deployment, prefill replicas included."""
        return self.gpus_per_replica * (self.replicas + self.serving.prefill_replicas)


def heads_fit(group: LayerGroup, tp: int) -> bool:
    """Whether ``tp`` ranks divide the KV heads of a layer, or hold them in whole copies, and divide its state."""
    if group.state is not None and group.state.heads % tp:
        return False
    return not group.kv_heads or group.kv_heads % tp == 0 or tp % group.kv_heads == 0


def divisors(number: int, limit: int = 64) -> list[int]:
    """Divisors of ``number`` up to ``limit``: the TP sizes that split its heads evenly."""
    return [n for n in range(1, min(number, limit) + 1) if number % n == 0]
