"""Words for codes: provenance, outcomes, what binds, and the options of select boxes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.judge.decision import BOTTLENECK_NAMES, OUTCOME_NAMES
from calc.messages import Message, msg
from calc.metrics import Layer

PROVENANCE: Mapping[str, Message] = {
    "measured": msg("measured"),
    "simulated": msg("simulated"),
    "estimated": msg("estimated"),
    "declared": msg("declared"),
    "sample": msg("made-up sample"),
    "missing": msg("missing"),
}
"""How a figure came to be known; shown beside every number."""

LAYERS: Mapping[str, Message] = {
    Layer.CACHE: msg("cache"),
    Layer.RESOURCE: msg("resource"),
    Layer.SERVICE: msg("service"),
}
"""Where in the service a metric is read."""

MARKS: Mapping[str, Message] = {"P50": msg("P50"), "P95": msg("P95"), "max": msg("max")}
"""Lengths that stand out on a curve; max is the longest the engine accepts."""

UNIT_WORDS: Mapping[str, Message] = {
    "tokens": msg("tokens"),
    "requests": msg("requests"),
    "requests/s": msg("requests/s"),
    "per request": msg("per request"),
}
"""Units that are words; GiB, ms and the like are the same in every language."""

OUTCOMES: Mapping[str, Message] = MappingProxyType({outcome.value: name for outcome, name in OUTCOME_NAMES.items()})
"""The six answers in words."""

BOUNDS: Mapping[str, Message] = BOTTLENECK_NAMES
"""What binds, in words."""

CHOICES: Mapping[str, Message] = {
    "newest": msg("newest known"),
    "auto": msg("auto"),
    "on": msg("on"),
    "off": msg("off"),
    "own": msg("Own figures"),
    "lognormal": msg("Lognormal (P50, P95)"),
    "fixed": msg("All equal"),
    "uniform": msg("Uniform"),
    "empirical": msg("Quantiles"),
    "poisson": msg("Poisson"),
    "constant": msg("Constant gaps"),
    "gamma": msg("Gamma (CV)"),
    "per-minute": msg("Rate per minute"),
    "closed": msg("Closed loop"),
    "mmpp": msg("Changing rate (MMPP)"),
    "trace": msg("Log of arrivals"),
    "continuous": msg("Continuous"),
    "static": msg("Static"),
    "recompute": msg("Recompute"),
    "swap": msg("Swap to CPU memory"),
    "random": msg("Random"),
    "round-robin": msg("Round robin"),
    "least-loaded": msg("Least loaded"),
    "prefix-aware": msg("Prefix-aware"),
    "cpu": msg("CPU memory"),
    "disk": msg("Local disk"),
    "remote": msg("Remote store"),
    "draft_model": msg("Draft model"),
    "custom": msg("Custom"),
    "online-service": msg("Online service"),
    "knowledge-rag": msg("Knowledge Q&A (RAG)"),
    "agent": msg("Agent workflow"),
    "code-completion": msg("Code completion"),
    "offline-batch": msg("Offline batch"),
}
"""Words for option codes."""
