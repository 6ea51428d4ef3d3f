"""Conditions of a decision: three-valued verdicts, published lines, and nothing judged on what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calc.errors import UnknownName
from calc.evidence import Evidence, Provenance, Value
from calc.judge.actions import ACTIONS
from calc.judge.conditions import Facts, both, either, judge, opposite
from calc.judge.decision import Finding, Outcome, Verdict
from calc.judge.derived import derived_from
from calc.judge.diagnose import CAUSES, SIGNS
from calc.judge.ladder import LADDER
from calc.judge.rules import RULES, findings_of
from calc.judge.thresholds import OWN, THRESHOLDS, thresholds
from calc.metrics import METRICS
from calc.units import GIB

MET, NOT_MET, UNKNOWN = Verdict.MET, Verdict.NOT_MET, Verdict.UNKNOWN


def facts(given: Mapping[str, Value], how: Provenance = Provenance.MEASURED) -> dict[str, Evidence]:
    return derived_from(
        {
            name: Evidence(metric=name, value=value, unit=METRICS[name].unit, provenance=how)
            for name, value in given.items()
        }
    )


def finding(code: str, how: Provenance = Provenance.MEASURED, own: Any = None, /, **given: Value) -> Finding:
    return next(found for found in findings_of(facts(given, how), own) if found.rule == code)


class Recording(Facts):
    """Remembers which metrics a condition asked for."""

    def __init__(self, evidence: Mapping[str, Evidence]) -> None:
        super().__init__(evidence=evidence, lines=THRESHOLDS)
        object.__setattr__(self, "asked", set())

    def number(self, metric: str) -> float | None:
        self.asked.add(metric)  # type: ignore[attr-defined]
        return super().number(metric)

    def flag(self, metric: str) -> bool | None:
        self.asked.add(metric)  # type: ignore[attr-defined]
        return super().flag(metric)

    def is_text(self, metric: str, *texts: str) -> bool | None:
        self.asked.add(metric)  # type: ignore[attr-defined]
        return super().is_text(metric, *texts)

    def measured(self, metric: str) -> bool:
        self.asked.add(metric)  # type: ignore[attr-defined]
        return super().measured(metric)


def some_value(name: str, number: float, *, yes: bool) -> Value:
    match METRICS[name].unit:
        case "flag":
            return yes
        case "text":
            return "pcie" if yes else "compute"
        case _:
            return number


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_condition_shows_every_figure_it_looked_at(rule: Any) -> None:
    for number, yes in product((0.0, 0.3, 0.95, 3.0, 1e12), (True, False)):
        seen = Recording(facts({name: some_value(name, number, yes=yes) for name in METRICS}))
        rule.test(seen)
        assert seen.asked <= set(rule.metrics)  # type: ignore[attr-defined]


def test_tables_name_only_what_exists() -> None:
    codes = {rule.code for rule in RULES}
    assert len(codes) == len(RULES)
    assert {name for rule in RULES for name in rule.metrics} <= set(METRICS)
    assert {line for rule in RULES for _, line in rule.limits} <= set(THRESHOLDS)
    assert all(metric in rule.metrics for rule in RULES for metric, _ in rule.limits)
    assert {code for step in LADDER for code in (*step.all_of, *step.none_of)} <= codes
    assert {code for codes_of in SIGNS.values() for code in codes_of} | set(CAUSES) <= codes
    assert {step.lever for step in LADDER if step.lever} <= set(ACTIONS)


def test_every_threshold_is_used_and_says_where_it_comes_from() -> None:
    assert {line for rule in RULES for _, line in rule.limits} == set(THRESHOLDS)
    assert all(line.source for line in THRESHOLDS.values())
    assert sum(line.source == OWN for line in THRESHOLDS.values()) < len(THRESHOLDS) / 2


def test_all_six_cache_and_seven_memory_conditions_and_six_guards_are_there() -> None:
    cache = {rule.code for rule in RULES if rule.supports is Outcome.OPTIMISE_CACHE and not rule.guard}
    assert cache >= {
        "cache.prefill-share", "cache.stable-prefixes", "cache.hit-improvable", "cache.waste", "cache.ttft-matters",
        "cache.capacity-suffices",
    }  # fmt: skip
    memory = {rule.code for rule in RULES if rule.supports is Outcome.ADD_MEMORY and not rule.guard}
    assert memory >= {
        "memory.weights-share", "memory.long-context-required", "memory.steady-demand", "memory.reuse-cannot-help",
        "memory.offload-hurts", "memory.lost-requests", "memory.several-models",
    }  # fmt: skip
    guards = {rule.code for rule in RULES if rule.supports is Outcome.ADD_MEMORY and rule.guard}
    assert guards == {
        "guard.no-shared-prefix", "guard.expires-soon", "guard.one-off-content", "guard.rebuild-cost",
        "guard.squeezes-runtime", "guard.longer-queues", "memory.gap-is-workspace",
    }  # fmt: skip


def test_unknown_parts_leave_the_whole_unknown_unless_the_known_ones_settle_it() -> None:
    assert both(True, None) is None
    assert both(False, None) is False
    assert either(False, None) is None
    assert either(True, None) is True
    assert opposite(None) is None


def test_without_evidence_every_condition_is_unknown_and_says_what_to_measure() -> None:
    for found in findings_of({}):
        assert found.verdict is UNKNOWN, found.rule
        assert str(found.statement)
        assert all(seen.provenance is Provenance.MISSING for seen in found.evidence)


@pytest.mark.parametrize(
    ("given_figures", "expected"),
    [
        ({"kv_usage_max_share": 0.95}, UNKNOWN),
        ({"kv_usage_max_share": 0.95, "waiting": 0.0, "preempted_share": 0.0, "itl_rise_ratio": 1.02}, NOT_MET),
        ({"kv_usage_max_share": 0.989, "waiting": 4.0}, MET),
        ({"kv_usage_max_share": 0.95, "preempted_share": 0.02}, MET),
        ({"kv_usage_max_share": 0.989, "itl_rise_ratio": 440 / 107}, MET),
        ({"kv_usage_max_share": 0.34, "waiting": 20.0}, NOT_MET),
    ],
)
def test_kv_usage_alone_is_no_fault(given_figures: dict[str, Value], expected: Verdict) -> None:
    assert finding("memory.cache-fills", **given_figures).verdict is expected


def test_a_repeating_share_counts_as_stable_only_when_measured_or_declared_so() -> None:
    declared = Provenance.DECLARED
    assert finding("cache.stable-prefixes", declared, prefix_share=0.6).verdict is UNKNOWN
    assert finding("cache.stable-prefixes", declared, prefix_share=0.6, prompts_stable=True).verdict is MET
    assert finding("cache.stable-prefixes", declared, prefix_share=0.6, prompts_stable=False).verdict is NOT_MET
    assert finding("cache.stable-prefixes", prefix_share=0.6).verdict is MET


def test_a_hit_rate_a_scenario_assumes_is_no_sign_of_a_cold_cache() -> None:
    assert finding("cache.hits-missing", Provenance.DECLARED, hit_rate_share=0.0).verdict is UNKNOWN
    assert finding("cache.hits-missing", hit_rate_share=0.0).verdict is MET
    assert finding("cache.hits-missing", hit_rate_share=0.0, prefix_share=0.05).verdict is NOT_MET
    assert finding("cache.hits-missing", hit_rate_share=0.0, prefix_caching=False).verdict is NOT_MET


def test_caching_switched_off_means_no_hits() -> None:
    assert finding("cache.hit-improvable", prefix_caching=False, prefix_share=0.6).verdict is MET


@pytest.mark.parametrize(
    ("code", "fires", "silent"),
    [
        ("guard.no-shared-prefix", {"prefix_share": 0.1}, {"prefix_share": 0.3}),
        (
            "guard.expires-soon",
            {"prefix_lifetime_s": 60.0, "reuse_interval_s": 300.0},
            {"prefix_lifetime_s": 600.0, "reuse_interval_s": 300.0},
        ),
        ("guard.one-off-content", {"one_off_share": 0.7}, {"one_off_share": 0.2}),
        ("guard.rebuild-cost", {"rebuild_share": 0.05}, {"rebuild_share": 0.0}),
        ("guard.squeezes-runtime", {"margin_bytes": 0.6e9}, {"margin_bytes": 4e9}),
        ("guard.longer-queues", {"rho": 0.95, "bound": "compute"}, {"rho": 0.95, "bound": "memory_capacity"}),
        ("memory.gap-is-workspace", {"runtime_oom": True}, {"runtime_oom": False, "oom_count": 0.0}),
        ("guard.short-prompts", {"prompt_p50_tokens": 130.0}, {"prompt_p50_tokens": 3500.0}),
        ("guard.changing-prompts", {"prompts_stable": False}, {"prompts_stable": True}),
        ("guard.local-attention", {"local_layers_share": 5 / 6}, {"local_layers_share": 0.0}),
        ("guard.tenants-apart", {"tenants_may_share": False}, {"tenants_may_share": True}),
    ],
)
def test_each_guard_is_a_check_with_a_number(code: str, fires: dict[str, Value], silent: dict[str, Value]) -> None:
    assert finding(code, **fires).verdict is MET
    assert finding(code, **silent).verdict is NOT_MET
    assert finding(code).verdict is UNKNOWN


def test_weights_of_a_70b_model_in_16_bit_take_most_of_an_80_gb_gpu_at_tp_2() -> None:
    found = finding("memory.weights-share", weights_bytes=70e9, gpu_memory_bytes=79.2 * GIB)
    assert found.verdict is NOT_MET
    assert finding("memory.weights-share", weights_bytes=70e9, gpu_memory_bytes=80e9).verdict is MET


def test_a_statement_carries_the_number_and_the_line() -> None:
    text = str(finding("memory.cache-fills", kv_usage_max_share=0.989, waiting=4.0).statement)
    assert "98.9 %" in text
    assert "90 %" in text
    assert "None" not in text


def test_a_finding_names_the_source_of_its_line() -> None:
    assert "vllm-ascend#5859" in finding("memory.cache-fills", kv_usage_max_share=0.989, waiting=4.0).source


def test_a_team_may_set_its_own_lines() -> None:
    assert finding("memory.cache-fills", kv_usage_max_share=0.85, waiting=4.0).verdict is NOT_MET
    own = finding(
        "memory.cache-fills", Provenance.MEASURED, {"kv_full_share": 0.8}, kv_usage_max_share=0.85, waiting=4.0
    )
    assert own.verdict is MET
    assert own.source.startswith("set for this review")
    with pytest.raises(UnknownName, match="kv_full"):
        thresholds({"kv_ful_share": 0.8})


def test_a_target_without_its_figure_is_not_called_met() -> None:
    half = {"ttft_slo_s": 2.0, "itl_slo_s": 0.05, "ttft_p95_s": 1.0, "rho": 0.5}
    assert finding("calm.slo-with-headroom", **half).verdict is UNKNOWN
    assert finding("calm.slo-with-headroom", **half, itl_p95_s=0.04).verdict is MET
    assert finding("calm.slo-with-headroom", **half, itl_p95_s=0.06).verdict is NOT_MET


def test_a_derived_figure_is_no_better_known_than_its_parts() -> None:
    known = facts({"kv_demand_bytes": 4e9}) | facts({"kv_pool_bytes": 8e9}, Provenance.ESTIMATED)
    ratio = derived_from(known)["kv_demand_ratio"]
    assert ratio.value == pytest.approx(0.5)
    assert ratio.provenance is Provenance.ESTIMATED


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(METRICS)),
        st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.93, 1.0, 7.0, 2e10]), st.booleans()),
    )
)
def test_any_evidence_gives_a_readable_sentence_for_every_condition(
    given_values: dict[str, tuple[float, bool]],
) -> None:
    evidence = facts({name: some_value(name, number, yes=yes) for name, (number, yes) in given_values.items()})
    for rule in RULES:
        text = str(judge(rule, Facts(evidence=evidence, lines=THRESHOLDS)).statement)
        assert text
        assert "None" not in text
        assert "{" not in text
