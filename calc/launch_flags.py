"""What each engine calls a setting on its command line, version by version; what it has no name for is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from calc.deployment import Deployment
from calc.dtypes import PLAIN_BYTES, is_auto
from calc.engine import Engine, Settings
from calc.messages import Message, msg
from calc.model import ModelSpec

Version: TypeAlias = tuple[int, ...]
Yaml: TypeAlias = Mapping[str, "str | Mapping[str, str]"]

DTYPE_NAMES = MappingProxyType({"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"})
"""Plain formats as the engines spell them."""
VLLM_KV: Mapping[str, tuple[str, Version]] = MappingProxyType(
    {
        "fp8": ("fp8", (0,)),
        "bf16": ("bfloat16", (0, 11)),
        "nvfp4": ("nvfp4", (0, 20)),
        "int8": ("int8_per_token_head", (0, 32)),
        "fp16": ("float16", (0, 32)),
    }
)
"""Cache format → its name and the version from which it is known (``CacheDType`` in vLLM's config; pull request 40177
for NVFP4; the rest as read in 0.10 and 0.32)."""
SGLANG_KV: Mapping[str, tuple[str, Version]] = MappingProxyType({"fp8": ("fp8_e4m3", (0,)), "bf16": ("bf16", (0, 5))})
"""SGLang's server arguments; its ``fp4_e2m1`` scales otherwise than NVFP4."""
TENSORRT_KV: Mapping[str, tuple[str, Version]] = MappingProxyType({"fp8": ("fp8", (0,)), "nvfp4": ("nvfp4", (1, 0))})
"""``KvCacheConfig.dtype`` of TensorRT-LLM's PyTorch backend."""
VLLM_PARALLEL_SINCE: Version = (0, 8)
"""Data and expert parallelism of the V1 engine."""
VLLM_NO_PREFIX_SINCE: Version = (0, 8)
"""``--no-enable-prefix-caching`` came when caching became the default."""
VLLM_NO_CHUNKED_SINCE: Version = (0, 9)
"""Before it a value followed: ``--enable-chunked-prefill=False``."""
VLLM_ASYNC_SINCE: Version = (0, 10)
VLLM_POOL_BYTES_SINCE: Version = (0, 11)
SGLANG_EP_ALONE_SINCE: Version = (0, 5)
"""Before it ``--enable-ep-moe`` had to be given too."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be started."""

    deployment: Deployment
    settings: Settings
    version: Version
    usual: Engine
    """The version's own defaults."""
    checkpoint: ModelSpec | None
    """The model as its checkpoint stores it, where that is known."""
    pool_tokens: int | None
    """Tokens of one rank's pool where a pool was given, for engines that take no bytes."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one setting adds: words of the command, lines of the options file, remarks."""

    words: tuple[str, ...] = ()
    yaml: Yaml = field(default_factory=dict)
    notes: tuple[Message, ...] = ()


Rule: TypeAlias = Callable[[Asked], Piece]
NOTHING = Piece()


def flag(name: str, value: float | str | None = None) -> Piece:
    """A flag with its value; numbers in at most four significant digits where they are shares."""
    if value is None:
        return Piece(words=(name,))
    return Piece(words=(name, f"{value:.4g}" if isinstance(value, float) else str(value)))


def kv_option(key: str, value: str) -> Piece:
    """A line of TensorRT-LLM's ``kv_cache_config``."""
    return Piece(yaml={"kv_cache_config": {key: value}})


def remark(message: Message) -> Piece:
    """A remark alone."""
    return Piece(notes=(message,))


def joined(*pieces: Piece) -> Piece:
    """Several pieces as one."""
    yaml: dict[str, str | dict[str, str]] = {}
    for piece in pieces:
        for key, value in piece.yaml.items():
            inner = yaml.setdefault(key, {} if isinstance(value, Mapping) else value)
            if isinstance(inner, dict) and isinstance(value, Mapping):
                inner.update(value)
    return Piece(
        words=tuple(word for piece in pieces for word in piece.words),
        yaml=yaml,
        notes=tuple(note for piece in pieces for note in piece.notes),
    )


def lacks(asked: Asked, setting: Message | str) -> Piece:
    """This version cannot be told."""
    engine = asked.deployment.engine
    return remark(
        msg(
            "{engine} {version} has no flag for {setting}: left out, and the estimate does not hold without it.",
            engine=engine.id,
            version=engine.version,
            setting=setting,
        )
    )


def _degrees(names: Mapping[str, str]) -> Rule:
    def rule(asked: Asked) -> Piece:
        degrees = ((name, getattr(asked.deployment, key)) for key, name in names.items())
        return joined(*(flag(name, degree) for name, degree in degrees if degree > 1))

    return rule


