"""The decision in words: verdict marks, condition rows, what-if rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.decision import Decision, Finding, Outcome, Verdict, WhatIf
from calc.messages import Message, msg
from ui import format as show
from ui.glossary import BOUNDS, OUTCOMES
from ui.story import words
from ui.story.words import Figure
from ui.text import t

VERDICTS: Mapping[Verdict, Message] = {
    Verdict.MET: msg("✓ met"),
    Verdict.NOT_MET: msg("✕ not met"),
    Verdict.UNKNOWN: msg("? unknown"),
}
"""Mark and word, so that colour is not needed."""
DIAGNOSES: Mapping[str, Message] = {
    "cache_not_hit": msg("the cache is not hit"),
    "cache_fills_memory": msg("the cache fills memory"),
    "transfer_is_bottleneck": msg("transfer is the bottleneck"),
    "model_or_scheduling": msg("the model or the scheduling"),
    "unknown": msg("not known"),
}
"""Where the three layers point."""
GOOD: Mapping[Outcome, bool | None] = {Outcome.NO_CHANGE: True, Outcome.MEASURE_FIRST: None}


def good(decision: Decision) -> bool | None:
    """True: change nothing; None: measure first; False: something has to change."""
    return GOOD.get(decision.outcome, False)


def figures(decision: Decision) -> list[Figure]:
    """Outcome, what binds, runner-up and how many conditions are known."""
    known = sum(finding.verdict is not Verdict.UNKNOWN for finding in decision.findings)
    runner_up = t(OUTCOMES[decision.runner_up]) if decision.runner_up else t("none")
    return [
        Figure(label=t("Decision"), value=t(OUTCOMES[decision.outcome]), provenance="estimated"),
        Figure(
            label=t("What binds"),
            value=t(BOUNDS[decision.bottleneck]),
            provenance="simulated",
            help=t("Diagnosis: {what}.", what=DIAGNOSES[decision.diagnosis]),
        ),
        Figure(label=t("Runner-up"), value=runner_up, provenance="estimated"),
        Figure(
            label=t("Conditions known"),
            value=f"{known} / {len(decision.findings)}",
            provenance="estimated",
            help=t("The others are listed below with what to measure."),
        ),
    ]


def findings(rows: Sequence[Finding]) -> list[Mapping[str, str]]:
    """One row per condition: verdict, statement with number and threshold, provenance, source."""
    return [
        {
            t("Verdict"): t(VERDICTS[row.verdict]),
            t("Condition"): t(row.title) + (" " + t("(guard)") if row.guard else ""),
            t("What the evidence says"): t(row.statement),
            t("Threshold"): row.threshold,
            t("Provenance"): ", ".join(dict.fromkeys(t(one.provenance.value) for one in row.evidence)),
            t("Source"): row.source,
        }
        for row in rows
    ]


def supporting(decision: Decision, outcome: Outcome) -> list[Finding]:
    """The conditions of one outcome."""
    return [finding for finding in decision.findings if finding.supports is outcome]


def tally(rows: Sequence[Finding]) -> str:
    """How many of an outcome's conditions are met."""
    met = sum(row.verdict is Verdict.MET for row in rows)
    unknown = sum(row.verdict is Verdict.UNKNOWN for row in rows)
    return t("{met} of {all} met, {unknown} unknown", met=met, all=len(rows), unknown=unknown)


def what_ifs(decision: Decision, currency: str, percentile_share: float) -> list[Mapping[str, str]]:
    """One row per lever: memory, latency, headroom, cost, and its price in words."""
    return [_what_if(row, currency, percentile_share) for row in decision.what_ifs]


def _what_if(row: WhatIf, currency: str, share: float) -> Mapping[str, str]:
    name = words.percentile_name(share)
    latency, memory = row.latency, row.memory
    met = {True: t("met"), False: t("missed"), None: t("no target")}[row.meets_slo]
    unstable = latency is not None and latency.saturated
    return {
        t("Lever"): t(row.title),
        t("Serves"): t(OUTCOMES[row.supports]),
        t("SLO"): "–" if latency is None else met,
        f"TTFT {name}": _latency(unstable, "–" if latency is None else show.ms(latency.ttft.at(share))),
        f"E2E {name}": _latency(unstable, "–" if latency is None else show.seconds(latency.e2e.at(share))),
        t("KV pool per GPU"): "–" if memory is None else show.gib(memory.kv_pool_bytes),
        t("Headroom"): "–" if latency is None else show.rate(row.headroom_per_s),
        t("Cost per million output tokens"): show.money(row.cost_per_million_tokens, currency),
        t("Condition and price"): t(row.note),
    }


def _latency(unstable: bool, text: str) -> str:
    return t("unstable") if unstable else text
