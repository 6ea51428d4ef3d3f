"""The decision in words: verdict marks, condition rows, what-if rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.evidence import Evidence
from calc.judge.decision import Decision, Finding, Outcome, Verdict, WhatIf
from calc.latency import LatencyReport
from calc.memory import MemoryReport
from calc.messages import Message, msg
from ui import format as show
from ui.glossary import BOUNDS, OUTCOMES
from ui.story.words import Figure
from ui.text import t

VERDICTS: Mapping[Verdict, Message] = {
    Verdict.MET: msg("✓ met"),
    Verdict.NOT_MET: msg("✕ not met"),
    Verdict.UNKNOWN: msg("? unknown"),
}
"""Mark and word, so that colour is not needed."""
ORDER = {Verdict.MET: 0, Verdict.UNKNOWN: 1, Verdict.NOT_MET: 2}
"""What speaks for an outcome first, then what is open."""
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
            label=t("Bottleneck"),
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
    """One row per condition: verdict, what the evidence says against which line, provenance, source."""
    return [
        {
            t("Verdict"): t(VERDICTS[row.verdict]),
            t("Condition"): t("{title} (guard)", title=row.title) if row.guard else t(row.title),
            t("What the evidence says"): _said(row),
            t("Provenance"): t(", ").join(dict.fromkeys(t(one.provenance.value) for one in row.evidence)),
            t("Source"): t("; ").join(t(source) for source in row.sources),
        }
        for row in sorted(rows, key=lambda row: ORDER[row.verdict])
    ]


def _said(row: Finding) -> str:
    """The statement, and what the checks say of the measurements in it."""
    caveats = dict.fromkeys(t(caveat) for one in row.evidence for caveat in one.caveats)
    return " ".join([t(row.statement), *(t("Caveat: {caveat}", caveat=caveat) for caveat in caveats)])


def sources(decision: Decision) -> list[str]:
    """Where the lines of the conditions come from, each once."""
    return list(dict.fromkeys(t(source) for finding in decision.findings for source in finding.sources))


def handed_over(measured: Sequence[Evidence]) -> str:
    """Which measured figures the decision rests on."""
    sources = t("; ").join(dict.fromkeys(one.source for one in measured))
    return t("Rests on {count:count} measured figures: {sources}.", count=len(measured), sources=sources)


def supporting(decision: Decision, outcome: Outcome) -> list[Finding]:
    """The conditions of one outcome."""
    return [finding for finding in decision.findings if finding.supports is outcome]


def tally(rows: Sequence[Finding]) -> str:
    """How many of an outcome's conditions are met."""
    met = sum(row.verdict is Verdict.MET for row in rows)
    unknown = sum(row.verdict is Verdict.UNKNOWN for row in rows)
    return t("{met} of {all} met, {unknown} unknown", met=met, all=len(rows), unknown=unknown)


def short_tally(rows: Sequence[Finding]) -> str:
    """Met of all, for a tab's name."""
    return f"{sum(row.verdict is Verdict.MET for row in rows)}/{len(rows)}"


def what_ifs(decision: Decision, currency: str, percentile_share: float) -> list[Mapping[str, str]]:
    """One row per lever that could be simulated: SLO, latency, memory, headroom and cost."""
    return [
        _what_if(row, row.memory, row.latency, currency, percentile_share)
        for row in decision.what_ifs
        if row.memory is not None and row.latency is not None
    ]


def _what_if(
    row: WhatIf, memory: MemoryReport, latency: LatencyReport, currency: str, share: float
) -> Mapping[str, str]:
    name = show.percentile_name(share)
    met = {True: t("met"), False: t("missed"), None: t("no target")}[row.meets_slo]
    served = not latency.saturated
    return {
        t("Lever"): t(row.title),
        t("Serves"): t(OUTCOMES[row.supports]),
        t("SLO"): met,
        f"TTFT {name}": show.ms(latency.ttft.at(share)) if served else t("unstable"),
        f"E2E {name}": show.seconds(latency.e2e.at(share)) if served else t("unstable"),
        t("KV pool per GPU"): show.gib(memory.kv_pool_bytes),
        t("Headroom"): "–" if row.headroom_per_s is None else show.rate(row.headroom_per_s),
        t("Per million output tokens"): show.money(row.cost_per_million_tokens, currency),
    }


def prices(decision: Decision) -> list[Mapping[str, str]]:
    """What each lever asks for, or why it cannot be pulled here."""
    return [
        {
            t("Lever"): t(row.title),
            t("Simulated"): t("yes") if row.latency is not None else t("no"),
            t("Condition and price"): t(row.note),
        }
        for row in decision.what_ifs
        if row.note.msgid
    ]
