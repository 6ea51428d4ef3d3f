"""Published headline figures in words: what was claimed, what our models say, and what it would be here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.claims.claim import Claim, Yours
from ui import format as show
from ui.glossary import PROVENANCE
from ui.text import t

Rows = Sequence[Mapping[str, str]]
SIGNIFICANT = 1e-9


def figure(value: float, *, is_share: bool) -> str:
    """A share in per cent, a ratio as a factor."""
    return show.percent(value) if is_share else f"{show.decimal(value)}×"


def span(low: float, high: float, *, is_share: bool) -> str:
    """From–to, or one figure."""
    if abs(high - low) < SIGNIFICANT:
        return figure(low, is_share=is_share)
    return f"{figure(low, is_share=is_share)} – {figure(high, is_share=is_share)}"


def claimed(claim: Claim) -> str:
    """As published."""
    low, high = claim.claimed
    if low == 0:
        return t("under {limit}", limit=figure(high, is_share=claim.is_share))
    text = span(low, high, is_share=claim.is_share)
    return t("up to {figure}", figure=text) if claim.is_most else text


def computed(claim: Claim) -> str:
    """Ours under the same conditions, with its span over what is left open."""
    text = figure(claim.computed, is_share=claim.is_share)
    if claim.span is None:
        return text
    return f"{text} ({span(*claim.span, is_share=claim.is_share)})"


def yours(claim: Claim, found: Yours) -> str:
    """On the user's scenario."""
    return t("does not apply") if found.value is None else figure(found.value, is_share=claim.is_share)


def rows(pairs: Sequence[tuple[Claim, Yours]]) -> Rows:
    """One line a headline."""
    return [
        {
            t("Headline"): t(claim.title),
            t("Published"): claimed(claim),
            t("Computed here"): computed(claim)
            if claim.agrees
            else t("{figure}, not as published", figure=computed(claim)),
            t("On your scenario"): yours(claim, found),
        }
        for claim, found in pairs
    ]


def sentence(pairs: Sequence[tuple[Claim, Yours]]) -> str:
    """How many come out as published."""
    agreeing = sum(claim.agrees for claim, _ in pairs)
    return t(
        "{agreeing:count} of {total:count} published figures come out of the models under their conditions.",
        agreeing=agreeing,
        total=len(pairs),
    )


def details(claim: Claim, found: Yours) -> list[str]:
    """Conditions, working, assumptions, counter-example and the user's own numbers."""
    lines = [
        t("Conditions: {text}", text=claim.conditions),
        t("Working ({provenance}): {text}", provenance=PROVENANCE[claim.provenance], text=claim.working),
    ]
    if claim.assumed is not None:
        lines.append(t("Not stated by the source, so assumed: {text}", text=claim.assumed))
    lines.append(t("Elsewhere: {text}", text=claim.counter))
    lines.append(t("On your scenario: {text}", text=found.statement))
    return lines


def source(claim: Claim) -> str:
    """Where it was published, and whether it was read again."""
    name = t(claim.source)
    return (
        t("Source: {source} (figures recalled, not read again)", source=name)
        if claim.recalled
        else t("Source: {source}", source=name)
    )
