"""Capacity in words: sequences at the user's lengths, and what prefixes, pauses, turns and a second model do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.engine import FractionOf, TokensMeaning
from calc.memory import MemoryReport
from calc.room.capacity import Mark, Room, SharedPrefix
from calc.room.neighbours import Neighbours, Tenant
from ui import format as show
from ui.glossary import MARKS, PROVENANCE
from ui.text import t

Rows = Sequence[Mapping[str, str]]


def limit(middle: Mark, memory: MemoryReport) -> str:
    """Whether pool or scheduler limits requests of median length."""
    if middle.sequences > memory.num_seqs_limit:
        return t("The scheduler admits {limit:count} at once, so it is the limit there.", limit=memory.num_seqs_limit)
    return t("The pool is the limit: the scheduler would admit {limit:count} at once.", limit=memory.num_seqs_limit)


def lengths(marks: Sequence[Mark], room: Room) -> Rows:
    """The user's lengths as rows."""
    names = {"P50": t("P50 of prompt + output"), "P95": t("P95 of prompt + output"), "max": t("Maximum model length")}
    return [
        {
            t("Length"): names[mark.name],
            t("Tokens"): show.count(mark.tokens),
            t("Blocks"): show.count(room.blocks(mark.tokens)),
            t("Sequences per replica"): show.decimal(mark.sequences),
        }
        for mark in marks
    ]


def tokens_meaning(room: Room) -> str:
    """What this engine version's token line counts."""
    report = room.report
    if room.deployment.engine.tokens_meaning is TokensMeaning.CONCURRENCY_TIMES_LENGTH:
        logged = t(
            "This version logs {tokens:tok}: {number} sequences of maximum length · {length:tok}.",
            tokens=report.kv_tokens,
            number=show.decimal(report.max_concurrency),
            length=report.max_model_len_tokens,
        )
        if report.num_groups == 1:
            return logged + " " + t("Every layer keeps every token here, so it is also the number of places.")
        return logged + " " + t("It is no number of places: windows and states make short requests dearer per token.")
    if report.num_groups == 1:
        return t(
            "This version logs {tokens:tok}: {blocks:count} blocks · {size:tok}. Each is a place for one token.",
            tokens=report.kv_tokens,
            blocks=report.num_blocks,
            size=report.block_size_tokens,
        )
    return t(
        "This version logs {tokens:tok}: {blocks:count} blocks ÷ {groups} groups of layers · {size:tok}. It is no "
        "number of places: layers with a window need fewer.",
        tokens=report.kv_tokens,
        blocks=report.num_blocks,
        groups=report.num_groups,
        size=report.block_size_tokens,
    )


def curve_alt(marks: Sequence[Mark], memory: MemoryReport) -> str:
    """The curve in words."""
    return t(
        "Sequences one replica holds over their length: {marks}; the scheduler's limit at {limit:count}, the load's "
        "{peak} in flight.",
        marks=t(", ").join(f"{t(MARKS[mark.name])} {show.decimal(mark.sequences)}" for mark in marks),
        limit=memory.num_seqs_limit,
        peak=show.decimal(memory.peak_concurrency),
    )


def provenance(memory: MemoryReport) -> str:
    """Where the view's figures come from."""
    return t(
        "Lengths are declared with the load; the pool is {pool}; everything counted from them is estimated.",
        pool=t(PROVENANCE[memory.origin("kv_pool")]),
    )


def base_formulas(marks: Sequence[Mark], room: Room) -> list[str]:
    """Pool blocks over blocks of one sequence."""
    return [
        t(
            "pool blocks ÷ blocks of a sequence of {length:tok} = {pool:count} ÷ {need:count} = {held}",
            length=mark.tokens,
            pool=room.pool_blocks,
            need=room.blocks(mark.tokens),
            held=show.decimal(mark.sequences),
        )
        for mark in marks
    ]


def figure_row(what: str, value: str) -> Mapping[str, str]:
    """One estimated number of a view."""
    return {t("Figure"): what, t("Value"): value, t("Provenance"): t("estimated")}


# A prefix that requests share


