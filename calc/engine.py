"""What an engine version does unless it is told otherwise. Rows live in ``data/catalogue/engines``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from calc.cache.compressed import BLOCK_TOKENS
from calc.cache.kernel_blocks import kernel_block_tokens
from calc.cache.specs import CacheRules, hybrid_block_tokens
from calc.dtypes import KV_BYTES, is_auto, kv_code
from calc.hardware import Gpu
from calc.model import ATTENTION
from calc.room.fraction import default_fraction
from calc.room.runtime_constants import RuntimeConstants
from calc.units import GIB

if TYPE_CHECKING:
    from calc.deployment import Deployment

LARGE_MEMORY_BYTES = 70 * GIB
"""From here on vLLM takes its large batch defaults, A100 excepted (``engine/arg_utils.py``)."""
NO_SWITCH = (
    "rtx",
    "pcie",
    "h100-nvl",
    "h100 nvl",
    "h200 nvl",
    "h200-nvl",
    "gb10",
    "spark",
    "mi2",
    "mi3",
    "instinct",
    "gaudi",
    "ascend",
)
"""Large GPUs that are not joined by an NVLink switch, by what their names hold."""
FALLBACK_BATCH = (2048, 256)
"""vLLM's values below 70 GiB, for rows that list no class of their own."""


class FractionOf(StrEnum):
    """What the engine's memory fraction multiplies."""

    TOTAL = "total"
    """vLLM: of the device's total memory, weights included."""
    STATIC = "static"
    """SGLang: weights plus pool."""
    FREE = "free"
    """TensorRT-LLM: of what is free after the weights and the profiling peak."""


class TokensMeaning(StrEnum):
    """What the engine's "KV tokens" log line counts."""

    BLOCKS_OVER_GROUPS = "blocks-over-groups"
    CONCURRENCY_TIMES_LENGTH = "concurrency-times-length"


@dataclass(frozen=True, kw_only=True)
class BatchClass:
    """Scheduler defaults of one class of GPU memory."""

    min_memory_bytes: int
    batched_tokens: int
    """0 = the model's maximum length (engines without chunked prefill)."""
    seqs: int
    not_a100: bool = False
    names: tuple[str, ...] = ()
    """If given, only GPUs whose name holds one of these (vLLM 0.8 asked for the name, not the memory)."""


@dataclass(frozen=True, kw_only=True)
class Reserve:
    """What an engine keeps free on GPUs from a memory size on, to derive its default fraction from (SGLang)."""

    min_memory_bytes: int
    base_bytes: int
    per_rank_bytes: int
    """For each GPU of TP × PP."""
    per_token_bytes: int = 0
    """For each token of a prefill chunk, of 2048 at least."""
    decode_graph_seqs: int = 0
    """Largest captured batch below TP 4; 2 MiB are kept for each sequence."""
    decode_graph_seqs_tp4: int = 0
    """The same from TP 4 on."""
    prefill_graphs: bool = False
    """Prefill graphs are kept room for: 8 MiB for each captured size, 1.5 GiB in all with MLA."""
    floor_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Defaults of one engine version; every row has a source and a date."""

    id: str
    """``vllm``, ``sglang`` or ``tensorrt-llm``."""
    version: str
    released: str
    memory_fraction: float
    fraction_of: FractionOf
    block_size_tokens: int
    tokens_meaning: TokensMeaning
    graphs_in_budget: bool
    prefix_caching: bool
    chunked_prefill: bool
    async_scheduling: bool
    source: str
    checked_on: str
    prefill_alone: bool = False
    """Prompts are prefilled in steps of their own while running sequences wait (SGLang without mixed chunks)."""
    reserves_output: bool = False
    """A request starts only when blocks for its whole output are left, so that none is evicted (TensorRT-LLM)."""
    layer_launch_share: float = 1.0
    """Launch latency of a layer's kernels relative to vLLM's: fused kernels are fewer."""
    step_host_factor: float = 1.0
    """Host time between steps relative to vLLM's V1 engine without asynchronous scheduling."""
    host_launch_factor: float = 1.0
    """Host time to launch a kernel outside captured graphs, relative to vLLM's compiled graphs."""
    hopper_narrow_cache_share: float = 1.0
    """Of the bandwidth decode attention reaches on BF16 caches, reached on FP8 ones by Hopper GPUs; MLA apart."""
    weight_bandwidth_gain: float = 1.0
    """Bandwidth its matrix products reach on few rows, relative to vLLM's kernels."""
    chunks_beyond_tokens: int | None = None
    """Chunked prefill switches itself on for models longer than this, though it is off by default (vLLM before 0.8)."""
    state_prefix_caching: bool = False
    """Prefix caching is on by default for models with attention and recurrent layers too."""
    mla_align_tokens: int = 64
    """Blocks of MLA beside recurrent layers are a multiple of this (vLLM)."""
    hybrid_kv: bool = True
    """Local-attention layers keep only their window; False = every layer keeps every token."""
    fraction_by_ranks: tuple[tuple[int, float], ...] = ()
    """(from TP, default fraction), most ranks first; empty = ``memory_fraction`` for every TP (SGLang 0.4)."""
    reserves: tuple[Reserve, ...] = ()
    """If given, the default fraction is 1 − reserve ÷ memory of the GPU's class, largest memory first."""
    runtime: RuntimeConstants
    """What a start takes beside weights and pool."""
    batch_classes: tuple[BatchClass, ...] = ()
    """Largest memory first; the last one has no minimum."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting of a deployment filled in, from the user or from the engine version."""

    memory_fraction: float
    max_model_len_tokens: int
    max_num_batched_tokens: int
    max_num_seqs: int
    block_size_tokens: int
    kv_dtype: str
    kv_bytes_per_element: float
    prefix_caching: bool
    chunked_prefill: bool
    async_scheduling: bool
    hybrid_kv: bool
    in_flight_tokens: int
    """Tokens of local-attention layers the scheduler may hold beyond the window: batch budget × steps in flight."""


