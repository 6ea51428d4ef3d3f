"""Kinds of requests, and how their clients behave, as a JSON case says it, both ways."""

from __future__ import annotations

from typing import Any

from calc.errors import InputError
from calc.messages import msg
from calc.workload import MAX_CONCURRENCY, MAX_PATIENCE_S, MAX_PRIORITY, MAX_RETRIES, Clients, RequestClass
from data.case_fields import Fields
from data.case_lengths import read_lengths, write_lengths

MAX_CLASSES = 32
"""Kinds of requests told apart; charts and tables hold some few, a log of tenants its largest ones."""
LENGTHS = ("prompt_tokens", "output_tokens")


def read_classes(fields: Fields) -> tuple[RequestClass, ...]:
    """The kinds of requests of a load."""
    classes = tuple(_read_class(one) for one in fields.children("classes", MAX_CLASSES))
    names = [one.name for one in classes]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            msg(
                "{name} names {twice} twice: give each class its own name.", name=fields.name_of("classes"), twice=twice
            )
        )
    return classes


def _read_class(fields: Fields) -> RequestClass:
    lengths = {key: fields.child(key) for key in LENGTHS}
    fields.needed("share")
    return RequestClass(
        name=_class_name(fields),
        share=fields.share("share") or 0.0,
        **{key: read_lengths(given) for key, given in lengths.items() if given is not None},
        prefix_hit_share=fields.share("prefix_hit_share"),
        priority=fields.whole_within("priority", MAX_PRIORITY, -MAX_PRIORITY) or 0,
        max_running=fields.count("max_running", MAX_CONCURRENCY),
    )


def _class_name(fields: Fields) -> str:
    name = fields.needed_text("name").strip()
    if not name or not name.isprintable():
        raise InputError(msg("{name} is not a name: write one visible line.", name=fields.name_of("name")))
    return name


def read_clients(fields: Fields | None) -> Clients:
    """Who stops reading, who gives up waiting, who tries again."""
    if fields is None:
        return Clients()
    pause_s = fields.within("retry_after_s", MAX_PATIENCE_S)
    return Clients(
        cancel_share=fields.share("cancel_share") or 0.0,
        patience_s=fields.positive("patience_s", MAX_PATIENCE_S),
        retries=fields.whole_within("retries", MAX_RETRIES) or 0,
        retry_after_s=Clients.retry_after_s if pause_s is None else pause_s,
    )


def write_classes(classes: tuple[RequestClass, ...]) -> dict[str, Any]:
    """As :func:`read_classes` reads them; nothing where all requests are alike."""
    return {"classes": [_write_class(one) for one in classes]} if classes else {}


def _write_class(one: RequestClass) -> dict[str, Any]:
    written: dict[str, Any] = {"name": one.name, "share": one.share}
    written |= {key: write_lengths(own) for key in LENGTHS if (own := getattr(one, key)) is not None}
    if one.prefix_hit_share is not None:
        written["prefix_hit_share"] = one.prefix_hit_share
    if one.priority:
        written["priority"] = one.priority
    if one.max_running is not None:
        written["max_running"] = one.max_running
    return written


def write_clients(clients: Clients) -> dict[str, Any]:
    """As :func:`read_clients` reads them; nothing where all wait for ever and read to the end."""
    usual = Clients()
    names = ("cancel_share", "patience_s", "retries", "retry_after_s")
    written = {key: value for key in names if (value := getattr(clients, key)) != getattr(usual, key)}
    return {"clients": written} if written else {}
