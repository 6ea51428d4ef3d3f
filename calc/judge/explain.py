"""The words around a decision: headline, at most three facts, what is missing, what is risky. All with numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calc.evidence import Evidence, is_measured, number
from calc.judge.actions import ACTIONS
from calc.judge.decision import BOTTLENECK_NAMES, OUTCOME_NAMES, Finding, Outcome, Verdict, WhatIf
from calc.judge.derived import LATENCIES
from calc.judge.ladder import LADDER, UNDECIDED, Step
from calc.judge.lever_choice import Choice, shown_load
from calc.judge.rules import RULES
from calc.latency import LatencyReport
from calc.messages import Message, msg
from calc.scenario import Scenario

MOST_FACTS = 3
"""Facts under a decision: a reader remembers three."""
_MEASURES: Mapping[str, Message] = {rule.code: rule.measure for rule in RULES}
MOST_MISSING = 6
"""Things asked for: more would not be measured."""
_ALWAYS_ASKED = ("calm.slo-with-headroom", "memory.cache-fills", "cache.hit-improvable", "cache.stable-prefixes")
"""Unknown conditions worth naming even when nothing of theirs was given."""
_ASKED_OF_SCENARIO = ("calm.slo-with-headroom", "cache.hit-improvable", "cache.stable-prefixes")
"""The same beside a simulation, which knows usage and waiting."""
_DECLARED: Mapping[Outcome, tuple[str, ...]] = {
    Outcome.OPTIMISE_CACHE: ("guard.tenants-apart", "guard.expires-soon", "guard.one-off-content"),
    Outcome.ADD_MEMORY: ("memory.long-context-required", "memory.several-models", "guard.one-off-content"),
    Outcome.RE_ARCHITECT: ("memory.long-context-required", "architecture.cost-limit", "architecture.tenants-collide"),
}
"""What no simulation can know and the answer depends on: asked for under that answer."""


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """Everything a decision was made from, and the answer taken."""

    evidence: Mapping[str, Evidence]
    findings: tuple[Finding, ...]
    step: Step
    outcome: Outcome
    choice: Choice | None = None
    """The levers' answer, when it is the one taken."""
    what_ifs: tuple[WhatIf, ...] = ()
    scenario: Scenario | None = None
    legs_agree: bool = True

    def finding(self, code: str) -> Finding:
        """The finding of one rule."""
        return next(finding for finding in self.findings if finding.rule == code)


def headline(weighed: Weighed) -> Message:
    """The answer and its main reason in one sentence."""
    name, choice = OUTCOME_NAMES[weighed.outcome], weighed.choice
    if choice is None:
        if weighed.step is UNDECIDED:
            return msg("{outcome}: what is known decides nothing yet.", outcome=name)
        return msg("{outcome}: {reason}.", outcome=name, reason=weighed.finding(weighed.step.all_of[0]).title)
    if choice.lever is not None:
        if choice.with_headroom:
            return msg("{outcome}: {lever} — carries the load with headroom.", outcome=name, lever=choice.lever.title)
        return msg("{outcome}: {lever} — meets the SLO, without headroom.", outcome=name, lever=choice.lever.title)
    if choice.outcome is Outcome.RE_ARCHITECT:
        return msg("{outcome}: none of the levers tried carries the load within the SLO.", outcome=name)
    if choice.with_headroom:
        return msg("{outcome}: the load is carried with headroom.", outcome=name)
    return msg("{outcome}: the SLO is met, and no lever tried gives more headroom.", outcome=name)


def because(weighed: Weighed) -> tuple[Message, ...]:
    """At most three facts with numbers: how it stands, what the answer does, which condition speaks for it."""
    facts: list[Message] = []
    if weighed.choice is not None and weighed.scenario is not None:
        facts += _stands(weighed, weighed.scenario)
        if weighed.choice.lever is not None:
            facts.append(_does(weighed.choice.lever, weighed.scenario))
        elif weighed.what_ifs and weighed.what_ifs[0].limit_load:
            facts.append(_limit(weighed.what_ifs[0], weighed.scenario))
    else:
        facts += [weighed.finding(code).statement for code in weighed.step.all_of]
    facts += [
        finding.statement
        for finding in weighed.findings
        if finding.verdict is Verdict.MET and finding.supports is weighed.outcome and not finding.guard
    ]
    return _unique(facts)[:MOST_FACTS]


