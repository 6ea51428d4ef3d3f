"""The compiled kernel's arrays before its first round."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from calc.simulator import layout as at
from calc.simulator.contract import RequestPlan, SchedulerRules, StepCosts
from calc.workload import FloatArray, IntArray

Tables: TypeAlias = tuple[IntArray, FloatArray, IntArray, FloatArray, IntArray]

NO_QUOTA = 2**62


def is_managed(plan: RequestPlan, rules: SchedulerRules) -> bool:
    """Whether requests are told apart in any way: the plain kernel knows only first come, first served."""
    fetches = bool(rules.tiers) and plan.fetch_tokens is not None
    clients = plan.patience_s is not None
    return bool(rules.classes) or fetches or clients or rules.swap_block_s is not None or is_static(rules)


def is_static(rules: SchedulerRules) -> bool:
    """Whether batches start together and wait for their longest."""
    return rules.reserved_tokens is not None


def is_paced(plan: RequestPlan, rules: SchedulerRules) -> bool:
    """Whether steps verify more than one token or give more than one."""
    return rules.verified_tokens > 1 or plan.pace_tokens is not None


def is_joint(plan: RequestPlan, rules: SchedulerRules) -> bool:
    """Whether caches decide what is found."""
    return plan.groups is not None and rules.prefix_caching and not is_static(rules)


def is_plain(plan: RequestPlan, rules: SchedulerRules) -> bool:
    """Whether requests need only the first rows."""
    return not (is_managed(plan, rules) or is_paced(plan, rules) or is_joint(plan, rules))


def tables_of(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, max_events: int) -> Tables:
    """Of one replica. The plain kernel has fewer rows."""
    count = plan.prompt_tokens.size
    plain = is_plain(plan, rules)
    requests = np.zeros((at.PLAIN_ROWS if plain else at.JOINT_ROWS, count), np.int64)
    for column, tokens in zip(_GIVEN, (plan.prompt_tokens, plan.output_tokens, plan.cached_tokens), strict=True):
        requests[column] = tokens
    requests[at.BASE] = at.NOT_DECODING
    requests[[at.DUE, at.CROSS_AT]] = at.NEVER
    if is_managed(plan, rules) or is_paced(plan, rules):
        _tell_apart(plan, requests)
    numbers = numbers_of(plan, rules, costs, max_events)
    if plan.groups is not None and is_joint(plan, rules):
        requests[at.GROUP], requests[at.SHARED] = plan.groups.group, plan.groups.shared_blocks
        remind(plan, numbers, requests, 0)
    times = np.empty((at.PLAIN_TIMES if plain else at.ALL_TIMES, count))
    times[at.ARRIVAL :] = np.nan
    times[at.FETCH_WAIT :] = 0.0
    times[at.START, : plan.start_s.size] = plan.start_s
    queues = np.zeros((at.PLAIN_QUEUES if plain else at.ALL_QUEUES, width_of(rules, count)), np.int64)
    return numbers, seconds_of(plan, rules, costs), requests, times, queues


def width_of(rules: SchedulerRules, count: int) -> int:
    """Room of the working queues."""
    widest = max((min(tier.concurrency, count) for tier in rules.tiers), default=0)
    return max(at.queue_size(rules.max_seqs, count), widest)


def remind(plan: RequestPlan, n: IntArray, requests: IntArray, scheduler: int) -> None:
    """What a scheduler's cache keeps at the start."""
    if plan.groups is None or not plan.groups.remembered or not n[at.GROUPS]:
        return
    group, ends, blocks = plan.groups.remembered[scheduler % len(plan.groups.remembered)]
    requests[at.NODE_GROUP, : group.size] = group
    requests[at.NODE_END, : group.size] = ends
    requests[at.NODE_SIZE, : group.size] = blocks
    n[at.NODES] = group.size
    n[n[at.GROUP_TABLE] + group * at.GROUP_RECORD + at.LAST_NODE] = np.arange(1, group.size + 1)


_GIVEN = (at.PROMPT, at.OUTPUT, at.CACHED)


def _tell_apart(plan: RequestPlan, requests: IntArray) -> None:
    requests[at.GROW_AT] = at.NEVER
    requests[at.PACE] = 1 << at.FINE_BITS
    if plan.pace_tokens is not None:
        requests[at.PACE] = np.maximum(1 << at.FINE_BITS, np.rint(plan.pace_tokens * (1 << at.FINE_BITS)))
    given = ((at.CLASS, plan.class_index), (at.FETCH, plan.fetch_tokens), (at.FETCH_TIER, plan.fetch_tier))
    for column, values in given:
        if values is not None:
            requests[column] = values


