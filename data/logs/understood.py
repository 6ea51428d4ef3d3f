"""What was understood of a log before it is loaded: the meaning of its columns, questions, and what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calc.errors import InputError, UnreadableFile
from calc.messages import Message, msg
from data.logs.block_size import likely_block_tokens
from data.logs.cells import PLAIN, ZONED, date_style, duration_unit, filled, number_style, time_unit
from data.logs.formats import CHAT, FORMATS, GENERIC, PARENT, LogFormat, format_of, last_key
from data.logs.meanings import CHOICES, COUNTS, DATES, DURATIONS, IGNORE, REQUIRED, SECONDS, TIMED, understand
from data.logs.meanings import split as split_code
from data.logs.sample import Sample

BLOCK_SIZE = "block_size_tokens"
"""What a user declares beside columns: tokens of one block of the hashes."""
BLOCK_SIZES = (16, 32, 64, 128, 256, 512, 1024)
SHOWN_ROWS = 5
_HASH = re.compile(r"""[^\s,;"'\[\]{}]+""")
_RESULT_WORDS = {
    "request_throughput", "output_throughput", "total_token_throughput", "num_prompts", "mean_ttft_ms",
    "median_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "ttfts", "itls", "requests_per_second", "completed",
}  # fmt: skip
_STATISTIC = re.compile(r"(?:^|[^a-z])(p50|p90|p95|p99|median|mean|avg|average)(?:[^a-z0-9]|$)", re.IGNORECASE)
RESULT_COLUMNS = 2
"""So many columns of statistics or of result words make a benchmark result."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that fills a field: how its cells are written."""

    header: str
    field: str
    unit: str = ""
    """Of a time or duration; for dates how they are written."""
    number: str = PLAIN
    zoned: bool = False
    """Whether its dates name their time zone."""
    comma: bool = False
    """Whether its dates have a comma before the fraction of a second."""

    @property
    def code(self) -> str:
        """The meaning as a user chooses it."""
        return f"{self.field}_{self.unit}" if self.unit else self.field


@dataclass(frozen=True, kw_only=True)
class LogQuestion:
    """Something the file does not say: ask, and meanwhile assume."""

    header: str
    """The column, or ``block_size_tokens``."""
    text: Message
    options: tuple[str, ...]
    assumed: str


@dataclass(frozen=True, kw_only=True)
class Understood:
    """A log, understood by its first rows."""

    name: str
    size_bytes: int
    format: LogFormat
    sample: Sample
    columns: tuple[Column, ...]
    block_size_tokens: int | None
    questions: tuple[LogQuestion, ...]
    notes: tuple[Message, ...]
    declared: Mapping[str, str]

    @property
    def missing(self) -> tuple[str, ...]:
        """Required fields that no column fills."""
        return tuple(field for field in REQUIRED if field not in {column.field for column in self.columns})

    def shown(self) -> list[dict[str, str]]:
        """The first rows of the columns that are loaded, as they are written."""
        return [
            {column.header: _short(row.get(column.header)) for column in self.columns}
            for row in self.sample.rows[:SHOWN_ROWS]
        ]


def _short(cell: Any) -> str:
    return msg("{count:count} hashes", count=len(cell)).text() if isinstance(cell, list) else str(cell or "")[:40]


def understood(sample: Sample, name: str, size_bytes: int, declared: Mapping[str, str]) -> Understood:
    """Each column's meaning: as declared by the user, as its format has it, else by its header and its cells."""
    _check_declared(sample, declared)
    found = format_of(sample)
    if found is GENERIC:
        _refuse_result(sample, name)
    columns: dict[str, Column] = {}
    questions: list[LogQuestion] = []
    for column, question in _meanings(sample, found, declared):
        if column.field not in columns:
            columns[column.field] = column
            questions += [question] if question else []
    if not columns.keys() & set(REQUIRED):
        raise UnreadableFile(
            msg(
                "{file}: no column of times, prompt tokens or output tokens was found: name them in the line of "
                "headers.",
                file=name,
            )
        )
    size, asked = _block_size(sample, found, columns, declared)
    return Understood(
        name=name,
        size_bytes=size_bytes,
        format=found,
        sample=sample,
        columns=tuple(columns.values()),
        block_size_tokens=size,
        questions=(*questions, *asked),
        notes=found.notes,
        declared=declared,
    )


