"""Which column means what: our guess for the user to see, their corrections, and what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calc.errors import InputError
from calc.messages import msg
from data.formats.fields import FIELDS, IGNORE, ColumnMeaning, parse_meaning
from data.formats.headers import HeaderMeaning, understand
from data.formats.numbers import Number, parse_cell, uses_decimal_comma
from data.formats.row_checks import RefusedRow
from data.formats.table import Table

SAMPLES = 3
"""Values shown beside a guess."""
_LARGEST_IN_SECONDS: Mapping[str, float] = {"ttft": 10.0, "tpot": 1.0, "itl": 1.0, "e2e": 300.0, "duration": 1e9}
_YES_OR_NO = frozenset({"true", "false", "yes", "no"})
_AMBIGUOUS_LATENCY = "ambiguous_latency"
"""A column without unit whose values all stay below this is taken as seconds, else as milliseconds; always asked."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table as it will be read."""

    index: int
    header: str
    meaning: ColumnMeaning
    assumed: bool = False
    nominal: bool = False
    decimal_comma: bool = False
    percent: bool = False
    """True when a share column counts to 100."""


@dataclass(frozen=True, kw_only=True)
class ColumnGuess:
    """One column for the page that asks before storing."""

    header: str
    code: str
    statistic: str | None
    unit: str | None
    assumed: bool
    """True when the header leaves the meaning open: ask."""
    samples: tuple[str, ...]

    @property
    def choice(self) -> str:
        """The guess as ``read`` takes it back and :data:`FIELD_CHOICES` lists it, e.g. ``ttft.mean:ms``."""
        return str(ColumnMeaning(code=self.code, statistic=self.statistic, unit=self.unit))


def resolve_columns(table: Table, corrections: Mapping[str, str] | None = None) -> tuple[Column, ...]:
    """Every column with its meaning: the user's where given, else the header's."""
    corrections = corrections or {}
    unknown = next((header for header in corrections if header not in table.headers), None)
    if unknown is not None:
        raise InputError(
            msg(
                "there is no column {header}: use the headers of the file ({headers}).",
                header=unknown,
                headers=", ".join(table.headers),
            )
        )
    cells = [_cells(table, index) for index in range(len(table.headers))]
    commas = [uses_decimal_comma(column) for column in cells]
    everywhere = any(commas) and not all(comma is False for comma in commas)
    meant = [understand(header) or HeaderMeaning(code=IGNORE) for header in table.headers]
    guessed = _settled([_of_one_request(meaning, cells[index]) for index, meaning in enumerate(meant)])
    columns = tuple(
        _column(index, header, guessed[index], cells[index], corrections.get(header), _or(commas[index], everywhere))
        for index, header in enumerate(table.headers)
    )
    return _agreed(columns, cells)


