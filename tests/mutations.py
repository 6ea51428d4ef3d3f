"""Ways in which a result file goes wrong, by accident or on purpose; a seed says which."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

HOSTILE_TEXTS = (
    "", "-", "NaN", "1e400", "9" * 400, "12~15", "1,2,3.4", "=cmd|' /C calc'!A0", "@SUM(A1)", "'; DROP TABLE runs; --",
    "../../etc/passwd", "<script>alert(1)</script>", "{{7*7}}", "{file}", "%s", "OOM", "1.5万", "null", "a" * 5000,
    "\u202eabc", "\x00",
)  # fmt: skip
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, -(10**30), 1e308, float("nan"), float("inf"), [], {}, [[]], [None], {"a": {"b": []}},
    "inf", "12", "1e999", [1, "x"], {"unit": 5, "value": []}, *HOSTILE_TEXTS[:12],
)  # fmt: skip
Mutation = Callable[[bytes, random.Random], bytes]


def truncated(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 3, 30))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def encoded(content: bytes, chance: random.Random) -> bytes:
    """In another encoding, or in two at once."""
    text = content.decode("utf-8", "replace")
    encoding = chance.choice(("utf-16", "utf-16-be", "gb18030", "utf-8-sig", "utf-32", "latin-1"))
    half = len(text) // 2 if chance.random() < 0.3 else len(text)
    return text[:half].encode(encoding, "replace") + text[half:].encode()


def doubled(content: bytes, chance: random.Random) -> bytes:
    """Written twice, with or without an end of line, as a tool that appends."""
    return content + chance.choice((b"", b"\n", b"\r\n\r\n", b",")) + content


def with_junk(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    junk = chance.choice(
        (b"\x00" * 5, b"x" * 200_000, b"[" * 3000, b'"', b"\n" * 500, b"\xff\xfe", b"{" * 50, b"\r", b"NaN")
    )
    return content[:place] + junk + content[place:]


def packed(content: bytes, chance: random.Random) -> bytes:
    """Packed once, twice, cut, or under a hostile name."""
    if chance.random() < 0.5:
        once = gzip.compress(content)
        return chance.choice((once, gzip.compress(once), truncated(once, chance)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            chance.choice(("../../x", "/etc/x.csv", "a\\b\\..\\c.json", "CON", "x" * 900, "a/\x01.csv")), content
        )
        archive.writestr("b.csv", content)
    return file.getvalue()


def cells_changed(content: bytes, chance: random.Random) -> bytes:
    """Cells of a table replaced, removed or moved."""
    lines = [line.split(",") for line in content.decode("utf-8", "replace").splitlines()] or [[""]]
    for _ in range(chance.choice((1, 2, 8))):
        line = chance.choice(lines)
        place = chance.randrange(len(line)) if line else 0
        line[place : place + chance.randrange(2)] = [chance.choice(HOSTILE_TEXTS)]
    return "\n".join(",".join(line) for line in lines).encode("utf-8", "replace")


def values_changed(content: bytes, chance: random.Random) -> bytes:
    """Keys dropped, doubled or renamed, types swapped, lists emptied or nested; other content is flipped."""
    try:
        values = (
            [json.loads(line) for line in content.splitlines()] if content.count(b"}\n{") else [json.loads(content)]
        )
    except ValueError:
        return flipped(content, chance)
    for _ in range(chance.choice((1, 1, 3, 10))):
        _change(values, chance)
    return "\n".join(json.dumps(value) for value in values).encode()


def _change(values: list[Any], chance: random.Random) -> None:
    holders = list(_holders(values))
    holder = chance.choice(holders)
    if isinstance(holder, dict) and holder:
        key = chance.choice(list(holder))
        kind = chance.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[chance.choice(HOSTILE_TEXTS)] = holder.pop(key)
        else:
            holder[key] = deepcopy(chance.choice(HOSTILE_VALUES))
    elif isinstance(holder, list) and holder:
        holder[chance.randrange(len(holder))] = deepcopy(chance.choice(HOSTILE_VALUES))


def _holders(value: Any, limit: int = 400) -> Sequence[Any]:
    """Objects and lists in a value, itself first, not more than a limit."""
    found: list[Any] = []
    open_ones = [value]
    while open_ones and len(found) < limit:
        holder = open_ones.pop()
        found.append(holder)
        inner = holder.values() if isinstance(holder, dict) else holder[:20]
        open_ones += [one for one in inner if isinstance(one, dict | list)]
    return found


MUTATIONS: tuple[Mutation, ...] = (
    truncated, flipped, encoded, doubled, with_junk, packed, cells_changed, values_changed, values_changed,
)  # fmt: skip
"""Changed values twice: they get past the parser and into the readers."""


def mutated(content: bytes, seed: int) -> bytes:
    """``content`` after one or two mutations."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2))):
        content = chance.choice(MUTATIONS)(content or b" ", chance)
    return content
