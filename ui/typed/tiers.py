"""Tiers outside the GPU, one a line: ``disk 4 GB/s 1 ms x8 2000 GiB 25%``, all but the bandwidth optional."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calc.messages import msg
from ui.typed.lines import name_and_rest, split_lines, written_name, wrong
from ui.typed.numbers import FULL_WIDTH, as_number, percent_of, plain, share_of

EXAMPLE = msg("a line such as disk 4 GB/s 1 ms x8 2000 GiB 25%")
_PIECE = re.compile(r"x\s*(\d+)(?!\S)|([\d.]+(?:[eE][+-]?\d+)?)\s*(GB/s|GiB|ms|%)", re.IGNORECASE)
_KEYS = {"gb/s": "gb_per_s", "ms": "latency_ms", "gib": "capacity_gib", "%": "hit_share"}


def parse_tiers(text: str) -> list[dict[str, Any]]:
    """Entries of the ``offload`` list of a case."""
    return [_parse_tier(line) for line in split_lines(text)]


def _parse_tier(line: str) -> dict[str, Any]:
    name, rest = name_and_rest(line, EXAMPLE)
    rest = rest.translate(FULL_WIDTH)
    if left := _PIECE.sub("", rest).strip(" ,"):
        raise wrong(left, EXAMPLE)
    tier: dict[str, Any] = {"tier": name}
    for copies, number, unit in _PIECE.findall(rest):
        if copies:
            tier["concurrency"] = int(as_number(copies))
        else:
            key = _KEYS[unit.lower()]
            tier[key] = share_of(as_number(number)) if key == "hit_share" else as_number(number)
    if "gb_per_s" not in tier:
        raise wrong(line, EXAMPLE)
    return tier


def tiers_text(tiers: Sequence[Mapping[str, Any]]) -> str:
    """As :func:`parse_tiers` reads them, one a line."""
    return "\n".join(_tier_text(tier) for tier in tiers)


def _tier_text(tier: Mapping[str, Any]) -> str:
    words = [written_name(tier["tier"]), f"{plain(tier['gb_per_s'])} GB/s"]
    words += [f"{plain(tier['latency_ms'])} ms"] if "latency_ms" in tier else []
    words += [f"x{tier['concurrency']}"] if "concurrency" in tier else []
    words += [f"{plain(tier['capacity_gib'])} GiB"] if "capacity_gib" in tier else []
    words += [f"{plain(percent_of(tier['hit_share']))}%"] if "hit_share" in tier else []
    return " ".join(words)