def _agreed(columns: tuple[Column, ...], cells: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    """E2E without a unit counts in ms beside such a TTFT in ms that it is not below: no answer takes 1,000 TTFTs."""
    first = _largest(columns, cells, code="ttft", unit="ms")
    whole = _largest(columns, cells, code="e2e", unit="s")
    if first is None or whole is None or whole < first:
        return columns
    return tuple(
        replace(column, meaning=replace(column.meaning, unit="ms")) if _is_assumed(column, "e2e", "s") else column
        for column in columns
    )


def _is_assumed(column: Column, code: str, unit: str) -> bool:
    return column.assumed and (column.meaning.code, column.meaning.unit) == (code, unit)


def _largest(columns: Sequence[Column], cells: Sequence[Sequence[str]], *, code: str, unit: str) -> float | None:
    values = [
        number.value
        for column in columns
        if _is_assumed(column, code, unit)
        for number in _numbers(cells[column.index], column.decimal_comma)
        if number.unit is None
    ]
    return max(values, default=None)


def _of_one_request(meaning: HeaderMeaning, cells: Sequence[str]) -> HeaderMeaning:
    """``ok`` with True and False in its cells is no count of requests: every row is one."""
    filled = {cell.strip().lower() for cell in cells if cell.strip()}
    yes_or_no = meaning.code == "completed" and bool(filled) and filled <= _YES_OR_NO
    return replace(meaning, code="request_index", assumed=False) if yes_or_no else meaning


def _settled(guessed: Sequence[HeaderMeaning]) -> list[HeaderMeaning]:
    """A bare latency beside a TTFT and no E2E is the E2E latency, still to be confirmed; alone it could be either."""
    codes = {meaning.code for meaning in guessed}
    if "ttft" not in codes or "e2e" in codes:
        return list(guessed)
    return [replace(meaning, code="e2e") if meaning.code == _AMBIGUOUS_LATENCY else meaning for meaning in guessed]


def guesses(table: Table) -> tuple[ColumnGuess, ...]:
    """Our reading of every column, with sample values."""
    return tuple(
        ColumnGuess(
            header=column.header,
            code=column.meaning.code,
            statistic=column.meaning.statistic,
            unit=column.meaning.unit,
            assumed=column.assumed,
            samples=_samples(table, column),
        )
        for column in resolve_columns(table)
    )


def _or(own: bool | None, everywhere: bool) -> bool:
    return everywhere if own is None else own


def _cells(table: Table, index: int) -> list[str]:
    return [row.cells[index] for row in table.rows if index < len(row.cells)]


def _samples(table: Table, column: Column) -> tuple[str, ...]:
    """First values; prompts and answers are not shown."""
    if column.meaning.code == "answer_text":
        return ()
    return tuple(cell for cell in _cells(table, column.index) if cell)[:SAMPLES]


def _column(
    index: int, header: str, guessed: HeaderMeaning, cells: Sequence[str], correction: str | None, comma: bool
) -> Column:
    meaning = ColumnMeaning(code=guessed.code, statistic=guessed.statistic, unit=guessed.unit)
    if correction is not None:
        meaning = parse_meaning(correction, header)
    numbers = _numbers(cells, comma) if FIELDS[meaning.code].kind in ("time", "share") else []
    complete = _with_unit(meaning, numbers)
    return Column(
        index=index,
        header=header,
        meaning=complete,
        assumed=correction is None and guessed.assumed and not _unit_in_cells(guessed, numbers),
        nominal=guessed.nominal and meaning.code == guessed.code,
        decimal_comma=comma,
        percent=complete.unit == "%",
    )


def _numbers(cells: Sequence[str], comma: bool) -> list[Number]:
    numbers: list[Number] = []
    for cell in cells:
        try:
            parsed = parse_cell(cell, decimal_comma=comma, what="")
        except RefusedRow:
            continue
        if isinstance(parsed, Number):
            numbers.append(parsed)
    return numbers


def _unit_in_cells(guessed: HeaderMeaning, numbers: Sequence[Number]) -> bool:
    """``412.5 ms`` in every cell settles a header without a unit; it cannot settle which latency is meant."""
    stated = guessed.unit is None and bool(numbers) and all(number.unit is not None for number in numbers)
    return stated and guessed.statistic is not None and guessed.code not in ("e2e", _AMBIGUOUS_LATENCY)


def _with_unit(meaning: ColumnMeaning, numbers: Sequence[Number]) -> ColumnMeaning:
    kind = FIELDS[meaning.code].kind
    if meaning.unit is not None or kind not in ("time", "share"):
        return meaning
    stated = next((number.unit for number in numbers if number.unit in ("%", "ms", "s", "us", "ns", "min")), None)
    if stated is not None:
        unit = stated
    elif kind == "share":
        unit = "%" if any(number.value > 1 for number in numbers) else "share"
    else:
        limit = _LARGEST_IN_SECONDS.get(meaning.code, 1.0)
        unit = "s" if all(number.value < limit for number in numbers) else "ms"
    return ColumnMeaning(code=meaning.code, statistic=meaning.statistic, unit=unit)
