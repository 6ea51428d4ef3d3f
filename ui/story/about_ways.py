"""Ways out in words: where the gap comes from, what each way gains, costs and spoils, and the inverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.units import GIB
from calc.ways.counts import SmallestCount
from calc.ways.gap import Cause, Gap, Peak, PeakFrom
from calc.ways.out import OTHER_GPU, Way, WaysOut
from ui import format as show
from ui.text import t

PEAKS: Mapping[PeakFrom, Message] = MappingProxyType(
    {
        PeakFrom.DECLARED: msg("{number:.3g} requests in flight, as entered"),
        PeakFrom.SIMULATED: msg("{number:.3g} requests in flight, simulated at this load"),
        PeakFrom.TARGET: msg("{number:.3g} requests in flight if each takes its E2E target (rate × target)"),
        PeakFrom.UNKNOWN: msg("the peak is not known: set an E2E target, or a closed loop"),
    }
)
CAUSES: Mapping[Cause, Message] = MappingProxyType(
    {
        Cause.WEIGHTS: msg("The weights alone ({weights:gib}) exceed the budget of {budget:gib} on each GPU."),
        Cause.RUNTIME: msg(
            "Weights ({weights:gib}) and runtime ({runtime:gib}) exceed the budget of {budget:gib} on each GPU."
        ),
        Cause.SEQUENCE: msg(
            "Weights and runtime fit and leave {room:gib}; one sequence of max length needs {sequence:gib} on each GPU."
        ),
        Cause.DEMAND: msg(
            "The engine starts, but the pool of {room:gib} is smaller than the {demand:gib} the planned peak needs."
        ),
        Cause.NONE: msg("Nothing is missing: {spare:gib} to spare on each GPU. What follows makes more room."),
    }
)
Rows = list[Mapping[str, str]]


def cause(gap: Gap) -> str:
    """Which part is too much."""
    return t(
        Message(
            CAUSES[gap.cause].msgid,
            {
                "weights": gap.weights_bytes,
                "runtime": gap.runtime_bytes,
                "budget": gap.budget_bytes,
                "room": gap.room_bytes,
                "sequence": gap.sequence_bytes,
                "demand": gap.demand_bytes,
                "spare": -gap.over_bytes,
            },
        )
    )


def gap_rows(found: WaysOut) -> Rows:
    """Budget against need, part by part, on one GPU of the fullest stage."""
    gap, length = found.gap, found.now.memory.max_model_len_tokens
    need = max(gap.sequence_bytes, gap.demand_bytes or 0)
    rows = (
        (t("Engine's budget"), show.gib(gap.budget_bytes), ""),
        (t("− Weights"), show.gib(gap.weights_bytes), _share(gap.weights_bytes, gap)),
        (t("− Runtime inside the budget"), show.gib(gap.runtime_bytes), _share(gap.runtime_bytes, gap)),
        (t("= Left for the KV cache"), signed(gap.room_bytes), ""),
        (t("KV of one longest sequence"), show.gib(gap.sequence_bytes), show.tokens(length)),
        (t("KV at the planned peak"), _demand(gap), peak(found.peak)),
        (t("Short by") if gap.over_bytes > 0 else t("To spare"), show.gib(abs(gap.over_bytes)), _need(need, gap)),
    )
    return [{t("Part"): part, t("Per GPU"): size, t("What it is"): what} for part, size, what in rows]


def _share(size_bytes: int, gap: Gap) -> str:
    return t("{share:pct} of the budget", share=size_bytes / gap.budget_bytes) if gap.budget_bytes else ""


def _need(need_bytes: int, gap: Gap) -> str:
    return t("need {need:gib} against {room}", need=need_bytes, room=signed(gap.room_bytes))


def _demand(gap: Gap) -> str:
    return t("not known") if gap.demand_bytes is None else show.gib(gap.demand_bytes)


def signed(size_bytes: int) -> str:
    """Room, or by how much it is over."""
    return show.gib(size_bytes) if size_bytes >= 0 else t("{size:gib} over", size=-size_bytes)


def peak(known: Peak) -> str:
    """How many requests the plan counts with, and how that is known."""
    return t(Message(PEAKS[known.source].msgid, {"number": known.requests}))


def outcome(way: Way) -> str:
    """Whether it then fits."""
    if not way.starts:
        return t("not enough: {over:gib} still missing", over=max(way.gap.over_bytes, 0))
    if way.carries is None:
        return t("starts; the planned peak is not known")
    return (
        t("fits the planned load")
        if way.carries
        else t("starts; {over:gib} short at the peak", over=way.gap.over_bytes)
    )


def worth_showing(found: WaysOut) -> Sequence[Way]:
    """All ways while something is missing; where nothing is, those that hold more sequences than now."""
    if found.gap.over_bytes > 0:
        return found.ways
    return [way for way in found.ways if round(way.sequences) > round(found.now.sequences)]


def effect(way: Way, missing_bytes: int) -> str:
    """What it gains and costs, in one line; which GPUs it takes stands in what is changed."""
    held = t("{held:,.0f} sequences of the mean length", held=way.sequences) if way.starts else ""
    known = "" if missing_bytes <= 0 and way.suffices else outcome(way)
    return " · ".join(filter(None, [known, gain(way, missing_bytes), held, price(way)]))


def gain(way: Way, missing_bytes: int) -> str:
    """How much nearer need and room come, beside what is missing."""
    gained = way.gained_bytes / GIB
    if missing_bytes <= 0:
        return t("{gained:+,.1f} GiB per GPU", gained=gained)
    return t("{gained:+,.1f} of {missing:gib} missing per GPU", gained=gained, missing=missing_bytes)


def price(way: Way) -> str:
    """Per hour, where the price of this GPU type is known."""
    if way.cost_per_hour is None:
        return t("price not entered")
    return t("{amount} an hour", amount=show.money(way.cost_per_hour, way.scenario.prices.currency))


def side_effects(way: Way) -> str:
    """What it does besides, and the flags that change."""
    words = [t(message) for message in way.side_effects]
    if OTHER_GPU in way.codes:
        words.append(t("Check that the engine runs on it in this version."))
    return " ".join(dict.fromkeys(words))


def refused(found: WaysOut, names: Mapping[str, str]) -> list[str]:
    """Levers that do not apply, each with its reason."""
    return [t("{lever}: {note}", lever=names.get(code, code), note=t(reason)) for code, reason in found.refused.items()]


def lever_names() -> Mapping[str, str]:
    """Names of the levers."""
    return {
        "raise-memory-fraction": t("Larger memory fraction"),
        "same-gpus-wider": t("Join replicas to a wider split"),
        "spread-experts": t("Spread experts over all ranks"),
        "lower-batched-tokens": t("Fewer batched tokens"),
        "lower-max-seqs": t("Fewer sequences"),
        "fp8-kv": t("KV cache in FP8"),
        "nvfp4-kv": t("KV cache in NVFP4"),
        "fp8-weights": t("Weights in FP8"),
        "int4-weights": t("Weights in INT4"),
        "shorter-context": t("Shorter max length"),
        "more-gpus": t("Wider tensor parallelism"),
        "more-stages": t("More pipeline stages"),
        "more-replicas": t("More replicas"),
        OTHER_GPU: t("Another GPU type"),
    }


def title(way: Way) -> str:
    """The levers by name; what they set stands below."""
    names = lever_names()
    return " + ".join(names[code] for code in way.codes)


def limits(found: WaysOut) -> Rows:
    """The inverse: how long and how many as things are."""
    longest, now = found.longest_tokens, found.now
    return [
        {
            t("At most, as it is"): t("Max length with which it starts"),
            t("Value"): t("none") if longest is None else show.tokens(longest),
        },
        {
            t("At most, as it is"): t("Sequences of this load's mean length"),
            t("Value"): f"{now.sequences:,.0f}",
        },
    ]


def count_rows(counts: Sequence[SmallestCount]) -> Rows:
    """The fewest GPUs of every type, fewest first."""
    rows = sorted(counts, key=lambda row: (_many(row.to_carry or row.to_start), row.gpu.memory_bytes))
    return [
        {
            t("GPU"): row.gpu.name,
            t("Memory"): show.gib(row.gpu.memory_bytes),
            t("To start"): _split(row.to_start),
            t("At the planned peak"): _split(row.to_carry),
        }
        for row in rows
    ]


NEVER = 10**9
"""Sorts types that do not fit behind the others."""


def _many(deployment: Deployment | None) -> int:
    return NEVER if deployment is None else deployment.gpu_count


def _split(deployment: Deployment | None) -> str:
    if deployment is None:
        return "–"
    parts = [f"{name} {degree}" for name, degree in (("TP", deployment.tp), ("PP", deployment.pp)) if degree > 1]
    parts += [t("{number:count} replicas", number=deployment.replicas)] if deployment.replicas > 1 else []
    return f"{deployment.gpu_count}" + (f" ({' · '.join(parts)})" if parts else "")


def offload_hint() -> str:
    """Not computed here: what moving idle sessions out would do."""
    return t(
        "Sessions whose users pause can be moved to CPU memory: that frees their share of the KV cache and costs a "
        "transfer when they return. It is not counted here."
    )
