"""All published conditions for each outcome and the scheduling ones beside them, and their verdicts on evidence."""

from __future__ import annotations

from collections.abc import Mapping

from calc.evidence import Evidence
from calc.judge.conditions import Facts, Rule, judge
from calc.judge.decision import Finding
from calc.judge.rules_architecture import ARCHITECTURE_RULES, CALM_RULES, MEASURE_RULES
from calc.judge.rules_cache import CACHE_RULES
from calc.judge.rules_guards import ENLARGE_GUARDS, REUSE_GUARDS
from calc.judge.rules_memory import MEMORY_RULES
from calc.judge.rules_scheduling import SCHEDULING_RULES, TRANSFER_RULES
from calc.judge.thresholds import Threshold, thresholds

RULES: tuple[Rule, ...] = (
    *CACHE_RULES,
    *MEMORY_RULES,
    *ARCHITECTURE_RULES,
    *SCHEDULING_RULES,
    *TRANSFER_RULES,
    *CALM_RULES,
    *MEASURE_RULES,
    *ENLARGE_GUARDS,
    *REUSE_GUARDS,
)


def findings_of(evidence: Mapping[str, Evidence], own_lines: Mapping[str, float] | None = None) -> tuple[Finding, ...]:
    """Every condition against the evidence; ``own_lines`` replaces published thresholds by name."""
    facts = Facts(evidence=evidence, lines=thresholds(own_lines))
    return tuple(judge(rule, facts) for rule in RULES)


def judged_again(
    findings: tuple[Finding, ...], evidence: Mapping[str, Evidence], metric: str, lines: Mapping[str, Threshold]
) -> tuple[Finding, ...]:
    """The same findings after one figure changed: only the conditions that use it are judged anew."""
    facts = Facts(evidence=evidence, lines=lines)
    return tuple(
        judge(rule, facts) if metric in rule.metrics else finding for rule, finding in zip(RULES, findings, strict=True)
    )