def _check_declared(sample: Sample, declared: Mapping[str, str]) -> None:
    for header, code in declared.items():
        known = str(code).isdecimal() and int(code) > 0 if header == BLOCK_SIZE else code in CHOICES
        if header not in (*sample.headers, BLOCK_SIZE) or not known:
            raise InputError(
                msg(
                    "{header} = {code} cannot be: name a column of the file, and one of {choices}.",
                    header=header,
                    code=str(code),
                    choices=", ".join(CHOICES),
                )
            )


def _refuse_result(sample: Sample, name: str) -> None:
    keys = [last_key(sample, header) for header in sample.headers]
    results = sum(key in _RESULT_WORDS for key in keys)
    statistics = sum(bool(_STATISTIC.search(key)) for key in keys)
    if results >= RESULT_COLUMNS or (statistics >= RESULT_COLUMNS and "timestamp" not in keys):
        raise UnreadableFile(
            msg(
                "{file}: this is a benchmark result, a row for each test and not for each request: give it to the "
                "Benchmarks page.",
                file=name,
            )
        )


def _meanings(
    sample: Sample, found: LogFormat, declared: Mapping[str, str]
) -> Iterator[tuple[Column, LogQuestion | None]]:
    """Columns in the order in which they win a field: declared ones, certain ones, probable ones."""
    meant = {header: found.columns.get(last_key(sample, header), IGNORE) for header in sample.headers} | dict(declared)
    for header in sorted(sample.headers, key=lambda header: header not in declared):
        if meant[header] != IGNORE:
            yield _written(sample, header, *split_code(meant[header])), None
    if found is GENERIC or sample.container == "csv":  # traces of nested records have columns of events that are none
        free = [header for header in sample.headers if header not in declared and meant[header] == IGNORE]
        yield from _guesses(sample, free)


def _guesses(sample: Sample, headers: Sequence[str]) -> Iterator[tuple[Column, LogQuestion | None]]:
    certain: list[tuple[Column, LogQuestion | None]] = []
    probable: list[tuple[Column, LogQuestion | None]] = []
    for header in headers:
        guess = _guess(sample, header)
        if guess is not None:
            (probable if guess[1] is not None and guess[1].assumed == guess[0].field else certain).append(guess)
    yield from certain
    yield from probable


def _guess(sample: Sample, header: str) -> tuple[Column, LogQuestion | None] | None:
    meaning = understand(header) or understand(last_key(sample, header)) or _by_place(sample, header)
    if meaning is None:
        return None
    cells = sample.cells(header)
    if meaning.field == "time":
        return _time(sample, header, meaning.unit)
    if meaning.field in DURATIONS:
        return _duration(sample, header, meaning.field, meaning.unit)
    if meaning.field in COUNTS and filled(cells) and number_style(cells) is None:
        return None
    column = _written(sample, header, meaning.field)
    if not meaning.assumed:
        return column, None
    text = msg("Does the column {header} hold this?", header=header)
    return column, LogQuestion(header=header, text=text, options=(meaning.field, IGNORE), assumed=meaning.field)


def _by_place(sample: Sample, header: str) -> Any:
    """In a table without headers: time, prompt tokens, output tokens, as they mostly stand."""
    if sample.container != "csv" or sample.skip_lines or header not in sample.headers[: len(REQUIRED)]:
        return None
    return understand(f"{REQUIRED[sample.headers.index(header)]}")


def _time(sample: Sample, header: str, unit: str) -> tuple[Column, LogQuestion | None] | None:
    cells = sample.cells(header)
    if sample.types.get(header, "").startswith(("TIMESTAMP", "DATE")):
        return _written(sample, header, "time", "iso"), None
    style, assumed = date_style(cells)
    if style is not None:
        text = msg("Are the dates in {header} day first or month first?", header=header)
        options = ("time_dmy", "time_mdy")
        asked = LogQuestion(header=header, text=text, options=options, assumed=f"time_{style}") if assumed else None
        return _written(sample, header, "time", style), asked
    if number_style(cells) is None:
        return None
    likely, assumed = (unit, False) if unit else time_unit(cells)
    text = msg("In which unit are the times in {header}?", header=header)
    units = tuple(f"time_{one}" for one in SECONDS)
    asked = LogQuestion(header=header, text=text, options=units, assumed=f"time_{likely}") if assumed else None
    return _written(sample, header, "time", likely), asked


