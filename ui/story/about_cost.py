"""The full cost in words: per request and token, every line with its origin, and what stands idle for P99."""

from __future__ import annotations

from collections.abc import Mapping

from calc.cost import Cost
from calc.cost_lines import HOURS_PER_MONTH, NOT_HARDWARE
from calc.cost_table import CostRow, Reservation
from calc.messages import Message
from calc.scenario import Scenario
from ui import format as show
from ui.glossary import PROVENANCE
from ui.story.words import Figure
from ui.text import t


def sentence(cost: Cost | None, rows: tuple[CostRow, ...]) -> str:
    """The total as far as it is stated, and how much of it nobody stated."""
    open_rows = [row for row in rows if row.provenance == "missing"]
    if cost is None:
        return t("No price of a GPU-hour is stated, so there is no cost: type one at the side.")
    amount = show.money(cost.total_per_hour, cost.currency)
    if open_rows:
        return t(
            "{amount} an hour as far as it is stated; {number:count} lines are not.",
            amount=amount,
            number=len(open_rows),
        )
    return t("{amount} an hour, every line stated.", amount=amount)


def is_whole(cost: Cost | None, rows: tuple[CostRow, ...]) -> bool | None:
    """True when every line is stated; ``None`` while something is not."""
    return True if cost is not None and all(row.provenance != "missing" for row in rows) else None


def figures(cost: Cost | None) -> list[Figure]:
    """Per request, per request within the SLO, per million tokens; of everything that is stated."""
    if cost is None:
        return [Figure(label=t("Per hour"), value=show.missing(), provenance="missing")]
    currency = cost.currency
    values = (
        (t("Per request"), cost.per_request),
        (t("Per request within the SLO"), cost.per_slo_request),
        (t("Per million output tokens"), cost.per_million_output_tokens),
        (t("Per million tokens"), cost.per_million_tokens),
    )
    return [
        Figure(label=label, value=show.money(value, currency), provenance="missing" if value is None else "estimated")
        for label, value in values
    ]


def table(rows: tuple[CostRow, ...], currency: str) -> list[Mapping[str, str]]:
    """Every line: amount per hour and month, how it is made, where it is from."""
    return [
        {
            t("Line"): t(row.label) if row.code in NOT_HARDWARE and row.per_hour is None else _told(row),
            t("Per hour"): _amount(row.per_hour, currency, row),
            t("Per month"): _amount(None if row.per_hour is None else row.per_hour * HOURS_PER_MONTH, currency, row),
            t("Provenance"): " · ".join(part for part in (t(PROVENANCE[row.provenance]), row.source) if part),
        }
        for row in rows
    ]


def _told(row: CostRow) -> str:
    return f"{t(row.label)}: {t(row.basis)}"


def _amount(value: float | None, currency: str, row: CostRow) -> str:
    if value is not None:
        return show.money(value, currency)
    return t("not stated") if row.provenance == "missing" else t("none")


def reserved(scenario: Scenario, found: Reservation, cost: Cost | None) -> list[Mapping[str, str]]:
    """What the reserved GPUs are there for."""
    mark = show.percentile_name(scenario.slo.percentile_share)
    parts: tuple[tuple[str, float], ...] = (
        (t("Work at today's load"), found.working_share),
        (t("Headroom up to the highest load within the SLO"), found.headroom_share),
        (t("Kept idle so that {mark} holds", mark=mark), found.tail_share),
    )
    return [
        {
            t("What for"): label,
            t("Share"): show.percent(share),
            t("GPUs"): show.decimal(found.gpus(scenario, share)),
            t("Per hour"): show.money(share * cost.reserved_per_hour, cost.currency) if cost else t("no price"),
        }
        for label, share in parts
    ]


def spare_hint(scenario: Scenario, found: Reservation | None) -> str:
    """What one more replica would be for."""
    replicas = scenario.deployment.replicas
    if found is None:
        return ""
    if replicas == 1:
        return t(
            "With a single replica a failure stops the service: N+1 needs {gpus:count} more GPUs.",
            gpus=scenario.deployment.gpus_per_replica,
        )
    left = found.headroom_share + found.tail_share
    if left * replicas >= 1:
        return t(
            "If one of {number:count} replicas fails, the others are stable, but may miss the SLO.", number=replicas
        )
    return t(
        "If one of {number:count} replicas fails, the others cannot carry this load: N+1 needs {gpus:count} more GPUs.",
        number=replicas,
        gpus=scenario.deployment.gpus_per_replica,
    )


def formulas(cost: Cost | None) -> list[str]:
    """How the figures are made."""
    lines = [
        t("cost per hour = GPUs × price + spare replicas + tiers + traffic + lines ÷ 730 hours a month"),
        t("per request = cost per hour ÷ (requests/s · 3,600); within the SLO: ÷ the share that meets it"),
    ]
    if cost is not None and cost.used_share is not None:
        lines.append(t("used share = rate served ÷ stability limit = {share:pct}", share=cost.used_share))
    return lines


def line_name(code: str, names: Mapping[str, Message]) -> str:
    """A standard line's words; the team's own as it is."""
    return t(names[code]) if code in names else code
