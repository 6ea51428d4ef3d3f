"""The prices of a JSON case, both ways: GPU-hours, and what is paid beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from calc.cost_lines import MAX_SPARES, CostLine, CostLines
from calc.errors import InputError
from calc.messages import msg
from calc.workload import Prices
from data.case_fields import Fields, as_list, as_number, as_object

PRICE_FACTS = ("region", "commitment", "source", "checked_on")
"""What is said about a price beside its amount and currency."""


def read_prices(fields: Fields | None) -> Prices:
    """``gpu_hour`` and its ``currency``, with what it is a price of and where it is from; ``lines``, ``tiers``,
    ``traffic_per_gb`` and ``spare_replicas`` beside it."""
    if fields is None:
        return Prices()
    return Prices(
        gpu_hour=fields.number("gpu_hour"),
        currency=fields.text("currency") or Prices.currency,
        further=read_further(fields),
        **{key: fields.text(key) or "" for key in PRICE_FACTS},
    )


def read_further(fields: Fields) -> CostLines:
    """What is paid beside GPU-hours; absent = not stated."""
    spares = fields.whole("spare_replicas")
    if spares is not None and spares > MAX_SPARES:
        fields.count("spare_replicas", MAX_SPARES)
    return CostLines(
        lines=tuple(_read_line(line, fields.name_of(f"lines[{index}]")) for index, line in enumerate(_lines(fields))),
        tiers=tuple((name, as_number(price, f"tiers.{name}")) for name, price in _tiers(fields)),
        traffic_per_gb=fields.number("traffic_per_gb"),
        spare_replicas=spares,
    )


def _lines(fields: Fields) -> list[Any]:
    raw = fields.raw("lines")
    return [] if raw is None else list(as_list(raw, fields.name_of("lines")))


def _tiers(fields: Fields) -> list[tuple[str, Any]]:
    raw = fields.raw("tiers")
    return [] if raw is None else list(as_object(raw, fields.name_of("tiers")).items())


def _read_line(line: Any, name: str) -> CostLine:
    given = Fields(line, name)
    return CostLine(
        name=given.needed_text("name"),
        amount_per_month=given.number("amount_per_month"),
        amount_once=given.number("amount_once"),
        months=given.number("months"),
        source=given.text("source") or "",
    )


def write_prices(prices: Prices) -> dict[str, Any]:
    """The price when it is known, and what is stated beside it."""
    written: dict[str, Any] = {"currency": prices.currency}
    if prices.gpu_hour is not None:
        written["gpu_hour"] = prices.gpu_hour
    written |= {key: text for key in PRICE_FACTS if (text := getattr(prices, key))}
    return written | write_further(prices.further)


def write_further(further: CostLines) -> dict[str, Any]:
    """As a case carries it; nothing where nothing is stated."""
    written: dict[str, Any] = {}
    if further.lines:
        written["lines"] = [_write_line(line) for line in further.lines]
    if further.tiers:
        written["tiers"] = dict(further.tiers)
    if further.traffic_per_gb is not None:
        written["traffic_per_gb"] = further.traffic_per_gb
    if further.spare_replicas is not None:
        written["spare_replicas"] = further.spare_replicas
    return written


def _write_line(line: CostLine) -> dict[str, Any]:
    fields = {key: getattr(line, key) for key in ("name", "amount_per_month", "amount_once", "months")}
    return {key: value for key, value in fields.items() if value is not None} | (
        {"source": line.source} if line.source else {}
    )


def further_text(prices: Mapping[str, Any]) -> str:
    """What is paid beside GPUs as one line of JSON, as a link carries it; empty where nothing is stated."""
    return further_json(read_further(Fields(prices, "prices")))


def further_json(further: CostLines) -> str:
    """The same of what was read already."""
    written = write_further(further)
    return json.dumps(written, sort_keys=True, ensure_ascii=False) if written else ""


def further_of_text(text: str) -> dict[str, Any]:
    """Such a line as fields of ``prices``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(msg("The costs of this link cannot be read: ask for the link again.")) from error
    return write_further(read_further(Fields(value, "prices")))
