"""How a deployment serves beyond plain replicas, as a JSON case says it, both ways."""

from __future__ import annotations

from typing import Any

from calc.errors import InputError
from calc.messages import msg
from calc.serving import (
    BATCHING,
    MAX_ACCEPTED_TOKENS,
    MAX_BYTES_PER_S,
    MAX_PREFILL_REPLICAS,
    MAX_TIERS,
    PREEMPTION,
    ROUTING,
    Serving,
    Tier,
)
from calc.units import GB, GIB, KILO
from calc.workload import MAX_CONCURRENCY
from data.case_fields import Fields, scaled, unscaled

MAX_WAIT_MS = 1e6
"""Longest latency of a tier or a handover accepted."""
MAX_CAPACITY_GIB = 2**20
"""Largest tier of one replica accepted: 1 PiB."""
USUAL = Serving()


def read_serving(fields: Fields | None, spec_tokens: int = 0) -> Serving:
    """Tiers, speculation, split prefill, routing and batching; GB/s, ms and GiB end here.

    ``spec_tokens`` are drafted per step (0 = not speculating): more cannot be accepted.
    """
    if fields is None:
        return USUAL
    return Serving(
        batching=fields.choice("batching", BATCHING, USUAL.batching),
        preemption=fields.choice("preemption", PREEMPTION, USUAL.preemption),
        swap_bytes_per_s=_per_s(fields, "swap_gb_per_s"),
        tiers=_read_tiers(fields),
        accepted_tokens=_read_accepted(fields, spec_tokens),
        prefill_replicas=fields.whole_within("prefill_replicas", MAX_PREFILL_REPLICAS) or 0,
        transfer_bytes_per_s=_per_s(fields, "transfer_gb_per_s"),
        transfer_s=_read_wait(fields, "transfer_ms"),
        routing=fields.choice("routing", ROUTING, USUAL.routing),
    )


def _per_s(fields: Fields, key: str) -> float | None:
    gb_per_s = fields.positive(key, MAX_BYTES_PER_S / GB)
    return None if gb_per_s is None else gb_per_s * GB


def _read_wait(fields: Fields, key: str) -> float:
    return (fields.within(key, MAX_WAIT_MS) or 0.0) / KILO


def _read_accepted(fields: Fields, spec_tokens: int) -> float | None:
    accepted = fields.within("accepted_tokens", MAX_ACCEPTED_TOKENS)
    if accepted is not None and spec_tokens and accepted > spec_tokens:
        raise InputError(
            msg(
                "{name} is {accepted:,g}, but only {drafted} tokens are drafted per step: correct one of them.",
                name=fields.name_of("accepted_tokens"),
                accepted=accepted,
                drafted=spec_tokens,
            )
        )
    return accepted


def _read_tiers(fields: Fields) -> tuple[Tier, ...]:
    tiers = tuple(_read_tier(one) for one in fields.children("offload", MAX_TIERS))
    if sum(tier.hit_share for tier in tiers) > 1 + 1e-9:
        raise InputError(
            msg(
                "{name}: the tiers' hit_share add up to {total:pct}, more than all hits: without one each tier holds "
                "all of them, so give each its part.",
                name=fields.name_of("offload"),
                total=sum(tier.hit_share for tier in tiers),
            )
        )
    return tiers


def _read_tier(fields: Fields) -> Tier:
    name, gb_per_s = fields.needed_text("tier").strip(), _per_s(fields, "gb_per_s")
    if not name or not name.isprintable():
        raise InputError(msg("{name} is not a name: cpu, disk or remote are usual.", name=fields.name_of("tier")))
    if gb_per_s is None:
        raise InputError(msg("{name} is missing: enter what one replica reads.", name=fields.name_of("gb_per_s")))
    capacity_gib, share = fields.positive("capacity_gib", MAX_CAPACITY_GIB), fields.share("hit_share")
    return Tier(
        name=name,
        bytes_per_s=gb_per_s,
        latency_s=_read_wait(fields, "latency_ms"),
        concurrency=fields.count("concurrency", MAX_CONCURRENCY) or 1,
        capacity_bytes=None if capacity_gib is None else round(capacity_gib * GIB),
        hit_share=1.0 if share is None else share,
    )


def write_serving(serving: Serving) -> dict[str, Any]:
    """What differs from plain replicas, as :func:`read_serving` reads it; nothing where nothing does."""
    swap, transfer = serving.swap_bytes_per_s, serving.transfer_bytes_per_s
    written: dict[str, Any] = {
        "batching": None if serving.batching == USUAL.batching else serving.batching,
        "preemption": None if serving.preemption == USUAL.preemption else serving.preemption,
        "swap_gb_per_s": None if swap is None else scaled(swap, GB),
        "offload": [_write_tier(tier) for tier in serving.tiers] or None,
        "accepted_tokens": serving.accepted_tokens,
        "prefill_replicas": serving.prefill_replicas or None,
        "transfer_gb_per_s": None if transfer is None else scaled(transfer, GB),
        "transfer_ms": unscaled(serving.transfer_s, KILO) if serving.transfer_s else None,
        "routing": None if serving.routing == USUAL.routing else serving.routing,
    }
    return {key: value for key, value in written.items() if value is not None}


def _write_tier(tier: Tier) -> dict[str, Any]:
    written: dict[str, Any] = {"tier": tier.name, "gb_per_s": scaled(tier.bytes_per_s, GB)}
    if tier.latency_s:
        written["latency_ms"] = unscaled(tier.latency_s, KILO)
    if tier.concurrency != 1:
        written["concurrency"] = tier.concurrency
    if tier.capacity_bytes is not None:
        written["capacity_gib"] = tier.capacity_bytes / GIB
    if tier.hit_share != 1:
        written["hit_share"] = tier.hit_share
    return written
