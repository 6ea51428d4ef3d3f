"""A log as DuckDB reads it: the table function with explicit columns, and the expression of each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from calc.lengths import MAX_TOKENS
from data.logs.cells import COMMA, EMPTY, PLAIN, THOUSANDS
from data.logs.formats import CHAT, PARENT
from data.logs.incoming import Incoming
from data.logs.meanings import COUNTS, DATES, DURATIONS, FLAGS, SECONDS, TEXTS
from data.logs.understood import Column, Understood

MAX_LINE_BYTES = 16 << 20
"""Longest line read: a prompt of a million tokens in a cell that is not loaded."""
MAX_REJECTS = 1000
"""Rows that cannot be split into cells told of one by one."""
MAX_WORDS = 12
"""Words of a status or a flag compared one by one."""
MAX_TEXT = 200
"""Characters kept of a name."""
MICROS = 1_000_000
EPOCH_LEAST_S = 1e8
"""Seconds from here on are a date: kept to the microsecond as a decimal, which a float of that size cannot."""
_TIMES_OF_DAY = ("%H:%M:%S.%f", "%H:%M:%S", "%H:%M", "%I:%M:%S.%f %p", "%I:%M:%S %p", "%I:%M %p")
_DATE_FORMATS = {
    code: tuple(f"{date} {clock}" for clock in _TIMES_OF_DAY)
    for code, date in (("dmy", "%d/%m/%Y"), ("mdy", "%m/%d/%Y"))
}
_YEAR_LAST = r"'^\s*(\d\d?)[-/.](\d\d?)[-/.](\d{4})[ T,]+', '\1/\2/\3 '"
"""Pattern and replacement: any of the signs between day, month, year and clock becomes the one that is read."""
OK_WORDS = (
    "ok", "success", "succeeded", "successful", "completed", "complete", "done", "finished", "stop", "length", "true",
    "1", "yes", "eos", "成功", "完成",
)  # fmt: skip
CANCEL_WORDS = (
    "cancelled", "canceled", "cancel", "aborted", "abort", "client_disconnected", "disconnected", "499", "取消",
)  # fmt: skip
FAIL_WORDS = (
    "failed", "fail", "failure", "error", "timeout", "timed_out", "rejected", "oom", "false", "0", "no", "失败", "超时",
)  # fmt: skip
TRUE_WORDS, FALSE_WORDS = ("true", "t", "1", "yes", "y", "是", "1.0"), ("false", "f", "0", "no", "n", "否", "0.0")


def text(value: str) -> str:
    """A string of SQL."""
    return "'" + value.replace("'", "''") + "'"


def relation(log: Understood, incoming: Incoming, *, typed: bool, rejects: bool = False) -> str:
    """The file as a table of columns ``c0``, ``c1`` … in the order of the understood columns.

    ``typed``: a cell that is not what its column says is an error; ``rejects``: such lines are set aside.
    """
    path = text(str(incoming.path))
    if log.sample.container == "csv":
        return _csv(log, path, incoming.quoted, typed, rejects)
    if log.sample.container == "parquet":
        names = ", ".join(f"{_parquet(log, column)} AS c{i}" for i, column in enumerate(log.columns))
        return f"(SELECT {names} FROM read_parquet({path}))"
    return _json(log, path, typed)


def _csv(log: Understood, path: str, quoted: bool, typed: bool, rejects: bool) -> str:
    by_header = {column.header: (i, column) for i, column in enumerate(log.columns)}
    columns = []
    for place, header in enumerate(log.sample.headers):
        i, column = by_header.get(header, (None, None))
        kind = "VARCHAR" if column is None or not typed else _type(column)
        columns.append(f"{text(f'x{place}' if i is None else f'c{i}')}: {text(kind)}")
    options = {
        "auto_detect": "false",
        "header": "false",
        "skip": str(log.sample.skip_lines),
        "delim": text(log.sample.delimiter),
        "quote": text('"' if quoted else ""),
        "escape": text('"' if quoted else ""),
        "new_line": text("\\n"),
        "columns": f"{{{', '.join(columns)}}}",
        "nullstr": f"[{_list(_empty_words(log, every=rejects))}]",
        "max_line_size": str(MAX_LINE_BYTES),
        **({"store_rejects": "true", "rejects_limit": str(MAX_REJECTS)} if rejects else {}),
    }
    return f"read_csv({path}, {', '.join(f'{name} = {value}' for name, value in options.items())})"


def _empty_words(log: Understood, *, every: bool) -> list[str]:
    """Words that say nothing. Each costs a comparison in every cell: at first only those that were seen are told."""
    seen = {cell for row in log.sample.rows for cell in row.values() if isinstance(cell, str)}
    return [word for word in EMPTY if every or not word or word in seen]


def _json(log: Understood, path: str, typed: bool) -> str:
    """Keys at the top are columns; what lies deeper is taken out of them."""
    kinds: dict[str, str] = {}
    names = []
    only = _only(log)
    for i, column in enumerate(log.columns):
        first, *deeper = log.sample.keys[column.header]
        kinds[first] = "JSON" if deeper else _json_type(column, typed)
        names.append(f"{_at(first, deeper, column)} AS c{i}")
    if only:
        kinds[only[0][0]] = "JSON" if len(only[0]) > 1 else "VARCHAR"
    columns = ", ".join(f"{text(key)}: {text(kind)}" for key, kind in kinds.items())
    shape = "newline_delimited" if log.sample.container == "jsonl" else "array"
    table = (
        f"read_json({path}, format = {text(shape)}, columns = {{{columns}}}, maximum_object_size = {MAX_LINE_BYTES}, "
        f"ignore_errors = {'false' if typed or shape == 'array' else 'true'})"
    )
    where = f" WHERE {_at(only[0][0], only[0][1:], None)} = {text(only[1])}" if only else ""
    return f"(SELECT {', '.join(names)} FROM {table}{where})"


def _only(log: Understood) -> tuple[tuple[str, ...], str] | None:
    """The keys that lead to what tells requests from other records, and its value there."""
    if log.format.only is None:
        return None
    key, value = log.format.only
    return next(path for path in log.sample.keys.values() if path[-1] == key), value


def name(key: str) -> str:
    """A name of SQL."""
    return '"' + key.replace('"', '""') + '"'


def _at(first: str, deeper: Sequence[str], column: Column | None) -> str:
    if not deeper:
        return name(first)
    path = "$" + "".join(f'."{key}"' for key in deeper)
    function = "json_extract" if column is not None and column.field == "block_hashes" else "json_extract_string"
    return f"{function}({name(first)}, {text(path)})"


def _parquet(log: Understood, column: Column) -> str:
    listed = log.sample.types.get(column.header, "").endswith("[]")
    return f"to_json({name(column.header)})" if listed else name(column.header)


def _json_type(column: Column, typed: bool) -> str:
    if column.field == "block_hashes":
        return "JSON"
    return _type(column) if typed else "VARCHAR"


def _type(column: Column) -> str:
    """The type in which a column's cells are read where they are written plainly."""
    if column.number != PLAIN or column.comma or column.unit in ("dmy", "mdy"):
        return "VARCHAR"
    if column.field == "time":
        return _time_type(column)
    if column.field in DURATIONS:
        return "DOUBLE"
    return "BIGINT" if column.field in COUNTS and column.field != "retries" else "VARCHAR"


