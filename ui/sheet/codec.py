"""A review as JSON and back: the snapshot that is stored, downloaded and reopened with the same numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from calc.errors import UnreadableFile
from calc.messages import Message, msg
from ui.sheet.review import Review

T = TypeVar("T")
FORMAT = "plimsoll-review"
FORMAT_VERSION = 1
SHORT_HASH = 12
"""Hexadecimal digits printed on the sheet; enough to tell 2^24 reviews apart."""


def review_to_json(review: Review) -> str:
    """The review with its hash, in one canonical text: equal reviews give equal texts."""
    content = _encode(review)
    envelope = {"format": FORMAT, "version": FORMAT_VERSION, "hash": _digest(content), "review": content}
    return json.dumps(envelope, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n"


def review_from_json(text: str | bytes) -> Review:
    """A saved review; refused when it was changed since it was saved or is something else."""
    try:
        envelope = json.loads(text)
    except ValueError as error:
        raise _unreadable(str(error)) from error
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise _unreadable("")
    if _digest(envelope.get("review")) != envelope.get("hash"):
        raise UnreadableFile(
            msg("The saved review was changed after it was saved (its hash differs): open the original file.")
        )
    try:
        return _decode_record(envelope["review"], Review)
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(str(error)) from error


def review_hash(review: Review) -> str:
    """SHA-256 over the whole content, hexadecimal."""
    return _digest(_encode(review))


def _unreadable(detail: str) -> UnreadableFile:
    return UnreadableFile(
        msg("This is not a saved review: choose a JSON file saved on the review page. {detail}", detail=detail)
    )


def _digest(content: Any) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _encode(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value.value if isinstance(value, StrEnum) else value
        case Message():
            return {"msgid": value.msgid, "params": _encode(value.params)}
        case tuple() | list():
            return [_encode(item) for item in value]
        case Mapping():
            return {str(key): _encode(item) for key, item in value.items()}
    if is_dataclass(value):
        return {item.name: _encode(getattr(value, item.name)) for item in fields(value)}
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a saved review")


def _decode(value: Any, kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _decode_choice(value, arguments)
    if origin is tuple:
        return _decode_tuple(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decode(item, arguments[1]) for key, item in value.items()}
    if kind is Message:
        return Message(value["msgid"], {key: _decode_param(item) for key, item in value["params"].items()})
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_record(value, kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    return _decode_plain(value, kind)


def _decode_choice(value: Any, kinds: tuple[Any, ...]) -> Any:
    if value is None and NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not NoneType]
    return _decode(value, rest[0]) if len(rest) == 1 else value


def _decode_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...] has two arguments
        return tuple(_decode(item, kinds[0]) for item in value)
    return tuple(_decode(item, kind) for item, kind in zip(value, kinds, strict=True))


def _decode_record(value: Any, kind: type[T]) -> T:
    if not isinstance(value, dict):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    needed = [item for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING]  # type: ignore[arg-type]
    if lacking := [item.name for item in needed if item.name not in value]:
        raise KeyError(f"{kind.__name__}: {', '.join(lacking)}")
    known = {name: hint for name, hint in get_type_hints(kind).items() if name in value}
    return kind(**{name: _decode(value[name], hint) for name, hint in known.items()})


def _decode_param(value: Any) -> Any:
    return _decode(value, Message) if isinstance(value, dict) and {*value} == {"msgid", "params"} else value


def _decode_plain(value: Any, kind: Any) -> Any:
    if kind is Any or isinstance(value, kind) or (kind is float and isinstance(value, int)):
        return value
    raise TypeError(f"expected {kind.__name__}, got {value!r}")
