"""What each lever would do to this scenario: memory, latency, cost and headroom with it, everything else unchanged."""

from __future__ import annotations

from dataclasses import replace

from calc.cost import cost_of
from calc.deployment import Deployment
from calc.engine import resolve
from calc.errors import InputError
from calc.hardware import Gpu
from calc.judge.actions import ACTIONS
from calc.judge.decision import Outcome, WhatIf
from calc.judge.lever_changes import CHANGES, Today, replicas_needed
from calc.judge.trials import FINE_SEARCH_STEPS, Trial, try_out
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.step.efficiency import Efficiency

AS_IS = "as-is"
"""Code of the scenario unchanged, the first row of the table."""
NEEDS_A_FIT = frozenset(
    {
        "raise-max-seqs",
        "lower-max-seqs",
        "raise-batched-tokens",
        "lower-batched-tokens",
        "chunked-prefill",
        "replicas-instead-of-tp",
        "prefix-cache",
        "shorter-prompts",
    }
)
"""Levers that change nothing about whether the engine starts."""


def what_ifs(
    scenario: Scenario,
    gpus: tuple[Gpu, ...] = (),
    *,
    requests: int = 1000,
    reusable_share: float | None = None,
    as_is: Trial | None = None,
    efficiency: Efficiency | None = None,
) -> tuple[WhatIf, ...]:
    """The scenario as it is, then every lever on it; ``reusable_share`` is the share of prompt tokens that repeat."""
    start = as_is or try_out(scenario, requests, steps=FINE_SEARCH_STEPS, efficiency=efficiency)
    today = Today(
        scenario=start.scenario,
        settings=resolve(start.scenario.deployment),
        memory=start.memory,
        latency=start.latency,
        limit_load=start.limit_load,
        gpus=gpus,
        reusable_share=reusable_share,
    )
    return (_as_is(start), *(_pull(code, today, requests, efficiency) for code in CHANGES))


def _as_is(trial: Trial) -> WhatIf:
    note = msg("Nothing is changed.")
    if not trial.memory.fits:
        note = msg("Does not fit: {over:gib} too much on each GPU.", over=trial.memory.over_bytes)
    if trial.problem is not None:
        note = trial.problem
    return _row(AS_IS, msg("As it is"), Outcome.NO_CHANGE, trial, note)


def _pull(code: str, today: Today, requests: int, efficiency: Efficiency | None) -> WhatIf:
    action = ACTIONS[code]
    if code in NEEDS_A_FIT and not today.memory.fits:
        return _not_applicable(code, msg("It has to fit in memory first."))
    try:
        changed = CHANGES[code](today)
        if isinstance(changed, Message):
            return _not_applicable(code, changed)
        trial = _smallest_carrying(changed, requests, efficiency, grow=not today.memory.fits)
    except InputError as error:
        return _not_applicable(code, error.message)
    return _row(code, action.title, action.outcome, trial, _note(code, today.deployment, trial))


def _smallest_carrying(
    candidates: tuple[Scenario, ...], requests: int, efficiency: Efficiency | None, *, grow: bool
) -> Trial:
    """The first candidate that carries the load; else the first that fits, with ``grow`` in as many replicas as do."""
    trials: list[Trial] = []
    for scenario in candidates:
        trials.append(try_out(scenario, requests, efficiency=efficiency))
        if trials[-1].carries:
            return trials[-1]
    fitting = next((trial for trial in trials if trial.memory.fits), trials[-1])
    if not grow or len(candidates) == 1 or fitting.latency is None:
        return fitting
    return _in_replicas(fitting.scenario, requests, efficiency) or fitting


def _in_replicas(scenario: Scenario, requests: int, efficiency: Efficiency | None) -> Trial | None:
    one = try_out(scenario, requests, steps=FINE_SEARCH_STEPS, efficiency=efficiency)
    if not one.limit_load:
        return None
    replicas = replicas_needed(scenario, one.limit_load)
    widened = replace(scenario, deployment=replace(scenario.deployment, replicas=replicas))
    return try_out(widened, requests, efficiency=efficiency)


