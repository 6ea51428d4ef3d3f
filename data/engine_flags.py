"""What an engine's start options, as somebody typed or pasted them, say about the cache."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from calc.poc.cells import CacheStrategy

MAX_CHARACTERS = 2000
"""A start line is shorter; what comes after is not read."""
_OPTION = re.compile(r"--([A-Za-z0-9][A-Za-z0-9_-]*)(?:[=\s]+(?!--)(\S+))?")
_OFF = frozenset({"no-enable-prefix-caching", "disable-radix-cache"})
"""vLLM and SGLang: nothing is found again once a request has ended."""
_ON = frozenset({"enable-prefix-caching"})
_TIERS = frozenset({"kv-offloading-size", "kv-offloading-backend", "enable-hierarchical-cache", "kv-transfer-config"})
"""KV kept outside the GPU: vLLM's connectors, SGLang's HiCache."""
_SPLIT_ONLY = ("p2pncclconnector", "nixlconnector")
"""Connectors that move KV between prefill and decode and keep none."""
_NO = frozenset({"false", "0", "off", "no"})
_WORLD = ("tensor-parallel-size", "tp", "tp-size", "pipeline-parallel-size", "pp-size", "data-parallel-size", "dp-size")


@dataclass(frozen=True, kw_only=True)
class FlagHints:
    """What start options imply; ``None`` = they do not say."""

    strategy: CacheStrategy | None = None
    reuse: bool | None = None
    """Whether prompts of earlier requests can be found again."""
    quantised: bool = False
    """Weights are made narrower at start: the checkpoint's own format does not hold."""
    gpu_count: int | None = None
    """TP x PP x DP as far as they are there; ``None`` when none is."""


@functools.lru_cache(maxsize=256)
def flag_hints(flags: str | None) -> FlagHints:
    """Known options of vLLM and SGLang; unknown ones say nothing."""
    options = dict(_options((flags or "")[:MAX_CHARACTERS]))
    reuse = _reuse(options)
    kept_elsewhere = any(name in options and not _only_moves(options[name]) for name in _TIERS)
    return FlagHints(
        strategy=CacheStrategy.OFFLOAD if kept_elsewhere and reuse is not False else _strategy(reuse),
        reuse=True if kept_elsewhere and reuse is None else reuse,
        quantised="quantization" in options,
        gpu_count=_gpus(options),
    )


def _options(text: str) -> Iterator[tuple[str, str]]:
    for match in _OPTION.finditer(text):
        yield match[1].lower().replace("_", "-"), (match[2] or "").strip("'\"").lower()


def _reuse(options: dict[str, str]) -> bool | None:
    if _OFF & options.keys():
        return False
    asked = [options[name] not in _NO for name in _ON if name in options]
    return asked[0] if asked else None


def _only_moves(value: str) -> bool:
    return any(connector in value for connector in _SPLIT_ONLY)


def _strategy(reuse: bool | None) -> CacheStrategy | None:
    return None if reuse is None else CacheStrategy.PREFIX if reuse else CacheStrategy.PER_REQUEST


def _gpus(options: dict[str, str]) -> int | None:
    sizes = [int(options[name]) for name in _WORLD if options.get(name, "").isdigit() and len(options[name]) < 5]  # noqa: PLR2004
    count = 1
    for size in sizes:
        count *= size
    return count if sizes and count else None
