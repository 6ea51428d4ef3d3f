"""Sessions that outlive a request: idle ones whose context stays cached, and conversations that grow turn by turn."""

from __future__ import annotations

from dataclasses import dataclass

from calc.room.capacity import Room
from calc.workload import Workload


@dataclass(frozen=True, kw_only=True)
class IdleSessions:
    """What it takes to keep the context of sessions whose user pauses; per replica, bytes per GPU."""

    idle: float
    """Sessions waiting for their user: active · share / (1 − share)."""
    active: float
    context_tokens: int
    bytes_each: float
    idle_bytes: float
    active_bytes: float
    pool_bytes: float
    sequences_lost: float
    """Requests of mean length that the same blocks would hold."""
    stays_s: float | None
    """Until an idle session's blocks are given to others at this load; None = the load is not known."""
    moved_bytes_each: float
    """To bring one session back from CPU memory, on each GPU."""
    resume_s: float | None
    """Over the host link, one session; None = the link is not known."""
    moved_bytes_per_s: float | None
    """Over the host link of each GPU, when every session comes back once per pause."""

    @property
    def demand_bytes(self) -> float:
        """Active and idle together, on each GPU."""
        return self.active_bytes + self.idle_bytes

    @property
    def fits(self) -> bool:
        """Whether the pool holds both."""
        return self.demand_bytes <= self.pool_bytes


def keep_idle(
    room: Room, workload: Workload, *, request_rate_per_s: float | None, pause_s: float, link_bytes_per_s: float | None
) -> IdleSessions:
    """Idle sessions of ``workload`` beside its requests; ``request_rate_per_s`` is that of one replica.

    Engines free the least recently used blocks first, so an idle session stays until the blocks that no running
    request holds were all handed out anew: stays = free blocks / (rate · new blocks of a request).
    """
    dp, limit = room.deployment.dp, room.report.max_model_len_tokens
    finished = min(limit, workload.prompt_tokens.mean() + workload.output_tokens.mean())
    running = min(limit, workload.prompt_tokens.mean() + workload.output_tokens.mean() / 2)
    context = max(1, round(min(limit, workload.idle_context_tokens or finished)))
    active = room.report.peak_concurrency
    idle = active * workload.idle_per_active
    blocks_each = room.blocks(context, running=False)
    active_blocks = active / dp * room.blocks(max(1, round(running)))
    each = room.bytes_of(blocks_each)
    free = max(0.0, room.report.num_blocks - active_blocks)
    stays = None
    if request_rate_per_s:
        found = workload.prompt_tokens.mean() * workload.prefix_hit_share / finished
        new_per_s = request_rate_per_s / dp * room.blocks(max(1, round(finished)), running=False) * (1 - found)
        stays = free / new_per_s if new_per_s else None
    return IdleSessions(
        idle=idle,
        active=active,
        context_tokens=context,
        bytes_each=each,
        idle_bytes=idle / dp * each,
        active_bytes=room.bytes_of(active_blocks),
        pool_bytes=room.report.kv_pool_bytes,
        sequences_lost=idle * blocks_each / room.blocks(max(1, round(finished))),
        stays_s=stays,
        moved_bytes_each=each,
        resume_s=each / link_bytes_per_s if link_bytes_per_s else None,
        moved_bytes_per_s=idle / dp * each / pause_s if pause_s > 0 else None,
    )


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of a conversation, at its end."""

    number: int
    prompt_tokens: int
    """Sent: everything so far and the new message."""
    resent_tokens: int
    """Of it, what an earlier turn already held: the most that a prefix cache can find."""
    context_tokens: int
    """Cached when the answer is complete."""
    kv_bytes: float
    """On each GPU."""
    sequences: float
    """Conversations at this turn that one replica holds."""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A conversation whose every turn sends the whole history again."""

    turns: tuple[Turn, ...]
    """Up to the last that the maximum model length allows."""
    asked_turns: int

    @property
    def sent_tokens(self) -> int:
        """Prompt tokens over all turns."""
        return sum(turn.prompt_tokens for turn in self.turns)

    @property
    def resent_tokens(self) -> int:
        """Of them, sent before."""
        return sum(turn.resent_tokens for turn in self.turns)

    @property
    def resent_share(self) -> float:
        """Ceiling of the hit share that this conversation alone can reach (0-1)."""
        return self.resent_tokens / self.sent_tokens if self.sent_tokens else 0.0

    @property
    def cut(self) -> bool:
        """Whether the maximum model length ends it early."""
        return len(self.turns) < self.asked_turns


def converse(room: Room, *, turns: int, system_tokens: int, new_tokens: int, output_tokens: int) -> Conversation:
    """Turn k sends system + (k − 1) · (new + output) + new tokens and holds system + k · (new + output) at its end."""
    grown = []
    for number in range(1, turns + 1):
        before = (number - 1) * (new_tokens + output_tokens) + system_tokens
        context = before + new_tokens + output_tokens
        if context > room.report.max_model_len_tokens:
            break
        grown.append(
            Turn(
                number=number,
                prompt_tokens=before + new_tokens,
                resent_tokens=before if number > 1 else 0,
                context_tokens=context,
                kv_bytes=room.bytes_of(room.blocks(context, running=False)),
                sequences=room.sequences(context),
            )
        )
    return Conversation(turns=tuple(grown), asked_turns=turns)
