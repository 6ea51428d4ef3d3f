"""Evidence → decision. Two legs side by side: which conditions are met, and what each lever does to this load.

The levers' answer is taken when the conditions rest on calculated figures only, since it tests the same model more
directly; conditions that rest on measurement come first. Where the legs differ, the decision says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from calc import MODEL_VERSION
from calc.evidence import Evidence, Provenance, number
from calc.hardware import Gpu
from calc.judge.actions import ACTIONS
from calc.judge.decision import Decision, Finding, Outcome, WhatIf
from calc.judge.derived import derived_from
from calc.judge.diagnose import diagnose
from calc.judge.explain import Weighed, because, headline, missing, risks
from calc.judge.flip import nearest_flip
from calc.judge.gather import evidence_of
from calc.judge.ladder import UNDECIDED, Step, deciding_step, next_step
from calc.judge.lever_choice import Choice, choose, flip_of
from calc.judge.levers import AS_IS
from calc.judge.levers import what_ifs as pull_levers
from calc.judge.rules import findings_of
from calc.judge.thresholds import thresholds as lines_of
from calc.judge.trials import FINE_SEARCH_STEPS, idle_report, needed_hit_share, try_out
from calc.latency import LatencyReport, LoadSweep
from calc.memory import MemoryReport
from calc.messages import Message
from calc.metrics import METRICS
from calc.scenario import Scenario
from calc.step.efficiency import Efficiency

RUN_INVALID = "measure.run-invalid"
"""A run that cannot be used stops every other argument."""


def decide(
    evidence: Mapping[str, Evidence],
    *,
    scenario: Scenario | None = None,
    memory: MemoryReport | None = None,
    sweep: LoadSweep | None = None,
    what_ifs: tuple[WhatIf, ...] = (),
    thresholds: Mapping[str, float] | None = None,
    break_even_hit_share: float | None = None,
) -> Decision:
    """The decision on what is known; with a scenario, ``evidence`` overrides what its reports say.

    ``break_even_hit_share`` is the share of prompt tokens found at which prefix reuse alone carries the load.
    """
    known = _everything(evidence, scenario, memory, sweep, what_ifs)
    findings = findings_of(known, thresholds)
    step = deciding_step(findings)
    choice = choose(what_ifs, number(known, "cost_limit_per_million_tokens"))
    taken = choice if choice is not None and _levers_lead(step, findings) else None
    outcome = taken.outcome if taken else step.outcome
    agree = choice is None or step is UNDECIDED or choice.outcome is step.outcome
    weighed = Weighed(
        evidence=known,
        findings=findings,
        step=step,
        outcome=outcome,
        choice=taken,
        what_ifs=what_ifs,
        scenario=scenario,
        legs_agree=agree,
    )
    return _decision(weighed, choice, _flip(weighed, break_even_hit_share, thresholds))


def _everything(
    evidence: Mapping[str, Evidence],
    scenario: Scenario | None,
    memory: MemoryReport | None,
    sweep: LoadSweep | None,
    what_ifs: tuple[WhatIf, ...],
) -> dict[str, Evidence]:
    known = dict(evidence)
    if scenario is not None and (memory is not None or sweep is not None):
        known = evidence_of(scenario, memory, _at_operating_load(sweep), sweep=sweep, measured=evidence)
    return derived_from({**known, **_from_levers(what_ifs)})


def _at_operating_load(sweep: LoadSweep | None) -> LatencyReport | None:
    if sweep is None or sweep.operating_load not in sweep.loads:
        return None
    return sweep.reports[sweep.loads.index(sweep.operating_load)]


def _from_levers(what_ifs: tuple[WhatIf, ...]) -> dict[str, Evidence]:
    """How many levers were tried, how many carry the load, and what the cheapest of these costs.

    Where the scenario as it is cannot be judged, its levers cannot either, save those that do not fit: nothing is said.
    """
    judged = [row for row in what_ifs if row.carries is not None]
    if not judged or any(row.lever == AS_IS and row.carries is None for row in what_ifs):
        return {}
    carrying = [row for row in judged if row.carries]
    costs = [row.cost_per_million_tokens for row in carrying if row.cost_per_million_tokens is not None]
    tried = sum(row.lever != AS_IS for row in judged)
    counted: dict[str, float] = {"levers_tried": tried, "levers_carrying": len(carrying)}
    if costs:
        counted["carrying_cost_per_million_tokens"] = min(costs)
    return {
        metric: Evidence(
            metric=metric, value=value, unit=METRICS[metric].unit, provenance=Provenance.SIMULATED, source="what-ifs"
        )
        for metric, value in counted.items()
    }


def _levers_lead(step: Step, findings: tuple[Finding, ...]) -> bool:
    """Conditions that rest on measured figures come before the levers' simulation."""
    deciding = [finding for finding in findings if finding.rule in step.all_of]
    measured = any(found.provenance is Provenance.MEASURED for finding in deciding for found in finding.evidence)
    return RUN_INVALID not in step.all_of and not measured


