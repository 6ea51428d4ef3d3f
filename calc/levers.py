"""What each lever would do to this scenario: memory, latency, cost and headroom with it, everything else unchanged."""

from __future__ import annotations

from calc.actions import ACTIONS
from calc.cost import cost_of
from calc.decision import Outcome, WhatIf
from calc.deployment import Deployment
from calc.engine import resolve
from calc.errors import InputError
from calc.hardware import Gpu
from calc.lever_changes import CHANGES, Today
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.trials import FINE_SEARCH_STEPS, Trial, try_out

AS_IS = "as-is"
"""Code of the scenario unchanged, the first row of the table."""


def what_ifs(
    scenario: Scenario,
    gpus: tuple[Gpu, ...] = (),
    *,
    requests: int = 1000,
    reusable_share: float | None = None,
    as_is: Trial | None = None,
) -> tuple[WhatIf, ...]:
    """The scenario as it is, then every lever on it; ``reusable_share`` is the share of prompt tokens that repeat."""
    start = as_is or try_out(scenario, requests, steps=FINE_SEARCH_STEPS)
    today = Today(
        scenario=start.scenario,
        settings=resolve(start.scenario.deployment),
        memory=start.memory,
        latency=start.latency,
        limit_load=start.limit_load,
        gpus=gpus,
        reusable_share=reusable_share,
    )
    return (_as_is(start), *(_pull(code, today, requests) for code in CHANGES))


def _as_is(trial: Trial) -> WhatIf:
    note = msg("Nothing is changed.")
    if not trial.memory.fits:
        note = msg("Does not fit: {over:gib} too much on each GPU.", over=trial.memory.over_bytes)
    return _row(AS_IS, msg("As it is"), Outcome.NO_CHANGE, trial, note)


def _pull(code: str, today: Today, requests: int) -> WhatIf:
    action = ACTIONS[code]
    try:
        changed = CHANGES[code](today)
        if isinstance(changed, Message):
            return _not_applicable(code, changed)
        trial = try_out(changed, requests)
    except InputError as error:
        return _not_applicable(code, error.message)
    return _row(code, action.title, action.outcome, trial, _note(code, today.deployment, trial))


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
    if not trial.memory.fits:
        return msg("{change} It does not fit: {over:gib} too much.", change=change, over=trial.memory.over_bytes)
    return change if caution is None else msg("{change} {caution}", change=change, caution=caution)


def _change(code: str, before: Deployment, after: Scenario) -> Message:
    was, now = resolve(before), resolve(after.deployment)
    changed = after.deployment
    texts = {
        "prefix-cache": msg("Hit rate {hit:pct} of prompt tokens.", hit=after.workload.prefix_hit_share),
        "fp8-kv": msg("KV dtype {was} → {now}.", was=was.kv_dtype, now=now.kv_dtype),
        "more-gpus": msg("TP {was:count} → {now:count}.", was=before.tp, now=changed.tp),
        "more-replicas": msg("Replicas {was:count} → {now:count}.", was=before.replicas, now=changed.replicas),
        "bigger-gpu": msg(
            "{was} → {now}; the price of its hour is not known.", was=before.gpu.name, now=changed.gpu.name
        ),
        "fp8-weights": msg("Weights in FP8."),
        "shorter-prompts": msg("Prompts of half the length."),
        "chunked-prefill": msg("Chunked prefill on."),
        "raise-memory-fraction": _from_to("memory fraction", was.memory_fraction, now.memory_fraction),
        "shorter-context": _from_to("max_model_len", was.max_model_len_tokens, now.max_model_len_tokens),
    }
    seqs = _from_to("max_num_seqs", was.max_num_seqs, now.max_num_seqs)
    budget = _from_to("max_num_batched_tokens", was.max_num_batched_tokens, now.max_num_batched_tokens)
    return texts.get(code, seqs if code.endswith("max-seqs") else budget)


def _from_to(setting: str, was: float, now: float) -> Message:
    return msg("{setting} {was:,.6g} → {now:,.6g}.", setting=setting, was=was, now=now)
