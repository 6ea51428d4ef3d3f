"""Each strategy as a change of the scenario, on and off, everything else equal; or a sentence why it does not apply."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calc.cache.block_size import mean_unshared_tokens
from calc.cache.waste import Reservation, waste_of
from calc.deployment import Deployment
from calc.dtypes import KV_BYTES
from calc.engine import resolve
from calc.judge import lever_loads
from calc.judge.lever_changes import Today, estimated_pool, whole_splits
from calc.memory import estimate_memory
from calc.messages import Message, msg
from calc.model import LayerGroup, LayerKind
from calc.offload.links import gpus_sharing, host_link
from calc.scenario import Scenario
from calc.strategies.strategy import Assumed, Changed, Ground, Switch

LARGE_BLOCK_TOKENS, SMALL_BLOCK_TOKENS = 64, 16
"""Blocks compared: TensorRT-LLM's former default, and vLLM's."""
FP4 = "nvfp4"


def deployed(scenario: Scenario, deployment: Deployment) -> Scenario:
    """The scenario on another deployment."""
    return replace(scenario, deployment=deployment)


def served(scenario: Scenario, **serving: Any) -> Scenario:
    """The scenario served otherwise."""
    deployment = scenario.deployment
    return deployed(scenario, replace(deployment, serving=replace(deployment.serving, **serving)))


def lever(change: Callable[[Today], tuple[Scenario, ...] | Message]) -> Switch:
    """A lever of the decision as a switch: its smallest step."""

    def switch(scenario: Scenario, _: Assumed) -> Changed:
        found = change(Ground.of(scenario).today)
        return found if isinstance(found, Message) else found[0]

    return switch


def never(reason: Message) -> Switch:
    """A switch that stays."""
    return lambda _scenario, _assumed: reason


def prefix_on(scenario: Scenario, _: Assumed) -> Changed:
    """Prefix caching with the hits that the load declares."""
    if not scenario.workload.prefix_hit_share:
        return msg("No prompt token is known to repeat: enter the share of prefix hits of the load.")
    return lever_loads.with_hits(scenario, scenario.workload.prefix_hit_share)


def prefix_off(scenario: Scenario, _: Assumed) -> Changed:
    """Every prompt computed whole."""
    if not scenario.workload.prefix_hit_share:
        return msg("No prompt token is known to repeat: enter the share of prefix hits of the load.")
    return deployed(scenario, replace(scenario.deployment, prefix_caching=False))


def contiguous(scenario: Scenario, _: Assumed) -> Changed:
    """Memory of the maximum length set aside for every request when it begins: so many run, no more."""
    deployment = scenario.deployment
    memory = estimate_memory(deployment, scenario.workload)
    whole = waste_of(deployment, memory, scenario.workload).of(Reservation.MAX_LENGTH).sequences / deployment.dp
    if whole < 1:
        return msg("The pool does not hold one request of the maximum length.")
    most = min(math.floor(whole), resolve(deployment).max_num_seqs)
    return deployed(scenario, replace(deployment, max_num_seqs=most))


def blocks_of(block_tokens: int) -> Switch:
    """Another block size; the end of a prefix that fills no whole block is computed again."""

    def switch(scenario: Scenario, _: Assumed) -> Changed:
        load, deployment = scenario.workload, scenario.deployment
        if not load.prefix_hit_share:
            return msg("No prompt token is known to repeat: blocks of any size find nothing.")
        before = mean_unshared_tokens(resolve(deployment).block_size_tokens)
        lost = (mean_unshared_tokens(block_tokens) - before) / load.prompt_tokens.mean()
        share = min(1.0 - load.offload_hit_share, max(0.0, load.prefix_hit_share - lost))
        changed = replace(deployment, block_size_tokens=block_tokens)
        return replace(scenario, deployment=changed, workload=replace(load, prefix_hit_share=share))

    return switch


def offload_on(scenario: Scenario, assumed: Assumed) -> Changed:
    """A tier outside the GPU, by default CPU memory over the GPU's own link; hits as declared, else as assumed."""
    load, deployment = scenario.workload, scenario.deployment
    left = 1.0 - load.prefix_hit_share
    share = load.offload_hit_share or min(assumed.offload_hit_share, left)
    if share <= 0:
        return msg("The GPU's own cache finds everything already: nothing is left for a tier outside it.")
    link = host_link(deployment.gpu)
    tiers = deployment.serving.tiers or (link.as_tier(gpus_sharing(deployment)),)
    return replace(served(scenario, tiers=tiers), workload=replace(load, offload_hit_share=share))


def offload_off(scenario: Scenario, _: Assumed) -> Changed:
    """What the GPU does not hold is computed again."""
    return replace(served(scenario, tiers=()), workload=replace(scenario.workload, offload_hit_share=0.0))


def kv_in(dtype: str) -> Switch:
    """KV in a narrower format."""

    def switch(scenario: Scenario, _: Assumed) -> Changed:
        now, gpu = resolve(scenario.deployment).kv_dtype, scenario.deployment.gpu
        if KV_BYTES[now] <= KV_BYTES[dtype]:
            return msg("KV is kept in {dtype} already.", dtype=now)
        if dtype == FP4 and "fp4" not in gpu.flops_per_s:
            return msg("{gpu} does not compute in FP4: its engines offer no NVFP4 cache.", gpu=gpu.name)
        return deployed(scenario, estimated_pool(replace(scenario.deployment, kv_dtype=dtype)))

    return switch


