"""A strategy with and without, everything else equal; and several chosen ones computed together, not added up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.errors import InputError
from calc.evidence import Provenance
from calc.latency import predict
from calc.memory import estimate_memory
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.strategies.figures import REQUESTS, Figures, figures
from calc.strategies.recompute import alone, rate_without_per_s
from calc.strategies.routed import route_models
from calc.strategies.strategy import SEED, Assumed, Ground, Judged, Risk, Strategy
from calc.strategies.table import NO_CACHE, ROUTE_MODELS, STRATEGIES


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One strategy on one scenario."""

    strategy: Strategy
    was_on: bool
    condition: Judged
    with_it: Figures | None
    without: Figures | None
    note: Message | None = None
    """Why there is nothing to compare, or what was assumed."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """Several strategies on at once."""

    codes: tuple[str, ...]
    before: Figures
    after: Figures | None
    refused: tuple[Message, ...]
    expected_e2e_ratio: float | None
    """Product of the single effects on E2E: what adding up would promise."""
    warnings: tuple[Message, ...]

    @property
    def e2e_ratio(self) -> float | None:
        """E2E after over before, computed together."""
        if self.after is None or not self.before.e2e_s or self.after.e2e_s is None:
            return None
        return self.after.e2e_s / self.before.e2e_s


def compare(scenario: Scenario, code: str, assumed: Assumed | None = None, today: Figures | None = None) -> Compared:
    """The scenario with and without one strategy; ``today`` are its figures, where they were made."""
    strategy, given = STRATEGIES[code], assumed or Assumed()
    ground = Ground.of(scenario, today.latency if today else None)
    was_on, condition = strategy.is_on(scenario), strategy.judge(ground)
    if code == NO_CACHE:
        return _without_cache(ground, strategy, condition)
    if code == ROUTE_MODELS:
        return _routed(ground, strategy, condition, given)
    changed = (strategy.switch_off if was_on else strategy.switch_on)(scenario, given)
    if isinstance(changed, Message):
        return Compared(strategy=strategy, was_on=was_on, condition=condition, with_it=None, without=None, note=changed)
    here = today or figures(scenario)
    try:
        there = figures(changed)
    except InputError as error:
        return Compared(
            strategy=strategy, was_on=was_on, condition=condition, with_it=None, without=None, note=error.message
        )
    with_it, without = (here, there) if was_on else (there, here)
    return Compared(
        strategy=strategy,
        was_on=was_on,
        condition=condition,
        with_it=with_it,
        without=without,
        note=_assumption(strategy, scenario, given, was_on=was_on),
    )


def _nothing(strategy: Strategy, condition: Judged, was_on: bool, reason: Message) -> Compared:
    return Compared(strategy=strategy, was_on=was_on, condition=condition, with_it=None, without=None, note=reason)


def _assumption(strategy: Strategy, scenario: Scenario, assumed: Assumed, *, was_on: bool) -> Message | None:
    """Which assumed figure the change rests on."""
    if was_on:
        return None
    serving, load = scenario.deployment.serving, scenario.workload
    texts = {
        "offload": None
        if load.offload_hit_share
        else msg("Assumed: {share:pct} of prompt tokens lie outside the GPU.", share=assumed.offload_hit_share),
        "eviction": msg("Assumed: {share:pct} of the tokens of every sequence stay.", share=assumed.kept_share),
        "split-prefill": None
        if serving.transfer_bytes_per_s
        else msg("Assumed: {speed:gbps} between the replicas.", speed=assumed.transfer_bytes_per_s),
        "speculation": None
        if serving.accepted_tokens is not None
        else msg(
            "Assumed: {accepted:.2g} of {drafted:count} drafted tokens are accepted.",
            accepted=assumed.accepted_tokens,
            drafted=assumed.spec_tokens,
        ),
    }
    return texts.get(strategy.code)


def _without_cache(ground: Ground, strategy: Strategy, condition: Judged) -> Compared:
    """Arithmetic, one mean request alone: no engine serves without a cache, so nothing is simulated."""
    note = msg("One request of mean length alone on the engine, by arithmetic; no queue.")
    if ground.replica is None:
        return _nothing(strategy, condition, True, note)
    load, model = ground.scenario.workload, ground.replica.model
    prompt, output = max(1, round(load.prompt_tokens.mean())), max(1, round(load.output_tokens.mean()))
    one = alone(model, prompt, output)
    base = Figures(
        scenario=ground.scenario,
        fits=True,
        gpu_count=ground.scenario.deployment.gpu_count,
        held_requests=None,
        ttft_s=one.first_s,
        provenance=Provenance.ESTIMATED.value,
    )
    limit, replicas = ground.replica.limits.max_rate_per_s, ground.replica.split
    return Compared(
        strategy=strategy,
        was_on=True,
        condition=condition,
        with_it=replace(base, itl_s=one.mean_gap_with_s, e2e_s=one.with_s, max_rate_per_s=limit * replicas),
        without=replace(
            base,
            itl_s=one.mean_gap_without_s,
            e2e_s=one.without_s,
            max_rate_per_s=rate_without_per_s(model, prompt, output) * replicas,
        ),
        note=note,
    )


def _routed(ground: Ground, strategy: Strategy, condition: Judged, assumed: Assumed) -> Compared:
    """Two services, each in as many replicas as carry its part of the load with headroom."""
    if assumed.small_model is None:
        reason = strategy.switch_on(ground.scenario, assumed)
        return _nothing(strategy, condition, False, reason if isinstance(reason, Message) else condition.statement)
    try:
        routed = route_models(ground.scenario, assumed.small_model, assumed.routed_share)
    except InputError as error:
        return _nothing(strategy, condition, False, error.message)
    if isinstance(routed, Message):
        return _nothing(strategy, condition, False, routed)
    return Compared(
        strategy=strategy,
        was_on=False,
        condition=condition,
        with_it=routed.both,
        without=routed.all_on_large,
        note=routed.note,
    )


def combine(scenario: Scenario, codes: Sequence[str], assumed: Assumed | None = None) -> Together:
    """The chosen strategies switched on one after the other and simulated once, beside the scenario as it is."""
    given = assumed or Assumed()
    before, changed = figures(scenario), scenario
    refused, ratios = [], []
    for code in codes:
        strategy = STRATEGIES[code]
        found = strategy.switch_on(changed, given)
        if isinstance(found, Message):
            refused.append(msg("{name}: {reason}", name=strategy.name, reason=found))
            continue
        changed = found
        ratios.append(_single_ratio(scenario, code, given, before))
    known = [ratio for ratio in ratios if ratio is not None]
    try:
        after: Figures | None = figures(changed)
    except InputError as error:
        after = None
        refused.append(error.message)
    return Together(
        codes=tuple(codes),
        before=before,
        after=after,
        refused=tuple(refused),
        expected_e2e_ratio=math.prod(known) if known and len(known) == len(ratios) else None,
        warnings=stack_warnings(codes),
    )


def _single_ratio(scenario: Scenario, code: str, assumed: Assumed, before: Figures) -> float | None:
    one = STRATEGIES[code].switch_on(scenario, assumed)
    if isinstance(one, Message) or not before.e2e_s:
        return None
    memory = estimate_memory(one.deployment, one.workload)
    if not memory.fits:
        return None
    steady = replace(one, workload=replace(one.workload, num_requests=None))
    e2e = predict(steady, memory=memory, requests=REQUESTS, seed=SEED).e2e.at(one.slo.percentile_share)
    return None if e2e is None else e2e / before.e2e_s


_STACKED = {
    Risk.ACCURACY: msg(
        "{count:count} of them touch answers: errors of one may hide behind another; test quality with all of them on."
    ),
    Risk.FRAGMENTATION: msg("{count:count} of them change how memory is cut: watch waste and preemption."),
    Risk.SCHEDULING: msg("{count:count} of them change scheduling: gains overlap, and the tail may move elsewhere."),
    Risk.ROLLBACK: msg(
        "{count:count} of them need a way back of their own: switch on one at a time, keep the former setting ready."
    ),
}


def stack_warnings(codes: Sequence[str]) -> tuple[Message, ...]:
    """What several strategies at once put at risk together."""
    found = []
    for risk, text in _STACKED.items():
        count = sum(risk in STRATEGIES[code].risks for code in codes)
        if count > 1:
            found.append(Message(text.msgid, {"count": count}))
    return tuple(found)
