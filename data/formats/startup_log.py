"""The start-up log of vLLM, SGLang or TensorRT-LLM: what the engine itself says fills the GPU.

Prefixes of any kind (ranks, timestamps, colours, journald, Docker, Kubernetes, JSON lines) stand before or after the
words that are looked for and do not matter. Only the words matched are kept, never the rest of a line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import UnreadableFile
from calc.messages import msg
from calc.startup.log import Seen, StartupLog
from data.formats.decode import decode
from data.formats.redact import redact
from data.formats.startup_args import LISTS, MAX_LIST_CHARACTERS, MAX_LISTS, arguments_in
from data.formats.startup_refusals import REFUSED, refusals_in
from data.formats.startup_rules import (
    LAST,
    LEAST,
    MOST,
    RULES,
    SGLANG,
    STARTS,
    SUM_OF_RANK,
    TELLS_START,
    VLLM,
    Rule,
)
from data.records import ReadResult

MAX_LOG_BYTES = 25 * 10**6
"""Largest log read; a start of a node with eight GPUs writes a few hundred kilobytes."""
HEAD_BYTES = 4 * 10**6
"""A start is written before any request: where no line of it stands in so many bytes, the file is no such log."""
WINDOW = 700
"""Characters after the words in which their figures must stand."""
MAX_HITS = 4096
"""Lines of one shape read: the last ones."""
MAX_KEPT = 240
"""Characters kept of a line."""
PREFIX = 160
"""Characters before the words in which a rank is named."""
LETTERS = 8
"""Of a word whose beginning differs between versions, such as Available and available."""
RESOLVED_BY_SGLANG = ("max_num_batched_tokens", "max_num_seqs", "max_model_len_tokens")
FORMATS = {"vllm": "vllm_log", "sglang": "sglang_log", "tensorrt-llm": "tensorrt_llm_log"}
_RANK = re.compile(r"(?:TP|PP|DP|EP|Worker_|rank ?|RANK |pid=|pid )\w{0,12}")
_MARKS = (*dict.fromkeys(rule.words for rule in RULES if TELLS_START & set(rule.fields)), *REFUSED)


@dataclass(frozen=True, kw_only=True)
class _Hit:
    """One figure at one place."""

    field: str
    value: Any
    words: str
    position: int
    rank: str
    pick: str
    engine: str


def looks_like(content: bytes) -> bool:
    """True when the bytes hold a line about memory or a refusal of an engine's start, in UTF-8 or UTF-16."""
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = content[:HEAD_BYTES].decode("utf-16" if wide else "utf-8", "ignore")
    return any(mark in text for mark in _MARKS) and _is_log(text)


def _is_log(text: str) -> bool:
    told = any(hit.field in TELLS_START for rule in RULES if rule.words in text for hit in _hits(rule, text))
    return told or bool(next(refusals_in(text), None))


def read_startup_bytes(content: bytes, name: str) -> StartupLog:
    """The log in an uploaded file."""
    if len(content) > MAX_LOG_BYTES:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} bytes of a start-up log are read, this file has {size:count}: give the "
                "lines up to the first request.",
                file=name,
                limit=MAX_LOG_BYTES,
                size=len(content),
            )
        )
    text, _ = decode(content, name)
    return read_startup_log(text)


def read(content: bytes, name: str) -> ReadResult:
    """The log as a read result; ``format`` names the engine."""
    log = read_startup_bytes(content, name)
    return ReadResult(file=name, format=FORMATS[log.engine], runs=(), startup=log, notes=_notes(log))


def _notes(log: StartupLog) -> tuple[str, ...]:
    return ("several_starts_last_read",) if log.starts > 1 else ()


