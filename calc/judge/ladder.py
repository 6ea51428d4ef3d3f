"""The conditions' own answer: steps in a fixed order, each a few conditions that must be met together.

The first step whose conditions are all met gives the outcome. The order is an engineer's: can it run at all, is
anything wrong, what binds, what would help. No weights, no score: a step can be read aloud and argued with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.judge.decision import Finding, Outcome, Verdict


@dataclass(frozen=True, kw_only=True)
class Step:
    """``outcome`` when every condition of ``all_of`` is met and none of ``none_of``."""

    outcome: Outcome
    all_of: tuple[str, ...]
    none_of: tuple[str, ...] = ()
    lever: str | None = None
    """First thing to do."""


OPTIMISE, ADD, RE_ARCHITECT = Outcome.OPTIMISE_CACHE, Outcome.ADD_MEMORY, Outcome.RE_ARCHITECT
TUNE, NO_CHANGE, MEASURE = Outcome.TUNE_SCHEDULING, Outcome.NO_CHANGE, Outcome.MEASURE_FIRST

LADDER: tuple[Step, ...] = (
    # Can the evidence be used, and can the engine start?
    Step(outcome=MEASURE, all_of=("measure.run-invalid",), lever="repeat-the-run"),
    Step(outcome=TUNE, all_of=("memory.gap-is-workspace",), lever="lower-memory-fraction"),
    Step(outcome=TUNE, all_of=("schedule.memory-not-released",), lever="fix-release"),
    Step(outcome=ADD, all_of=("memory.does-not-fit", "memory.weights-share"), lever="more-gpus"),
    Step(outcome=ADD, all_of=("memory.does-not-fit", "memory.long-context-required"), lever="more-gpus"),
    Step(outcome=TUNE, all_of=("memory.does-not-fit", "schedule.start-settings"), lever="shorter-context"),
    Step(outcome=ADD, all_of=("memory.does-not-fit",), lever="more-gpus"),
    # Is anything wrong?
    Step(outcome=NO_CHANGE, all_of=("calm.slo-with-headroom",)),
    Step(outcome=NO_CHANGE, all_of=("calm.offload-not-needed",), lever="offload-off"),
    # Have the other ways been shown to fail?
    Step(outcome=RE_ARCHITECT, all_of=("architecture.no-lever-carries",), lever="fitting-model"),
    Step(outcome=RE_ARCHITECT, all_of=("architecture.cost-limit",), lever="route-by-difficulty"),
    # Does moving data, or one kind of request, spoil the rest?
    Step(outcome=ADD, all_of=("memory.offload-hurts", "memory.cache-fills"), lever="more-gpus"),
    Step(outcome=RE_ARCHITECT, all_of=("architecture.link-dominates",), lever="keep-kv-on-gpu"),
    Step(outcome=TUNE, all_of=("transfer.offload-slow",), lever="offload-off"),
    Step(outcome=TUNE, all_of=("transfer.tp-over-pcie",), lever="replicas-instead-of-tp"),
    Step(outcome=TUNE, all_of=("transfer.over-sharded",), lever="replicas-instead-of-tp"),
    Step(outcome=TUNE, all_of=("transfer.split-hurts",), lever="rebalance-split"),
    Step(outcome=RE_ARCHITECT, all_of=("architecture.tenants-collide",), lever="tenant-quotas"),
    Step(outcome=RE_ARCHITECT, all_of=("architecture.offline-mixed",), lever="separate-offline"),
    # Is the load too much for the GPUs?
    Step(outcome=OPTIMISE, all_of=("memory.load-above-capacity", "cache.hit-improvable"), lever="prefix-cache"),
    Step(outcome=ADD, all_of=("memory.load-above-capacity",), lever="more-replicas"),
    # Is memory short?
    Step(outcome=OPTIMISE, all_of=("memory.cache-fills", "cache.waste"), lever="block-size"),
    Step(outcome=OPTIMISE, all_of=("memory.cache-fills", "cache.hit-improvable"), lever="prefix-cache"),
    Step(
        outcome=TUNE,
        all_of=("schedule.preemption-thrash",),
        none_of=("memory.steady-demand", "memory.long-context-required", "memory.weights-share"),
        lever="lower-max-seqs",
    ),
    Step(outcome=ADD, all_of=("memory.cache-fills",), lever="more-gpus"),
    Step(outcome=ADD, all_of=("memory.lost-requests",), lever="more-gpus"),
    Step(outcome=ADD, all_of=("memory.steady-demand",), lever="more-gpus"),
    # Do settings bind?
    Step(outcome=TUNE, all_of=("schedule.max-seqs-binds",), lever="raise-max-seqs"),
    Step(outcome=TUNE, all_of=("schedule.queue-with-free-kv",), lever="raise-max-seqs"),
    Step(outcome=TUNE, all_of=("schedule.host-bound",), lever="relieve-host"),
    Step(outcome=TUNE, all_of=("schedule.speculation",), lever="speculation-off"),
    # Is work repeated, or shared unevenly?
    Step(outcome=OPTIMISE, all_of=("cache.block-too-long",), lever="block-size"),
    Step(outcome=OPTIMISE, all_of=("cache.diluted",), lever="route-by-prefix"),
    Step(outcome=OPTIMISE, all_of=("cache.hits-missing",), lever="stabilise-prompts"),
    Step(outcome=OPTIMISE, all_of=("cache.hit-improvable",), lever="prefix-cache"),
    Step(outcome=OPTIMISE, all_of=("cache.waste",), lever="block-size"),
    Step(
        outcome=OPTIMISE,
        all_of=("cache.stable-prefixes", "cache.prefill-share"),
        none_of=("memory.reuse-cannot-help", "guard.short-prompts"),
        lever="prefix-cache",
    ),
    Step(
        outcome=OPTIMISE,
        all_of=("cache.stable-prefixes", "cache.ttft-matters"),
        none_of=("memory.reuse-cannot-help", "guard.short-prompts"),
        lever="prefix-cache",
    ),
    Step(outcome=RE_ARCHITECT, all_of=("architecture.idle-misses-slo",), lever="shorter-prompts"),
    Step(outcome=TUNE, all_of=("schedule.itl-tail",), lever="chunked-prefill"),
    Step(outcome=TUNE, all_of=("schedule.batched-tokens-bind",), lever="raise-batched-tokens"),
    Step(outcome=TUNE, all_of=("schedule.long-blocks-short",), lever="limit-long-prefills"),
    Step(outcome=NO_CHANGE, all_of=("calm.nothing-waits",)),
)

UNDECIDED = Step(outcome=MEASURE, all_of=())
"""Nothing known decides: measure first."""


def deciding_step(findings: tuple[Finding, ...]) -> Step:
    """The first step that holds, or :data:`UNDECIDED`."""
    return next(iter(_holding(findings)), UNDECIDED)


def next_step(findings: tuple[Finding, ...]) -> Step | None:
    """The runner-up: the next step that holds with another outcome, else one that a missing figure could make hold."""
    verdicts = _verdicts(findings)
    answer = deciding_step(findings)
    for step in _holding(findings):
        if step.outcome is not answer.outcome:
            return step
    for step in LADDER:
        if step.outcome is not answer.outcome and _could_hold(step, verdicts):
            return step
    return None


def _holding(findings: tuple[Finding, ...]) -> list[Step]:
    verdicts = _verdicts(findings)
    return [step for step in LADDER if _holds(step, verdicts)]


def _verdicts(findings: tuple[Finding, ...]) -> Mapping[str, Verdict]:
    return {finding.rule: finding.verdict for finding in findings}


def _holds(step: Step, verdicts: Mapping[str, Verdict]) -> bool:
    return all(verdicts[code] is Verdict.MET for code in step.all_of) and not any(
        verdicts[code] is Verdict.MET for code in step.none_of
    )


def _could_hold(step: Step, verdicts: Mapping[str, Verdict]) -> bool:
    """Some conditions are met and the others unknown, so that one measurement could settle it."""
    seen = [verdicts[code] for code in step.all_of]
    return Verdict.MET in seen and Verdict.NOT_MET not in seen
