"""How the server is started for each strategy: the deployment's own launch line and what the strategy changes in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.poc.cells import CacheStrategy
from calc.units import GB, GIB
from calc.ways.launch import OPTIONS_FILE, Launch, version_of

VLLM_OFFLOAD_SINCE = (0, 14)
"""``--kv-offloading-size`` in GiB over all ranks (vLLM blog on the offloading connector, 2026-01-08)."""
VLLM_CONNECTOR_SINCE = (0, 11)
"""Before it the same connector had to be configured by hand, in blocks (same source)."""
SGLANG_OFFLOAD_SINCE = (0, 4, 5)
"""HiCache; ``--hicache-size`` in GB per rank overrides the ratio (SGLang's HiCache best practices)."""
OBSERVED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "vllm": ("--enable-prompt-tokens-details",),
        "sglang": ("--enable-metrics", "--enable-cache-report"),
        "tensorrt-llm": (),
    }
)
"""Flags that let the server say how many prompt tokens it found cached."""
RESETS: Mapping[str, str] = MappingProxyType({"vllm": "/reset_prefix_cache", "sglang": "/flush_cache"})
"""Empties the prefix cache between runs; vLLM has it only with VLLM_SERVER_DEV_MODE=1."""
DEV_MODE = "VLLM_SERVER_DEV_MODE=1"
PORTS: Mapping[str, int] = MappingProxyType({"vllm": 8000, "sglang": 30000, "tensorrt-llm": 8000})
"""Where each engine listens unless it is told otherwise (the engines' own argument parsers)."""


@dataclass(frozen=True, kw_only=True)
class _Extra:
    words: tuple[str, ...] = ()
    yaml: Mapping[str, str] | None = None
    notes: tuple[Message, ...] = ()


def start_of(
    deployment: Deployment,
    strategy: CacheStrategy,
    host_bytes: int,
    launch_of: Callable[[Deployment], Launch],
    port: int | None = None,
) -> Launch:
    """One replica's start command under a strategy; everything else stays as the deployment has it.

    ``port`` is the one that the load generator will ask, where its address names one.
    """
    reuse = strategy in (CacheStrategy.PREFIX, CacheStrategy.OFFLOAD)
    base = launch_of(replace(deployment, prefix_caching=reuse))
    engine = deployment.engine.id
    extra = _OFFLOAD[engine](deployment, host_bytes) if strategy is CacheStrategy.OFFLOAD else _Extra()
    head = (DEV_MODE,) if engine == "vllm" else ()
    files = dict(base.files)
    listening = ("--port", str(port)) if port not in (None, PORTS[engine]) else ()
    words = (*head, *base.words, *listening, *OBSERVED[engine], *extra.words)
    if extra.yaml:
        files[OPTIONS_FILE] = _with_option(files.get(OPTIONS_FILE, ""), extra.yaml)
        if "--extra_llm_api_options" not in words:
            words = (*words, "--extra_llm_api_options", OPTIONS_FILE)
    return Launch(words=words, files=files, notes=(*base.notes, *_said(strategy, engine), *extra.notes))


def reset_of(engine: str, base_url: str) -> tuple[str, ...]:
    """The command that empties the prefix cache; empty where the engine has none and must be started again."""
    path = RESETS.get(engine)
    return ("curl", "-fsS", "-X", "POST", base_url.rstrip("/") + path) if path else ()


def _said(strategy: CacheStrategy, engine: str) -> tuple[Message, ...]:
    notes = []
    if strategy is CacheStrategy.PAGED:
        notes.append(
            msg("This engine pages in every start: the line is the baseline's own, and a run stands for both.")
        )
    if engine == "vllm":
        notes.append(
            msg("{setting} opens calls for developers: not on a server that others can reach.", setting=DEV_MODE)
        )
    if strategy is CacheStrategy.OFFLOAD:
        notes.append(
            msg("KV outside the GPU may survive the emptying: the new seed of each run sees to it that none is found.")
        )
    if engine not in RESETS:
        notes.append(msg("This engine has no call that empties the cache: start it again before every run."))
    return tuple(notes)


def _vllm(deployment: Deployment, host_bytes: int) -> _Extra:
    version = version_of(deployment.engine.version)
    if version >= VLLM_OFFLOAD_SINCE:
        size = max(1, math.floor(host_bytes / GIB))
        words = ("--kv-offloading-backend", "native", "--kv-offloading-size", str(size))
        return _Extra(words=words, notes=(_room(host_bytes), *_mixed_layers(deployment)))
    if version >= VLLM_CONNECTOR_SINCE:
        config = {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {"num_cpu_blocks": "NUM_CPU_BLOCKS"},
        }
        note = msg(
            "Put the number of blocks that {size:gib} hold for {word}: this version counts in blocks.",
            size=host_bytes,
            word="NUM_CPU_BLOCKS",
        )
        return _Extra(words=("--kv-transfer-config", json.dumps(config)), notes=(note, *_mixed_layers(deployment)))
    return _none(deployment)


def _mixed_layers(deployment: Deployment) -> tuple[Message, ...]:
    if len(deployment.model.groups) == 1:
        return ()
    return (msg("Layers of several kinds: if the start is refused, add {flag}.",
                flag="--disable-hybrid-kv-cache-manager"),)  # fmt: skip


def _sglang(deployment: Deployment, host_bytes: int) -> _Extra:
    if version_of(deployment.engine.version) < SGLANG_OFFLOAD_SINCE:
        return _none(deployment)
    per_rank = max(1, math.floor(host_bytes / deployment.gpus_per_replica / GB))
    return _Extra(words=("--enable-hierarchical-cache", "--hicache-size", str(per_rank)), notes=(_room(host_bytes),))


def _tensorrt(deployment: Deployment, host_bytes: int) -> _Extra:
    per_rank = host_bytes // deployment.gpus_per_replica
    return _Extra(yaml={"host_cache_size": str(per_rank)}, notes=(_room(host_bytes),))


def _none(deployment: Deployment) -> _Extra:
    engine = deployment.engine
    return _Extra(
        notes=(
            msg(
                "{engine} {version} has no offload of its own that is known here: use a newer version, or a connector.",
                engine=engine.id,
                version=engine.version,
            ),
        )
    )


def _room(host_bytes: int) -> Message:
    return msg("Keep {size:gib} of CPU memory free for each replica.", size=host_bytes)


def _with_option(text: str, option: Mapping[str, str]) -> str:
    """One more line of ``kv_cache_config`` in the options file."""
    lines = [f"  {key}: {value}" for key, value in option.items()]
    head = "kv_cache_config:"
    if head not in text.splitlines():
        return text + "\n".join([head, *lines]) + "\n"
    return text.replace(head, "\n".join([head, *lines]), 1)


_OFFLOAD: Mapping[str, Callable[[Deployment, int], _Extra]] = MappingProxyType(
    {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt}
)