def _vllm_ranks(asked: Asked) -> Piece:
    deployment = asked.deployment
    if asked.version < VLLM_PARALLEL_SINCE and (deployment.dp > 1 or deployment.ep):
        return lacks(asked, msg("data or expert parallelism"))
    ranks = flag("--data-parallel-size", deployment.dp) if deployment.dp > 1 else NOTHING
    return joined(ranks, flag("--enable-expert-parallel") if _has_experts(deployment) else NOTHING)


def _has_experts(deployment: Deployment) -> bool:
    return deployment.ep and deployment.model.moe is not None


def _sglang_ranks(asked: Asked) -> Piece:
    """Attention in DP ranks beside experts over all GPUs counts every GPU of the engine as TP."""
    deployment, world = asked.deployment, asked.deployment.tp * asked.deployment.dp
    if not _has_experts(deployment):
        plain = flag("--tp-size", deployment.tp) if deployment.tp > 1 else NOTHING
        return joined(plain, flag("--dp-size", deployment.dp) if deployment.dp > 1 else NOTHING)
    pieces = [flag("--tp-size", world), flag("--ep-size", world)]
    if asked.version < SGLANG_EP_ALONE_SINCE:
        pieces += [flag("--enable-ep-moe"), remark(msg("From 0.5 on --ep-size is enough; --enable-ep-moe is gone."))]
    if deployment.dp > 1:
        pieces += [flag("--dp-size", deployment.dp), flag("--enable-dp-attention")]
        pieces.append(
            remark(msg("With --enable-dp-attention SGLang counts all {world:count} GPUs as TP.", world=world))
        )
    return joined(*pieces)


def _tensorrt_ranks(asked: Asked) -> Piece:
    deployment = asked.deployment
    if deployment.dp == 1:
        tp = flag("--tp_size", deployment.tp) if deployment.tp > 1 else NOTHING
        return joined(tp, flag("--ep_size", deployment.tp) if _has_experts(deployment) else NOTHING)
    if deployment.tp > 1 or not _has_experts(deployment):
        return lacks(asked, msg("data-parallel ranks of this kind (start one server for each rank)"))
    ranks = joined(flag("--tp_size", deployment.dp), flag("--ep_size", deployment.dp))
    return joined(ranks, Piece(yaml={"enable_attention_dp": "true"}))


def _setting(key: str, name: str) -> Rule:
    """A setting in full, whether the user or the version chose it: the estimate rests on it."""
    return lambda asked: flag(name, getattr(asked.settings, key))


def _seqs(name: str, *, only_if_asked: bool = False) -> Rule:
    def rule(asked: Asked) -> Piece:
        left_open = only_if_asked and asked.deployment.max_num_seqs is None
        return NOTHING if left_open else flag(name, asked.settings.max_num_seqs)

    return rule


def _kv_dtype(names: Mapping[str, tuple[str, Version]], write: Callable[[str], Piece]) -> Rule:
    def rule(asked: Asked) -> Piece:
        code = asked.settings.kv_dtype
        if is_auto(asked.deployment.kv_dtype) or code == _auto_kv(asked):
            return NOTHING
        name, since = names.get(code, ("", (0,)))
        if not name:
            return lacks(asked, msg("a KV cache in {dtype}", dtype=code))
        if asked.version < since:
            known = ".".join(map(str, since))
            return lacks(asked, msg("a KV cache in {dtype} (known from {since} on)", dtype=code, since=known))
        return write(name)

    return rule


def _auto_kv(asked: Asked) -> str | None:
    """The cache format the engine takes by itself: that of a plain dtype asked for, else the checkpoint's."""
    wanted = asked.deployment.model.storage.code
    if not is_auto(asked.deployment.weight_dtype) and wanted in PLAIN_BYTES:
        return wanted
    return asked.checkpoint.kv_dtype if asked.checkpoint else None


def _weights(*, in_flight: bool) -> Rule:
    """``in_flight``: FP8 can be made from a plain checkpoint while loading."""

    def rule(asked: Asked) -> Piece:
        wanted = asked.deployment.model.storage.code
        stored = asked.checkpoint.storage.code if asked.checkpoint else None
        if is_auto(asked.deployment.weight_dtype) or wanted == stored:
            return NOTHING
        from_plain = stored is None or stored in PLAIN_BYTES
        if wanted in DTYPE_NAMES and from_plain and in_flight:
            return flag("--dtype", DTYPE_NAMES[wanted])
        if wanted == "fp8" and from_plain and in_flight:
            return flag("--quantization", "fp8")
        return remark(
            msg(
                "Weights in {dtype} need a checkpoint stored so: put its path in place of {model}; no flag makes them.",
                dtype=wanted,
                model=asked.deployment.model.name,
            )
        )

    return rule


def _block(name: str) -> Rule:
    def rule(asked: Asked) -> Piece:
        size = asked.deployment.block_size_tokens
        return NOTHING if size is None else flag(name, size)

    return rule


def _vllm_prefix(asked: Asked) -> Piece:
    wanted = asked.deployment.prefix_caching
    if wanted is None or (wanted is False and asked.version < VLLM_NO_PREFIX_SINCE and not asked.usual.prefix_caching):
        return NOTHING
    return flag("--enable-prefix-caching" if wanted else "--no-enable-prefix-caching")