def _not_applicable(code: str, reason: Message) -> WhatIf:
    return WhatIf(
        lever=code,
        title=ACTIONS[code].title,
        supports=ACTIONS[code].outcome,
        scenario=None,
        memory=None,
        latency=None,
        cost_per_million_tokens=None,
        headroom_per_s=None,
        meets_slo=None,
        note=reason,
    )


def _row(code: str, title: Message, supports: Outcome, trial: Trial, note: Message) -> WhatIf:
    cost = cost_of(trial.scenario, trial.latency)
    slo = trial.scenario.slo
    stated = (slo.ttft_s, slo.itl_s, slo.e2e_s) != (None, None, None)
    missed = False if stated and not trial.memory.fits else None
    return WhatIf(
        lever=code,
        title=title,
        supports=supports,
        scenario=trial.scenario,
        memory=trial.memory,
        latency=trial.latency,
        cost_per_million_tokens=cost.per_million_output_tokens if cost else None,
        headroom_per_s=trial.headroom_per_s,
        meets_slo=trial.latency.slo_met if trial.latency else missed,
        note=note,
        carries=trial.carries,
        limit_load=trial.limit_load,
        cost_per_hour=cost.reserved_per_hour if cost else None,
    )


def _note(code: str, before: Deployment, trial: Trial) -> Message:
    """What was changed, from which value to which, and the caution that goes with it."""
    change = _change(code, before, trial.scenario)
    caution = ACTIONS[code].caution
    if trial.problem is not None:
        return trial.problem
    if not trial.memory.fits:
        return msg("{change} It does not fit: {over:gib} too much.", change=change, over=trial.memory.over_bytes)
    return change if caution is None else msg("{change} {caution}", change=change, caution=caution)


def _change(code: str, before: Deployment, after: Scenario) -> Message:
    was, now = resolve(before), resolve(after.deployment)
    changed = after.deployment
    texts = {
        "prefix-cache": msg("Hit rate {hit:pct} of prompt tokens.", hit=after.workload.prefix_hit_share),
        "fp8-kv": msg("KV dtype {was} → {now}.", was=was.kv_dtype, now=now.kv_dtype),
        "more-gpus": _more_gpus(before, changed),
        "replicas-instead-of-tp": _more_gpus(before, changed),
        "more-replicas": msg("Replicas {was:count} → {now:count}.", was=before.replicas, now=changed.replicas),
        "bigger-gpu": msg(
            "{was} → {now}; the price of its hour is not known.", was=before.gpu.name, now=changed.gpu.name
        ),
        "fp8-weights": msg("Weights in FP8."),
        "shorter-prompts": msg("Prompts of half the length."),
        "chunked-prefill": msg("Chunked prefill on."),
        "raise-memory-fraction": _from_to(msg("memory fraction"), was.memory_fraction, now.memory_fraction),
        "shorter-context": _from_to("max_model_len", was.max_model_len_tokens, now.max_model_len_tokens),
    }
    seqs = _from_to("max_num_seqs", was.max_num_seqs, now.max_num_seqs)
    budget = _from_to("max_num_batched_tokens", was.max_num_batched_tokens, now.max_num_batched_tokens)
    return texts.get(code, seqs if code.endswith("max-seqs") else budget)


def _more_gpus(was: Deployment, now: Deployment) -> Message:
    wider = msg("TP {was:count} → {now:count}.", was=was.tp, now=now.tp)
    if was.replicas == now.replicas:
        return wider
    return msg("{wider} Replicas {was:count} → {now:count}.", wider=wider, was=was.replicas, now=now.replicas)


def _from_to(setting: str | Message, was: float, now: float) -> Message:
    return msg("{setting} {was:,.6g} → {now:,.6g}.", setting=setting, was=was, now=now)
