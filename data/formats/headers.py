"""A column header understood: unit, statistic, and a word looked up in the table of synonyms (en, zh, de)."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from data.formats.fields import FIELDS, UNITS

SYNONYMS_FILE = Path(__file__).with_name("headers.csv")
"""``code?`` marks words that mean it only probably, ``code!`` words for a length that was set rather than measured."""

_UNIT_SPELLINGS: Mapping[str, str] = {
    "ms": "ms msec millisecond milliseconds 毫秒",
    "s": "s sec secs second seconds 秒 sek",
    "us": "us μs microseconds 微秒",
    "ns": "ns nanoseconds 纳秒",
    "min": "min minutes 分钟",
    "%": "% percent pct 百分比",
    "GiB": "gib",
    "GB": "gb",
    "MiB": "mib",
    "MB": "mb",
    "tok/s": "tokens/s token/s tok/s toks/s t/s tps tokens/sec token/秒 tokens/秒",
    "req/s": "req/s reqs/s requests/s rps qps 次/秒 个/秒 /s req/sec anfragen/s",
    "": "tokens token tok 个 次 条 张 路",
}
_UNIT_WORDS: Mapping[str, str] = {word: unit for unit, words in _UNIT_SPELLINGS.items() for word in words.split()}
_RATE_SUFFIX = re.compile(r"[\s_]*(tokens?|toks?|t|reqs?|requests?|次|个)\s*/\s*(s|sec|秒)$")
_PER_SECOND = re.compile(
    r"(?:[\s_]*per[\s_]*|(?<=tok)_|(?<=toks)_|(?<=token)_|(?<=tokens)_|(?<=req)_|(?<=reqs)_|(?<=requests)_)"
    r"(?:s|secs?|seconds?)(?![a-z])"
)
"""``tokens_per_s`` and ``tok_s``, as tables name columns that may hold no slash."""
_SHORT_RATE = re.compile(r"[\s_]+(tps|rps|qps)$")
_SHORT_RATES: Mapping[str, str] = {"tps": "tok/s", "rps": "req/s", "qps": "req/s"}
_TIME_SUFFIX = re.compile(r"(?:(?<=[^a-z])|[\s_/,]+)(ms|us|ns|s|sec|毫秒|微秒|秒)$")
_BRACKETS = re.compile(r"[(\[【<]([^()\[\]【】<>]*)[)\]】>]")
_STATISTICS = (
    ("std", re.compile(r"(?<![a-z])(std|stddev|stdev|σ)(?![a-z])|标准差")),
    ("mean", re.compile(r"(?<![a-z])(avg|mean|average|mittelwert|durchschnitt)(?![a-z])|平均值?|均值")),
    ("p50", re.compile(r"(?<![a-z])(median|med)(?![a-z])|中位数?")),
    ("max", re.compile(r"(?<![a-z])(max|maximum)(?![a-z])|最大|最慢|峰值")),
    ("min", re.compile(r"(?<![a-z])(min|minimum)(?![a-z])|最小|最快")),
)
_PERCENTILE = re.compile(
    r"(?<![a-z\d])t?p(\d{1,2}(?:\.\d+)?)(?!\d)"  # p99, tp99
    r"|(?<!\d)(\d{2}(?:\.\d+)?)\s*(?:%|(?:th|分位数?|线)(?![a-z]))"  # 99 %, 99th, 99分位
)
_KNOWN_PERCENTILES = frozenset({"50", "90", "95", "99"})
_NO_MEANING = re.compile(r"[\s_\-@:.·|'\"*#]+")
_INVISIBLE = re.compile("[\ufeff\u200b-\u200f\u2060]")
_GLUED = ("avg", "mean", "median")
_RANGE_WORD = re.compile(r"(?<![a-z])range(?![a-z])|范围|区间")
OPEN = frozenset({"ambiguous_throughput", "ambiguous_latency", "ambiguous_batch"})
"""Meanings that are none yet: always asked, never used as one of the others."""
_BY_RATE_WORD: Mapping[str, str] = {
    **dict.fromkeys(("output", "out", "decode", "generation", "gen", "输出", "生成"), "output_token_throughput"),
    **dict.fromkeys(("input", "in", "prompt", "prefill", "输入"), "input_token_throughput"),
    **dict.fromkeys(("total", "overall", "总", "输入输出"), "total_token_throughput"),
}


@dataclass(frozen=True, kw_only=True)
class HeaderMeaning:
    """What a header says. ``assumed`` = it could mean something else, ask."""

    code: str
    statistic: str | None = None
    unit: str | None = None
    assumed: bool = False
    nominal: bool = False
    """A length that was set for the test rather than measured."""


@lru_cache(maxsize=4096)
def understand(header: str) -> HeaderMeaning | None:
    """The meaning of a column header; ``None`` when no word of it is known."""
    text = _clean(header)
    if not text or _RANGE_WORD.search(text):
        return HeaderMeaning(code="ignore") if text else None
    rest, unit = _unit(text)
    named, statistic = _statistic(rest)
    word = next((w for w in _candidates(text, rest, named) if w in _synonyms()), None)
    code = "" if word is None else _synonyms()[word]
    if word is None or (unit == "tok/s" and FIELDS[code.rstrip("?!")].kind != "rate"):
        return _from_rate(named, unit)
    return _meaning(code, statistic or _glued_statistic(rest), unit)


def is_statistic(header: str) -> bool:
    """True when a header names nothing but a statistic (``avg``, ``P95``): the lower row of a two-row header."""
    rest, statistic = _statistic(_unit(_clean(header))[0])
    return statistic is not None and not _compact(rest)


def _clean(header: str) -> str:
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", header)).lower().strip()
    return _PER_SECOND.sub("/s", text)


def _compact(text: str) -> str:
    return _NO_MEANING.sub("", text)


def _unit(text: str) -> tuple[str, str | None]:
    """The text without its unit, and the unit."""
    unit: str | None = None
    for match in _BRACKETS.finditer(text):
        inside = match.group(1).strip()
        if inside in _UNIT_WORDS:
            unit = _UNIT_WORDS[inside]
            text = text.replace(match.group(0), " ")
    text = text.strip()
    rate, time, short = _RATE_SUFFIX.search(text), _TIME_SUFFIX.search(text), _SHORT_RATE.search(text)
    if short:
        unit = unit or _SHORT_RATES[short.group(1)]
        text = text[: short.start()]
    elif rate:
        unit = unit or ("tok/s" if rate.group(1).startswith("t") else "req/s")
        text = text[: rate.start()]
    elif time and time.start() > 0:
        unit = unit or _UNIT_WORDS[time.group(1)]
        text = text[: time.start()]
    elif text.endswith("%") and not _PERCENTILE.search(text):
        unit = unit or "%"
    return text.strip(), unit


def _statistic(text: str) -> tuple[str, str | None]:
    """The text without its statistic, and the statistic; a percentile we do not keep is named as it is."""
    match = _PERCENTILE.search(text)
    if match:
        share = match.group(1) or match.group(2)
        name = f"p{share}" if share in _KNOWN_PERCENTILES else f"other p{share}"
        return text.replace(match.group(0), " "), name
    for name, pattern in _STATISTICS:
        if pattern.search(text):
            return pattern.sub(" ", text), name
    return text, None


def _glued_statistic(text: str) -> str | None:
    """``avgTTFT`` written without a gap."""
    compact = _compact(text)
    glued = next((g for g in _GLUED if compact.startswith(g)), None)
    return {"avg": "mean", "mean": "mean", "median": "p50"}.get(glued or "")


def _candidates(text: str, rest: str, named: str) -> Iterator[str]:
    """Spellings to look up, the fullest first."""
    for spelling in (text, rest, named):
        yield _compact(spelling)
    bare = _compact(_BRACKETS.sub(" ", named))
    yield bare
    yield from (_compact(inside) for inside in _BRACKETS.findall(named))
    yield from (bare.removeprefix(glued) for glued in _GLUED)
    yield bare.rstrip("s")


def _from_rate(named: str, unit: str | None) -> HeaderMeaning | None:
    """A header that is little more than a rate: ``output (tok/s)``, ``tokens/s``."""
    word = _compact(named)
    if unit == "tok/s":
        code = "ambiguous_throughput" if not word else _BY_RATE_WORD.get(word)
        return None if code is None else HeaderMeaning(code=code, unit="/s", assumed=code in OPEN)
    return HeaderMeaning(code="request_throughput", unit="/s") if unit == "req/s" and not word else None


def _meaning(marked: str, statistic: str | None, unit: str | None) -> HeaderMeaning | None:
    code = marked.rstrip("?!")
    choice = FIELDS[code]
    if code == "ambiguous_throughput" and unit == "req/s":
        code = "request_throughput"
    if code == "goodput" and unit == "%":
        code = "slo_share"
    known = _unit_of_kind(FIELDS[code].kind, unit)
    if statistic is not None and statistic.startswith("other"):
        return HeaderMeaning(code="ignore")
    assumed = (
        marked.endswith("?") or code in OPEN or (choice.has_statistic and choice.kind == "time" and statistic is None)
    )
    return HeaderMeaning(
        code=code,
        statistic=(statistic or "mean") if choice.has_statistic else None,
        unit=known,
        assumed=assumed or (choice.kind == "time" and known is None),
        nominal=marked.endswith("!") and statistic is None,
    )


def _unit_of_kind(kind: str, unit: str | None) -> str | None:
    if kind == "rate":
        return "/s"
    return unit if unit in UNITS.get(kind, {}) else None


@lru_cache(maxsize=1)
def _synonyms() -> Mapping[str, str]:
    """Normalised word → field code; the first mention of a word wins."""
    words: dict[str, str] = {}
    with SYNONYMS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for word in row["words"].split():
                words.setdefault(word, row["code"])
    return words
