"""Prefix reuse: equal to a plain cache run request by request, and to figures computed elsewhere from real traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plain_lru
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import InputError
from calc.reuse import stack
from calc.reuse.answers import turns, with_answers
from calc.reuse.curve import curves_with_limits, hit_curve
from calc.reuse.routing import curve_of_owners, curve_of_replicas, dealt
from calc.reuse.trace import BlockTrace, renumbered
from calc.reuse.views import coarser, full_blocks_only, of_owner, told_apart
from data.logs.hash_trace import read_hash_trace

TRACES = {
    "mooncake_conversation": "mooncake_conversation.jsonl",
    "dynamo_pi_request_trace": "dynamo_pi_request_trace.jsonl.gz",
}
ROUNDED = 5e-11
"""The expected rates have ten decimal places."""
COMPILED = settings(deadline=None, max_examples=60)
"""The first example may wait for the compiler."""


def trace_of(
    prompts: Sequence[Sequence[int]],
    *,
    block: int = 4,
    last_tokens: Sequence[int] | None = None,
    outputs: Sequence[int] | None = None,
    times_s: Sequence[float] | None = None,
) -> BlockTrace:
    """Prompts by their block ids; every block full, except the last where its tokens are given."""
    counts = [len(prompt) for prompt in prompts]
    ids, unique = renumbered(np.array([one for prompt in prompts for one in prompt], dtype=np.int64))
    short = [0] * len(prompts) if last_tokens is None else [block - tokens for tokens in last_tokens]
    return BlockTrace(
        block_size_tokens=block,
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        block_ids=ids,
        unique_blocks=unique,
        prompt_tokens=np.array([count * block - less for count, less in zip(counts, short, strict=True)]),
        output_tokens=None if outputs is None else np.array(outputs),
        arrival_s=None if times_s is None else np.array(times_s, dtype=np.float64),
    )


@st.composite
def traces(draw: st.DrawFn) -> BlockTrace:
    """Any ids at all, chained or not, repeated or not, with last blocks of any length and times that never fall."""
    prompts = draw(st.lists(st.lists(st.integers(0, 12), max_size=9), min_size=1, max_size=40))
    rest = st.integers(1, 4)
    return trace_of(
        prompts,
        last_tokens=[draw(rest) if prompt else 4 for prompt in prompts],
        times_s=np.cumsum([draw(st.integers(0, 5)) for _ in prompts]).tolist(),
    )


@COMPILED
@given(traces(), st.integers(0, 14))
def test_the_curve_equals_a_plain_cache_at_every_capacity(trace: BlockTrace, capacity: int) -> None:
    curve, plain = hit_curve(trace), plain_lru.run(trace, capacity)
    assert (curve.hit_tokens([capacity])[0], curve.hit_blocks([capacity])[0]) == (plain.tokens, plain.blocks)


@COMPILED
@given(traces(), st.integers(0, 14), st.lists(st.integers(0, 20), min_size=1, max_size=4))
def test_a_time_limit_equals_a_cache_that_drops_what_is_too_old(
    trace: BlockTrace, capacity: int, limits_s: list[int]
) -> None:
    found = [curve.hit_tokens([capacity])[0] for curve in curves_with_limits(trace, limits_s)]
    assert found == [plain_lru.run(trace, capacity, limit_s).tokens for limit_s in limits_s]


@COMPILED
@given(traces())
def test_a_larger_cache_finds_no_less_and_none_finds_more_than_was_seen_before(trace: BlockTrace) -> None:
    curve = hit_curve(trace)
    assert (np.diff(curve.found_tokens) >= 0).all()
    seen: set[int] = set()
    first_seen_rule = 0
    for request in range(trace.requests):
        ids = trace.block_ids[trace.offsets[request] : trace.offsets[request + 1]].tolist()
        new = next((place for place, one in enumerate(ids) if one not in seen), len(ids))
        first_seen_rule += min(new * trace.block_size_tokens, int(trace.prompt_tokens[request]))
        seen |= set(ids)
    assert curve.found_tokens[-1] == first_seen_rule


@COMPILED
@given(traces(), st.integers(0, 14))
def test_blocks_found_and_time_to_eviction_per_request_equal_the_plain_cache(trace: BlockTrace, capacity: int) -> None:
    plain, at = plain_lru.run(trace, capacity), np.array([capacity])
    found = stack.found_by_request(trace.offsets, trace.block_ids, trace.looked_up, trace.unique_blocks, at, 1)
    assert tuple(found[:, 0]) == plain.by_request
    assert trace.arrival_s is not None
    stays_s = stack.residence(trace.offsets, trace.block_ids, trace.unique_blocks, trace.arrival_s, at)[:, 0]
    assert [None if np.isnan(one) else one for one in stays_s] == list(plain.oldest_s)


@COMPILED
@given(traces(), st.integers(1, 3), st.integers(0, 14))
def test_replicas_are_caches_of_their_own(trace: BlockTrace, replicas: int, capacity: int) -> None:
    owner = dealt(trace, replicas, "prefix-aware")
    alone = [plain_lru.run(of_owner(trace, owner, which), capacity).tokens for which in range(replicas)]
    assert curve_of_replicas(trace, replicas, "prefix-aware").hit_tokens([capacity])[0] == sum(alone)


@COMPILED
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=20), st.integers(1, 4))
def test_coarse_blocks_of_chained_ids_match_where_all_their_parts_do(prompts: list[list[int]], times: int) -> None:
    chains: dict[tuple[int, ...], int] = {}
    ids = [[chains.setdefault(tuple(p[: end + 1]), len(chains)) for end in range(len(p))] for p in prompts]
    parts = [[tuple(p[: begin + times]) for begin in range(0, len(p), times)] for p in prompts]
    seen: set[tuple[int, ...]] = set()
    expected = 0
    for blocks in parts:
        expected += next((place for place, one in enumerate(blocks) if one not in seen), len(blocks))
        seen |= set(blocks)
    assert hit_curve(coarser(trace_of(ids), times)).found_blocks[-1] == expected


def test_the_root_of_a_prompt_is_evicted_last() -> None:
    """Two prompts in turn, sharing their first block: a cache of one block keeps just that one."""
    assert hit_curve(trace_of([[0, 1], [0, 2], [0, 1]])).hit_blocks([0, 1, 2, 3]).tolist() == [0, 2, 2, 3]


def test_a_cyclic_scan_finds_nothing_until_all_of_it_fits() -> None:
    curve = hit_curve(trace_of([[0], [1], [2], [3]] * 5))
    assert curve.hit_blocks([3, 4]).tolist() == [0, 16]
    assert (curve.knee(), curve.capacity_for(1.0), curve.ceiling_share) == (4, 4, 0.8)


def test_a_last_block_counts_the_tokens_it_holds_and_only_full_ones_do_in_vllm() -> None:
    trace = trace_of([[0, 1], [0, 1]], last_tokens=[3, 3])
    assert hit_curve(trace).found_tokens[-1] == 7
    assert hit_curve(full_blocks_only(trace)).found_tokens[-1] == 4


def test_tenants_find_only_their_own_blocks() -> None:
    trace, owner = trace_of([[0], [0], [0], [0]]), np.array([0, 1, 0, 1])
    assert hit_curve(trace).found_blocks[-1] == 3
    assert hit_curve(told_apart(trace, owner)).found_blocks[-1] == 2
    assert curve_of_owners(trace, owner, 2).found_blocks[-1] == 2


def test_round_robin_pays_for_every_prefix_once_per_replica_and_prefix_aware_routing_once() -> None:
    """Ten groups of eight equal prompts; four replicas each see a group twice."""
    trace = trace_of([[group] for group in range(10) for _ in range(8)])
    assert hit_curve(trace).found_blocks[-1] == 80 - 10
    assert curve_of_replicas(trace, 4).found_blocks[-1] == 80 - 40
    assert curve_of_replicas(trace, 4, "prefix-aware").found_blocks[-1] == 80 - 10
    assert np.bincount(dealt(trace, 4, "prefix-aware")).max() <= 24


def test_the_next_turn_finds_the_answer_before_it_in_full_blocks() -> None:
    """8 prompt tokens and 9 of answer are four full blocks of 4 and one begun; the next prompt has six blocks."""
    trace = trace_of([[0, 1], [0, 1, 2, 3, 4, 5]], outputs=[9, 4])
    assert turns(trace).parent.tolist() == [-1, 0]
    assert hit_curve(trace).found_blocks[-1] == 2
    credited = with_answers(trace)
    assert hit_curve(credited).found_blocks[-1] == 4
    assert credited.blocks == 2 + 2 + 6 + 1
    assert hit_curve(full_blocks_only(credited)).found_blocks[-1] == 4


def test_ending_inside_a_common_system_prompt_makes_no_conversation() -> None:
    trace = trace_of([[0, 1, 2], [0, 3], [0], [0, 4]])
    assert (turns(trace).parent == -1).all()


def test_what_a_log_does_not_say_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="output tokens"):
        with_answers(trace_of([[0]]))
    with pytest.raises(InputError, match="time of each request"):
        curves_with_limits(trace_of([[0]]), [1.0])


@pytest.fixture(scope="module")
def expected(cases_dir: Path) -> dict[str, Any]:
    return dict(json.loads((cases_dir / "traces" / "hit_curves.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module", params=sorted(TRACES))
def real(request: pytest.FixtureRequest, cases_dir: Path, expected: dict[str, Any]) -> tuple[BlockTrace, Any]:
    return read_hash_trace(cases_dir / "traces" / TRACES[request.param]).trace, expected[request.param]


def test_real_traces_are_read_whole(real: tuple[BlockTrace, Any]) -> None:
    trace, figures = real
    read = (trace.block_size_tokens, trace.requests, trace.total_prompt_tokens, trace.blocks, trace.unique_blocks)
    assert read == tuple(figures[key] for key in ("block_size", "requests", "input_tokens", "blocks", "unique_blocks"))


def test_real_curves_are_exact_to_the_token(real: tuple[BlockTrace, Any]) -> None:
    trace, figures = real
    capacities, curve = figures["capacities_blocks"], hit_curve(trace)
    assert curve.hit_tokens(capacities).tolist() == figures["hit_tokens"]
    assert curve.hit_blocks(capacities).tolist() == figures["hit_blocks"]
    only_full = hit_curve(full_blocks_only(trace))
    assert only_full.hit_tokens(capacities).tolist() == figures["full_blocks_only"]["hit_tokens"]
    shares = figures["capacity_blocks_for_share_of_max"]
    assert {share: curve.capacity_for(float(share)) for share in shares} == shares
    assert curve.ceiling_share == pytest.approx(figures["unlimited"]["token_weighted"], abs=ROUNDED)


def test_real_curves_with_time_limits_and_tenants_are_exact(real: tuple[BlockTrace, Any]) -> None:
    trace, figures = real
    grid = {float(key): rates for key, rates in figures["ttl_grid"]["ttl_seconds_to_hit_rate"].items() if key != "None"}
    for curve, rates in zip(curves_with_limits(trace, list(grid)), grid.values(), strict=True):
        assert curve.hit_shares(figures["ttl_grid"]["capacities"]) == pytest.approx(rates, abs=ROUNDED)
    capacities, tenant = np.array(figures["capacities_blocks"]), np.arange(trace.requests) % 4
    shared = hit_curve(told_apart(trace, tenant)).hit_shares(capacities)
    assert shared == pytest.approx(figures["isolation_4_artificial_tenants_shared_capacity"], abs=ROUNDED)
    own = curve_of_owners(trace, tenant, 4).hit_shares(capacities // 4)
    assert own == pytest.approx(figures["isolation_4_artificial_tenants_capacity_quarter_each"], abs=ROUNDED)


def test_real_blocks_are_used_again_after_the_expected_times(real: tuple[BlockTrace, Any]) -> None:
    trace, figures = real
    ages_s = stack.ages_of_found(
        trace.offsets, trace.block_ids, trace.looked_up, trace.unique_blocks, np.asarray(trace.arrival_s)
    )
    wanted = {key: np.percentile(ages_s, int(key[1:])) for key in figures["reuse_idle_seconds_block_weighted"]}
    assert wanted == pytest.approx(figures["reuse_idle_seconds_block_weighted"], abs=1e-3)


def test_counting_answers_brings_the_measured_hits_of_an_engine_nearer(cases_dir: Path) -> None:
    """The engine said that it found 50,256 tokens; prompts alone explain 47,680, and with all answers kept 53,808."""
    trace = read_hash_trace(cases_dir / "traces" / TRACES["dynamo_pi_request_trace"]).trace
    assert trace.cached_tokens is not None
    said = trace.cached_tokens.sum()
    assert said == 50_256
    assert hit_curve(trace).found_tokens[-1] < said < hit_curve(with_answers(trace)).found_tokens[-1]