def _vllm_chunked(asked: Asked) -> Piece:
    wanted = asked.deployment.chunked_prefill
    if wanted is None or wanted:
        return NOTHING if wanted is None else flag("--enable-chunked-prefill")
    if asked.version < VLLM_NO_CHUNKED_SINCE:
        note = msg("From 0.9 on it is spelt --no-enable-chunked-prefill.")
        return Piece(words=("--enable-chunked-prefill=False",), notes=(note,))
    return flag("--no-enable-chunked-prefill")


def _vllm_async(asked: Asked) -> Piece:
    wanted, usual = asked.deployment.engine.async_scheduling, asked.usual.async_scheduling
    if wanted == usual:
        return NOTHING
    if asked.version < VLLM_ASYNC_SINCE:
        return lacks(asked, msg("asynchronous scheduling"))
    return flag("--async-scheduling" if wanted else "--no-async-scheduling")


def _vllm_pool(asked: Asked) -> Piece:
    deployment = asked.deployment
    if deployment.kv_pool_bytes_per_gpu is not None and asked.version >= VLLM_POOL_BYTES_SINCE:
        return flag("--kv-cache-memory-bytes", deployment.kv_pool_bytes_per_gpu)
    if deployment.kv_pool_bytes_per_gpu is None and deployment.kv_tokens is None:
        return NOTHING
    return remark(msg("The pool that was given is not a setting of this version: the engine works out its own."))


def _given_pool_as(write: Callable[[int], Piece]) -> Rule:
    return lambda asked: NOTHING if asked.pool_tokens is None else write(asked.pool_tokens)


def _sglang_chunk(asked: Asked) -> Piece:
    return flag(
        "--chunked-prefill-size", asked.settings.max_num_batched_tokens if asked.settings.chunked_prefill else -1
    )


def _sglang_switches(asked: Asked) -> Piece:
    radix = flag("--disable-radix-cache") if asked.deployment.prefix_caching is False else NOTHING
    differs = asked.usual.async_scheduling and not asked.deployment.engine.async_scheduling
    return joined(radix, flag("--disable-overlap-schedule") if differs else NOTHING)


def _tensorrt_switches(asked: Asked) -> Piece:
    deployment, pieces = asked.deployment, []
    if deployment.prefix_caching is not None:
        pieces.append(kv_option("enable_block_reuse", str(deployment.prefix_caching).lower()))
    if deployment.block_size_tokens is not None:
        pieces.append(kv_option("tokens_per_block", str(deployment.block_size_tokens)))
    if deployment.chunked_prefill is not None:
        pieces.append(Piece(yaml={"enable_chunked_prefill": str(deployment.chunked_prefill).lower()}))
    if asked.usual.async_scheduling != deployment.engine.async_scheduling:
        pieces.append(Piece(yaml={"disable_overlap_scheduler": str(asked.usual.async_scheduling).lower()}))
    return joined(*pieces)


RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "vllm": (
            _degrees({"tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size"}),
            _vllm_ranks,
            _setting("memory_fraction", "--gpu-memory-utilization"),
            _setting("max_model_len_tokens", "--max-model-len"),
            _setting("max_num_batched_tokens", "--max-num-batched-tokens"),
            _seqs("--max-num-seqs"),
            _kv_dtype(VLLM_KV, lambda name: flag("--kv-cache-dtype", name)),
            _weights(in_flight=True),
            _block("--block-size"),
            _vllm_prefix,
            _vllm_chunked,
            _vllm_async,
            _vllm_pool,
        ),
        "sglang": (
            _sglang_ranks,
            _degrees({"pp": "--pp-size"}),
            _setting("memory_fraction", "--mem-fraction-static"),
            _setting("max_model_len_tokens", "--context-length"),
            _sglang_chunk,
            _seqs("--max-running-requests", only_if_asked=True),
            _kv_dtype(SGLANG_KV, lambda name: flag("--kv-cache-dtype", name)),
            _weights(in_flight=True),
            _block("--page-size"),
            _sglang_switches,
            _given_pool_as(lambda tokens: flag("--max-total-tokens", tokens)),
        ),
        "tensorrt-llm": (
            _tensorrt_ranks,
            _degrees({"pp": "--pp_size"}),
            _seqs("--max_batch_size"),
            _setting("max_num_batched_tokens", "--max_num_tokens"),
            _setting("max_model_len_tokens", "--max_seq_len"),
            _setting("memory_fraction", "--kv_cache_free_gpu_memory_fraction"),
            _kv_dtype(TENSORRT_KV, lambda name: kv_option("dtype", name)),
            _weights(in_flight=False),
            _tensorrt_switches,
            _given_pool_as(lambda tokens: kv_option("max_tokens", str(tokens))),
        ),
    }
)
"""Per engine, in the order of its command line."""
