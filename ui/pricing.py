"""What is said about the price of a GPU-hour: where it is from, how old it is, and which one a scenario begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from calc.cost import incomparable
from calc.messages import Message, msg
from calc.workload import Prices
from data.case_prices import PRICE_FACTS
from ui.text import t

CURRENCIES = ("USD", "EUR", "CNY", "GBP", "JPY", "INR")
COMMITMENTS: Mapping[str, Message] = {
    "on-demand": msg("on demand"),
    "reserved-1y": msg("reserved, 1 year"),
    "reserved-3y": msg("reserved, 3 years"),
    "spot": msg("spot, can be taken away"),
    "owned": msg("own hardware, all costs"),
}
"""What is bought with the price of an hour; different ones are different prices."""
STALE_DAYS = 90
"""A price that nobody looked at for longer is marked: cloud list prices moved several times a year since 2023."""
ASSUMED = "assumption of the worked example, not a quoted price"
"""Source of the price that ships with the worked example."""


def facts(amount: Any, currency: Any, known: Iterable[Prices]) -> dict[str, str]:
    """Region, commitment, source and date of the first known price of this very amount."""
    same = next((one for one in known if (one.gpu_hour, one.currency) == (amount, currency)), None)
    return {} if same is None else {key: text for key in PRICE_FACTS if (text := getattr(same, key))}


def is_stale(checked_on: str, today: date) -> bool:
    """True when the date is unknown or longer ago than :data:`STALE_DAYS`."""
    return not checked_on or (today - date.fromisoformat(checked_on[:10])).days > STALE_DAYS


def commitment(code: str) -> str:
    """The words of a commitment code; other people's codes as they are."""
    return t(COMMITMENTS[code]) if code in COMMITMENTS else code


def origin(prices: Prices, today: date) -> str:
    """Where a price is from, in one line; an unsourced one says so."""
    if prices.gpu_hour is None:
        return t("No price is known for this GPU: type one, or store it on the Catalogue page.")
    if prices.source == ASSUMED:
        return t("Assumed for the worked example, not a quoted price: type yours, or store it on the Catalogue page.")
    if not prices.source:
        return t("Declared: typed here, no source stored.")
    told = [prices.region, commitment(prices.commitment), prices.source]
    line = t("Declared: {what}.", what=" · ".join(text for text in told if text))
    return f"{line} {age(prices.checked_on, today)}"


def remarks(prices: Prices, today: date) -> list[Message]:
    """What stands beside costs that rest on an assumed or an old price."""
    if prices.gpu_hour is None:
        return []
    if prices.source == ASSUMED:
        return [msg("Costs rest on an assumed price of a GPU-hour, not on a quoted one.")]
    if prices.checked_on and is_stale(prices.checked_on, today):
        return [
            msg(
                "Costs rest on a price checked on {day}, more than {limit:count} days ago: look at its source again.",
                day=prices.checked_on,
                limit=STALE_DAYS,
            )
        ]
    return []


def compared_remarks(one: Prices, other: Prices, today: date) -> list[Message]:
    """Remarks on both prices, and why their costs must not be compared."""
    found = [*remarks(one, today), *remarks(other, today)]
    if (reason := incomparable(one, other)) is not None:
        return [reason, *found]
    if one.commitment != other.commitment and None not in (one.gpu_hour, other.gpu_hour):
        found.insert(0, msg("The two prices are of different commitments: compare costs with care."))
    return found


def age(checked_on: str, today: date) -> str:
    """When somebody last looked, and whether that is too long ago."""
    if not checked_on:
        return t("Date unknown: stale.")
    if is_stale(checked_on, today):
        return t("Checked on {day}: stale, older than {limit:count} days.", day=checked_on, limit=STALE_DAYS)
    return t("Checked on {day}.", day=checked_on)
