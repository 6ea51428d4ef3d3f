"""When reusing or moving KV gains little: each case as a check on the user's own scenario. Met = the gain is small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calc.judge.decision import Verdict
from calc.judge.thresholds import THRESHOLDS
from calc.messages import Message, msg
from calc.model import LayerKind
from calc.offload.fetch import Offload
from calc.offload.links import gpus_sharing, links_of
from calc.strategies.conditions import judged
from calc.strategies.strategy import Ground, Judged

SHORT_PROMPT_TOKENS = THRESHOLDS["short_prompt_tokens"].value
REUSE_SHARE = THRESHOLDS["reuse_low_share"].value
LOCAL_SHARE = THRESHOLDS["local_layers_share"].value
GPU_HOLDS_SHARE = THRESHOLDS["gpu_holds_share"].value
SHORT_PREFILL_SHARE = 0.05
"""Of a request's time; below it even a perfect cache is hardly felt. Our own line."""
FEW_HELD = 2.0
"""Requests of this load per running one that the pool must hold to keep anything for later. Our own line."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One case."""

    code: str
    title: Message
    judged: Judged


def checks(ground: Ground) -> tuple[Check, ...]:
    """Every case, in reading order."""
    return tuple(Check(code=code, title=title, judged=judge(ground)) for code, title, judge in _CASES)


def gains_little(ground: Ground) -> tuple[Check, ...]:
    """Those that hold here."""
    return tuple(check for check in checks(ground) if check.judged.verdict is Verdict.MET)


def _short_prompts(ground: Ground) -> Judged:
    p50 = ground.scenario.workload.prompt_tokens.quantile(0.5)
    return judged(
        p50 < SHORT_PROMPT_TOKENS,
        msg(
            "P50 of prompts is {p50:tok}; under {limit:tok} there is little to save.",
            p50=p50,
            limit=SHORT_PROMPT_TOKENS,
        ),
    )


def _prefill_is_short(ground: Ground) -> Judged:
    if ground.replica is None:
        return judged(None, msg("Latency of this scenario is not known."))
    load = ground.scenario.workload
    prompt, output = load.prompt_tokens.mean(), max(1.0, load.output_tokens.mean())
    prefill = Offload.of(ground.scenario.deployment, ground.scenario.calibration).prefill_s(round(prompt))
    decode = output * ground.replica.model.decode_s(1, prompt + output / 2)
    share = prefill / (prefill + decode)
    return judged(
        share < SHORT_PREFILL_SHARE,
        msg(
            "A mean prompt computes in {prefill:ms}, {share:pct} of a request alone on the engine.",
            prefill=prefill,
            share=share,
        ),
    )


def _memory_is_tight(ground: Ground) -> Judged:
    if ground.replica is None:
        return judged(True, msg("It does not fit: {over:gib} too much on each GPU.", over=ground.memory.over_bytes))
    if ground.latency is None:
        return judged(None, msg("Latency of this scenario is not known."))
    held = ground.replica.pool_tokens / ground.replica.demand.held
    running = max(1.0, ground.latency.concurrency / ground.replica.split)
    return judged(
        held < FEW_HELD * running,
        msg(
            "The pool holds {held:.3g} such requests, {running:.3g} run; what is beyond keeps prefixes for later.",
            held=held,
            running=running,
        ),
    )


def _prompts_change(ground: Ground) -> Judged:
    load = ground.scenario.workload
    share = load.prefix_hit_share + load.offload_hit_share
    return judged(
        share < REUSE_SHARE,
        msg(
            "{share:pct} of prompt tokens are declared to repeat exactly; the line is {limit:pct}.",
            share=share,
            limit=REUSE_SHARE,
        ),
    )


_LOCAL = (LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.RECURRENT)


def _attention_is_local(ground: Ground) -> Judged:
    model = ground.scenario.deployment.model
    local = sum(group.layers for group in model.groups if group.kind in _LOCAL)
    total = sum(group.layers for group in model.groups if group.kind is not LayerKind.NONE)
    share = local / total if total else 0.0
    return judged(
        share >= LOCAL_SHARE,
        msg("{local:count} of {total:count} layers keep a window or a state only.", local=local, total=total),
    )


def _tiers_are_slow(ground: Ground) -> Judged:
    if ground.replica is None:
        return judged(None, msg("Latency of this scenario is not known."))
    deployment, load = ground.scenario.deployment, ground.scenario.workload
    prompt = max(2, round(load.prompt_tokens.mean()))
    needed = Offload.of(deployment, ground.scenario.calibration).hit(prompt - 1, 1).break_even_bytes_per_s
    gpus = gpus_sharing(deployment)
    own = deployment.serving.tiers
    tiers = own or tuple(link.as_tier(gpus) for link in links_of(deployment.gpu))
    slow = sum(tier.bytes_per_s <= needed for tier in tiers)
    return judged(
        slow > 0 if own else slow == len(tiers),
        msg(
            "{slow:count} of {total:count} kinds of link are slower than the {needed:gbps} from which fetching pays.",
            slow=slow,
            total=len(tiers),
            needed=needed,
        ),
    )


def _gpu_holds_it(ground: Ground) -> Judged:
    share = ground.scenario.workload.prefix_hit_share
    return judged(
        share >= GPU_HOLDS_SHARE,
        msg(
            "The GPU's own cache finds {share:pct}: {left:pct} are left for a tier outside it.",
            share=share,
            left=1 - share,
        ),
    )


_CASES: tuple[tuple[str, Message, Callable[[Ground], Judged]], ...] = (
    ("short-prompts", msg("Short prompts"), _short_prompts),
    ("short-prefill", msg("Small model or short prefill"), _prefill_is_short),
    ("tight-memory", msg("Very tight memory"), _memory_is_tight),
    ("changing-prompts", msg("Prompts that change"), _prompts_change),
    ("local-attention", msg("Local attention"), _attention_is_local),
    ("slow-tier", msg("A slow tier"), _tiers_are_slow),
    ("gpu-holds-it", msg("The GPU's own cache hits already"), _gpu_holds_it),
)
