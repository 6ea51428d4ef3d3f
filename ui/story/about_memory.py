"""The memory report in words: sentence, numbers, rows, formulas, alt text."""

from __future__ import annotations

from collections.abc import Mapping

from calc.cache.formula import kv_formula
from calc.deployment import Deployment
from calc.memory import MemoryReport
from ui import format as show
from ui.glossary import TERMS
from ui.story.words import Figure, short_count
from ui.text import t


def figures(memory: MemoryReport) -> list[Figure]:
    """The answer row of memory."""
    return [fit(memory), sequences(memory), per_request(memory), demand(memory)]


def fit(memory: MemoryReport) -> Figure:
    """Free pool, or by how much it is over."""
    value = show.gib(memory.kv_pool_bytes) if memory.fits else t("{size:gib} over", size=memory.over_bytes)
    return Figure(
        label=t("KV pool per GPU"), value=value, provenance=memory.origin("kv_pool"), help=t(TERMS["kv_pool"].meaning)
    )


def sequences(memory: MemoryReport) -> Figure:
    """Sequences of the max model length."""
    return Figure(
        label=t("Sequences at {length}", length=short_count(memory.max_model_len_tokens)),
        value=f"{memory.max_concurrency:,.1f}" if memory.fits else "0",
        provenance=memory.origin("kv_pool"),
        help=t(TERMS["max_concurrency"].meaning) + " " + show.tokens(memory.max_model_len_tokens),
    )


def per_request(memory: MemoryReport) -> Figure:
    """KV bytes of one mean request on one GPU."""
    return Figure(
        label=t("KV per request"),
        value=show.mib(memory.kv_per_request_bytes),
        provenance="estimated",
        help=t(
            "One request of mean prompt + output length. {each} per token.", each=show.kib(memory.kv_bytes_per_token)
        ),
    )


def demand(memory: MemoryReport) -> Figure:
    """KV bytes at peak concurrency on one GPU; nothing runs where nothing fits."""
    if not memory.fits:
        return Figure(label=t("KV demand"), value="–", provenance="missing", help=t(TERMS["kv_demand"].meaning))
    return Figure(
        label=t("KV with idle sessions")
        if memory.idle_kv_bytes
        else t("KV at {number:.3g} requests", number=memory.peak_concurrency),
        value=show.gib(memory.kv_demand_bytes),
        provenance="simulated",
        help=t("Requests in flight on one replica at this load, outputs half written on average."),
    )


def sentence(memory: MemoryReport) -> str:
    """Does it fit?"""
    if not memory.fits:
        return _too_much(memory)
    over = memory.kv_demand_bytes - memory.kv_pool_bytes
    if 0 < over <= memory.idle_kv_bytes:
        return t(
            "Fits the running requests, but their idle sessions want {over:gib} more KV cache per GPU than the pool "
            "holds: the longest idle are evicted.",
            over=over,
        )
    if over > 0:
        return t(
            "Fits, but the load wants {over:gib} more KV cache per GPU than the pool holds: requests will wait.",
            over=over,
        )
    return t(
        "Fits: the load uses {used:gib} of the {pool:gib} KV pool on each GPU.",
        used=memory.kv_demand_bytes,
        pool=memory.kv_pool_bytes,
    )


def _too_much(memory: MemoryReport) -> str:
    """By how much it does not fit, and which part is at fault."""
    if memory.kv_pool_bytes == 0:
        return t(
            "Does not fit: weights ({weights:gib}), runtime ({runtime:gib}) and one sequence of {length:tok} are "
            "{over:gib} over the budget of {budget:gib} on each GPU.",
            weights=memory.weights_bytes,
            runtime=memory.runtime_in_budget_bytes,
            length=memory.max_model_len_tokens,
            over=memory.over_bytes,
            budget=memory.budget_bytes,
        )
    return t(
        "Does not fit: the KV pool of {pool:gib} is {over:gib} short of one sequence of {length:tok} on each GPU.",
        pool=memory.kv_pool_bytes,
        over=memory.over_bytes,
        length=memory.max_model_len_tokens,
    )


def hull_alt(memory: MemoryReport) -> str:
    """The hull in words."""
    return t(
        "Stacked bar per GPU: weights {weights:gib}, runtime {runtime:gib}, KV pool {pool:gib}, margin {margin:gib}; "
        "budget line at {budget:gib} of {total:gib}.",
        weights=memory.weights_bytes,
        runtime=memory.runtime_bytes,
        pool=memory.kv_pool_bytes,
        margin=memory.margin_bytes,
        budget=memory.budget_bytes,
        total=memory.total_bytes,
    )


def zones(memory: MemoryReport) -> list[Mapping[str, str]]:
    """The four zones and their parts, with what to weigh in each."""
    origin = memory.origin
    used = min(memory.kv_demand_bytes, memory.kv_pool_bytes)
    rows = (
        (t("Weights"), memory.weights_bytes, origin("weights"), t("precision, quantisation, split over GPUs")),
        (t("Runtime: activations"), memory.activation_bytes, origin("activation"), t("batched tokens, model width")),
        (
            t("Runtime: context, NCCL, buffers"),
            memory.non_torch_bytes,
            origin("non_torch"),
            t("parallelism, framework"),
        ),
        (t("Runtime: CUDA graphs"), memory.graph_bytes, origin("graphs"), t("captured batch sizes, engine version")),
        (t("KV cache in use"), used, "simulated", t("context, concurrency, hit rate")),
        (t("KV pool free"), memory.kv_pool_bytes - used, origin("kv_pool"), t("room for more or longer requests")),
        (t("Safety margin"), memory.margin_bytes, "estimated", t("out-of-memory risk, P99 stability")),
    )
    return [
        {t("Zone"): zone, t("Per GPU"): _size(size), t("Provenance"): t(kind), t("Weigh"): weigh}
        for zone, size, kind, weigh in rows
    ]


def _size(size_bytes: int) -> str:
    """A zone's size; a margin that is used up says by how much."""
    return show.gib(size_bytes) if size_bytes >= 0 else t("{size:gib} over", size=-size_bytes)


def formulas(deployment: Deployment, memory: MemoryReport) -> list[str]:
    """The formulas with this scenario's numbers put in."""
    return [
        t(kv_formula(deployment)),
        t(
            "budget {budget:gib} − weights {weights:gib} − runtime {runtime:gib} = KV pool {pool:gib}",
            budget=memory.budget_bytes,
            weights=memory.weights_bytes,
            runtime=memory.runtime_in_budget_bytes,
            pool=memory.kv_pool_bytes,
        ),
        t(
            "{blocks:count} blocks of {size:tok} = {tokens:tok} per replica, as this engine version logs it",
            blocks=memory.num_blocks,
            size=memory.block_size_tokens,
            tokens=memory.kv_tokens,
        ),
    ]


def sources(deployment: Deployment) -> list[str]:
    """Where the formulas' constants are from."""
    return [deployment.engine.source, deployment.gpu.source]
