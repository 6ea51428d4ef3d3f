"""Conversations in a log: how many turns, how long people think, and which are long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calc.lengths import FloatArray
from calc.profile.columns import LogColumns
from calc.profile.spread import Spread, spread

LONG_TOKENS = 8192
"""A conversation is long when one of its prompts is longer than this."""
MAX_TURNS = 500_000
"""Turns whose pauses are looked at."""
GROUPS = ("short", "long", "multi-turn")


@dataclass(frozen=True, kw_only=True)
class SessionGroup:
    """Requests of one kind: of conversations with several turns, else of long or of short prompts."""

    name: str
    requests: int
    share: float
    prompt_tokens: Spread
    output_tokens: Spread


@dataclass(frozen=True, kw_only=True)
class SessionProfile:
    """Sessions of a log; a request without a session counts as one of its own."""

    sessions: int
    turns: Spread
    multi_turn_share: float
    """Of sessions that have more than one turn."""
    think_s: Spread | None
    """From the end of an answer (where known, else from its request) to the next request of the session."""
    think_from_end: bool


def session_profile(columns: LogColumns) -> SessionProfile | None:
    """``None`` where the log has no sessions."""
    if columns.session is None or not (columns.session >= 0).any():
        return None
    own = columns.session >= 0
    often = np.bincount(columns.session if own.all() else columns.session[own])
    turns = often[often > 0]
    told = spread(turns)
    assert told is not None  # there is a session
    return SessionProfile(
        sessions=len(turns),
        turns=told,
        multi_turn_share=float((turns > 1).mean()),
        think_s=spread(_think_s(columns, own)),
        think_from_end=columns.e2e_s is not None,
    )


def _think_s(columns: LogColumns, own: NDArray[np.bool_]) -> FloatArray:
    """Pauses within sessions; of a log with millions of turns those of every so manieth session."""
    assert columns.session is not None
    some = -(-int(own.sum()) // MAX_TURNS)
    mine = np.flatnonzero(own & (columns.session % some == 0))
    order = mine[np.lexsort((columns.arrival_s[mine], columns.session[mine]))]
    session, begin_s = columns.session[order], columns.arrival_s[order]
    end_s = begin_s if columns.e2e_s is None else begin_s + columns.e2e_s[order]
    think_s = (begin_s[1:] - end_s[:-1])[session[1:] == session[:-1]]
    said: FloatArray = think_s[~np.isnan(think_s) & (think_s >= 0)]
    return said


def session_groups(columns: LogColumns) -> tuple[SessionGroup, ...]:
    """Requests by kind, those kinds that occur."""
    long = columns.prompt_tokens > LONG_TOKENS
    kind = long.astype(np.int64)
    if columns.session is not None and (columns.session >= 0).any():
        turns = np.bincount(columns.session[columns.session >= 0])
        several = (columns.session >= 0) & (turns[np.maximum(columns.session, 0)] > 1)
        kind = np.where(several, 2, kind)
    return tuple(group for code, name in enumerate(GROUPS) if (group := _group(columns, kind == code, name)))


def _group(columns: LogColumns, mine: np.ndarray, name: str) -> SessionGroup | None:
    prompt, output = spread(columns.prompt_tokens[mine]), spread(columns.output_tokens[mine])
    if prompt is None or output is None:
        return None
    return SessionGroup(
        name=name, requests=prompt.count, share=prompt.count / columns.requests, prompt_tokens=prompt,
        output_tokens=output,
    )  # fmt: skip


def long_share(columns: LogColumns) -> float:
    """Share of conversations with a long prompt; without sessions, of requests."""
    long = columns.prompt_tokens > LONG_TOKENS
    if columns.session is None or not (columns.session >= 0).any():
        return float(long.mean())
    own = columns.session >= 0
    reached = np.bincount(columns.session[own], weights=long[own]) > 0
    alone = long[~own]
    return float(reached.sum() + alone.sum()) / (len(reached) + len(alone))
