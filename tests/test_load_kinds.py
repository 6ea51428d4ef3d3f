"""What a load and a deployment say about classes, clients, tiers and speculation reaches the latency report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calc.latency import predict
from calc.latency_report import LatencyReport
from calc.scenario import Scenario
from calc.simulator.arrivals import open_arrivals, plan_requests
from calc.traffic import Mmpp, Recorded
from calc.workload import Fixed, Workload
from data.case import read_case

CASE: dict[str, Any] = {
    "model": "Qwen/Qwen3-32B",
    "gpu": "h100-sxm",
    "tp": 2,
    "slo": {"ttft_ms": 1000, "itl_ms": 60},
    "workload": {
        "prompt_tokens": {"distribution": "lognormal", "p50": 1500, "p95": 6000},
        "output_tokens": {"distribution": "lognormal", "p50": 250, "p95": 700},
        "arrivals": {"kind": "poisson", "rate_per_s": 3},
    },
}


def scenario(*, load: dict[str, Any] | None = None, **more: Any) -> Scenario:
    return read_case({**CASE, **more, "workload": {**CASE["workload"], **(load or {})}})[0]


def report(**kind: Any) -> LatencyReport:
    return predict(scenario(**kind), requests=400)


def mean(value: float | None) -> float:
    assert value is not None
    return value


def parts(found: LatencyReport) -> float:
    return found.queue_s + found.prefill_s + found.decode_s + found.network_s


CHAT = {"name": "chat", "share": 0.7, "prompt_tokens": {"distribution": "fixed", "value": 500}}
BATCH = {"name": "batch", "share": 0.3, "prompt_tokens": {"distribution": "fixed", "value": 8000}}


def test_each_class_has_its_own_figures_and_priority_spares_the_interactive_one() -> None:
    alike = report(load={"classes": [CHAT, BATCH]})
    ranked = report(load={"classes": [CHAT, {**BATCH, "priority": 1}]})
    capped = report(load={"classes": [CHAT, {**BATCH, "priority": 1, "max_running": 2}]})
    for found in (alike, ranked, capped):
        assert [one.name for one in found.classes] == ["chat", "batch"]
        assert sum(one.share for one in found.classes) == pytest.approx(1)
        assert sum(mean(one.goodput_per_s) for one in found.classes) == pytest.approx(mean(found.goodput_per_s))
        assert mean(found.e2e.mean_s) == pytest.approx(parts(found))
    assert ranked.classes[0].queue_s <= alike.classes[0].queue_s
    assert capped.classes[1].queue_s > alike.classes[1].queue_s
    assert mean(capped.classes[0].ttft.p99_s) < mean(alike.classes[0].ttft.p99_s)


def test_cancelled_requests_are_counted_and_left_out() -> None:
    calm, leaving = report(), report(load={"clients": {"cancel_share": 0.4}})
    assert leaving.cancelled_share == pytest.approx(0.4, abs=0.08)
    assert leaving.requests == 400 - round(leaving.cancelled_share * 400)
    assert mean(leaving.e2e.mean_s) == pytest.approx(parts(leaving))
    assert leaving.output_tokens_per_s < calm.output_tokens_per_s
    assert any("cancelled" in str(note) for note in leaving.notes)


def test_clients_that_give_up_meet_no_target() -> None:
    load = {"arrivals": {"kind": "poisson", "rate_per_s": 8}, "clients": {"patience_s": 1.0}}
    found = report(load=load)
    again = report(load={**load, "clients": {"patience_s": 1.0, "retries": 3, "retry_after_s": 0.5}})
    assert 0.2 < found.gave_up_share < 1
    assert mean(found.slo_attainment_share) <= 1 - found.gave_up_share
    assert not found.slo_met
    assert mean(found.ttft.p99_s) <= 1.0 + found.network_s + 1e-6
    assert again.retried_share > 1
    assert mean(again.goodput_per_s) <= mean(found.goodput_per_s)


def test_a_client_that_nobody_ever_answers_leaves_a_report_without_figures() -> None:
    found = report(load={"clients": {"patience_s": 0.001}})
    assert found.gave_up_share == 1
    assert found.ttft.p50_s is None
    assert found.slo_met is False


def test_a_tier_outside_the_gpu_saves_prefill_and_a_slow_one_is_what_binds() -> None:
    def with_tier(gb_per_s: float) -> LatencyReport:
        tier = {"tier": "cpu", "gb_per_s": gb_per_s, "latency_ms": 0.1, "concurrency": 4}
        return report(serving={"offload": [tier]}, load={"offload_hit_share": 0.6})

    none, fast, slow = report(load={"offload_hit_share": 0.6}), with_tier(50), with_tier(0.5)
    assert any("computed again" in str(note) for note in none.notes)
    assert none.fetch_s == 0 < fast.fetch_s < fast.prefill_s
    assert mean(fast.ttft.mean_s) < mean(none.ttft.mean_s)
    assert fast.max_rate_per_s > none.max_rate_per_s
    assert slow.saturated
    assert slow.limit == "communication"


def test_speculation_needs_a_measured_acceptance_and_then_raises_the_limit() -> None:
    drafted = {"method": "mtp", "num_speculative_tokens": 3}
    plain, unknown = report(), report(speculative_config=drafted)
    known = report(speculative_config=drafted, serving={"accepted_tokens": 1.5})
    assert any("accepted per step" in str(note) for note in unknown.notes)
    assert mean(unknown.tpot.mean_s) == pytest.approx(mean(plain.tpot.mean_s), rel=0.1)
    assert mean(known.tpot.mean_s) < 0.7 * mean(plain.tpot.mean_s)
    assert mean(known.itl.mean_s) > 1.5 * mean(known.tpot.mean_s)
    assert known.max_rate_per_s > plain.max_rate_per_s
    free = report(speculative_config={"method": "ngram", "num_speculative_tokens": 3}, serving={"accepted_tokens": 1.5})
    assert mean(free.tpot.mean_s) < mean(known.tpot.mean_s)


def test_static_batches_carry_less() -> None:
    continuous = report(max_num_seqs=8, load={"arrivals": {"kind": "poisson", "rate_per_s": 0.5}})
    static = report(
        max_num_seqs=8,
        serving={"batching": "static"},
        load={"arrivals": {"kind": "poisson", "rate_per_s": 0.5}},
    )
    assert static.max_rate_per_s < continuous.max_rate_per_s
    assert mean(static.ttft.mean_s) > mean(continuous.ttft.mean_s)


def test_a_log_keeps_its_own_lengths_on_every_replica() -> None:
    rng = np.random.default_rng(2)
    times = np.cumsum(rng.exponential(1.0, 500))
    prompts = rng.integers(10, 90_000, 500)
    log = Recorded(
        times_s=tuple(map(float, times)),
        prompt_tokens=tuple(map(int, prompts)),
        output_tokens=tuple(map(int, prompts % 97 + 1)),
    )
    load = Workload(prompt_tokens=Fixed(value_tokens=1), output_tokens=Fixed(value_tokens=1), arrivals=log)
    plan = plan_requests(
        load, requests=200, lead=0, tail=0, split=3, longest_tokens=10**6, service_s=0, think_s=0, seed=1
    )
    own = dict(zip(np.round(times - times[0], 6), prompts, strict=True))
    inside = plan.start_s <= times[-1] - times[0]
    assert inside.sum() > 100
    for start, prompt, output in zip(plan.start_s[inside], plan.prompt_tokens, plan.output_tokens, strict=False):
        assert own[np.round(start, 6)] == prompt
        assert output == prompt % 97 + 1
    assert plan.prompt_tokens.mean() == pytest.approx(prompts.mean(), rel=0.15)


@pytest.mark.parametrize("field", ["prompt_tokens", "output_tokens"])
def test_classes_draw_from_their_own_distribution_and_else_from_the_common_one(field: str) -> None:
    named = {"distribution": "fixed", "value": 77}
    load = {"classes": [{"name": "a", "share": 0.25, field: named}, {"name": "b", "share": 0.75}]}
    work = scenario(load=load).workload
    plan = plan_requests(
        work, requests=4000, lead=0, tail=0, split=1, longest_tokens=40_000, service_s=0, think_s=0, seed=1
    )
    assert plan.class_index is not None
    lengths = getattr(plan, field)
    assert (lengths[plan.class_index == 0] == 77).all()
    assert np.unique(lengths[plan.class_index == 1]).size > 100
    assert (plan.class_index == 0).mean() == pytest.approx(0.25, abs=0.03)


def test_states_too_short_to_be_felt_leave_poisson_arrivals_at_the_mean_rate() -> None:
    brief = Mmpp(rates_per_s=(0.0, 10.0), stays_s=(1e-6, 1e-6))
    times = open_arrivals(brief, 20_000, 1, np.random.default_rng(3))
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(1 / brief.rate_per_s, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.03)


def test_a_quota_too_small_for_its_share_saturates_where_its_class_does() -> None:
    kinds = [{"name": "batch", "share": 0.5, "max_running": 1}, {"name": "chat", "share": 0.5}]
    found = report(load={"classes": kinds, "arrivals": {"kind": "poisson", "rate_per_s": 3}})
    assert found.saturated
    assert found.limit == "sequences"
    assert found.request_rate_per_s == pytest.approx(found.max_rate_per_s, rel=0.25)


def test_cancelled_requests_and_classes_are_told_apart_on_several_replicas_too() -> None:
    kinds = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]
    load = {"classes": kinds, "clients": {"cancel_share": 0.3}}
    found = report(load=load, replicas=2, serving={"routing": "round-robin"})
    assert found.cancelled_share == pytest.approx(0.3, abs=0.08)
    assert [one.name for one in found.classes] == ["a", "b"]
