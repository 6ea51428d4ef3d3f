"""At which figure the conditions change their answer: each known figure is moved across each line, and judged anew."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from calc.evidence import Evidence, number
from calc.judge.decision import OUTCOME_NAMES, Finding, Outcome
from calc.judge.ladder import deciding_step
from calc.judge.rules import RULES, judged_again
from calc.judge.thresholds import Threshold
from calc.messages import Message, msg
from calc.metrics import METRICS, shown

JUST_BELOW = 1 - 1e-9
"""Factor that takes a figure from a line to its other side."""
_SMALLEST = 1e-6
"""Stands in for 0 when the size of a move is judged."""


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A figure, where it would have to be, and the answer there."""

    metric: str
    line: float
    rises: bool
    outcome: Outcome
    move: float
    """|ln(line / figure)|: how far away it is."""

    def sentence(self) -> Message:
        """For the page and the sheet."""
        meaning, line = METRICS[self.metric].meaning, shown(self.metric, self.line)
        name = OUTCOME_NAMES[self.outcome]
        if self.rises:
            return msg("{metric} at {line} or more: {outcome}.", metric=meaning, line=line, outcome=name)
        return msg("{metric} below {line}: {outcome}.", metric=meaning, line=line, outcome=name)


def nearest_flip(
    evidence: Mapping[str, Evidence], findings: tuple[Finding, ...], lines: Mapping[str, Threshold]
) -> Flip | None:
    """The smallest relative move of one known figure that changes the answer."""
    answer = deciding_step(findings).outcome
    found: list[Flip] = []
    for metric, line in sorted(_crossings(evidence, lines)):
        figure = number(evidence, metric) or 0.0
        rises = figure < line
        moved = {**evidence, metric: replace(evidence[metric], value=line if rises else line * JUST_BELOW)}
        outcome = deciding_step(judged_again(findings, moved, metric, lines)).outcome
        if outcome is not answer:
            move = abs(math.log(max(line, _SMALLEST) / max(figure, _SMALLEST)))
            found.append(Flip(metric=metric, line=line, rises=rises, outcome=outcome, move=move))
    return min(found, key=lambda flip: flip.move, default=None)


def _crossings(evidence: Mapping[str, Evidence], lines: Mapping[str, Threshold]) -> set[tuple[str, float]]:
    """Known figures and the lines they are held against."""
    return {
        (metric, lines[line].value)
        for rule in RULES
        for metric, line in rule.limits
        if number(evidence, metric) is not None
    }
