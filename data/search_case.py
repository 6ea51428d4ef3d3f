"""A search as JSON: a predict case whose fields may be lists, and its answer.

A field with a list is tried with each value, one with a value is fixed; ``gpu``, ``tp``, ``pp`` and ``replicas`` that
are absent are searched, every other absent field is the engine's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calc.errors import InputError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.search.space import MAX_CHOICES, USUAL_MOST_GPUS, USUAL_STAGES, USUAL_TPS, Space
from calc.workload import Prices
from data import catalogue
from data.case import AUTO, read_case, read_deployment
from data.case_fields import Fields, as_number, as_object, as_whole
from data.case_prices import read_prices

LISTED = ("gpu", "tp", "pp", "dp", "replicas", "kv_dtype", "weight_dtype", "enable_prefix_caching",
          "max_num_batched_tokens", "serving", "split_prefill")  # fmt: skip
"""Fields that may be lists."""
OWN_KEYS = ("max_gpus", "most_rows", "split_prefill")
"""Fields of a search that no predict case has."""
MOST_ROWS = 100
"""Rows answered unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is asked: a scenario for the load and the targets, the choices, and prices by GPU id."""

    scenario: Scenario
    space: Space
    prices: Mapping[str, Prices]
    most_rows: int = MOST_ROWS
    notes: tuple[Message, ...] = ()


def read_search(case: Mapping[str, Any]) -> Search:
    """Every list is read value by value, so that an error names the value that is wrong."""
    lists = {key: _values(case, key) for key in LISTED}
    gpus = lists["gpu"] or list(catalogue.gpus())
    given = {key: value for key, value in case.items() if key not in (*LISTED, *OWN_KEYS, "prices")}
    formats = lists["weight_dtype"] or [AUTO]
    base = given | {"gpu": gpus[0], "weight_dtype": AUTO if AUTO in formats else formats[0]}
    base |= {"kv_dtype": AUTO if AUTO in (lists["kv_dtype"] or [AUTO]) else lists["kv_dtype"][0]}
    base |= {"serving": lists["serving"][0]} if lists["serving"] else {}
    scenario, notes = read_case(base)
    types = tuple(_each(base, "gpu", gpus, lambda read: read.gpu))
    prices, remarks = _prices(case.get("prices"), types)
    fields = Fields(case)
    most_gpus, most_rows = fields.count("max_gpus", 4096), fields.count("most_rows", 10_000)
    space = Space(
        gpus=types,
        most_gpus=most_gpus or USUAL_MOST_GPUS,
        tps=_whole(lists, "tp") or USUAL_TPS,
        pps=_whole(lists, "pp") or USUAL_STAGES,
        dps=_whole(lists, "dp") or (1,),
        replicas=_whole(lists, "replicas"),
        weights=_models(base, formats),
        own_weights=base["weight_dtype"] in formats,
        kv_dtypes=tuple(_each(base, "kv_dtype", lists["kv_dtype"] or [base["kv_dtype"]], lambda read: read.kv_dtype)),
        prefix_caching=_flags(lists, "enable_prefix_caching") or (None,),
        batched_tokens=_whole(lists, "max_num_batched_tokens") or (None,),
        servings=tuple(_each(base, "serving", lists["serving"], lambda read: read.serving)),
        splits=tuple(bool(flag) for flag in _flags(lists, "split_prefill")) or (False,),
    )
    own = prices.get(types[0].id)
    scenario = replace(scenario, prices=own or replace(_shared(prices), gpu_hour=None))
    return Search(
        scenario=scenario, space=space, prices=prices, most_rows=most_rows or MOST_ROWS, notes=notes + remarks
    )


def _values(case: Mapping[str, Any], key: str) -> list[Any]:
    """The values of a field, each once; empty where the field is absent."""
    raw = case.get(key)
    values = raw if isinstance(raw, list) else [] if raw is None else [raw]
    if isinstance(raw, list) and not 1 <= len(raw) <= MAX_CHOICES:
        raise InputError(
            msg(
                "{name} must be a value or a list of 1 to {limit:count}, got {number:count}: correct the list.",
                name=key,
                limit=MAX_CHOICES,
                number=len(raw),
            )
        )
    return [value for place, value in enumerate(values) if value not in values[:place]]


def _each(base: Mapping[str, Any], key: str, values: Sequence[Any], part: Callable[[Any], Any]) -> list[Any]:
    """One part of the deployment for each value of a field."""
    alone = {name: value for name, value in base.items() if name not in ("workload", "slo")}
    return [part(read_deployment({**alone, key: value})[0]) for value in values]


def _models(base: Mapping[str, Any], formats: Sequence[Any]) -> dict[str, Any]:
    others = [code for code in formats if code != base["weight_dtype"]]
    return dict(zip(others, _each(base, "weight_dtype", others, lambda read: read.model), strict=True))


def _whole(lists: Mapping[str, list[Any]], key: str) -> tuple[int, ...]:
    found = tuple(as_whole(value, key) for value in lists[key])
    if any(value < 1 for value in found):
        raise InputError(msg("{name} must be at least 1, got {value}: correct it.", name=key, value=min(found)))
    return found


def _flags(lists: Mapping[str, list[Any]], key: str) -> tuple[bool, ...]:
    return tuple(bool(Fields({key: value}).flag(key)) for value in lists[key])


def _shared(prices: Mapping[str, Prices]) -> Prices:
    return next(iter(prices.values()), Prices())


def _prices(raw: Any, gpus: Sequence[Gpu]) -> tuple[dict[str, Prices], tuple[Message, ...]]:
    """By GPU id. ``gpu_hour`` is a number for a single type, or an object by type; other fields hold for all."""
    if raw is None:
        return {}, ()
    given = as_object(raw, "prices")
    hours = given.get("gpu_hour")
    shared = read_prices(Fields({key: value for key, value in given.items() if key != "gpu_hour"}, "prices"))
    if isinstance(hours, Mapping):
        return _by_type(hours, shared, gpus)
    found = replace(shared, gpu_hour=None if hours is None else as_number(hours, "prices.gpu_hour"))
    if hours is None or len(gpus) == 1:
        return {gpus[0].id: found}, ()
    note = msg(
        "prices.gpu_hour is one figure for {count:count} GPU types, so it was used for none: write it by type, as in "
        '{{"gpu_hour": {{"{first}": 2.5}}}}.',
        count=len(gpus),
        first=gpus[0].id,
    )
    return {gpus[0].id: shared}, (note,)


def _by_type(
    hours: Mapping[str, Any], shared: Prices, gpus: Sequence[Gpu]
) -> tuple[dict[str, Prices], tuple[Message, ...]]:
    ids = {gpu.id.lower(): gpu.id for gpu in gpus}
    found = {gpus[0].id: shared} | {
        ids[name.lower()]: replace(shared, gpu_hour=as_number(amount, f"prices.gpu_hour.{name}"))
        for name, amount in hours.items()
        if name.lower() in ids
    }
    strange = [name for name in hours if name.lower() not in ids]
    notes = tuple(msg("prices.gpu_hour names {gpu}, which is not searched.", gpu=name) for name in strange)
    return found, notes