def _flip(weighed: Weighed, hit_share: float | None, own_lines: Mapping[str, float] | None) -> Message | None:
    if weighed.choice is not None and weighed.scenario is not None:
        return flip_of(weighed.choice, weighed.what_ifs, weighed.scenario, hit_share)
    flip = nearest_flip(weighed.evidence, weighed.findings, lines_of(own_lines))
    return flip.sentence() if flip else None


def _decision(weighed: Weighed, choice: Choice | None, flips_when: Message | None) -> Decision:
    found = diagnose(weighed.findings, weighed.evidence, weighed.step)
    calm = weighed.outcome is Outcome.NO_CHANGE
    lever = _first_lever(weighed)
    return Decision(
        outcome=weighed.outcome,
        bottleneck="none" if calm else found.bottleneck,
        diagnosis=found.diagnosis,
        headline=headline(weighed),
        because=because(weighed),
        runner_up=_runner_up(weighed),
        flips_when=flips_when,
        first_lever=lever,
        findings=weighed.findings,
        what_ifs=weighed.what_ifs,
        missing=missing(weighed),
        risks=risks(weighed, lever),
        legs_agree=weighed.legs_agree,
        model_version=MODEL_VERSION,
        conditions_outcome=weighed.step.outcome,
        what_ifs_outcome=choice.outcome if choice else None,
        first_lever_title=ACTIONS[lever].title if lever else None,
        layers=found.layers,
        evidence=tuple(weighed.evidence.values()),
    )


def _first_lever(weighed: Weighed) -> str | None:
    """The levers' best one; otherwise the step's own, or a simulated lever of the same outcome that carries."""
    if weighed.choice is not None:
        if weighed.choice.lever is not None:
            return weighed.choice.lever.lever
        return "fitting-model" if weighed.outcome is Outcome.RE_ARCHITECT else None
    carrying = [row.lever for row in weighed.what_ifs if row.carries and row.supports is weighed.outcome]
    if carrying and carrying[0] != AS_IS and weighed.step.lever not in carrying:
        return carrying[0]
    return weighed.step.lever or ("measure" if weighed.outcome is Outcome.MEASURE_FIRST else None)


def _runner_up(weighed: Weighed) -> Outcome | None:
    """The levers' runner-up; else the other leg's answer; else the next step of the ladder."""
    if weighed.choice is not None and weighed.choice.runner_up is not None:
        return weighed.choice.runner_up
    if weighed.choice is not None and weighed.step is not UNDECIDED and not weighed.legs_agree:
        return weighed.step.outcome
    following = next_step(weighed.findings)
    return following.outcome if following and following.outcome is not weighed.outcome else None


def scenario_decision(
    scenario: Scenario,
    gpus: tuple[Gpu, ...] = (),
    measured: Mapping[str, Evidence] | None = None,
    *,
    requests: int = 1000,
    thresholds: Mapping[str, float] | None = None,
    efficiency: Efficiency | None = None,
) -> Decision:
    """Everything in one call: memory, latency, levers on ``gpus``, conditions; ``measured`` figures override."""
    trial = try_out(scenario, requests, steps=FINE_SEARCH_STEPS, efficiency=efficiency)
    idle = idle_report(trial)
    evidence = evidence_of(
        scenario, trial.memory, trial.latency, limit_load=trial.limit_load, idle=idle, measured=measured
    )
    reusable = number(evidence, "prefix_share")
    rows = pull_levers(scenario, gpus, requests=requests, reusable_share=reusable, as_is=trial, efficiency=efficiency)
    unknown_reuse = reusable is None and trial.latency is not None and not trial.carries
    break_even = needed_hit_share(scenario, efficiency=efficiency) if unknown_reuse else None
    return decide(evidence, scenario=scenario, what_ifs=rows, thresholds=thresholds, break_even_hit_share=break_even)
