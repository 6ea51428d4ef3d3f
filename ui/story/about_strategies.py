"""Strategies in words: rows with and without, conditions, advice by goal, stacks, and where reuse gains little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.judge.decision import Verdict
from calc.scenario import Scenario
from calc.strategies.figures import Figures
from calc.strategies.small_gain import Check
from calc.strategies.strategy import Goal, Judged, Strategy
from calc.strategies.what_if import Compared, Together
from calc.strategies.worth import WORTH_NAMES, Answer
from calc.workload import Closed
from ui import format as show
from ui.glossary import TERMS
from ui.story.about_decision import VERDICTS
from ui.text import t

Rows = Sequence[Mapping[str, str]]
ALL = "all"
NOTABLE = 0.005
"""Changes below half a per cent are called the same."""


def goals() -> dict[str, str]:
    """What one may want."""
    return {
        ALL: t("All"),
        Goal.COST: t("Lower cost"),
        Goal.LATENCY: t("Lower latency"),
        Goal.LONG_CONTEXT: t("Longer contexts"),
    }


def advice(goal: str) -> str:
    """Where to look first for a goal."""
    return {
        ALL: t("Each row is tried alone on this scenario, everything else unchanged."),
        Goal.COST: t("Compress weights and cache first, then let requests share: prefixes, pages, GPUs."),
        Goal.LATENCY: t(
            "Find out what waits first: batching and budget for the queue, the decode strategy for tokens."
        ),
        Goal.LONG_CONTEXT: t("Manage the cache first: narrower, paged, fewer tokens kept, a tier for what pauses."),
    }[goal]


def verdict(judged: Judged) -> str:
    """Met, not met, unknown."""
    return t(VERDICTS[judged.verdict])


def change(before: float | None, after: float | None) -> str:
    """A relative change with its sign."""
    if not before or after is None:
        return ""
    share = after / before - 1
    if abs(share) < NOTABLE:
        return t("same")
    if share >= 1:
        return f"× {show.decimal(after / before)}"
    return f"{'+' if share > 0 else '−'}{show.percent(abs(share))}"


def effect(compared: Compared) -> str:
    """The strategy's effect in one line: without → with."""
    one, other = compared.without, compared.with_it
    if one is None or other is None:
        return t(compared.note) if compared.note else ""
    if not other.fits:
        return t("does not fit")
    if not one.fits:
        return t("fits only with it")
    told = _stability(one, other) or [
        f"{TERMS[metric].label} {change(getattr(one, f'{metric}_s'), getattr(other, f'{metric}_s'))}"
        for metric in ("ttft", "itl", "e2e")
        if getattr(one, f"{metric}_s") and getattr(other, f"{metric}_s")
    ]
    load = change(one.max_load, other.max_load) or change(one.max_rate_per_s, other.max_rate_per_s)
    if load:
        told.append(t("load {change}", change=load))
    return " · ".join(told)


def _stability(without: Figures, with_it: Figures) -> list[str]:
    """Latencies of a growing queue are no figures: what can be said of them."""
    if without.saturated and with_it.saturated:
        return [t("unstable with and without")]
    if without.saturated:
        return [t("unstable without it")]
    return [t("unstable with it")] if with_it.saturated else []


def state(compared: Compared) -> str:
    """Whether the scenario has it."""
    return t("on") if compared.was_on else t("off")


def sides(scenario: Scenario, one: Figures | None, other: Figures | None, heads: tuple[str, str]) -> Rows:
    """Every metric in two columns and the change."""
    if one is None or other is None:
        return []
    share = show.percentile_name(scenario.slo.percentile_share)
    closed, currency = isinstance(scenario.workload.arrivals, Closed), scenario.prices.currency
    load = show.decimal if closed else show.rate
    rows = (
        (t("Requests the pools hold"), show.decimal, one.held_requests, other.held_requests),
        (f"{TERMS['ttft'].label} {share}", show.ms, one.ttft_s, other.ttft_s),
        (f"{TERMS['itl'].label} {share}", show.ms, one.itl_s, other.itl_s),
        (f"{TERMS['e2e'].label} {share}", show.seconds, one.e2e_s, other.e2e_s),
        (t("Highest load within the SLO"), load, one.max_load, other.max_load),
        (t("Stability limit"), show.rate, one.max_rate_per_s, other.max_rate_per_s),
        (
            t("Per million output tokens"),
            lambda x: show.money(x, currency),
            one.cost_per_million,
            other.cost_per_million,
        ),
        (t("GPUs"), show.count, float(one.gpu_count), float(other.gpu_count)),
    )
    return [
        {t("Figure"): name, heads[0]: shown(a), heads[1]: shown(b), t("Change"): change(a, b)}
        for name, shown, a, b in rows
        if a is not None or b is not None
    ]


def compared_rows(compared: Compared) -> Rows:
    """Without and with."""
    figures = compared.with_it or compared.without
    if figures is None:
        return []
    return sides(figures.scenario, compared.without, compared.with_it, (t("without"), t("with it")))


def remarks(strategy: Strategy) -> list[str]:
    """Benefit, cost, quality warning."""
    lines = [
        t("Gains: {benefit}", benefit=strategy.benefit),
        t("Costs: {cost}", cost=strategy.cost),
    ]
    if strategy.quality is not None:
        lines.append(t("Answers: {warning}", warning=strategy.quality))
    return lines


def together_sentence(stack: Together) -> str:
    """What the chosen ones do at once, beside what multiplying would promise."""
    if stack.after is not None and not stack.after.fits:
        return t("Together they do not fit.")
    if stack.e2e_ratio is None or stack.expected_e2e_ratio is None:
        return t("Together they cannot be computed here.")
    return t(
        "Together E2E becomes {real:.2f} of today's; multiplied one by one it would be {hoped:.2f}.",
        real=stack.e2e_ratio,
        hoped=stack.expected_e2e_ratio,
    )


def together_rows(stack: Together) -> Rows:
    """Today and with all of them."""
    return sides(stack.before.scenario, stack.before, stack.after, (t("today"), t("all of them")))


def check_rows(checks: Sequence[Check]) -> Rows:
    """Where reuse gains little, with the numbers of this scenario."""
    words = {
        Verdict.MET: t("gains little"),
        Verdict.NOT_MET: t("no obstacle"),
        Verdict.UNKNOWN: t(VERDICTS[Verdict.UNKNOWN]),
    }
    return [
        {t("Here"): words[check.judged.verdict], t("Case"): t(check.title), t("Numbers"): t(check.judged.statement)}
        for check in checks
    ]


def worth_rows(answers: Sequence[Answer]) -> Rows:
    """Is it worth it, use by use."""
    return [
        {
            t("Use"): t(answer.use.name),
            t("Worth it"): t(WORTH_NAMES[answer.worth]),
            t("Why"): t(answer.reason),
            t("Shared + own + output"): (
                f"{answer.use.shared_tokens:,} + {answer.use.own_tokens:,} + {answer.use.output_tokens:,}"
            ),
        }
        for answer in answers
    ]


def worth_sentence(answers: Sequence[Answer]) -> str:
    """The user's own load in one line."""
    own = answers[0]
    return t("Reuse on your own load: {worth}. {reason}", worth=WORTH_NAMES[own.worth], reason=own.reason)
