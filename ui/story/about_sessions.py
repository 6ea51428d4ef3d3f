"""Sessions that outlive a request, in words: idle ones, and conversations that grow turn by turn."""

from __future__ import annotations

from calc.room.sessions import Conversation, IdleSessions
from ui import format as show
from ui.story.about_capacity import Rows, figure_row
from ui.text import t

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
        figure_row(t("KV of idle sessions on each GPU"), show.gib(found.idle_bytes)),
        figure_row(t("Room they take, in requests of mean length"), show.decimal(found.sequences_lost)),
        figure_row(t("Stays cached after the last token"), stays),
        figure_row(t("Freed by offloading them, on each GPU"), show.gib(found.idle_bytes)),
        figure_row(t("Moved back per resume, on each GPU"), show.mib(found.moved_bytes_each)),
        figure_row(t("Time of one resume over the host link"), show.ms(found.resume_s)),
        figure_row(t("Host link in use, mean, on each GPU"), show.gbps(found.moved_bytes_per_s)),
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
