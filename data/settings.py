"""What the operator configures in ``plimsoll.toml``: allowed engine addresses, a folder of logs, the upload token."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from calc.units import MIB

DEFAULT_PATH = Path("plimsoll.toml")
PATH_VARIABLE = "PLIMSOLL_CONFIG"
TOKEN_VARIABLE = "PLIMSOLL_API_TOKEN"
DEFAULT_KEEP_DAYS = 30
DEFAULT_UPLOAD_MB = 200
"""As large as an upload on the page."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything off unless the operator says otherwise."""

    engines: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Name → address of a metrics page, or several separated by blanks. Only these are ever asked."""
    logs_folder: Path | None = None
    """Folder of request logs too large to upload."""
    api_token: str | None = None
    """``POST /api/runs`` answers only requests that carry it; ``None`` = the route is off."""
    api_max_bytes: int = DEFAULT_UPLOAD_MB * MIB
    """Most bytes of one request to it."""
    keep_days: int = DEFAULT_KEEP_DAYS
    """Recorded scrapes older than this are removed."""


def read_settings(path: Path | None = None) -> Settings:
    """The file at ``path``, else at ``PLIMSOLL_CONFIG``, else ``plimsoll.toml`` if it is there, else the defaults."""
    named = path or (Path(os.environ[PATH_VARIABLE]) if os.environ.get(PATH_VARIABLE) else None)
    source = named or DEFAULT_PATH
    given = _parse(source) if named or source.is_file() else {}
    token = os.environ.get(TOKEN_VARIABLE) or _section(given, "api").get("token") or None
    folder = _section(given, "logs").get("folder")
    return Settings(
        engines=MappingProxyType({str(name): _addresses(url) for name, url in _section(given, "engines").items()}),
        logs_folder=Path(str(folder)) if folder else None,
        api_token=str(token) if token else None,
        api_max_bytes=_whole(given, "api", "max_mb", DEFAULT_UPLOAD_MB) * MIB,
        keep_days=_whole(given, "recording", "keep_days", DEFAULT_KEEP_DAYS),
    )


def _addresses(given: Any) -> str:
    """One address, or several that are read together: a list, or separated by blanks."""
    return " ".join(map(str, given)) if isinstance(given, list) else str(given)


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            msg(
                "{path}: a configuration in TOML was expected, but it cannot be read ({reason}): correct the file.",
                path=str(path),
                reason=str(error),
            )
        ) from error
    return given


def _whole(given: Mapping[str, Any], section: str, name: str, default: int) -> int:
    value = _section(given, section).get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(
            msg(
                "{name} of [{section}] must be a whole number, got {value}.",
                name=name,
                section=section,
                value=str(value),
            )
        )
    return value


def _section(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = given.get(name, {})
    if not isinstance(section, Mapping):
        raise InputError(msg("[{name}] of the configuration must be a table: write name = value lines.", name=name))
    return section
