"""YAML reports: plain values only, bounded in size, depth and number, without aliases, tags or dates of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from calc.errors import UnreadableFile
from calc.messages import msg
from data.formats.json_values import JsonValue

MAX_YAML_CHARACTERS = 20 * 10**6
"""Largest YAML read; a report of one benchmark has some ten thousand."""
MAX_DEPTH = 60
MAX_NODES = 500_000
"""Most values and keys of one file."""
_LOOKED_AT = 40
"""Lines that must look like YAML before it is taken for YAML."""
_ENOUGH = 2
_KEY = re.compile(r"""^\s*(?:- +)*(?:"[^"]*"|'[^']*'|[^\s:#,;|{\[&*!%@`"'][^:,;|{\n]*):(?:\s|$)""")
_OTHER = re.compile(r"^\s+\S|^- |^-$|^#|^---|^\.\.\.")
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


class _Loader(yaml.CSafeLoader):
    """Dates stay text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def looks_like_yaml(text: str) -> bool:
    """True when the beginning is ``key:`` lines, and nothing else than lists, indented lines and comments between."""
    lines = [line for line in text[: 200 * _LOOKED_AT].splitlines()[:_LOOKED_AT] if line.strip()]
    keys = [line for line in lines if _KEY.match(line)]
    return len(keys) >= _ENOUGH and all(_KEY.match(line) or _OTHER.match(line) for line in lines[:-1])


def parse_yaml(text: str, name: str) -> tuple[JsonValue, ...]:
    """Every document of the file that is a mapping or a list, with the line where it starts."""
    if len(text) > MAX_YAML_CHARACTERS:
        raise UnreadableFile(
            msg(
                "{file}: at most {limit:count} characters of YAML are read: give the report as JSON.",
                file=name,
                limit=MAX_YAML_CHARACTERS,
            )
        )
    try:
        lines = _checked_lines(text, name)
        documents = list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        _refuse_damaged(error, name)
    return tuple(
        JsonValue(line=line, value=_with_text_keys(document))
        for line, document in zip(lines, documents, strict=True)
        if isinstance(document, dict | list)
    )


def _checked_lines(text: str, name: str) -> list[int]:
    """Where each document starts, after a look at every event: nothing is built before it is known to be bounded."""
    lines: list[int] = []
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=_Loader), start=1):
        if isinstance(event, yaml.DocumentStartEvent):
            lines.append(_line(event))
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        _refuse_alias(event, name)
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise UnreadableFile(
                msg(
                    "{file}: YAML of a benchmark was expected, this one is nested too deeply or holds too many values: "
                    "check the file.",
                    file=name,
                )
            )
    return lines


def _refuse_alias(event: yaml.Event, name: str) -> None:
    """Aliases can make a short text endless, tags can name other programs' types; no benchmark writes either."""
    anchored = isinstance(event, yaml.NodeEvent) and event.anchor is not None
    tagged = isinstance(event, (*_OPENING, yaml.ScalarEvent)) and event.tag not in (None, "!")
    if anchored or tagged:
        raise UnreadableFile(
            msg(
                "{file}: YAML anchors, aliases and tags are not read (line {line:count}): write the values out.",
                file=name,
                line=_line(event),
            )
        )


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else int(event.start_mark.line) + 1


def _refuse_damaged(error: Exception, name: str) -> NoReturn:
    mark = getattr(error, "problem_mark", None)
    raise UnreadableFile(
        msg(
            "{file}: complete YAML was expected, but it is damaged near line {line:count}: "
            "run the tool again or copy the whole file.",
            file=name,
            line=mark.line + 1 if mark is not None else 1,
        )
    ) from error


def _with_text_keys(value: Any) -> Any:
    """Keys as JSON has them: ``50:`` is the key ``"50"``."""
    if isinstance(value, Mapping):
        return {str(key): _with_text_keys(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_text_keys(entry) for entry in value]
    return value