def wide_kv(scenario: Scenario, _: Assumed) -> Changed:
    """KV in two bytes an element again."""
    return deployed(scenario, estimated_pool(replace(scenario.deployment, kv_dtype="bf16")))


def evict(scenario: Scenario, assumed: Assumed) -> Changed:
    """Every sequence keeps a share of its tokens in the layers that keep all: as if each token took less.

    Attention of prefill shrinks with it, which real eviction, done afterwards, does not save: a few per cent of it.
    """
    model = scenario.deployment.model
    if any(group.kind is LayerKind.MLA or group.caches for group in model.groups):
        return msg("Engines evict nothing from compressed caches such as those of {model}.", model=model.name)
    if not any(_grows(group) for group in model.groups):
        return msg("No layer of {model} keeps every token: there is nothing to evict.", model=model.name)
    groups = tuple(_thinned(group, assumed.kept_share) if _grows(group) else group for group in model.groups)
    changed = replace(scenario.deployment, model=replace(model, groups=groups))
    return deployed(scenario, estimated_pool(changed))


def _grows(group: LayerGroup) -> bool:
    return group.kind is LayerKind.FULL and group.window_tokens is None


def _thinned(group: LayerGroup, kept_share: float) -> LayerGroup:
    def width(of: int) -> int:
        return max(1, round(of * kept_share))

    return replace(group, head_dim=width(group.head_dim), v_head_dim=width(group.v_head_dim))


def batching(kind: str) -> Switch:
    """Requests join and leave at every step, or a batch starts and ends together."""
    return lambda scenario, _: served(scenario, batching=kind)


def split_on(scenario: Scenario, assumed: Assumed) -> Changed:
    """The same GPUs, part of them for prefill alone: replicas are divided, or a lone one split in two."""
    deployment = scenario.deployment
    link = deployment.serving.transfer_bytes_per_s or assumed.transfer_bytes_per_s
    if deployment.replicas == 1:
        if deployment.tp // 2 not in whole_splits(deployment) or deployment.tp == 1:
            return msg("One replica on one GPU cannot be divided into prefill and decode: it takes two GPUs.")
        deployment = estimated_pool(replace(deployment, tp=deployment.tp // 2, replicas=2))
        if not estimate_memory(deployment).fits:
            return msg("With half of the GPUs each, prefill and decode replicas do not fit.")
    prefill = _prefill_replicas(scenario, deployment.replicas)
    divided = replace(deployment, replicas=deployment.replicas - prefill)
    return served(deployed(scenario, divided), prefill_replicas=prefill, transfer_bytes_per_s=link)


def _prefill_replicas(scenario: Scenario, replicas: int) -> int:
    """In proportion to the time prefill and decode take on the present step model; at least one of each."""
    replica = Ground.of(scenario).replica
    share = 0.5
    if replica is not None:
        demand, batch = replica.demand, replica.limits.max_batch
        step_s = replica.model.decode_s(batch, batch * demand.held)
        prompt, found = np.array([demand.prompt]), np.array([demand.prompt - demand.fresh])
        prefill_s = float(replica.model.prefill_only_s(prompt, found)[0])
        share = prefill_s / (prefill_s + demand.output * step_s / batch)
    return min(replicas - 1, max(1, round(share * replicas)))


def split_off(scenario: Scenario, _: Assumed) -> Changed:
    """Prefill replicas serve whole requests like the others."""
    deployment = scenario.deployment
    together = replace(deployment, replicas=deployment.replicas + deployment.serving.prefill_replicas)
    return served(deployed(scenario, together), prefill_replicas=0)


def speculate(scenario: Scenario, assumed: Assumed) -> Changed:
    """Drafts checked in one step; n-gram drafts cost no memory."""
    deployment = scenario.deployment
    drafted = deployment.spec_tokens or assumed.spec_tokens
    accepted = min(float(drafted), assumed.accepted_tokens)
    given = deployment.serving.accepted_tokens
    method = deployment.spec_method or "ngram"
    changed = replace(deployment, spec_method=method, spec_tokens=drafted)
    return served(deployed(scenario, changed), accepted_tokens=accepted if given is None else given)


def speculation_off(scenario: Scenario, _: Assumed) -> Changed:
    """One token per sequence and step."""
    changed = replace(scenario.deployment, spec_method=None, spec_tokens=0)
    return served(deployed(scenario, changed), accepted_tokens=None)


def chunks_off(scenario: Scenario, _: Assumed) -> Changed:
    """A prompt is computed in one step, whatever its length."""
    return deployed(scenario, replace(scenario.deployment, chunked_prefill=False))


def route(policy: str) -> Switch:
    """Which replica a request goes to."""

    def switch(scenario: Scenario, _: Assumed) -> Changed:
        if scenario.deployment.replicas * scenario.deployment.dp == 1:
            return msg("There is one replica: nothing to choose from.")
        if policy == "prefix-aware" and scenario.workload.prefix_groups is None:
            return msg("How many distinct prefixes there are is not known: enter it with the load.")
        return served(scenario, routing=policy)

    return switch