def _lists(rules: SchedulerRules) -> IntArray:
    """One per class, one of fetched requests, one per tier: all empty."""
    ranks = sorted({one.priority for one in rules.classes})
    if len(ranks) > at.MAX_RANKS:
        raise ValueError("more priorities than the simulator tells apart")
    rows = [(at.NEVER, at.NEVER, 0, one.max_running or NO_QUOTA, ranks.index(one.priority)) for one in rules.classes]
    rows = rows or [(at.NEVER, at.NEVER, 0, NO_QUOTA, 0)]
    rows.append((at.NEVER, at.NEVER, 0, NO_QUOTA, 0))
    rows.extend((at.NEVER, at.NEVER, 0, tier.concurrency, 0) for tier in rules.tiers)
    return np.array(rows, np.int64)


def numbers_of(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, max_events: int) -> IntArray:
    """``n`` of a scheduler before its first round."""
    lists = _lists(rules)
    groups = plan.groups.count if plan.groups is not None and is_joint(plan, rules) else 0
    n = np.zeros(at.RESIDUES + rules.block_tokens + lists.size + at.GAP_BINS + groups * at.GROUP_RECORD, np.int64)
    n[at.GROUPS] = groups
    n[at.GROUP_TABLE] = n.size - groups * at.GROUP_RECORD
    n[at.FREE] = n[at.TOTAL_BLOCKS] = rules.total_blocks
    n[at.PARTIAL] = -1
    n[at.FIRST_MEASURED] = plan.first_measured
    n[at.END_MEASURED] = plan.end
    n[at.MAX_TOKENS] = rules.max_tokens
    n[at.MAX_SEQS] = rules.slots
    n[at.WATERMARK_BLOCKS] = rules.watermark_blocks
    n[at.BLOCK_TOKENS] = rules.block_tokens
    n[at.FIXED_BLOCKS] = rules.fixed_blocks
    n[at.WINDOW_TOKENS] = costs.window_tokens
    n[at.MAX_EVENTS] = max_events
    n[at.CHUNKED] = rules.chunked
    n[at.PREFIX_CACHING] = rules.prefix_caching
    n[at.QUEUED_STEP] = rules.queued_step
    n[at.PREFILL_ALONE] = rules.prefill_alone
    n[at.RESERVES_OUTPUT] = rules.reserves_output
    n[at.CLOSED] = plan.closed
    n[at.USERS] = plan.start_s.size
    n[at.LAST_COST] = costs.tokens_s.size - 1
    n[at.VERIFIED] = rules.verified_tokens
    n[at.RETRIES] = plan.retries
    n[at.SWAPS] = rules.swap_block_s is not None
    n[at.STATIC] = is_static(rules)
    n[at.RESERVED] = rules.reserved_tokens or 0
    n[at.CLASSES] = max(1, len(rules.classes))
    n[at.TIERS] = len(rules.tiers)
    n[at.LISTS] = at.RESIDUES + rules.block_tokens
    n[at.GAPS] = n[at.LISTS] + lists.size
    n[n[at.LISTS] : n[at.GAPS]] = lists.ravel()
    return n


def seconds_of(plan: RequestPlan, rules: SchedulerRules, costs: StepCosts) -> FloatArray:
    """``x`` of a scheduler before its first round."""
    x = np.zeros(at.TOKEN_COST + costs.tokens_s.size)
    x[at.TOKEN_COST :] = costs.tokens_s
    x[at.BEYOND_S] = costs.token_beyond_s
    x[at.THINK_S] = plan.think_s
    x[at.UNTIL_S] = np.inf
    x[at.SEQUENCE_S] = costs.sequence_s
    x[at.PREFILL_S] = costs.prefill_s
    x[at.CONTEXT_S] = costs.context_s
    x[at.WINDOW_S] = costs.window_s
    x[at.PAIR_S] = costs.pair_s
    x[at.WINDOW_PAIR_S] = costs.window_pair_s
    x[at.PATIENCE_S] = np.inf if plan.patience_s is None else plan.patience_s
    x[at.RETRY_AFTER_S] = plan.retry_after_s
    x[at.SWAP_S] = rules.swap_block_s or 0.0
    for number, tier in enumerate(rules.tiers):
        place = at.TIER + number * at.TIER_PLACES
        x[place + at.LATENCY_S] = tier.latency_s
        x[place + at.FETCH_S] = tier.token_s
    return x