def _unique(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple({str(message): message for message in messages}.values())


def _stands(weighed: Weighed, scenario: Scenario) -> list[Message]:
    as_is = weighed.what_ifs[0]
    if as_is.memory is not None and not as_is.memory.fits:
        return [msg("As it is, it does not fit: {over:gib} too much on each GPU.", over=as_is.memory.over_bytes)]
    if as_is.latency is None:
        return []
    if as_is.latency.saturated and as_is.latency.offered_rate_per_s:
        return [_overload(as_is.latency, as_is.latency.offered_rate_per_s)]
    tightest = _tightest(weighed.evidence)
    return [_against_target(weighed.evidence, tightest, scenario)] if tightest else []


def _overload(latency: LatencyReport, offered_per_s: float) -> Message:
    return msg(
        "As it is, {offered:rate} arrive and at most {limit:rate} can be served; {bound} sets the limit.",
        offered=offered_per_s,
        limit=latency.max_rate_per_s,
        bound=BOTTLENECK_NAMES.get(latency.limit, BOTTLENECK_NAMES["unknown"]),
    )


def _tightest(evidence: Mapping[str, Evidence]) -> str | None:
    ratios = {latency: number(evidence, f"{latency}_target_ratio") or 0.0 for latency in LATENCIES}
    worst = max(ratios, key=lambda latency: ratios[latency])
    return worst if ratios[worst] > 0 else None


def _against_target(evidence: Mapping[str, Evidence], latency: str, scenario: Scenario) -> Message:
    target = number(evidence, f"{latency}_slo_s") or 0.0
    found = msg(
        "{latency} P{percentile:.0f} is {value} against a target of {target}.",
        latency=latency.upper(),
        percentile=scenario.slo.percentile_share * 100,
        value=_seconds(target * (number(evidence, f"{latency}_target_ratio") or 0.0)),
        target=_seconds(target),
    )
    if is_measured(evidence, f"{latency}_target_ratio"):
        return msg("As measured, {found}", found=found)
    return msg("As it is, {found}", found=found)


def _seconds(value_s: float) -> Message:
    return msg("{value:ms}", value=value_s) if value_s < 1 else msg("{value:s}", value=value_s)


def _does(lever: WhatIf, scenario: Scenario) -> Message:
    if lever.limit_load is None:
        return msg("{lever}: {note}", lever=lever.title, note=lever.note)
    limit = shown_load(scenario, lever.limit_load)
    if lever.cost_per_million_tokens is None:
        return msg("{lever}: carries up to {limit}.", lever=lever.title, limit=limit)
    return msg(
        "{lever}: carries up to {limit}, at {cost:.2f} {currency} per million output tokens.",
        lever=lever.title,
        limit=limit,
        cost=lever.cost_per_million_tokens,
        currency=scenario.prices.currency,
    )


def _limit(as_is: WhatIf, scenario: Scenario) -> Message:
    return msg("As it is, it carries up to {limit}.", limit=shown_load(scenario, as_is.limit_load or 0.0))


def missing(weighed: Weighed) -> tuple[Message, ...]:
    """What to measure or declare: unknown conditions that could change the answer or that belong to it."""
    asked = [finding for finding in weighed.findings if finding.verdict is Verdict.UNKNOWN]
    always = _ALWAYS_ASKED if weighed.scenario is None else _ASKED_OF_SCENARIO
    first = [finding for finding in asked if finding.rule in always]
    relevant = [*first, *(finding for finding in asked if _matters(finding, weighed))]
    problems = [row.note for row in weighed.what_ifs[:1] if row.latency is None and row.memory and row.memory.fits]
    return _unique((*problems, *(_MEASURES[finding.rule] for finding in relevant)))[:MOST_MISSING]


def _matters(finding: Finding, weighed: Weighed) -> bool:
    if weighed.scenario is not None:
        return finding.rule in _DECLARED.get(weighed.outcome, ())
    partly_known = any(found.value is not None for found in finding.evidence)
    return partly_known and finding.rule in _steps_above(weighed.step)


def _steps_above(step: Step) -> frozenset[str]:
    above = LADDER[: LADDER.index(step)] if step in LADDER else LADDER
    return frozenset(code for earlier in above for code in earlier.all_of)


def risks(weighed: Weighed, lever: str | None) -> tuple[Message, ...]:
    """Guards that are met, the first lever's caution, and how the figures are known."""
    found = [
        finding.statement
        for finding in weighed.findings
        if finding.guard and finding.verdict is Verdict.MET and _guarded(weighed.outcome)
    ]
    action = ACTIONS.get(lever or "")
    if action is not None and action.caution is not None:
        found.append(action.caution)
    if not weighed.legs_agree:
        found.append(msg("The conditions and the levers point to different answers: read both before deciding."))
    if _is_uncalibrated(weighed.what_ifs):
        found.append(msg("Latencies are simulated and not calibrated on this deployment: measure before spending."))
    return _unique([*found, *_caveats(weighed)])


def _caveats(weighed: Weighed) -> list[Message]:
    """What the checks say of the measurements that the conditions rest on, each once whatever figures carry it."""
    return [
        msg("Measured, with a caveat: {caveat}", caveat=caveat)
        for finding in weighed.findings
        if finding.verdict is not Verdict.UNKNOWN
        for evidence in finding.evidence
        for caveat in evidence.caveats
    ]


def _guarded(outcome: Outcome) -> bool:
    return outcome in (Outcome.ADD_MEMORY, Outcome.OPTIMISE_CACHE)


def _is_uncalibrated(what_ifs: tuple[WhatIf, ...]) -> bool:
    return any(row.latency is not None and row.latency.calibration == "uncalibrated" for row in what_ifs)