def prefix_sentence(found: SharedPrefix) -> str:
    """What sharing brings."""
    if not found.caching:
        return t(
            "Prefix caching is off in this scenario: {without} sequences. With it on, {sequences} would fit.",
            without=show.decimal(found.without),
            sequences=show.decimal(found.sequences),
        )
    if not found.kept_tokens:
        return t("A prefix this short fills no whole block, so nothing of it is shared.")
    return t(
        "Kept once, the prefix lets {sequences} sequences of {length:tok} fit in place of {without} ({gain:+.0%}).",
        sequences=show.decimal(found.sequences),
        length=found.length_tokens,
        without=show.decimal(found.without),
        gain=found.sequences / found.without - 1,
    )


def prefix_rows(found: SharedPrefix) -> Rows:
    """With, without, and what the one copy takes."""
    return [
        figure_row(t("Sequences, every request with its own copy"), show.decimal(found.without)),
        figure_row(t("Sequences, prefix kept once"), show.decimal(found.sequences)),
        figure_row(t("The one copy on each GPU"), show.mib(found.shared_bytes)),
        figure_row(t("End of the prefix that fills no block"), show.tokens(found.lost_tokens)),
    ]


def prefix_formulas(found: SharedPrefix) -> list[str]:
    """shared + n · unique."""
    return [
        t(
            "(pool − shared) ÷ (need − share · shared) = ({pool:count} − {shared:count}) ÷ ({need:count} − {share:.3g} "
            "· {shared:count}) = {held} sequences on each DP rank",
            pool=found.pool_blocks,
            shared=found.shared_blocks,
            need=found.need_blocks,
            share=found.share,
            held=show.decimal((found.pool_blocks - found.shared_blocks) / _unique(found)),
        ),
        t("Only whole blocks are shared; layers with a window share what is still inside it, states are never shared."),
    ]


def _unique(found: SharedPrefix) -> float:
    return found.need_blocks - found.share * found.shared_blocks


# Two models


def neighbours_sentence(found: Neighbours) -> str:
    """Do both run?"""
    if found.fits:
        return t(
            "Both fit: {left:gib} of each GPU stay outside the two engines.",
            left=found.left_bytes,
        )
    if not found.starts:
        return t(
            "The second does not start: it asks for {asked:gib} and {free:gib} are free on each GPU.",
            asked=found.asked_bytes,
            free=found.free_bytes,
        )
    tight = found.second if found.first.report.fits else found.first
    if not tight.report.fits:
        return t(
            "{name} does not fit into its fraction: {over:gib} over.", name=tight.name, over=tight.report.over_bytes
        )
    return t("Together they exceed the GPU by {over:gib}: graphs and contexts lie outside.", over=-found.left_bytes)


def neighbours_rows(found: Neighbours) -> Rows:
    """Both models side by side."""
    return [_tenant(found.first), _tenant(found.second)]


def _tenant(tenant: Tenant) -> Mapping[str, str]:
    least = show.missing() if tenant.least_fraction is None else f"{tenant.least_fraction:.2f}"
    return {
        t("Model"): tenant.name,
        t("Fraction (least)"): f"{tenant.fraction:.2f} ({least})",
        t("KV pool"): show.gib(tenant.report.kv_pool_bytes),
        t("Sequences at {length:tok}", length=tenant.length_tokens): show.decimal(tenant.sequences),
    }


def neighbours_words(found: Neighbours) -> list[str]:
    """What the engine's fraction is of, and the sum."""
    first = {
        FractionOf.TOTAL: t(
            "Each start takes its fraction of total memory, and fails when less is free: the fractions together must "
            "stay below 1, less what lies outside them."
        ),
        FractionOf.STATIC: t(
            "The fraction of each start is of what is free at that moment: the second gets a share of the rest."
        ),
        FractionOf.FREE: t(
            "The fraction of each start is of what is free after its own weights: the second gets a share of the rest."
        ),
    }[found.fraction_of]
    return [
        first,
        t(
            "{total:gib} − {one:gib} (first, with what lies outside its fraction) − {two:gib} (second) = {left:gib}",
            total=found.total_bytes,
            one=found.first.held_bytes,
            two=found.second.held_bytes,
            left=found.left_bytes,
        ),
    ]
