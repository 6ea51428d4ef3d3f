"""Module names and patterns in a config's lists: literal names, globs and simple regular expressions, safely."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_PATTERN = 200
"""Longest name or pattern read; real ones stay below 100 characters."""
MAX_REGEXES = 50
"""Most regular expressions read from one config; real ones stay below ten."""
MAX_REPEATS = 2
"""Most inner repeats of one expression, so that matching stays quadratic in the name's length."""
MAX_NAMES = 300_000
"""Most names read from one list: per-expert lists of the largest models hold 10⁵."""
_LAYERS = "layers."
_LAYER_WORD = "layers"
_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")
"""What checkpoints write before ``layers.``; an anchored expression is tried behind each."""
_SAFE = re.compile(r"(?:[\w\-/ ]|\\[.dw_\-]|[.*+?^$|)]|\((?:\?[:!=])?|\[[\w\-^\\.]*\])*\Z")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_LAYER_NUMBER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True, kw_only=True)
class ModuleSet:
    """Modules named by a config."""

    literals: frozenset[str] = frozenset()
    by_layer: dict[str, list[re.Pattern[str]]] = field(default_factory=dict)
    """Patterns of one layer, under its number."""
    anywhere: tuple[re.Pattern[str], ...] = ()
    anchored: tuple[re.Pattern[str], ...] = ()
    """Regular expressions that start at the beginning of the whole name."""
    unread: tuple[str, ...] = ()
    """Expressions too intricate to be run safely."""

    @property
    def is_same_in_every_layer(self) -> bool:
        """No name speaks of one layer."""
        texts = [pattern.pattern for pattern in (*self.anywhere, *self.anchored)]
        names_one = any(name.startswith(_LAYERS) for name in self.literals)
        return not self.by_layer and not names_one and not any(_LAYER_WORD in text for text in texts)

    def covers(self, module: str) -> bool:
        """Whether ``module`` ("layers.3.mlp.down_proj") is named, or lies inside a named one."""
        if self.literals and any(part in self.literals for part in _runs(module)):
            return True
        number = _LAYER_NUMBER.match(module)
        own = self.by_layer.get(number[1], []) if number else []
        if any(pattern.search(module) for pattern in (*own, *self.anywhere)):
            return True
        return any(pattern.match(prefix + module) for pattern in self.anchored for prefix in _PREFIXES)


def module_set(names: Iterable[Any]) -> ModuleSet:
    """Names as configs write them: "lm_head", "model.layers.*.self_attn", "re:.*self_attn.*"."""
    literals: set[str] = set()
    by_layer: dict[str, list[re.Pattern[str]]] = {}
    anywhere: list[re.Pattern[str]] = []
    anchored: list[re.Pattern[str]] = []
    unread: list[str] = []
    for name in [name for name in names if isinstance(name, str) and 0 < len(name) <= MAX_PATTERN][:MAX_NAMES]:
        if name.startswith("re:"):
            _add_regex(name.removeprefix("re:"), anywhere, anchored, unread)
        elif "*" in name or "?" in name:
            _add_glob(name, by_layer, anywhere)
        else:
            literals.add(_tail(name))
    return ModuleSet(
        literals=frozenset(literals),
        by_layer=by_layer,
        anywhere=tuple(anywhere),
        anchored=tuple(anchored),
        unread=tuple(dict.fromkeys(unread)),
    )


def _runs(module: str) -> Iterable[str]:
    """Every run of whole dotted parts of ``module``."""
    parts = module.split(".")
    for first in range(len(parts)):
        for last in range(first + 1, len(parts) + 1):
            yield ".".join(parts[first:last])


def _tail(name: str) -> str:
    return name[name.index(_LAYERS) :] if _LAYERS in name else name


def _add_glob(name: str, by_layer: dict[str, list[re.Pattern[str]]], anywhere: list[re.Pattern[str]]) -> None:
    tail = re.sub(r"\*+", "*", _tail(name))
    if tail.count("*") > MAX_REPEATS + 2:
        return
    start = r"\A" if tail.startswith(_LAYERS) else ""
    body = ".*".join(re.escape(part).replace(r"\?", ".") for part in tail.split("*"))
    pattern = re.compile(f"{start}{body.removeprefix('.*')}" + ("" if tail.endswith("*") else r"(?:\.|\Z)"))
    number = _LAYER_NUMBER.match(tail)
    (by_layer.setdefault(number[1], []) if number else anywhere).append(pattern)


def _add_regex(text: str, anywhere: list[re.Pattern[str]], anchored: list[re.Pattern[str]], unread: list[str]) -> None:
    starts_anywhere = text.startswith((".*", "^.*"))
    body = text.removeprefix("^").removeprefix(".*").removesuffix(".*")
    pattern = _compiled(body) if len(anywhere) + len(anchored) < MAX_REGEXES else None
    if pattern is None:
        unread.append(text)
    elif starts_anywhere:
        anywhere.append(pattern)
    else:
        anchored.append(pattern)


def _compiled(body: str) -> re.Pattern[str] | None:
    repeats = body.count("*") + body.count("+")
    if not _SAFE.match(body) or _REPEATED_GROUP.search(body) or repeats > MAX_REPEATS:
        return None
    try:
        return re.compile(body)
    except re.error:
        return None
