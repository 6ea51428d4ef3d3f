"""How requests are served beyond plain replicas, as widget values and as parts of a case, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from ui.typed import parse_tiers, tiers_text
from ui.typed.numbers import percent_of, share_of

OFF = "off"
"""Code of no tier and of no speculation."""
SERVING: Mapping[str, Any] = {
    "batching": "continuous", "preemption": "recompute", "swap_bandwidth": None,
    "tier_name": OFF, "tier_bandwidth": None, "tier_latency": 0.0, "tier_concurrency": 1, "tier_capacity": None,
    "tier_share": 100.0, "further_tiers": "",
    "spec_method": OFF, "spec_tokens": 3, "accepted": None,
    "prefill_replicas": 0, "transfer_bandwidth": None, "transfer_ms": 0.0,
    "routing": "random",
}  # fmt: skip
"""Widget key → value when a case says nothing."""
PLAIN: Mapping[str, str] = {
    "batching": "batching", "preemption": "preemption", "swap_bandwidth": "swap_gb_per_s",
    "prefill_replicas": "prefill_replicas", "transfer_bandwidth": "transfer_gb_per_s", "transfer_ms": "transfer_ms",
    "routing": "routing",
}  # fmt: skip
"""Widget key → key in the ``serving`` of a case where the value is the same."""
TIER: Mapping[str, str] = {
    "tier_bandwidth": "gb_per_s", "tier_latency": "latency_ms", "tier_concurrency": "concurrency",
    "tier_capacity": "capacity_gib",
}  # fmt: skip
SPECULATION = "speculative_config"


def serving_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """``serving`` and ``speculative_config`` of the case, where something differs from plain replicas."""
    serving = {target: values[key] for key, target in PLAIN.items() if values[key] not in (None, SERVING[key])}
    if tiers := _tiers(values):
        serving["offload"] = tiers
    case: dict[str, Any] = {}
    if values["spec_method"] != OFF:
        case[SPECULATION] = {"method": values["spec_method"], "num_speculative_tokens": values["spec_tokens"]}
        serving |= {} if values["accepted"] is None else {"accepted_tokens": values["accepted"]}
    return case | ({"serving": serving} if serving else {})


def _tiers(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tier of the number fields, then those typed as lines."""
    further = parse_tiers(values["further_tiers"])
    if values["tier_name"] == OFF:
        return further
    if values["tier_bandwidth"] is None:
        raise InputError(
            msg("The tier {name} has no bandwidth: enter its GB/s, or take one of the links offered.",
                name=values["tier_name"])
        )  # fmt: skip
    first = {target: values[key] for key, target in TIER.items() if values[key] not in (None, SERVING[key])}
    share = {} if values["tier_share"] is None else {"hit_share": share_of(values["tier_share"])}
    return [{"tier": values["tier_name"], **first, **({} if share.get("hit_share") == 1 else share)}, *further]


def serving_values(case: Mapping[str, Any]) -> dict[str, Any]:
    """Values that :func:`serving_case` turns back into the same parts of ``case``."""
    serving, drafts = case.get("serving") or {}, case.get(SPECULATION) or {}
    values = {key: serving[target] for key, target in PLAIN.items() if serving.get(target) is not None}
    if drafts:
        values["spec_method"] = drafts.get("method") or drafts.get("model")
        values["spec_tokens"] = drafts["num_speculative_tokens"]
        values |= {"accepted": serving.get("accepted_tokens")}
    return values | _tier_values(serving.get("offload") or ())


def _tier_values(tiers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not tiers:
        return {}
    first, *further = tiers
    if first["tier"] == OFF:  # a name that stands for none at the side
        return {"further_tiers": tiers_text(tiers)}
    values = {key: first[target] for key, target in TIER.items() if first.get(target) is not None}
    share = 1.0 if first.get("hit_share") is None else first["hit_share"]
    return {"tier_name": first["tier"], "tier_share": percent_of(share), "further_tiers": tiers_text(further)} | values


def serving_not_on_screen(case: Mapping[str, Any]) -> list[str]:
    """Acceptance of no speculation has no widget."""
    has_accepted = (case.get("serving") or {}).get("accepted_tokens") is not None
    return ["serving.accepted_tokens"] if has_accepted and not case.get(SPECULATION) else []