def _is_named(gpu: Gpu, *names: str) -> bool:
    return any(name in f"{gpu.id} {gpu.name}".lower() for name in names)


def is_large_class(gpu: Gpu) -> bool:
    """Hopper class and later, judged by memory size: 80 GB cards but Ampere's."""
    return gpu.memory_bytes >= LARGE_MEMORY_BYTES and not _is_named(gpu, "a100", "a800")


def has_nvlink_sharp(gpu: Gpu) -> bool:
    """Collectives run in the NVLink switch: Hopper class and later on a board with one."""
    return is_large_class(gpu) and not _is_named(gpu, *NO_SWITCH)


def batch_defaults(engine: Engine, gpu: Gpu) -> tuple[int, int]:
    """(batched tokens, sequences) of the GPU's memory class; batched tokens 0 = the maximum model length.

    A100 keeps vLLM's small class although its memory is large (pull request 17885).
    """
    for row in engine.batch_classes:
        if _is_in_class(row, gpu):
            return row.batched_tokens, row.seqs
    return FALLBACK_BATCH


def _is_in_class(row: BatchClass, gpu: Gpu) -> bool:
    if row.not_a100 and _is_named(gpu, "a100"):
        return False
    return gpu.memory_bytes >= row.min_memory_bytes and (not row.names or _is_named(gpu, *row.names))


def resolve(deployment: Deployment) -> Settings:
    """Fill in what the user left open; the model's own length and cache dtype, the engine version's defaults."""
    engine, model = deployment.engine, deployment.model
    kv_dtype = model.kv_dtype if is_auto(deployment.kv_dtype) else kv_code(str(deployment.kv_dtype))
    length = deployment.max_model_len_tokens or model.max_position_tokens
    is_long = engine.chunks_beyond_tokens is not None and length > engine.chunks_beyond_tokens
    chunked = _given(deployment.chunked_prefill, engine.chunked_prefill or is_long)
    batched, seqs = _batch(deployment, length, chunked)
    steps = deployment.pp + 1 if engine.async_scheduling else deployment.pp
    caching = _given(deployment.prefix_caching, _default_prefix_caching(deployment))
    return Settings(
        memory_fraction=deployment.memory_fraction or default_fraction(deployment, batched),
        max_model_len_tokens=length,
        max_num_batched_tokens=batched,
        max_num_seqs=seqs,
        block_size_tokens=_block_tokens(deployment, kv_dtype, None if caching else length),
        kv_dtype=kv_dtype,
        kv_bytes_per_element=KV_BYTES[kv_dtype],
        prefix_caching=caching,
        chunked_prefill=chunked,
        async_scheduling=engine.async_scheduling,
        hybrid_kv=_given(deployment.hybrid_kv, engine.hybrid_kv),
        in_flight_tokens=batched * steps,
    )


def _batch(deployment: Deployment, length: int, chunked: bool) -> tuple[int, int]:
    """Token budget and sequence limit. Without chunked prefill a whole prompt must fit the budget."""
    batched, seqs = batch_defaults(deployment.engine, deployment.gpu)
    if not chunked and (batched == 0 or deployment.engine.chunked_prefill):
        batched = max(length, batched)
    batched = max(batched, FALLBACK_BATCH[0])
    batched = deployment.max_num_batched_tokens or batched
    return batched, deployment.max_num_seqs or min(seqs, batched)


def _given(asked: bool | None, default: bool) -> bool:
    return default if asked is None else asked


def _default_prefix_caching(deployment: Deployment) -> bool:
    """Models without attention never share prefixes by default, those with some recurrent layers since a version."""
    engine, groups = deployment.engine, deployment.model.groups
    if all(group.state is None for group in groups):
        return engine.prefix_caching
    return engine.state_prefix_caching and any(group.kind in ATTENTION for group in groups)


def _block_tokens(deployment: Deployment, kv_dtype: str, whole_tokens: int | None) -> int:
    """As asked or as the engine's default; vLLM raises either beside recurrent layers, and gives a sequence of a model
    without attention one block of ``whole_tokens`` unless prefixes are shared."""
    engine = deployment.engine
    if any(group.caches for group in deployment.model.groups):
        return BLOCK_TOKENS
    if engine.id != "vllm":
        return deployment.block_size_tokens or engine.block_size_tokens
    if whole_tokens is not None and not any(group.head_dim for group in deployment.model.groups):
        return whole_tokens
    usual = kernel_block_tokens(deployment.model, deployment.gpu, kv_dtype, engine.block_size_tokens)
    block = deployment.block_size_tokens or usual
    rules = CacheRules(kv_dtype=kv_dtype, tp=deployment.tp, block_tokens=block, spec_tokens=deployment.spec_tokens)
    return hybrid_block_tokens(deployment.model, rules, engine.mla_align_tokens)
