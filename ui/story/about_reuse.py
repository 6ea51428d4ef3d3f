"""Prefix reuse in words: what the room of today finds, what more of it would, who comes back, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.reuse.curve import HitCurve
from calc.reuse.growth import Growth
from calc.reuse.trace import BlockTrace
from calc.reuse.worth import NEXT_TO_NOTHING, LimitAdvice, Room, Worth
from calc.units import MEGA, SECONDS_PER_HOUR, SECONDS_PER_MINUTE
from ui import format as show
from ui.text import t

Rows = Sequence[Mapping[str, str]]
NEAR_CEILING_SHARE = 0.95
"""From here on more room can find next to nothing more."""
LITTLE_SHARE = 0.05
"""A ceiling below this is no case for a prefix cache."""
LONG_S = 2 * SECONDS_PER_HOUR
SHORT_S = 2 * SECONDS_PER_MINUTE


def sentence(worth: Worth, curve: HitCurve, room: Room) -> str:
    """Today's hit rate, how much of the ceiling that is, and what binds."""
    if curve.ceiling_share < LITTLE_SHARE:
        return t(
            "These requests repeat {ceiling:pct} of their prompt tokens: no cache of any size finds more.",
            ceiling=curve.ceiling_share,
        )
    today = t(
        "With {free:tok} free for reuse, {hit:pct} of the prompt tokens are found, of {ceiling:pct} that a cache "
        "without end finds.",
        free=room.free_tokens,
        hit=worth.hit_share,
        ceiling=curve.ceiling_share,
    )
    if (worth.of_ceiling_share or 0.0) >= NEAR_CEILING_SHARE:
        return today + " " + t("More room finds next to nothing more.")
    return today + " " + t("Room is what is missing.")


def knee(curve: HitCurve) -> str:
    """Where the curve bends, and what nearly the whole ceiling needs."""
    at = curve.knee()
    return t(
        "The curve bends at {knee:tok} ({hit:pct}); nine tenths of the ceiling need {near:tok}.",
        knee=at * curve.block_size_tokens,
        hit=float(curve.hit_shares([at])[0]),
        near=curve.capacity_for(0.9) * curve.block_size_tokens,
    )


def room(room: Room, caches: int) -> str:
    """Where the room for reuse comes from, with what is assumed."""
    if room.held_tokens is None:
        return t(
            "The KV pool holds {pool:tok} per cache; what running requests hold of it is not known here and not taken "
            "off.",
            pool=room.pool_tokens,
        )
    return t(
        "Of {pool:tok} of KV pool per cache ({caches:count} in all), running requests hold {held:tok} at this load: "
        "their blocks count as gone, though they can be found too.",
        pool=room.pool_tokens,
        caches=caches,
        held=room.held_tokens,
    )


def curve_alt(curve: HitCurve, worth: Worth) -> str:
    """The picture in words."""
    return t(
        "Hit rate over cache capacity: {hit:pct} at {tokens:tok}, {ceiling:pct} at most.",
        hit=worth.hit_share,
        tokens=worth.capacity_tokens,
        ceiling=curve.ceiling_share,
    )


def trace_line(trace: BlockTrace, name: str) -> str:
    """What was read."""
    return t(
        "{name}: {requests:count} requests, {tokens:tok} of prompts, {unique:count} distinct blocks of {block:count} "
        "tokens.",
        name=name,
        requests=trace.requests,
        tokens=trace.total_prompt_tokens,
        unique=trace.unique_blocks,
        block=trace.block_size_tokens,
    )


def assumed(*, full_only: bool, times: int, answers: bool) -> list[str]:
    """What the curve takes for granted."""
    lines = [
        t("Least recently used blocks go first; a prompt is looked up when it comes and cached as a whole at once.")
    ]
    lines.append(t("Order and times are the log's own, whatever the scenario's rate."))
    if full_only:
        lines.append(t("Only full blocks are cached, as this engine does."))
    if times > 1:
        lines.append(
            t("This engine's blocks are larger than the log's: {times:count} of them count as one.", times=times)
        )
    lines.append(
        t("Earlier answers count as found in full by the next turn: an upper bound.")
        if answers
        else t("Blocks of earlier answers are not counted: an engine finds some of them too.")
    )
    return lines


def gpu_row(name: str, room_: Room, worth: Worth, alive_share: float | None, *, today: bool) -> Mapping[str, str]:
    """One GPU on the curve."""
    return {
        t("GPU"): t("{name} (today)", name=name) if today else name,
        t("KV pool per cache"): show.tokens(room_.pool_tokens),
        t("Free for reuse"): _free(room_),
        t("Hit rate"): show.percent(worth.hit_share),
        t("Of the ceiling"): show.percent(worth.of_ceiling_share),
        t("Prompt tokens saved per hour"): show.tokens(worth.saved_tokens_per_hour),
        t("Prefill saved per hour"): show.seconds(worth.saved_s_per_hour),
        t("Sessions kept alive"): show.percent(alive_share),
    }


def _free(room_: Room) -> str:
    shown = show.tokens(room_.free_tokens)
    return t("at most {free}", free=shown) if room_.held_tokens is None else shown


def gpus_note() -> str:
    """What the rows leave out."""
    return t(
        "Same split, same load, generic constants; GPUs that do not hold the model or do not carry the load are left "
        "out. Prefill saved: each prompt alone in a step, without and with what is found."
    )


