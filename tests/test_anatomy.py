"""One load point taken apart: sums, conservation, ordering, and what theory says of the pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calc.anatomy.gaps import gap_tail, try_budgets
from calc.anatomy.groups import classes, quarters
from calc.anatomy.hour import HourReport, kv_usage, play
from calc.anatomy.run import Run, run_of
from calc.anatomy.shapes import SHAPES
from calc.anatomy.splits import splits
from calc.errors import InputError
from calc.latency import predict
from calc.scenario import Scenario
from calc.workload import Closed, OpenLoop, PerMinute, Recorded, RequestClass
from data.case import read_case

CHAT: dict[str, Any] = {
    "model": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    "gpu": "h100-sxm",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 2000, "p95": 8000},
        "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 600},
        "arrivals": {"kind": "poisson", "rate_per_s": 6},
    },
    "slo": {"ttft_ms": 1500, "itl_ms": 60, "percentile": 0.95},
}

FIXED = {"distribution": "fixed"}


def chat(rate_per_s: float = 6.0, **deployment: Any) -> Scenario:
    workload = {**CHAT["workload"], "arrivals": {"kind": "poisson", "rate_per_s": rate_per_s}}
    return read_case({**CHAT, "workload": workload, **deployment})[0]


@pytest.fixture(scope="module")
def busy() -> Run:
    """Eight in ten of what the replica can carry."""
    return run_of(chat(0.8 * predict(chat()).max_rate_per_s), requests=4000)


def test_the_parts_of_all_requests_are_those_of_the_report() -> None:
    scenario = chat()
    report, run = predict(scenario), run_of(scenario)
    for metric, mean in (("e2e", report.e2e.mean_s), ("ttft", report.ttft.mean_s)):
        assert splits(run, metric)[0].total_s == pytest.approx(mean)


@pytest.mark.parametrize("metric", ["ttft", "e2e"])
def test_the_parts_around_a_percentile_add_up_to_about_that_percentile(busy: Run, metric: str) -> None:
    values = busy.times.ttft_s if metric == "ttft" else busy.times.e2e_s
    for split, share in zip(splits(busy, metric)[1:], (0.5, 0.95, 0.99), strict=True):
        assert split.total_s == pytest.approx(float(np.quantile(values, share)), rel=0.05)
        assert split.requests >= 10


def test_a_slow_first_token_waited_more_than_a_usual_one(busy: Run) -> None:
    waits = [split.queue_s for split in splits(busy, "ttft")[1:]]
    assert waits == sorted(waits)


def test_mixed_steps_are_the_long_gaps(busy: Run) -> None:
    tail = gap_tail(busy)
    assert 0.01 < tail.mixed_share < 0.5
    assert (tail.slow_mean_s or 0) > 1.5 * (tail.plain_mean_s or 0)
    assert (tail.p99_s or 0) > (tail.p50_s or 0)
    weighed = tail.mixed_share * (tail.slow_mean_s or 0) + (1 - tail.mixed_share) * (tail.plain_mean_s or 0)
    assert weighed == pytest.approx(busy.result.gap_mean_s, rel=0.02)


def test_outputs_of_one_token_have_no_gaps() -> None:
    single = read_case({**CHAT, "workload": {**CHAT["workload"], "output_tokens": FIXED | {"value": 1}}})[0]
    tail = gap_tail(run_of(single, requests=50))
    assert (tail.mixed_share, tail.slow_mean_s, tail.p99_s) == (0.0, None, None)


def test_a_smaller_token_budget_shortens_the_tail_of_itl_and_one_trial_is_the_scenario() -> None:
    scenario = chat(3.0)
    trials = try_budgets(scenario)
    tails = [trial.latency.itl.p99_s for trial in trials if trial.latency]
    assert len(tails) == len(trials)
    assert tails[0] is not None
    assert tails[-1] is not None
    assert tails[0] < 0.8 * tails[-1]
    (own,) = (trial for trial in trials if trial.current)
    assert own.latency == predict(scenario)


def test_quarters_hold_all_requests_and_account_for_all_waiting(busy: Run) -> None:
    found = quarters(busy)
    assert len(found) == 4
    assert sum(quarter.requests for quarter in found) == busy.times.ttft_s.size
    assert sum(quarter.prompt_share for quarter in found) == pytest.approx(1)
    for quarter in found:
        assert quarter.other_s >= -1e-9
        assert all(seconds >= -1e-9 for seconds in quarter.behind_s)
    mean = sum(quarter.queue_s * quarter.requests for quarter in found) / busy.times.queue_s.size
    assert mean == pytest.approx(float(busy.times.queue_s.mean()))


def test_the_longest_prompts_block_the_others_most(busy: Run) -> None:
    shortest = quarters(busy)[0]
    assert shortest.behind_s[-1] == max(shortest.behind_s)
    assert shortest.ttft.p50_s is not None
    assert shortest.ttft.p50_s < (quarters(busy)[-1].ttft.p50_s or 0)


def test_equal_prompts_are_one_group() -> None:
    equal = read_case({**CHAT, "workload": {**CHAT["workload"], "prompt_tokens": FIXED | {"value": 1000}}})[0]
    assert len(quarters(run_of(equal, requests=200))) == 1


def test_classes_are_told_apart_by_name(busy: Run) -> None:
    """Classes made of short and of long prompts meet what the two halves of all prompts meet."""
    middle = float(np.median(busy.prompt_tokens))
    long = (busy.result.prompt_tokens > middle).astype(np.int64)
    named = (RequestClass(name="chat", share=0.5), RequestClass(name="documents", share=0.5))
    workload = replace(busy.replica.workload, classes=named)
    run = replace(busy, replica=replace(busy.replica, workload=workload), result=replace(busy.result, class_index=long))
    rows = dict(classes(run))
    assert list(rows) == ["chat", "documents"]
    short, other = rows["chat"], rows["documents"]
    assert short.longest_tokens <= middle < other.shortest_tokens
    assert short.behind_s[1] > short.behind_s[0]
    assert short.requests + other.requests == busy.times.ttft_s.size
    assert classes(busy) == ()


def test_a_load_with_classes_and_impatient_clients_is_taken_apart_too() -> None:
    """The class that is served first waits least; who gave up is in no group."""
    classes_case = [
        {"name": "chat", "share": 0.7, "prompt_tokens": FIXED | {"value": 500}, "priority": 0},
        {"name": "documents", "share": 0.3, "prompt_tokens": FIXED | {"value": 12_000}, "priority": 1},
    ]
    load = {**CHAT["workload"], "arrivals": {"kind": "poisson", "rate_per_s": 6.0}, "classes": classes_case}
    clients = {"cancel_share": 0.1, "patience_s": 2.0, "retries": 1}
    scenario = read_case({**CHAT, "workload": {**load, "clients": clients}})[0]
    run, report = run_of(scenario), predict(scenario)
    rows = dict(classes(run))
    assert {one.name: one.requests for one in report.classes} == {name: group.requests for name, group in rows.items()}
    assert rows["chat"].queue_s < rows["documents"].queue_s
    hour = play(scenario)
    assert max(hour.waiting) < 0.1 * hour.whole.requests
    assert np.mean(hour.offered_per_s) == pytest.approx(6.0, rel=0.1)


@pytest.mark.parametrize("rate_per_s", [3.0, 8.0])
def test_kv_usage_read_off_the_requests_is_what_the_simulator_counted(rate_per_s: float) -> None:
    run = run_of(chat(rate_per_s), requests=3000)
    result = run.result
    begin, end = (float(result.admitted_s[i]) for i in (result.measured.start, result.measured.stop - 1))
    read = kv_usage(result, run.replica.rules, np.arange(begin, end, 0.5))
    assert float(read.mean()) == pytest.approx(result.kv_used_mean_share, rel=0.03)


@pytest.fixture(scope="module")
def hour() -> HourReport:
    """Twenty quiet minutes, twenty near the limit, twenty quiet ones."""
    limit = predict(chat()).max_rate_per_s
    rates = (0.2 * limit,) * 20 + (1.1 * limit,) * 20 + (0.2 * limit,) * 20
    return play(chat(), arrivals=PerMinute(rates_per_s=rates))


def test_an_hour_has_sixty_minutes_that_follow_the_rates(hour: HourReport) -> None:
    limit = predict(chat()).max_rate_per_s
    assert len(hour.offered_per_s) == 60
    assert np.mean(hour.offered_per_s[:20]) == pytest.approx(0.2 * limit, rel=0.1)
    assert np.mean(hour.offered_per_s[20:40]) == pytest.approx(1.1 * limit, rel=0.1)
    assert sum(hour.offered_per_s) * 60 == pytest.approx(hour.whole.requests)


def test_a_rush_beyond_the_limit_builds_a_queue_that_drains_afterwards(hour: HourReport) -> None:
    assert max(hour.waiting[:20]) < 3
    assert hour.waiting[39] > 5 * hour.waiting[22]
    assert max(hour.waiting[55:]) < 3
    assert hour.kv_usage_share[38] > 2 * hour.kv_usage_share[10]
    assert not any(hour.over[1:20])
    assert all(hour.over[30:40])


def test_the_mean_rate_hides_the_rush(hour: HourReport) -> None:
    assert (hour.understated or 0) > 5
    assert hour.minutes_over >= 15
    assert (hour.even.ttft.p95_s or 0) < 1.5 < (hour.whole.ttft.p95_s or 0)


def test_a_steady_hour_is_the_steady_report() -> None:
    scenario = chat()
    steady, report = play(scenario), predict(scenario, requests=20_000)
    assert steady.whole.ttft.p95_s == pytest.approx(report.ttft.p95_s, rel=0.1)
    assert steady.whole.e2e.mean_s == pytest.approx(report.e2e.mean_s, rel=0.05)
    assert steady.understated == pytest.approx(1.0)
    assert np.mean(steady.running[5:]) == pytest.approx(report.concurrency, rel=0.1)


def test_replicas_share_the_hour() -> None:
    one = play(chat(4.0))
    two = play(chat(8.0, replicas=2, gpus=2, gpu_count=2))
    assert np.mean(two.offered_per_s) == pytest.approx(2 * np.mean(one.offered_per_s), rel=0.1)
    assert np.mean(two.running) == pytest.approx(2 * np.mean(one.running), rel=0.1)


@pytest.mark.parametrize("code", SHAPES)
def test_a_shape_keeps_the_mean_rate_and_waits_longer_than_poisson(code: str) -> None:
    shaped = SHAPES[code].at(5.0)
    assert shaped.rate_per_s == pytest.approx(5.0)
    assert max(shaped.rates_per_s) / min(shaped.rates_per_s) == pytest.approx(
        max(SHAPES[code].rates_per_s) / min(SHAPES[code].rates_per_s)
    )
    busy = SHAPES[code].at(0.75 * predict(chat()).max_rate_per_s)
    assert (play(chat(), arrivals=busy).understated or 0) > 1


def test_a_log_is_played_as_long_as_it_is() -> None:
    times = tuple(np.linspace(0, 150, 301))
    report = play(chat(), arrivals=Recorded(times_s=times))
    assert len(report.offered_per_s) == 3
    assert report.whole.requests == 301


def test_a_closed_loop_has_no_hour() -> None:
    with pytest.raises(InputError, match="no rates"):
        play(chat(), arrivals=Closed(concurrency=4))


def test_more_requests_than_can_be_simulated_are_cut_and_said() -> None:
    lengths = {"prompt_tokens": FIXED | {"value": 20}, "output_tokens": FIXED | {"value": 2}}
    short = read_case({**CHAT, "workload": {**CHAT["workload"], **lengths}})[0]
    report = play(short, arrivals=OpenLoop(kind="poisson", rate_per_s=90.0))
    assert len(report.offered_per_s) < 60
    assert "first" in str(report.notes[0])
