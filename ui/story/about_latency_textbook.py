"""Queueing theory in words: limits, the first token as a sum, and each formula beside the simulation."""

from __future__ import annotations

from collections.abc import Mapping

from calc.textbook.results import FirstToken, QueueReport, TextbookResult
from ui import format as show
from ui.glossary import BOUNDS
from ui.text import t

PERCENT = 100
CLOSE_SHARE = 0.1
"""A formula within this share of the simulation agrees with it."""


def sentence(report: QueueReport) -> str:
    """How far theory and simulation agree where theory holds."""
    holding = [result for result in report.results if result.holds and result.off_share is not None]
    if report.utilisation_share is not None and report.utilisation_share >= 1:
        return t("Beyond the stability limit no queue settles: there is no textbook mean.")
    if not holding:
        return t("No formula's conditions are met at this load: only the simulation tells.")
    worst = max(holding, key=lambda result: abs(result.off_share or 0.0))
    return t(
        "{close} of the {all} formulas that hold here lie within {share:pct} of the simulation; furthest off is "
        "{title}, {off}.",
        close=sum(abs(result.off_share or 0.0) <= CLOSE_SHARE for result in holding),
        all=len(holding),
        share=CLOSE_SHARE,
        title=t(worst.title),
        off=_signed(worst.off_share or 0.0),
    )


def limits(report: QueueReport, split: int) -> list[Mapping[str, str]]:
    """Stability limits of the deployment, each as if the others did not exist."""
    found = report.limits
    rows = (
        ("compute", t("token budget full in every step"), found.compute_per_s),
        ("memory_capacity", t("KV pool full"), found.memory_per_s),
        ("sequences", t("all sequence slots taken"), found.sequences_per_s),
    )
    return [
        {
            t("Limit"): t(BOUNDS[code]) + (" ●" if code == found.binds else ""),
            t("When"): when,
            t("Rate of the deployment"): show.rate(per_s * split),
            t("Provenance"): t("estimated"),
        }
        for code, when, per_s in rows
    ]


def limit_sentence(report: QueueReport, split: int) -> str:
    """Which limit binds, and how much of it is used."""
    found = report.limits
    binding = t(
        "{what} binds: at most {rate:rate}, with {batch:count} requests running on each replica.",
        what=t(BOUNDS[found.binds]),
        rate=found.max_rate_per_s * split,
        batch=found.max_batch,
    )
    if report.utilisation_share is None:
        return binding
    return binding + " " + t("The load uses {share:pct} of it.", share=report.utilisation_share)


def first_token_rows(first: FirstToken) -> list[Mapping[str, str]]:
    """The mean TTFT as a sum."""
    rows = (
        (t("until the step in progress ends"), first.residual_s),
        (t("behind prompts that came before"), first.behind_s),
        (t("the step already queued (asynchronous scheduling)"), first.queued_s),
        (t("own prefill, {steps:.3g} steps", steps=first.own_steps), first.own_s),
        (t("client and HTTP"), first.ingress_s),
        (t("mean TTFT"), first.total_s),
    )
    return [{t("Part"): name, t("Mean"): show.ms(seconds), t("Provenance"): t("estimated")} for name, seconds in rows]


def rows(report: QueueReport) -> list[Mapping[str, str]]:
    """Each formula: whether it holds, its value beside the simulated one, its conditions, and how it is written."""
    return [
        {
            t("Verdict"): t("holds") if result.holds else t("does not hold here"),
            t("Formula"): t(result.title),
            t("Evidence"): _beside(result),
            t("Provenance"): " ".join(t(condition) for condition in result.conditions),
            t("Conditions and formula"): result.formula,
        }
        for result in report.results
    ]


def _signed(share: float) -> str:
    return ("+" if share >= 0 else "−") + f"{abs(share) * PERCENT:.0f} %"


def _beside(result: TextbookResult) -> str:
    textbook = t("no steady value") if result.value_s is None else show.ms(result.value_s)
    what = t(result.simulated) if result.simulated else t("simulated")
    simulated = t("no steady value") if result.simulated_s is None else show.ms(result.simulated_s)
    off = result.off_share
    if off is not None and result.holds:
        what = t("{what}, textbook {off}", what=what, off=_signed(off))
    said = t("Textbook {textbook}, simulated {simulated} ({what}).", textbook=textbook, simulated=simulated, what=what)
    busy = "" if result.utilisation_share is None else " " + t("Busy {share:pct}.", share=result.utilisation_share)
    return said + busy


def variability(report: QueueReport) -> str:
    """Where c_a² comes from."""
    return t(
        "1 is Poisson. Your arrivals give {given:.3g}: the squared variation of gaps, or the dispersion of counts "
        "where the rate changes.",
        given=report.given_cv2,
    )


def formulas(report: QueueReport) -> list[str]:
    """How the figures of this view are made."""
    return [
        t("Stability limit: λ = min over the three caps of b / (E[output] · t(b)), b requests running."),
        t("TTFT = residual step + λ·E[S²]/(2(1−ρ)) + queued step + own steps + ingress, S = prefill beside the batch."),
        t("c_a² = {value:.3g}; per minute: 1 + 60·Var(λ)/E[λ].", value=report.arrival_cv2),
    ]


SOURCES = (
    "Pollaczek–Khinchine; Erlang; Kingman 1961; Fuhrmann & Cooper 1985 (M/G/1 with vacations)",
    "DistServe, OSDI 2024: prefill as M/D/1; arXiv 2504.07347, 2605.04595: stability of batched LLM serving",
)