def _duration(sample: Sample, header: str, field: str, unit: str) -> tuple[Column, LogQuestion | None] | None:
    cells = sample.cells(header)
    if filled(cells) and number_style(cells) is None:
        return None
    likely = unit or duration_unit(field, cells)
    text = msg("In which unit are the durations in {header}?", header=header)
    options = (f"{field}_s", f"{field}_ms", IGNORE)
    asked = None if unit else LogQuestion(header=header, text=text, options=options, assumed=f"{field}_{likely}")
    return _written(sample, header, field, likely), asked


def _written(sample: Sample, header: str, field: str, unit: str = "") -> Column:
    cells = sample.cells(header)
    numeric = field in COUNTS or (field in TIMED and unit not in DATES)
    dates = filled(cells) if unit in DATES else []
    return Column(
        header=header,
        field=field,
        unit=unit,
        number=(number_style(cells, whole=field in COUNTS) or PLAIN) if numeric else PLAIN,
        zoned=any(ZONED.match(cell[10:]) for cell in dates),
        comma=any("," in cell[10:] for cell in dates),
    )


def _block_size(
    sample: Sample, found: LogFormat, columns: Mapping[str, Column], declared: Mapping[str, str]
) -> tuple[int | None, list[LogQuestion]]:
    """Tokens of a block: as declared, as the file says, as the format has it, else as the numbers of hashes say."""
    if "block_hashes" not in columns:
        return None, []
    if BLOCK_SIZE in declared:
        return int(declared[BLOCK_SIZE]), []
    said = next((h for h in sample.headers if last_key(sample, h) in ("trace_block_size", "block_size")), None)
    if said and (cells := filled(sample.cells(said))) and cells[0].isdecimal():
        return int(cells[0]), []
    pairs = _blocks_of_prompts(sample, columns)
    fitting = _fitting_size(pairs)
    if fitting is not None:
        return fitting, []
    assumed = found.block_size_tokens or likely_block_tokens(pairs) or BLOCK_SIZES[0]
    text = msg("How many tokens does one block of the hashes hold?")
    options = tuple(str(size) for size in sorted({*BLOCK_SIZES, assumed}))
    return assumed, [LogQuestion(header=BLOCK_SIZE, text=text, options=options, assumed=str(assumed))]


def _blocks_of_prompts(sample: Sample, columns: Mapping[str, Column]) -> list[tuple[int, int]]:
    """Prompt tokens and number of hashes of each first row that has both."""
    prompt = columns.get("prompt_tokens")
    if prompt is None:
        return []
    header = columns["block_hashes"].header
    return [
        (int(tokens), hashes)
        for row in sample.rows
        if (hashes := _hashes_in(row.get(header))) and (tokens := str(row.get(prompt.header))).isdecimal()
    ]


def _fitting_size(pairs: Sequence[tuple[int, int]]) -> int | None:
    fits = [
        size
        for size in BLOCK_SIZES
        if pairs and all(count in (math.ceil(tokens / size), tokens // size) for tokens, count in pairs)
    ]
    return fits[0] if len(fits) == 1 else None


def _hashes_in(cell: Any) -> int:
    """How many hashes a cell holds: a list, or the text of one in a table."""
    return len(cell) if isinstance(cell, list) else len(_HASH.findall(str(cell or "")))


def known_header(header: str) -> bool:
    """Whether a header says anything: only such columns are looked at."""
    marked = header.strip().lower()
    return understand(header) is not None or any(marked in one.columns for one in FORMATS)


__all__ = ["BLOCK_SIZE", "CHAT", "PARENT", "Column", "LogQuestion", "Understood", "known_header", "understood"]