def read_startup_log(text: str) -> StartupLog:
    """What the last start in ``text`` says; a text without one line about memory is refused in one sentence."""
    if len(text) > MAX_LOG_BYTES:
        raise UnreadableFile(
            msg(
                "A log of {size:count} characters is too long: paste the lines up to the first request.", size=len(text)
            )
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = _Lines(text)
    begins = _begins(text, lines)
    last = text[begins[-1] :]
    hits = [hit for rule in RULES if rule.words in last for hit in _hits(rule, last)]
    refusals = tuple(found.refusal(lines.number(begins[-1] + found.position)) for found in refusals_in(last))
    if not refusals and not any(hit.field in TELLS_START for hit in hits):
        raise _not_a_log()
    engine = _engine(hits)
    hits = [hit for hit in hits if hit.engine == engine]
    listed = list(_listed(last, engine))
    seen = _merged(engine, _settled(hits, lines, begins[-1]), _settled(listed, lines, begins[-1]))
    tells = any(words in last for owner, words in LISTS if owner == engine and words != "LLM engine (")
    return StartupLog(
        engine=engine, starts=len(begins), lines=lines.total, tells_settings=tells, refusals=refusals, **seen
    )


def _merged(engine: str, told: dict[str, Seen[Any]], listed: dict[str, Seen[Any]]) -> dict[str, Seen[Any]]:
    """Arguments win over figures rounded in sentences; SGLang says at the end what it made of its arguments."""
    resolved = {name: told[name] for name in RESOLVED_BY_SGLANG if engine == SGLANG and name in told}
    seen = told | listed | resolved
    pool_tokens = seen.pop("pool_tokens", None)
    if pool_tokens is not None:
        seen.setdefault("kv_tokens", pool_tokens)
    return seen


def _not_a_log() -> UnreadableFile:
    return UnreadableFile(
        msg(
            "No line about GPU memory was found in this text: give what vLLM, SGLang or TensorRT-LLM writes while it "
            "starts, up to the first request."
        )
    )


class _Lines:
    """Line numbers of positions, counted once."""

    def __init__(self, text: str) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self.total = len(self._ends) + 1

    def number(self, position: int) -> int:
        """1-based line of a position."""
        return bisect_right(self._ends, position - 1) + 1

    def start(self, position: int) -> int:
        """Where the line of a position begins."""
        before = bisect_left(self._ends, position)
        return self._ends[before - 1] + 1 if before else 0


def _places(words: str, text: str) -> Iterator[int]:
    """The last places of ``words``, latest first."""
    position = len(text)
    for _ in range(MAX_HITS):
        position = text.rfind(words, 0, position)
        if position < 0:
            return
        yield position


def _hits(rule: Rule, text: str) -> Iterator[_Hit]:
    for position in _places(rule.words, text):
        after = position + len(rule.words)
        window = text[after : after + WINDOW]
        found = rule.pattern.match(window)
        if found is None:
            continue
        rank = _rank(text[max(0, position - PREFIX) : position])
        begun = _word_before(text, position)
        words = redact(begun + rule.words + found[0])[:MAX_KEPT]
        for field, written in zip(rule.fields, found.groups(), strict=True):
            value = _value(field, written, rule.factor)
            if value is not None:
                yield _Hit(field=field, value=value, words=words, position=position, rank=rank, pick=rule.pick,
                           engine=rule.engine)  # fmt: skip


def _word_before(text: str, position: int) -> str:
    """The letters that the words continue."""
    before = text[max(0, position - LETTERS) : position]
    return before[len(before.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")) :]


def _value(field: str, written: str | None, factor: float) -> Any:
    if written is None:
        return None
    if field == "graphs_in_budget":
        return written in ("enabled", "without")
    if field in ("version", "model", "kv_dtype", "spec_method"):
        return redact(written).removeprefix("torch.")
    number = float(written.replace(",", ""))
    if field.endswith("_bytes"):
        return number * factor
    if field == "memory_fraction":
        return number if 0 < number <= 1 else None
    return number if number > 0 else None


def _rank(before: str) -> str:
    """What the prefix of the line says about its rank."""
    return " ".join(_RANK.findall(before.rpartition("\n")[2]))


def _engine(hits: Sequence[_Hit]) -> str:
    """The engine of the figures; vLLM where only a refusal is left."""
    memory = [hit.engine for hit in hits if hit.field in TELLS_START] or [hit.engine for hit in hits]
    return max(set(memory), key=memory.count) if memory else VLLM


def _begins(text: str, lines: _Lines) -> list[int]:
    """Where each start begins: at the surest words it has, once the start before got somewhere."""
    owner_words = next((words for _, words in STARTS if words in text), None)
    if owner_words is None:
        return [0]
    told = [
        position
        for rule in RULES
        if TELLS_START & set(rule.fields) and rule.words in text
        for position in _places(rule.words, text)
    ]
    progress = sorted(told + [found.position for found in refusals_in(text)])
    begins = [0]
    for mark in sorted(_places(owner_words, text)):
        line_start = lines.start(mark)
        if bisect_left(progress, begins[-1]) < bisect_left(progress, line_start):
            begins.append(line_start)
    return begins


def _listed(text: str, engine: str) -> Iterator[_Hit]:
    """Arguments of the lists, in the order they are written, so that the last and most complete one counts."""
    places = [(place, words) for owner, words in LISTS if owner == engine for place in _places(words, text)]
    for place, words in sorted(places)[-MAX_LISTS:]:
        window = text[place : place + MAX_LIST_CHARACTERS].partition("\n")[0]
        for field, value, fragment in arguments_in(window):
            yield _Hit(
                field=field, value=redact(value) if isinstance(value, str) else value,
                words=redact(f"{words} … {fragment}")[:MAX_KEPT], position=place, rank="", pick=LAST, engine=engine,
            )  # fmt: skip


def _settled(hits: Iterable[_Hit], lines: _Lines, offset: int) -> dict[str, Seen[Any]]:
    """One figure a field."""
    of_field: dict[str, list[_Hit]] = defaultdict(list)
    for hit in hits:
        of_field[hit.field].append(hit)
    return {field: _seen(found, lines, offset) for field, found in of_field.items()}


def _seen(hits: Sequence[_Hit], lines: _Lines, offset: int) -> Seen[Any]:
    hits = _summed(hits) if hits[0].pick == SUM_OF_RANK and isinstance(hits[0].value, float) else hits
    chosen = _chosen(hits)
    values = [hit.value for hit in hits] if chosen.pick != LAST else [chosen.value]
    return Seen(
        value=chosen.value,
        line=chosen.words,
        line_number=lines.number(offset + chosen.position),
        low=min(values),
        high=max(values),
        times=len(hits),
    )


def _chosen(hits: Sequence[_Hit]) -> _Hit:
    pick = hits[0].pick
    if pick == LEAST:
        return min(hits, key=lambda hit: (hit.value, hit.position))
    if pick in (MOST, SUM_OF_RANK):
        return max(hits, key=lambda hit: (hit.value, -hit.position))
    return max(hits, key=lambda hit: hit.position)


def _summed(hits: Sequence[_Hit]) -> list[_Hit]:
    """Pools and graphs of one rank added; equal lines of ranks that no prefix tells apart are one."""
    of_rank: Mapping[str, dict[tuple[str, int], _Hit]] = defaultdict(dict)
    for hit in hits:
        same = sum(other.words == hit.words and other.position == hit.position for other in of_rank[hit.rank].values())
        of_rank[hit.rank][(hit.words, same)] = hit
    pick = LEAST if hits[0].field in ("kv_pool_bytes", "kv_tokens") else MOST
    return [
        _Hit(**{**vars(next(iter(own.values()))), "value": sum(hit.value for hit in own.values()), "pick": pick})
        for own in of_rank.values()
    ]
