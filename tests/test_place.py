"""Runs find their cell of the evaluation matrix, or are told what keeps them out."""

from dataclasses import replace

import pytest

from calc.checks.run_facts import RunFacts
from calc.evidence import Percentiles
from calc.poc.cells import CacheStrategy, Cell, Repetition
from calc.poc.place import Gap, cell_of, concurrency_of, context_of, in_flight, suggested
from data.records import RunDeclaration

DECLARED = RunDeclaration(strategy=CacheStrategy.PREFIX, repetition=Repetition.MEDIUM)
CLOSED = RunFacts(input_tokens_mean=1900, max_concurrency=24, request_rate_is_infinite=True, num_prompts=500)
OPEN = RunFacts(
    input_tokens_mean=2548, request_rate_per_s=4.0, request_throughput_per_s=3.9, e2e=Percentiles(mean_s=4.1)
)


def test_a_closed_run_with_its_two_axes_declared_has_a_cell() -> None:
    cell = cell_of(CLOSED, DECLARED)
    assert cell == Cell(
        strategy=CacheStrategy.PREFIX, repetition=Repetition.MEDIUM, context_tokens=2048, concurrency=24
    )


def test_everything_missing_is_said_at_once() -> None:
    assert cell_of(RunFacts(), None) == (Gap.STRATEGY, Gap.REPETITION, Gap.CONTEXT, Gap.CONCURRENCY)
    assert cell_of(CLOSED, RunDeclaration(strategy=CacheStrategy.PAGED)) == (Gap.REPETITION,)


@pytest.mark.parametrize(("tokens", "context"), [(128, 128), (500, 512), (700, 512), (730, 1024), (32_000, 32_768)])
def test_prompts_go_to_the_nearest_doubling_of_512(tokens: float, context: int) -> None:
    assert context_of(RunFacts(input_tokens_mean=tokens)) == context


def test_a_context_of_the_plan_wins_over_the_scale() -> None:
    assert context_of(OPEN, (500, 2548, 10_000)) == 2548
    assert context_of(replace(OPEN, input_tokens_mean=2200.0), (2548,)) == 2548
    assert context_of(replace(OPEN, input_tokens_mean=4000.0), (2548,)) == 4096


def test_requests_in_flight_of_a_rate_follow_from_littles_law() -> None:
    assert in_flight(OPEN) == pytest.approx(3.9 * 4.1)
    assert concurrency_of(OPEN) == 16
    assert concurrency_of(OPEN, (8, 18, 40)) == 18
    assert concurrency_of(replace(OPEN, max_concurrency=256)) == 16, "a cap that the rate never reaches"


def test_fewer_requests_than_the_cap_never_fill_it() -> None:
    assert concurrency_of(replace(CLOSED, num_prompts=10)) == 10


def test_without_latency_the_cap_is_the_best_that_is_known() -> None:
    assert concurrency_of(RunFacts(request_rate_per_s=2.0, max_concurrency=32)) == 32
    assert concurrency_of(RunFacts(request_rate_per_s=2.0)) is None


@pytest.mark.parametrize(
    ("hits", "level"),
    [(0.03, Repetition.LOW), (0.402, Repetition.MEDIUM), (0.603, Repetition.HIGH), (0.8, Repetition.HIGH)],
)
def test_a_measured_hit_rate_suggests_prefix_reuse_and_a_level(hits: float, level: Repetition) -> None:
    found = suggested(RunFacts(prefix_hit_share=hits))
    assert (found.strategy, found.repetition) == (CacheStrategy.PREFIX, level)


def test_no_hits_suggest_nothing() -> None:
    assert suggested(RunFacts(prefix_hit_share=0.0)).strategy is None
    assert suggested(RunFacts()).repetition is None
