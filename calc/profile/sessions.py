"""Conversations in a log: how many turns, how long people think, and which are long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.lengths import FloatArray, IntArray
from calc.profile.columns import LogColumns
from calc.profile.spread import Spread, spread

LONG_TOKENS = 8192
"""A conversation is long when one of its prompts is longer than this."""
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
    mine = np.flatnonzero(columns.session >= 0)
    order = mine[_by_session(columns.session[mine], columns.arrival_s[mine])]
    session = columns.session[order]
    begins = np.flatnonzero(np.concatenate([[True], session[1:] != session[:-1]]))
    turns = np.diff(np.append(begins, len(session)))
    told = spread(turns)
    assert told is not None  # there is a session
    return SessionProfile(
        sessions=len(turns),
        turns=told,
        multi_turn_share=float((turns > 1).mean()),
        think_s=spread(_think_s(columns, order, session)),
        think_from_end=columns.e2e_s is not None,
    )


def _by_session(session: IntArray, arrival_s: FloatArray) -> IntArray:
    """Order by session, within one by time; two numbers packed into one sort much faster than pairs."""
    count = len(session)
    in_order = bool(np.all(arrival_s[1:] >= arrival_s[:-1]))
    rank = np.arange(count) if in_order else np.argsort(np.argsort(arrival_s, kind="stable"), kind="stable")
    bits = max(1, int(count).bit_length())
    packed = np.sort((session << bits) | rank)
    place = packed & ((1 << bits) - 1)
    return place if in_order else np.argsort(arrival_s, kind="stable")[place]


def _think_s(columns: LogColumns, order: IntArray, session: IntArray) -> FloatArray:
    end_s = columns.arrival_s if columns.e2e_s is None else columns.arrival_s + columns.e2e_s
    same = session[1:] == session[:-1]
    think_s = (columns.arrival_s[order][1:] - end_s[order][:-1])[same]
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
