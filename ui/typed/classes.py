"""Kinds of requests, one a line: ``chat 90% hit=60%``, ``reports 10% prompt=20000 output=800/2000 max=4``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from data.case_clients import LENGTHS
from ui.typed.lines import name_and_rest, split_lines, written_name, wrong
from ui.typed.numbers import FULL_WIDTH, as_number, pairs_text, parse_pairs, percent_of, plain, share_of

EXAMPLE = msg("a line such as chat 90%, hit=60%, or reports 10%, prompt=20000 output=800/2000 priority=1 max=4")
_SHARE = re.compile(r"([\d.eE+-]+)\s*%\s*(.*)")
_WORD = re.compile(r"([a-z]+)\s*=\s*(\S+)")
_KEYS = {"prompt": "prompt_tokens", "output": "output_tokens", "hit": "prefix_hit_share", "priority": "priority",
         "max": "max_running"}  # fmt: skip


def parse_classes(text: str) -> list[dict[str, Any]]:
    """The ``classes`` of a case."""
    return [_parse_class(line) for line in split_lines(text)]


def _parse_class(line: str) -> dict[str, Any]:
    name, rest = name_and_rest(line, EXAMPLE)
    found = _SHARE.fullmatch(rest.translate(FULL_WIDTH))
    if found is None:
        raise wrong(line, EXAMPLE)
    one: dict[str, Any] = {"name": name, "share": share_of(as_number(found[1]))}
    left = _WORD.sub("", found[2]).strip(" ,")
    if left:
        raise wrong(left, EXAMPLE)
    for word, value in _WORD.findall(found[2]):
        if word not in _KEYS:
            raise wrong(f"{word}={value}", EXAMPLE)
        one[_KEYS[word]] = _value(_KEYS[word], value.strip(","))
    return one


def _value(key: str, text: str) -> Any:
    if key in LENGTHS:
        return _parse_lengths(text)
    if key == "prefix_hit_share":
        return share_of(as_number(text.removesuffix("%")))
    number = as_number(text)
    if number % 1:
        raise InputError(msg("{piece} must be a whole number: correct it.", piece=repr(text)))
    return int(number)


def _parse_lengths(text: str) -> dict[str, Any]:
    """``800`` all equal, ``800/2000`` P50/P95, ``100-900`` evenly between, ``0:20|0.5:600|1:900`` quantiles."""
    if ":" in text:
        return {"distribution": "empirical", "quantiles": parse_pairs(text, "|")}
    for sign, kind, ends in (("/", "lognormal", ("p50", "p95")), ("-", "uniform", ("low", "high"))):
        low, found, high = text.partition(sign)
        if found:
            return {"distribution": kind, ends[0]: as_number(low), ends[1]: as_number(high)}
    return {"distribution": "fixed", "value": as_number(text)}


def classes_text(classes: Sequence[Mapping[str, Any]]) -> str:
    """As :func:`parse_classes` reads them, one a line."""
    return "\n".join(_class_text(one) for one in classes)


def _class_text(one: Mapping[str, Any]) -> str:
    words = [written_name(one["name"]), f"{plain(percent_of(one['share']))}%"]
    for word, key in _KEYS.items():
        value = one.get(key)
        if value is None:
            continue
        text = plain(percent_of(value)) + "%" if word == "hit" else value
        words.append(f"{word}={_lengths_text(value) if key in LENGTHS else text}")
    return " ".join(words)


def _lengths_text(lengths: Mapping[str, Any]) -> str:
    match lengths["distribution"]:
        case "fixed":
            return plain(lengths["value"])
        case "lognormal":
            return f"{plain(lengths['p50'])}/{plain(lengths['p95'])}"
        case "uniform":
            return f"{plain(lengths['low'])}-{plain(lengths['high'])}"
        case _:
            return pairs_text(lengths["quantiles"], "|")
