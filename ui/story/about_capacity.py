"""Capacity in words: sequences at the user's lengths, and what prefixes, pauses, turns and a second model do to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.capacity import Mark, Room, SharedPrefix
from calc.engine import FractionOf, TokensMeaning
from calc.memory import MemoryReport
from calc.neighbours import Neighbours, Tenant
from calc.sessions import Conversation, IdleSessions
from ui import format as show
from ui.text import t

Rows = Sequence[Mapping[str, str]]


def sentence(marks: Sequence[Mark], memory: MemoryReport) -> str:
    """How many at the user's own lengths, and whether pool or scheduler is the limit."""
    middle, long, longest = marks
    held = t(
        "One replica holds {middle} sequences at your median length ({p50:tok}), {long} at P95 ({p95:tok}) and "
        "{few} at the maximum ({limit:tok}).",
        middle=show.decimal(middle.sequences),
        p50=middle.tokens,
        long=show.decimal(long.sequences),
        p95=long.tokens,
        few=show.decimal(longest.sequences),
        limit=longest.tokens,
    )
    return held + " " + _limit(middle, memory)


def _limit(middle: Mark, memory: MemoryReport) -> str:
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
        marks=t(", ").join(f"{mark.name} {show.decimal(mark.sequences)}" for mark in marks),
        limit=memory.num_seqs_limit,
        peak=show.decimal(memory.peak_concurrency),
    )


def provenance() -> str:
    """Where the view's figures come from."""
    return t("Lengths are declared with the load, the requests in flight simulated; everything else is estimated.")


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
        _row(t("Sequences, every request with its own copy"), show.decimal(found.without)),
        _row(t("Sequences, prefix kept once"), show.decimal(found.sequences)),
        _row(t("The one copy on each GPU"), show.mib(found.shared_bytes)),
        _row(t("End of the prefix that fills no block"), show.tokens(found.lost_tokens)),
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


# Idle sessions


def idle_sentence(found: IdleSessions) -> str:
    """Does the pool hold the idle sessions too, and for how long do they stay?"""
    if not found.idle:
        return t("No session is idle: enter the share of open sessions that wait for their user.")
    if found.fits:
        return t(
            "{idle} idle sessions beside {active} active ones fit: {demand:gib} of the {pool:gib} pool on each GPU.",
            idle=show.decimal(found.idle),
            active=show.decimal(found.active),
            demand=found.demand_bytes,
            pool=found.pool_bytes,
        )
    return t(
        "{idle} idle sessions beside {active} active ones want {over:gib} more than the pool on each GPU: the longest "
        "idle are evicted, and their next turn computes its history again.",
        idle=show.decimal(found.idle),
        active=show.decimal(found.active),
        over=found.demand_bytes - found.pool_bytes,
    )


def idle_rows(found: IdleSessions, pause_s: float) -> Rows:
    """Cost of keeping them, how long they stay, and what moving them out would take."""
    stays = t("not known: no request rate") if found.stays_s is None else show.seconds(found.stays_s)
    if found.stays_s is not None:
        stays += " " + (t("(longer than the pause)") if found.stays_s >= pause_s else t("(shorter than the pause)"))
    return [
        _row(t("KV of idle sessions on each GPU"), show.gib(found.idle_bytes)),
        _row(t("Room they take, in requests of mean length"), show.decimal(found.sequences_lost)),
        _row(t("Stays cached after the last token"), stays),
        _row(t("Freed by offloading them, on each GPU"), show.gib(found.idle_bytes)),
        _row(t("Moved back per resume, on each GPU"), show.mib(found.moved_bytes_each)),
        _row(t("Time of one resume over the host link"), show.ms(found.resume_s)),
        _row(t("Host link in use, mean, on each GPU"), show.gbps(found.moved_bytes_per_s)),
    ]


def idle_formulas(found: IdleSessions, share: float) -> list[str]:
    """Idle sessions and their cost with the numbers put in."""
    return [
        t(
            "active · share ÷ (1 − share) = {active} · {share:.3g} ÷ {rest:.3g} = {idle} idle sessions",
            active=show.decimal(found.active),
            share=share,
            rest=1 - share,
            idle=show.decimal(found.idle),
        ),
        t(
            "{idle} · {each} per session of {context:tok} = {total:gib} on each GPU",
            idle=show.decimal(found.idle),
            each=show.mib(found.bytes_each),
            context=found.context_tokens,
            total=found.idle_bytes,
        ),
        t(
            "stays = blocks no running request holds ÷ (request rate · new blocks per request), as the least recently "
            "used are given out first"
        ),
        t("resume = bytes of a session ÷ host link, nominal: real transfers reach less"),
    ]


# Conversations


def turns_sentence(found: Conversation) -> str:
    """The last turn and what is sent again."""
    if not found.turns:
        return t("The first turn is already longer than the maximum model length.")
    last = found.turns[-1]
    text = t(
        "At turn {number} a conversation holds {context:tok}, and one replica holds {held} of them.",
        number=last.number,
        context=last.context_tokens,
        held=show.decimal(last.sequences),
    )
    if found.cut:
        text += " " + t("Turn {number} would exceed the maximum model length.", number=last.number + 1)
    return text


def turns_rows(found: Conversation) -> Rows:
    """First, middle and last turn, and the whole conversation."""
    if not found.turns:
        return []
    picked = sorted({0, len(found.turns) // 2, len(found.turns) - 1})
    return [
        {
            t("Turn"): str(turn.number),
            t("Context"): show.tokens(turn.context_tokens),
            t("Sent again"): show.tokens(turn.resent_tokens),
            t("KV on each GPU"): show.mib(turn.kv_bytes),
            t("Sequences per replica"): show.decimal(turn.sequences),
        }
        for turn in (found.turns[index] for index in picked)
    ]


def turns_formulas(found: Conversation) -> list[str]:
    """Growth and the ceiling of reuse."""
    return [
        t("context at the end of turn k = first message and instructions + k · (new prompt + output)"),
        t(
            "sent again ÷ sent = {again:tok} ÷ {sent:tok} = {share:pct} over the conversation: the most that a prefix "
            "cache can find of it",
            again=found.resent_tokens,
            sent=found.sent_tokens,
            share=found.resent_share,
        ),
    ]


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


def _row(what: str, value: str) -> Mapping[str, str]:
    return {t("Figure"): what, t("Value"): value, t("Provenance"): t("estimated")}
