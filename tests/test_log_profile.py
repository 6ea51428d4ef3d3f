"""The profile of a log: against published profiles of real traces, theory, hand-made logs and conservation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import cli
from calc.profile.arrivals import arrival_profile
from calc.profile.codes import dense_codes
from calc.profile.columns import LogColumns
from calc.profile.concurrency import counted_concurrency
from calc.profile.prefixes import prefix_profile
from calc.profile.profile import log_profile
from calc.profile.sessions import long_share, session_groups, session_profile
from calc.profile.spread import ranks, spearman, spread
from calc.reuse.trace import BlockTrace
from data.case_fields import Fields
from data.case_workload import read_workload
from data.logs.answer import profile_file
from data.logs.given import GivenLog
from data.logs.load import load_log
from data.logs.profile import profile_log
from data.logs.reuse_answer import ReuseAsked, reuse_line
from data.logs.workload import workload_of_log
from data.store import Store
from ui.fields_load import LOAD, source_name, source_text, workload_case, workload_values

TRACES = (
    "azure2023_code", "azure2023_conv", "mooncake_conversation", "servegen_mlarge_sampled_30min",
    "dynamo_pi_request_trace",
)  # fmt: skip


def assert_equal(expected: Any, found: Any, place: str) -> None:
    """Every expected key is there and equal to the ten digits with which it is written."""
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            assert key in found, f"{place}.{key} is missing"
            assert_equal(value, found[key], f"{place}.{key}")
    elif isinstance(expected, bool):
        assert found is expected, place
    else:
        assert math.isclose(expected, found, rel_tol=2e-9, abs_tol=1e-12), f"{place}: {found} instead of {expected}"


@pytest.mark.parametrize("name", TRACES)
def test_a_real_trace_has_its_published_profile(cases_dir: Path, name: str) -> None:
    expected = json.loads((cases_dir / "traces" / "stats.json").read_text())[name]
    file = next(path for path in (cases_dir / "traces").iterdir() if path.name.startswith(name))
    answer = profile_file(file)
    assert_equal(expected, answer, name)
    assert answer["prompt_tokens"] == answer["input_tokens"]
    json.dumps(answer, allow_nan=False)


def test_a_coarse_clock_is_said(cases_dir: Path) -> None:
    answer = profile_file(cases_dir / "traces" / "mooncake_conversation.jsonl")
    assert (answer["ticked"], answer["tick_s"]) == (True, 3.0)
    assert profile_file(cases_dir / "traces" / "azure2023_conv.csv")["ticked"] is False


def test_all_tokens_found_again_are_those_of_a_cache_that_never_evicts(cases_dir: Path) -> None:
    curves = json.loads((cases_dir / "traces" / "hit_curves.json").read_text())["mooncake_conversation"]
    found = profile_file(cases_dir / "traces" / "mooncake_conversation.jsonl")["prefixes"]
    assert found["prefix_tokens"]["total"] == curves["hit_tokens"][-1]
    assert (found["blocks"], found["distinct_blocks"]) == (curves["blocks"], curves["unique_blocks"])


def poisson(rate_per_s: float, count: int) -> np.ndarray:
    times_s = np.cumsum(np.random.default_rng(1).exponential(1 / rate_per_s, count))
    return times_s - times_s[0]


def test_poisson_arrivals_have_a_dispersion_of_one_and_gaps_of_cv_one() -> None:
    told = arrival_profile(poisson(2.0, 60_000))
    assert told.gaps is not None
    assert told.gaps.cv_samp == pytest.approx(1.0, abs=0.02)
    assert told.minute_index_of_dispersion == pytest.approx(1.0, abs=4 * math.sqrt(2 / told.minutes))
    assert not told.bursty
    assert not told.ticked


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 5000), min_size=1, max_size=60))
def test_no_request_is_lost_between_minutes(times_s: list[float]) -> None:
    told = arrival_profile(np.array(times_s) - min(times_s))
    assert int(told.per_minute.sum()) == len(times_s)
    assert told.peak_minute_requests >= told.mean_per_minute
    assert told.peak_second_requests <= told.peak_minute_requests or told.minutes > 1


@pytest.mark.parametrize("tick_s", [1.0, 3.0, 60.0])
def test_a_clock_that_ticks_is_seen(tick_s: float) -> None:
    times_s = np.floor(poisson(0.5 / tick_s, 2000) / tick_s) * tick_s
    assert arrival_profile(times_s - times_s[0]).tick_s == tick_s


def test_concurrency_obeys_little() -> None:
    arrival_s = poisson(5.0, 20_000)
    e2e_s = np.random.default_rng(2).exponential(3.0, 20_000)
    told = counted_concurrency(arrival_s, e2e_s)
    assert told is not None
    span_s = float((arrival_s + e2e_s).max())
    assert told.mean == pytest.approx(float(e2e_s.sum()) / span_s, rel=1e-5)
    assert told.p50 == 15.0  # M/G/∞ with 15 in the mean: Poisson, median 15
    assert told.max is not None
    assert told.p50 <= (told.p95 or 0) <= (told.p99 or 0) <= told.max


def test_requests_that_touch_are_not_open_at_once() -> None:
    told = counted_concurrency(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, math.nan]))
    assert told is not None
    assert (told.max, told.mean) == (1, 1.0)


def test_without_ends_concurrency_is_an_estimate_and_says_so() -> None:
    told = log_profile(columns(10)).concurrency
    assert told is not None
    assert told.assumed_latency_s == pytest.approx(0.5 + 0.03 * 4)
    assert told.max is None


def columns(count: int, **more: Any) -> LogColumns:
    tokens = np.full(count, 5, dtype=np.int64)
    return LogColumns(
        arrival_s=np.arange(count, dtype=np.float64), prompt_tokens=more.pop("prompt_tokens", tokens * 20),
        output_tokens=tokens, **more,
    )  # fmt: skip


def test_turns_and_thinking_are_counted_within_each_session() -> None:
    log = columns(6, session=np.array([0, 1, 0, 1, 0, -1]), e2e_s=np.full(6, 0.5))
    told = session_profile(log)
    assert told is not None
    assert (told.sessions, told.turns.max, told.multi_turn_share) == (2, 3.0, 1.0)
    assert told.think_s is not None
    assert (told.think_s.count, told.think_s.p50) == (3, 1.5)
    groups = {group.name: group.requests for group in session_groups(log)}
    assert groups == {"multi-turn": 5, "short": 1}


def test_sessions_of_an_unsorted_file_are_those_of_the_sorted_one() -> None:
    rng = np.random.default_rng(3)
    arrival_s, session = rng.uniform(0, 1000, 500), rng.integers(0, 40, 500)
    tokens = np.full(500, 9, dtype=np.int64)
    told = []
    for order in (np.arange(500), np.argsort(arrival_s)):
        log = LogColumns(arrival_s=arrival_s[order], prompt_tokens=tokens, output_tokens=tokens, session=session[order])
        told.append(session_profile(log))
    assert told[0] == told[1]


def test_a_conversation_is_long_when_one_of_its_prompts_is() -> None:
    prompt = np.array([10, 9000, 10, 10], dtype=np.int64)
    assert long_share(columns(4, prompt_tokens=prompt, session=np.array([0, 0, 1, -1]))) == pytest.approx(1 / 3)
    assert long_share(columns(4, prompt_tokens=prompt)) == 0.25


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=80))
def test_ranks_are_the_same_counted_or_sorted(values: list[int]) -> None:
    counted = ranks(np.array(values))
    sorted_ = ranks(np.array(values) + (1 << 22))
    assert counted.tolist() == sorted_.tolist()
    assert float(counted.sum()) == len(values) * (len(values) + 1) / 2


def test_rank_correlation_sees_any_rise() -> None:
    values = np.arange(1, 200)
    assert spearman(values, values**3) == pytest.approx(1.0)
    assert spearman(values, -values + 500) == pytest.approx(-1.0)


def test_words_become_numbers_that_tell_them_apart() -> None:
    words = np.array([5, 2**63, 5, 7, 2**63], dtype=np.uint64) << np.uint64(8)
    codes = dense_codes(words, np.array([True, True, True, True, False]))
    assert (codes[0] == codes[2], len(set(codes[:4].tolist())), codes[4]) == (True, 3, -1)


def test_one_value_has_no_deviation_and_none_has_nothing() -> None:
    one = spread(np.array([3]))
    assert one is not None
    assert (one.std, one.p99) == (None, 3.0)
    assert spread(np.array([])) is None


def trace(*requests: tuple[int, ...]) -> BlockTrace:
    ids = np.concatenate([np.array(request) for request in requests])
    return BlockTrace(
        block_size_tokens=10,
        offsets=np.cumsum([0, *(len(request) for request in requests)]),
        block_ids=ids,
        unique_blocks=int(ids.max()) + 1,
        prompt_tokens=np.array([10 * len(request) for request in requests]),
        arrival_s=np.arange(len(requests), dtype=np.float64),
    )


def test_a_content_update_invalidates_all_that_hangs_on_the_prefix() -> None:
    told = prefix_profile(trace((0, 1, 2), (0, 1, 3), (4, 5), (0, 1)))
    assert told is not None
    assert told.update is not None
    assert (told.update.requests_share, told.update.prefix_tokens) == (0.75, 20)
    assert (told.update.invalid_blocks, told.update.invalid_share) == (4, 4 / 6)
    assert told.reused_tokens_share == 40 / 100
    assert told.lifetime_s is not None
    assert (told.lifetime_s.count, told.lifetime_s.max) == (2, 3.0)
    assert told.same_start_share == 0.75


def test_prompts_without_anything_in_common_have_nothing_to_lose() -> None:
    told = prefix_profile(trace((0, 1), (2, 3)))
    assert told is not None
    assert (told.update, told.reused_tokens_share, told.lifetime_s) == (None, 0.0, None)


HEAD = "timestamp_s,prompt_tokens,output_tokens,tenant,status,stream,cancelled,retries,cached_tokens,system_prompt_id"


def full_row(i: int) -> str:
    status, cancelled = "ok" if i % 4 else "error", "true" if i == 7 else "false"
    system = "sys" if i < 9 else "other"
    return f"{i},{100 + i},{10 + i},{'ab'[i % 3 == 0]},{status},{i % 2},{cancelled},{2 if i == 5 else 0},50,{system}"


FULL = "\n".join([HEAD, *map(full_row, range(12))])


def profile_of(text: str) -> tuple[Any, Any]:
    with Store(":memory:") as store:
        log_id = load_log(store.database, GivenLog.of_bytes(text.encode(), "full.csv")).log_id
        profile = profile_log(store, log_id)
        return profile, workload_of_log(store, log_id, profile, classes="tenants")


def test_shares_are_of_the_requests_and_what_is_absent_is_not_known() -> None:
    told = profile_of(FULL)[0]
    behaviour = told.behaviour
    assert behaviour.failed_share == 0.25
    assert behaviour.streaming_share == 0.5
    assert behaviour.cancelled_share == pytest.approx(1 / 12)
    assert behaviour.retried_share == pytest.approx(1 / 12)
    assert behaviour.same_system_prompt_share == 0.75
    assert told.parts["tenant"].top_share(1) == pytest.approx(8 / 12)
    assert told.cached_share == pytest.approx(600 / sum(100 + i for i in range(12)))
    bare = profile_of("timestamp_s,prompt_tokens,output_tokens\n0,10,2\n9,11,3\n")[0]
    assert (bare.cached_share, bare.ttft_s, bare.sessions, bare.prefixes, dict(bare.parts)) == (None,) * 4 + ({},)
    assert bare.behaviour.failed_share is None


def test_a_last_minute_cut_off_by_the_logs_end_is_no_burst() -> None:
    steady = arrival_profile(np.arange(0.0, 245.0, 0.5))
    assert steady.minute_index_of_dispersion is not None
    assert steady.minute_index_of_dispersion > 2
    assert not steady.bursty
    uneven = np.concatenate([np.arange(0.0, 60.0, 0.5), np.arange(60.0, 120.0, 5.0), np.arange(120.0, 190.0, 0.5)])
    assert arrival_profile(uneven).bursty


def test_more_cached_tokens_than_a_prompt_has_are_no_hits() -> None:
    head = "timestamp_s,prompt_tokens,output_tokens,cached_tokens\n"
    mixed = profile_of(head + "0,100,2,50\n1,100,2,300\n2,100,2,0\n")[0]
    assert (mixed.cached_share, mixed.cached_tokens, mixed.cached_beyond) == (0.25, 50, 1)
    none_left = profile_of(head + "0,100,2,300\n1,100,2,300\n")[0]
    assert (none_left.cached_share, none_left.cached_tokens, none_left.cached_beyond) == (None, None, 2)


def test_a_log_becomes_the_load_of_a_scenario_and_names_itself() -> None:
    profile, made = profile_of(FULL)
    workload = read_workload(Fields(dict(made.case), "workload"))
    assert workload.source == "full.csv"
    assert workload.prompt_tokens.quantile(1.0) == 111
    assert workload.prompt_tokens.quantile(0.5) == profile.prompt_tokens.p50
    assert workload.prefix_hit_share == profile.cached_share
    assert workload.clients.cancel_share == pytest.approx(1 / 12)
    assert sum(one.share for one in workload.classes) == pytest.approx(1.0)
    assert [one.name for one in workload.classes] == ["a", "b"]


def test_the_rates_of_the_minutes_hold_all_requests(cases_dir: Path) -> None:
    with Store(":memory:") as store:
        given_log = GivenLog.of_path(cases_dir / "traces" / "azure2023_conv.csv")
        log_id = load_log(store.database, given_log).log_id
        profile = profile_log(store, log_id)
        rates = workload_of_log(store, log_id, profile).case["arrivals"]["rates_per_s"]
        times = workload_of_log(store, log_id, profile, arrivals="trace").case["arrivals"]["times_s"]
    per_minute = profile.arrivals.per_minute.tolist()
    assert [rate * 60 for rate in rates] == [pytest.approx(count, rel=1e-3) for count in per_minute[: len(rates)]]
    assert len(times) == profile.requests
    assert times == sorted(times)


def test_a_load_changed_by_hand_is_the_logs_no_more() -> None:
    values = {**LOAD, "arrivals": "per-minute", "minute_rates": "1, 2", "prompt_kind": "fixed", "output_kind": "fixed"}
    values |= {"load_source": source_text(values, "the log.csv")}
    case = workload_case(values)
    assert case["source"] == "the log.csv"
    assert source_name({**LOAD, **workload_values(case)}) == "the log.csv"
    assert source_name({**values, "minute_rates": "1, 3"}) == ""


def test_the_command_line_answers_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("timestamp,prompt_tokens,output_tokens\n0,10,2\n3000,11,3\n", encoding="utf-8")
    told = json.loads(
        CliRunner().invoke(cli.main, ["profile", str(path), "--columns", '{"timestamp": "time_ms"}']).stdout
    )
    assert (told["requests"], told["duration_s"]) == (2, 3.0)
    assert "cached_tokens_total" not in told
    failed = CliRunner().invoke(cli.main, ["profile", str(path), "--columns", "[1"])
    assert failed.exit_code == 1
    assert "JSON object" in json.loads(failed.stdout)["error"]


def test_profile_and_hit_curve_of_a_log_take_blocks_of_the_same_size(tmp_path: Path) -> None:
    log = tmp_path / "odd.jsonl"
    lines = [{"ts": i, "prompt_tokens": 999 + i, "output_tokens": 5, "block_hashes": [*range((999 + i) // 37 + 1)]}
             for i in range(40)]  # fmt: skip
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert profile_file(log, {}, lambda *_: None)["block_size"] == reuse_line(log, ReuseAsked())["block_size"]
