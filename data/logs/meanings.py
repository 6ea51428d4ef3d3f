"""What a column of a request log can mean, in which unit, and the words people write above it (en, zh)."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

WORDS_FILE = Path(__file__).with_name("headers.csv")
"""Field and its words; one marked ``?`` means it only probably."""

IGNORE = "ignore"
SECONDS: Mapping[str, float] = MappingProxyType({"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9})
"""How many of a unit make a second."""
DURATIONS = ("ttft", "e2e", "itl")
REQUIRED = ("time", "prompt_tokens", "output_tokens")
TEXTS = ("session_id", "tenant", "model", "business_line", "system_prompt_id")
COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens", "turn", "retries")
FLAGS = ("cancelled", "streaming")
DATES = ("iso", "dmy", "mdy")
"""Ways to write a date: year first; day, month, year; month, day, year."""
TIMED = {"time": (*SECONDS, *DATES), **dict.fromkeys(DURATIONS, tuple(SECONDS))}

FIELDS = (*REQUIRED, *TEXTS, "turn", "status", *FLAGS, "retries", *DURATIONS, "cached_tokens", "block_hashes")
"""Fields a column can fill."""
CHOICES = (
    *(f"time_{unit}" for unit in TIMED["time"]),
    *(field for field in FIELDS if field not in TIMED),
    *(f"{field}_{unit}" for field in DURATIONS for unit in TIMED[field]),
    IGNORE,
)
"""Codes of everything a user can say of a column: the field, and the unit of a time."""

_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒"), "s"),
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds", "毫秒"), "ms"),
    **dict.fromkeys(("us", "usec", "micros", "microseconds", "μs", "微秒"), "us"),
    **dict.fromkeys(("ns", "nanos", "nanoseconds", "纳秒"), "ns"),
}
_SUFFIX = re.compile(rf"(?:[\s_\-(\[【（]|(?<=[^a-z]))({'|'.join(sorted(_UNITS, key=len, reverse=True))})[\s)\]】）]*$")
_CAMEL = re.compile(r"(?<=[a-z])(?=(?:Ms|Us|Ns|Sec|Seconds|Millis)$)")
_NO_MEANING = re.compile(r"[\W_]+")
_COUNT_ENDS = re.compile(r"(tokens?|数量?|令牌|词元)+$")


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a header says. ``assumed``: its word means it only probably."""

    field: str
    unit: str = ""
    assumed: bool = False


@lru_cache(maxsize=4096)
def understand(header: str) -> Meaning | None:
    """The meaning of a header; ``None`` when no word of it is known."""
    text = unicodedata.normalize("NFKC", _CAMEL.sub("_", header)).lower().strip()
    unit = _SUFFIX.search(text)
    for words, found in [*([(text[: unit.start()], _UNITS[unit.group(1)])] if unit else []), (text, "")]:
        for word in (_bare(words), _COUNT_ENDS.sub("", _bare(words))):
            if word in _words():
                return _meaning(_words()[word], found)
    return None


def _bare(text: str) -> str:
    return _NO_MEANING.sub("", text)


def _meaning(marked: tuple[str, bool], unit: str) -> Meaning:
    field, assumed = marked
    return Meaning(field=field, unit=unit if field in TIMED else "", assumed=assumed)


def split(code: str) -> tuple[str, str]:
    """Field and unit of a choice: ``ttft_ms`` is (``ttft``, ``ms``)."""
    field, _, unit = code.rpartition("_")
    return (field, unit) if field in TIMED and unit in TIMED[field] else (code, "")


@lru_cache(maxsize=1)
def _words() -> Mapping[str, tuple[str, bool]]:
    """Bare word → field, and whether it is only probable; the first mention of a word wins."""
    words: dict[str, tuple[str, bool]] = {}
    with WORDS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for word in row["words"].split():
                words.setdefault(word.rstrip("?"), (row["field"], word.endswith("?")))
    return words