def _time_type(column: Column) -> str:
    if column.unit in DATES:
        return "TIMESTAMPTZ" if column.zoned else "TIMESTAMP"
    return {"us": "BIGINT", "ns": "BIGINT"}.get(column.unit, "DOUBLE")


def cast(value: str, kind: str, typed: bool) -> str:
    """To a type; where cells may be wrong, to nothing instead of an error."""
    return f"{'CAST' if typed else 'TRY_CAST'}({value} AS {kind})"


def raw_time(log: Understood, *, typed: bool) -> str:
    """The time of a request as a number: of a date the microseconds, else as it stands in the column."""
    i, column = _find(log, "time")
    if column.unit in _DATE_FORMATS:
        formats = ", ".join(map(text, _DATE_FORMATS[column.unit]))
        parse = "strptime" if typed else "try_strptime"
        return f"epoch_us({parse}(trim(regexp_replace(c{i}, {_YEAR_LAST})), [{formats}]))"
    if column.unit == "iso":
        value = f"replace(c{i}, ',', '.')" if column.comma else f"c{i}"
        return f"epoch_us({cast(value, _time_type(column), typed)})"
    if column.unit == "s" and _is_epoch(log, column):
        return f"CAST({cast(_number(i, column), 'DECIMAL(20, 6)', typed)} * {MICROS} AS BIGINT)"
    return cast(_number(i, column), _time_type(column), typed)


def time_scale(log: Understood) -> float:
    """How many of these make a second."""
    _, column = _find(log, "time")
    return float(MICROS) if column.unit in DATES or _is_epoch(log, column) else SECONDS[column.unit]


def _is_epoch(log: Understood, column: Column) -> bool:
    if column.unit != "s":
        return False
    cells = log.sample.cells(column.header)
    return bool(cells) and len(cells[0].split(".")[0].lstrip("-")) >= len(str(int(EPOCH_LEAST_S)))


def _find(log: Understood, field: str) -> tuple[int, Column]:
    return next((i, column) for i, column in enumerate(log.columns) if column.field == field)


def _number(i: int, column: Column) -> str:
    if column.number == THOUSANDS:
        return f"replace(replace(c{i}, ',', ''), ' ', '')"
    if column.number == COMMA:
        return f"replace(replace(replace(c{i}, '.', ''), ' ', ''), ',', '.')"
    return f"c{i}"


