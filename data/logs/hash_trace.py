"""A trace with block hashes, read from JSON Lines (plain or gzip): a row a request, each within bounds."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from calc.errors import UnreadableFile
from calc.messages import Message, msg
from calc.reuse.trace import BlockTrace, FloatArray, IntArray
from data.logs.block_size import likely_block_tokens
from data.logs.hash_rows import HashRow, hash_row

MAX_LINE_BYTES = 16 * 2**20
"""Longest row read: a prompt of ten million tokens in blocks of 16 has 625,000 hashes of 20 digits."""
MAX_BLOCKS = 50_000_000
"""Most block ids read of one trace."""
MAX_REQUESTS = 20_000_000
NO_PARENT = "-1"
"""What Bailian writes for the first turn of a conversation."""
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class ReadTrace:
    """The trace and what had to be left out or assumed."""

    trace: BlockTrace
    notes: tuple[Message, ...] = ()


def read_hash_trace(path: Path) -> ReadTrace:
    """The trace in a file; requests in order of their times, of one time in order of the file."""
    rows, left_out = [], 0
    blocks = 0
    for number, fields in _objects(path):
        row = hash_row(fields)
        if row is None:
            left_out += 1
            continue
        if row.prompt_tokens is None:
            raise UnreadableFile(
                msg("line {number} has block hashes but no prompt tokens: add input_length to each row.", number=number)
            )
        rows.append(row)
        blocks += len(row.hashes)
        if blocks > MAX_BLOCKS or len(rows) > MAX_REQUESTS:
            raise UnreadableFile(
                msg("The trace has more than {most:count} blocks: take a shorter part of it.", most=MAX_BLOCKS)
            )
    if not rows:
        raise UnreadableFile(
            msg("No row of this file has block hashes (hash_ids): record a trace that names the blocks of each prompt.")
        )
    return ReadTrace(trace=trace_of(rows), notes=_notes(left_out))


def trace_of(rows: Sequence[HashRow]) -> BlockTrace:
    """Rows as arrays."""
    rows = _in_time(rows)
    numbers: dict[object, int] = {}
    ids = np.fromiter(
        (numbers.setdefault(one, len(numbers)) for row in rows for one in row.hashes),
        np.int64,
        count=sum(len(row.hashes) for row in rows),
    )
    tenant, names = _numbered([row.tenant for row in rows])
    return BlockTrace(
        block_size_tokens=_block_size(rows),
        offsets=np.concatenate([[0], np.cumsum([len(row.hashes) for row in rows])]).astype(np.int64),
        block_ids=ids,
        unique_blocks=len(numbers),
        prompt_tokens=np.array([row.prompt_tokens for row in rows], dtype=np.int64),
        output_tokens=_column([row.output_tokens for row in rows]),
        arrival_s=_times(rows),
        tenant=tenant,
        tenant_names=names,
        session=_sessions(rows),
        cached_tokens=_partly([row.cached_tokens for row in rows]),
    )


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open("rb") as file:
            plain = file.read(2) != _GZIP
            file.seek(0)
            source = file if plain else cast("BinaryIO", gzip.GzipFile(fileobj=file))
            yield from _parsed(source)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UnreadableFile(
            msg("{name} is not a whole gzip file: copy it again or unpack it.", name=path.name)
        ) from error
    except OSError as error:
        raise UnreadableFile(
            msg("{name} cannot be read ({reason}): check the path.", name=path.name, reason=error.strerror or "")
        ) from error


def _parsed(source: BinaryIO) -> Iterator[tuple[int, Mapping[str, Any]]]:
    number = 0
    while line := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise UnreadableFile(
                msg(
                    "line {number} is longer than {most:gib}: write one request a line.",
                    number=number,
                    most=MAX_LINE_BYTES,
                )
            )
        if not (text := line.strip().removeprefix(b"\xef\xbb\xbf")):
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(
                msg(
                    "line {number} is not JSON: a trace with block hashes is JSON Lines, one request a line.",
                    number=number,
                )
            ) from error
        if isinstance(value, dict):
            yield number, value


def _in_time(rows: Sequence[HashRow]) -> Sequence[HashRow]:
    if any(row.arrival_s is None for row in rows):
        return rows
    return sorted(rows, key=lambda row: row.arrival_s or 0.0)


def _block_size(rows: Sequence[HashRow]) -> int:
    """What the rows say, else the usual size with which each prompt has the blocks it needs, else the nearest one."""
    said = {row.block_size_tokens for row in rows if row.block_size_tokens}
    if len(said) > 1:
        raise UnreadableFile(msg("The trace has blocks of several sizes: split it by block size."))
    if said:
        return said.pop() or 1
    likely = likely_block_tokens([(row.prompt_tokens or 0, len(row.hashes)) for row in rows])
    if likely is None:
        raise UnreadableFile(msg("No request of this trace has a block: every list of hashes is empty."))
    return likely


def _times(rows: Sequence[HashRow]) -> FloatArray | None:
    times = [row.arrival_s for row in rows]
    return None if any(time is None for time in times) else np.array(times, dtype=np.float64) - (times[0] or 0.0)


def _column(values: Sequence[int | None]) -> IntArray | None:
    return None if any(value is None for value in values) else np.array(values, dtype=np.int64)


def _partly(values: Sequence[int | None]) -> IntArray | None:
    if all(value is None for value in values):
        return None
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)


def _sessions(rows: Sequence[HashRow]) -> IntArray | None:
    """Turns of one conversation share a number: by name, or by going back from turn to turn."""
    if all(row.session is None for row in rows):
        return None
    first_turn: dict[str, str] = {}
    names = []
    for row in rows:
        name = row.session
        if name is not None and row.parent is not None:
            name = first_turn.get(row.parent, row.parent) if row.parent != NO_PARENT else name
            first_turn[row.session or ""] = name
        names.append(name)
    return _numbered(names)[0]


def _numbered(names: Sequence[str | None]) -> tuple[IntArray | None, tuple[str, ...]]:
    """Names as 0 … k − 1 in order of their first use, -1 for none."""
    known: dict[str, int] = {}
    numbers = [-1 if name is None else known.setdefault(name, len(known)) for name in names]
    return (np.array(numbers, dtype=np.int64), tuple(known)) if known else (None, ())


def _notes(left_out: int) -> tuple[Message, ...]:
    if not left_out:
        return ()
    return (msg("{rows:count} rows are no requests or name no blocks: they were left out.", rows=left_out),)
