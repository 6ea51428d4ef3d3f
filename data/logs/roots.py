"""Conversations of requests that name the one they go on from."""

from __future__ import annotations

from collections.abc import Sequence


def conversation_roots(links: Sequence[tuple[str, str | None]]) -> list[str]:
    """The first request of each request's conversation; a parent that is not in the log begins one."""
    parents = dict(links)
    roots: dict[str, str] = {}
    for chat in parents:
        way = [chat]
        while (parent := parents.get(way[-1])) in parents and parent not in roots and parent not in way:
            way.append(str(parent))
        root = roots.get(str(parents.get(way[-1])), way[-1])
        roots |= dict.fromkeys(way, root)
    return [roots[chat] for chat, _ in links]