def sessions(
    later: int,
    requests: int,
    away_s: tuple[float, ...] | None,
    stay_s: float | None,
    alive_share: float | None,
    *,
    has_room: bool = True,
) -> list[str]:
    """Who comes back, after how long, and whether the blocks are still there."""
    if not later:
        return [t("No request goes on from an earlier one: there are no sessions to keep alive in this log.")]
    lines = [
        t(
            "{later:count} of {requests:count} requests go on from an earlier one.",
            later=later,
            requests=requests,
        )
    ]
    if away_s is not None:
        median, p90, p99 = (duration(one) for one in away_s)
        lines.append(t("They come back after {p50} (P50), {p90} (P90), {p99} (P99).", p50=median, p90=p90, p99=p99))
    if stay_s is not None:
        lines.append(t("An unused block stays {stay} in today's room.", stay=duration(stay_s)))
    elif away_s is not None and has_room:
        lines.append(t("Today's room never fills with this log: nothing is evicted."))
    if alive_share is not None:
        lines.append(t("{share:pct} of them find the whole prompt of the turn before.", share=alive_share))
    return lines


def limit_rows(advice: LimitAdvice) -> Rows:
    """Hit rate under each time limit."""
    rows = [
        {t("Dropped when unused for"): duration(limit), t("Hit rate"): show.percent(share)}
        for limit, share in zip(advice.limits_s, advice.hit_shares, strict=True)
    ]
    return [*rows, {t("Dropped when unused for"): t("no limit"), t("Hit rate"): show.percent(advice.without_share)}]


def limit_advice(advice: LimitAdvice) -> str:
    """How long blocks are to be kept."""
    if not advice.without_share:
        return t("Nothing is found in today's room, with a limit or without.")
    if advice.enough_s is None:
        return t("Every limit tried here costs more than {share:pct} of the hits: set none.", share=NEXT_TO_NOTHING)
    return t(
        "A limit of {limit} costs at most {share:pct} of the hits at today's room: a longer one keeps what nobody asks "
        "for.",
        limit=duration(advice.enough_s),
        share=NEXT_TO_NOTHING,
    )


def dilution_rows(counts: Sequence[int], shares: Sequence[Sequence[float]]) -> Rows:
    """Hit rate of more caches, by who gets a request."""
    return [
        {
            t("Caches of today's room each"): show.count(count),
            t("Round-robin"): show.percent(row[0]),
            t("Prefix-aware routing"): show.percent(row[1]),
        }
        for count, row in zip(counts, shares, strict=True)
    ]


def dilution_note() -> str:
    """What the two ways of routing are."""
    return t(
        "Every replica keeps its own copy of a prefix. Prefix-aware: to the replica that saw most of the prompt if "
        "that is more than three tenths, else to the one that was given least; queues are not looked at."
    )


def growth_sentence(growth: Growth, room_tokens: float) -> str:
    """How fast new content comes, against the room there is."""
    if growth.new_tokens_per_hour is None:
        return t("All requests of this log have the same time: nothing can be said of growth.")
    rate = t(
        "New content comes at {rate:.1f} million tokens per hour; {recent:tok} were used within the last "
        "{minutes:count} minutes.",
        rate=growth.new_tokens_per_hour / MEGA,
        recent=float(growth.recent_tokens[-1]),
        minutes=growth.window_s / SECONDS_PER_MINUTE,
    )
    if room_tokens <= 0 or growth.new_tokens_per_hour <= 0:
        return rate
    filled = duration(room_tokens / growth.new_tokens_per_hour * SECONDS_PER_HOUR)
    return rate + " " + t("It fills today's room in {time}.", time=filled)


def growth_alt(growth: Growth) -> str:
    """The picture in words."""
    return t("Distinct tokens over time: {tokens:tok} in the end.", tokens=float(growth.distinct_tokens[-1]))


def said_by_engine(trace: BlockTrace, ceiling_share: float) -> str | None:
    """What the engine that wrote the log found itself; None = the log does not say."""
    if trace.cached_tokens is None:
        return None
    told = trace.cached_tokens >= 0
    prompts = int(trace.prompt_tokens[told].sum())
    if not prompts:
        return None
    return t(
        "The engine that wrote this log found {said:pct} of the prompt tokens; its prompts alone explain at most "
        "{ceiling:pct}.",
        said=float(trace.cached_tokens[told].sum()) / prompts,
        ceiling=ceiling_share,
    )


def needed() -> list[str]:
    """What a log must have for this view, and how to get it."""
    return [
        t("Needed: for each request its prompt tokens and the chained hashes of its prompt's blocks (hash_ids)."),
        t("Dynamo, before vLLM, SGLang or TensorRT-LLM: DYN_REQUEST_TRACE=1 writes *.jsonl.gz without prompts."),
        t('LiteLLM proxy: callbacks: ["prefix_block_hashes"] and a secret; export the ids with the spend log.'),
        t(
            "vLLM and SGLang alone publish hashes of cached blocks, not of requests (--kv-events-config): hash at the "
            "gateway instead."
        ),
        t(
            "Your own gateway: tokenise each prompt, cut it into blocks of 16 tokens, and write "
            "hash(secret, hash before, block) for each: no text leaves the house."
        ),
    ]


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < SHORT_S:
        return t("{number:,.0f} s", number=seconds)
    if seconds < LONG_S:
        return t("{number:,.0f} min", number=seconds / SECONDS_PER_MINUTE)
    return t("{number:,.1f} h", number=seconds / SECONDS_PER_HOUR)


def formulas() -> list[str]:
    """How the numbers are made."""
    return [
        t(
            "A cache of C blocks holds the C blocks used last: a block whose depth in that stack is d is found by "
            "every cache of at least d blocks. One pass over the log gives the whole curve, exactly."
        ),
        t("hit rate = prompt tokens found / prompt tokens; a prefix ends at its first block that is not there"),
        t("free for reuse = KV pool − running requests × (prompt + output / 2)"),
        t("prefill saved = Σ step time of each prompt whole − of what is left of it, over the hours of the log"),
    ]


def sources() -> list[str]:
    """Where the method comes from."""
    return ["Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970"]
