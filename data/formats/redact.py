"""Secrets out of a line that is kept: tokens, keys, passwords and credentials in addresses become ``***``."""

from __future__ import annotations

import re

HIDDEN = "***"
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|access[_-]?key|secret|password|passwd|token|authorization)"
    r"['\"]?\s{0,3}[=:]\s{0,3})(?:bearer\s)?(['\"\[]{0,3})[^\s,'\"\])}]{3,200}"
)
_SHAPED = re.compile(
    r"hf_[A-Za-z0-9]{6,80}|sk-[A-Za-z0-9_-]{8,200}|gh[pousr]_[A-Za-z0-9]{10,80}|glpat-[\w-]{10,80}|"
    r"AKIA[A-Z0-9]{12,20}|xox[a-z]-[\w-]{8,80}|eyJ[\w-]{8,300}\.[\w-]{4,300}(?:\.[\w-]{0,300})?"
)
_ADDRESS = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")
_CONTROL = re.compile(r"\x1b\[[0-9;]{0,12}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def redact(text: str) -> str:
    """``text`` without secrets and without control characters."""
    plain = _CONTROL.sub(" ", text)
    return _NAMED.sub(rf"\1\2{HIDDEN}", _SHAPED.sub(HIDDEN, _ADDRESS.sub(HIDDEN + "@", plain)))
