"""A condition as a row of data, judged against evidence in three values: met, not met, unknown.

Unknown follows Kleene's logic: an unknown part leaves the whole unknown unless the known parts settle it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from calc.evidence import Evidence, Provenance, flag, is_measured, number, value_of
from calc.judge.decision import BOTTLENECK_NAMES, Finding, Outcome, Verdict
from calc.judge.thresholds import Threshold
from calc.messages import Message, msg
from calc.metrics import METRICS, shown

Truth: TypeAlias = bool | None


def both(*parts: Truth) -> Truth:
    """Kleene's and: one false part settles it."""
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def either(*parts: Truth) -> Truth:
    """Kleene's or: one true part settles it."""
    if any(part is True for part in parts):
        return True
    return None if any(part is None for part in parts) else False


def any_known(*parts: Truth) -> Truth:
    """Or over the parts somebody knows; for alternatives of which one known answer is enough."""
    return either(*(part for part in parts if part is not None)) if any(p is not None for p in parts) else None


def opposite(part: Truth) -> Truth:
    """Kleene's not."""
    return None if part is None else not part


def unless_false(part: Truth) -> bool:
    """For a side condition that only counts once somebody stated that it does not hold."""
    return part is not False


def if_true(part: Truth) -> bool:
    """For an extra sign that only counts once it is known to be there."""
    return part is True


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Evidence and lines, read by name."""

    evidence: Mapping[str, Evidence]
    lines: Mapping[str, Threshold]

    def number(self, metric: str) -> float | None:
        """The figure; ``None`` when missing."""
        return number(self.evidence, metric)

    def flag(self, metric: str) -> Truth:
        """The stated fact; ``None`` when nobody stated it."""
        return flag(self.evidence, metric)

    def is_text(self, metric: str, *texts: str) -> Truth:
        """Whether a named fact is one of ``texts``; ``None`` when missing."""
        value = value_of(self.evidence, metric)
        return None if value is None else value in texts

    def measured(self, metric: str) -> bool:
        """Whether the figure was measured on the real system."""
        return is_measured(self.evidence, metric)

    def line(self, name: str) -> float:
        """The value of a threshold."""
        return self.lines[name].value

    def at_least(self, metric: str, line: str | float) -> Truth:
        """Figure ≥ a named line or a natural limit such as 1; ``None`` when the figure is missing."""
        value = self.number(metric)
        limit = self.line(line) if isinstance(line, str) else line
        return None if value is None else value >= limit

    def below(self, metric: str, line: str | float) -> Truth:
        """Figure < line; ``None`` when the figure is missing."""
        return opposite(self.at_least(metric, line))

    def exceeds(self, metric: str, limit: float) -> Truth:
        """Figure > a natural limit such as 0 or 1; ``None`` when the figure is missing."""
        value = self.number(metric)
        return None if value is None else value > limit


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One condition. ``metrics`` names every figure that ``test`` reads; the finding shows them all."""

    code: str
    supports: Outcome
    title: Message
    metrics: tuple[str, ...]
    test: Callable[[Facts], Truth]
    measure: Message
    """What to measure or to declare while the verdict is unknown."""
    limits: tuple[tuple[str, str], ...] = ()
    """(metric, line it is held against)."""
    says: Message | None = None
    """A sentence of its own, with metrics by name and ``limit`` for the first line; else the figures are listed."""
    says_not: Message | None = None
    """When the sentence of a stated fact differs once the fact does not hold."""
    source: Message | None = None
    """For a condition without a line of its own."""
    guard: bool = False
    diagnosis: str = ""
    bottleneck: str = ""


def judge(rule: Rule, facts: Facts) -> Finding:
    """The rule against the evidence, with the numbers it looked at."""
    truth = rule.test(facts)
    verdict = Verdict.UNKNOWN if truth is None else Verdict.MET if truth else Verdict.NOT_MET
    lines = tuple({line: None for _, line in rule.limits})
    sources = _sources(rule, [facts.lines[name].source for name in lines])
    return Finding(
        rule=rule.code,
        supports=rule.supports,
        title=rule.title,
        verdict=verdict,
        statement=rule.measure if truth is None else _statement(rule, facts, met=truth),
        evidence=tuple(_seen(facts, metric) for metric in rule.metrics),
        threshold=", ".join(f"{name} {facts.line(name):.4g}" for name in lines),
        source="; ".join(str(source) for source in sources),
        sources=sources,
        guard=rule.guard,
    )


def _sources(rule: Rule, of_lines: Sequence[Message]) -> tuple[Message, ...]:
    if of_lines:
        return tuple({source.msgid: source for source in of_lines}.values())
    return () if rule.source is None else (rule.source,)


def _statement(rule: Rule, facts: Facts, *, met: bool) -> Message:
    sentence = rule.says if met or rule.says_not is None else rule.says_not
    known = {metric: value for metric in rule.metrics if (value := value_of(facts.evidence, metric)) is not None}
    if sentence is not None and all(f"{{{metric}" not in sentence.msgid for metric in set(rule.metrics) - set(known)):
        limits = {"limit": facts.line(rule.limits[0][1])} if rule.limits else {}
        return Message(sentence.msgid, {**known, **limits})
    lines = dict(rule.limits)
    return _listed([_clause(facts, metric, value, lines.get(metric)) for metric, value in known.items()])


def _clause(facts: Facts, metric: str, value: float | str | bool, line: str | None) -> Message:
    meaning = METRICS[metric].meaning
    if isinstance(value, bool):
        answer = msg("yes") if value else msg("no")
        return msg("{metric}: {value}", metric=meaning, value=answer)
    if isinstance(value, str):
        return msg("{metric}: {value}", metric=meaning, value=BOTTLENECK_NAMES.get(value, value))
    if line is None:
        return msg("{metric}: {value}", metric=meaning, value=shown(metric, value))
    limit = shown(metric, facts.line(line))
    return msg("{metric}: {value} (line {limit})", metric=meaning, value=shown(metric, value), limit=limit)


def _listed(clauses: list[Message]) -> Message:
    first, *rest = clauses
    return msg("{first}; {rest}", first=first, rest=_listed(rest)) if rest else first


def _seen(facts: Facts, metric: str) -> Evidence:
    found = facts.evidence.get(metric)
    if found is not None:
        return found
    return Evidence(metric=metric, value=None, unit=METRICS[metric].unit, provenance=Provenance.MISSING)