def field_sql(log: Understood, field: str, *, typed: bool) -> str:
    """The value of a field other than the time; NULL where no column fills it."""
    found = next(((i, c) for i, c in enumerate(log.columns) if c.field == field), None)
    if found is None:
        return _implied(log, field, typed=typed)
    i, column = found
    if field in (*TEXTS, CHAT, PARENT):
        whole = f"CAST(c{i} AS VARCHAR)"
        return whole if typed else f"left({whole}, {MAX_TEXT})"
    if field in DURATIONS:
        value = cast(_number(i, column), "DOUBLE", typed)
        seconds = f"{value} / {SECONDS[column.unit]!r}"
        return seconds if typed else f"CASE WHEN isfinite({value}) AND {value} >= 0 THEN {seconds} END"
    if field in _WORDED:
        return _worded(f"c{i}", field, log.sample.cells(column.header))
    value = cast(_number(i, column), "BIGINT", typed)
    if field == "output_tokens" and any(column.field == "status" for column in log.columns):
        return f"coalesce({value}, CASE WHEN {field_sql(log, 'status', typed=typed)} = 'failed' THEN 0 END)"
    return value


def _implied(log: Understood, field: str, *, typed: bool) -> str:
    """What the format says without a column for it."""
    if field == "status" and log.format.zero_output_failed:
        output = field_sql(log, "output_tokens", typed=typed)
        return f"CASE WHEN {output} = 0 THEN 'failed' ELSE 'ok' END"
    return "NULL"


def _list(words: Sequence[str]) -> str:
    return ", ".join(map(text, words))


def _flag(value: str) -> str:
    word = f"lower(trim(CAST({value} AS VARCHAR)))"
    return f"CASE WHEN {word} IN ({_list(TRUE_WORDS)}) THEN TRUE WHEN {word} IN ({_list(FALSE_WORDS)}) THEN FALSE END"


def _status(value: str) -> str:
    word = f"lower(trim(CAST({value} AS VARCHAR)))"
    code = f"TRY_CAST({word} AS INTEGER)"
    return (
        f"CASE WHEN {word} IN ({_list(OK_WORDS)}) THEN 'ok' WHEN {word} IN ({_list(CANCEL_WORDS)}) THEN 'cancelled' "
        f"WHEN {word} IN ({_list(FAIL_WORDS)}) OR {code} BETWEEN 400 AND 599 THEN 'failed' "
        f"WHEN {code} BETWEEN 200 AND 299 THEN 'ok' END"
    )


def _hashes(value: str) -> str:
    """Any hashes as 64-bit numbers: those above 2^63 wrap around, words are hashed themselves."""
    listed = f"TRY_CAST(CAST({value} AS JSON) AS VARCHAR[])"
    return (
        f"list_transform({listed}, lambda h: coalesce(TRY_CAST(h AS BIGINT), "
        "CAST(CAST(TRY_CAST(h AS UBIGINT) AS HUGEINT) - 18446744073709551616 AS BIGINT), "
        "CAST(CAST(hash(h) AS HUGEINT) - 9223372036854775808 AS BIGINT)))"
    )


def _worded(value: str, field: str, cells: Sequence[str]) -> str:
    """The words that were seen first: comparing whole cells is several times faster than looking into them."""
    general = _WORDED[field](value)
    known = {cell: meant for cell in cells if (meant := _known_word(field, cell.strip().lower())) is not None}
    if not known or len(known) > MAX_WORDS:
        return general
    cases = " ".join(f"WHEN {text(cell)} THEN {meant}" for cell, meant in known.items())
    return f"CASE {value} {cases} ELSE {general} END"


def _known_word(field: str, word: str) -> str | None:
    if field == "status":
        groups = {"'ok'": OK_WORDS, "'cancelled'": CANCEL_WORDS, "'failed'": FAIL_WORDS}
    elif field in FLAGS:
        groups = {"TRUE": TRUE_WORDS, "FALSE": FALSE_WORDS}
    else:
        return None
    return next((meant for meant, words in groups.items() if word in words), None)


def _retries(value: str) -> str:
    """A number, or whether there was one."""
    return f"coalesce(TRY_CAST({value} AS BIGINT), CAST({_flag(value)} AS BIGINT))"


_WORDED: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(FLAGS, _flag), "retries": _retries, "status": _status, "block_hashes": _hashes,
}  # fmt: skip
"""Fields whose cells are words of some kind."""


def in_range(prompt: str, output: str) -> str:
    """Whether both lengths could be those of a request."""
    return f"{prompt} BETWEEN 0 AND {MAX_TOKENS} AND {output} BETWEEN 0 AND {MAX_TOKENS}"
