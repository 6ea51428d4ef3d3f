"""How many sessions may be idle: a bound with one sentence for what is beyond it."""

from __future__ import annotations

from calc.errors import InputError
from calc.messages import msg

MAX_IDLE_SHARE = 0.99
"""Of sessions: a hundred open ones for each that is being answered."""


def check_idle_share(share: float) -> None:
    """Refuse a share of idle sessions that leaves none active."""
    if not 0.0 <= share <= MAX_IDLE_SHARE:
        raise InputError(
            msg(
                "idle share must be between 0 and {limit:g}, got {value}: 0.6 means six sessions in ten wait for "
                "their user.",
                limit=MAX_IDLE_SHARE,
                value=share,
            )
        )
