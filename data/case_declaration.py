"""A declaration about runs as JSON, the ``--declare`` of ``ingest``: the facts that no result file states."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from calc.deployment import MAX_GPUS
from calc.errors import InputError
from calc.messages import msg
from calc.poc.cells import CacheStrategy, Repetition, SessionGroup
from data import catalogue
from data.case_fields import Fields
from data.case_lines import split_cases
from data.engine_flags import MAX_CHARACTERS
from data.own_text import one_line
from data.records import RunDeclaration

BY = "declared_by"
"""Who says so; beside the facts, for it is none."""
COMMAND_LINE = "command line"
TEXTS = ("model", "engine", "engine_version", "note")


def read_declaration(given: Any, own_gpus: Collection[str] = ()) -> tuple[RunDeclaration, str]:
    """The declaration and who made it. A GPU must be one of the catalogue or of the team's own; a typo is refused."""
    fields = Fields(given, "declaration")
    texts = {name: one_line(text, name) for name in TEXTS if (text := fields.text(name))}
    declaration = RunDeclaration(
        **texts,
        gpu=_gpu(fields.text("gpu"), own_gpus),
        gpu_count=fields.count("gpu_count", MAX_GPUS),
        engine_flags=_flags(fields.raw("engine_flags")),
        strategy=CacheStrategy(fields.one_of("strategy", list(CacheStrategy))) if fields.raw("strategy") else None,
        repetition=Repetition(fields.one_of("repetition", list(Repetition))) if fields.raw("repetition") else None,
        session_group=SessionGroup(fields.one_of("session_group", list(SessionGroup)))
        if fields.raw("session_group")
        else None,
    )
    by = fields.text(BY) or COMMAND_LINE
    unknown = fields.unknown()
    if unknown:
        raise InputError(msg("{text} Nothing was declared: correct the name of the field.", text=unknown[0]))
    if declaration == RunDeclaration():
        raise InputError(msg("the declaration names no fact: add one, such as gpu or strategy."))
    return declaration, one_line(by, BY)


def declaration_of_file(content: bytes, own_gpus: Collection[str] = ()) -> tuple[RunDeclaration, str]:
    """The declaration in a JSON file."""
    return read_declaration(split_cases(content)[0], own_gpus)


def cleaned(declaration: RunDeclaration) -> RunDeclaration:
    """What was typed into a form, on one line each; empty texts are not said."""

    def line(name: str) -> str | None:
        text = (getattr(declaration, name) or "").strip()
        return one_line(text, name) if text else None

    return replace(
        declaration,
        engine_flags=_flags(declaration.engine_flags),
        model=line("model"),
        engine=line("engine"),
        engine_version=line("engine_version"),
        note=line("note"),
    )


def _gpu(name: str | None, own_gpus: Collection[str]) -> str | None:
    return name if not name or name in own_gpus else catalogue.gpu(name).id


def _flags(given: Any) -> str | None:
    """Start options as typed; a list is joined."""
    if given is None or given == "":
        return None
    text = " ".join(map(str, given)) if isinstance(given, list) else str(given)
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            msg("engine_flags may have {limit:count} characters: leave out what is not about the cache or the GPUs.",
                limit=MAX_CHARACTERS)
        )  # fmt: skip
    return " ".join(text.split()) or None
