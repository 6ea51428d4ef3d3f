"""Is reuse worth it? Typical uses on the user's own model and GPUs, each judged by what a hit saves and what fits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calc.judge.decision import Verdict
from calc.judge.thresholds import THRESHOLDS
from calc.memory import estimate_memory, sequences_at
from calc.messages import Message, msg
from calc.offload.fetch import Offload
from calc.scenario import Scenario
from calc.strategies.small_gain import FEW_HELD, checks
from calc.strategies.strategy import Ground

SAVED_SHARE = THRESHOLDS["reuse_low_share"].value
"""Of TTFT, from which a hit is felt."""
SAVED_S = 0.05
"""Seconds of TTFT, below which nobody notices: half of the 0.1 s taken as instantaneous (Nielsen, 1993)."""


class Worth(StrEnum):
    """The four answers."""

    YES = "yes"
    LIMITED = "limited"
    CAUTION = "caution"
    DEPENDS = "depends"


WORTH_NAMES = {
    Worth.YES: msg("yes"),
    Worth.LIMITED: msg("limited"),
    Worth.CAUTION: msg("caution"),
    Worth.DEPENDS: msg("depends"),
}


@dataclass(frozen=True, kw_only=True)
class Use:
    """A way of using the model: lengths of one request, all assumed but those of the user's own load."""

    code: str
    name: Message
    shared_tokens: int
    own_tokens: int
    output_tokens: int


USES = (
    Use(
        code="chat",
        name=msg("Long chat, its history seen before"),
        shared_tokens=6000,
        own_tokens=200,
        output_tokens=300,
    ),
    Use(code="rag", name=msg("RAG over documents that recur"), shared_tokens=3600, own_tokens=500, output_tokens=500),
    Use(code="agent", name=msg("Agent, tools and steps so far"), shared_tokens=8000, own_tokens=600, output_tokens=250),
    Use(code="saas", name=msg("Many users, one system prompt"), shared_tokens=2048, own_tokens=500, output_tokens=300),
    Use(code="short", name=msg("Short question, short answer"), shared_tokens=80, own_tokens=120, output_tokens=50),
)
"""2,048 + 500 + 300 tokens is a common test of shared prefixes; the others are round figures of the same order."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One use on this deployment."""

    use: Use
    worth: Worth
    without_s: float
    """Prefill of a request alone, computed whole."""
    with_s: float
    """The same with its shared part found on the GPU."""
    e2e_s: float
    """Whole request without reuse, alone."""
    held: float
    """Such requests the pool of one replica holds."""
    reason: Message

    @property
    def saved_share(self) -> float:
        """Of prefill."""
        return 1 - self.with_s / self.without_s


def own_use(scenario: Scenario) -> Use:
    """The user's own mean request."""
    load = scenario.workload
    prompt = max(2, round(load.prompt_tokens.mean()))
    shared = min(prompt - 1, round(prompt * load.prefix_hit_share))
    return Use(
        code="own",
        name=msg("Your own load"),
        shared_tokens=shared,
        own_tokens=prompt - shared,
        output_tokens=max(1, round(load.output_tokens.mean())),
    )


def is_it_worth_it(ground: Ground) -> tuple[Answer, ...]:
    """The user's own load first, then the typical uses; empty when it does not fit."""
    if ground.replica is None:
        return ()
    engine = Offload.of(ground.scenario.deployment, ground.scenario.calibration)
    local = next(check for check in checks(ground) if check.code == "local-attention")
    is_local = local.judged.verdict is Verdict.MET
    return tuple(_answer(ground, engine, use, is_local) for use in (own_use(ground.scenario), *USES))


def _answer(ground: Ground, engine: Offload, use: Use, is_local: bool) -> Answer:
    prompt = use.shared_tokens + use.own_tokens
    without, with_it = engine.prefill_s(prompt), engine.prefill_s(prompt, use.shared_tokens)
    decode = use.output_tokens * engine.model.decode_s(1, prompt + use.output_tokens / 2)
    memory = estimate_memory(ground.scenario.deployment)
    held = sequences_at(ground.scenario.deployment, memory, prompt + use.output_tokens)
    worth, reason = _judge(without, with_it, held, is_local)
    return Answer(
        use=use, worth=worth, without_s=without, with_s=with_it, e2e_s=without + decode, held=held, reason=reason
    )


def _judge(without_s: float, with_s: float, held: float, is_local: bool) -> tuple[Worth, Message]:
    saved = without_s - with_s
    if held < FEW_HELD:
        return Worth.CAUTION, msg(
            "The pool holds {held:.2g} such requests: quantise, offload or add memory first.", held=held
        )
    if saved < SAVED_S or saved < SAVED_SHARE * without_s:
        return Worth.LIMITED, msg("A hit saves {saved:ms} of {whole:ms} prefill.", saved=saved, whole=without_s)
    if is_local:
        return Worth.DEPENDS, msg(
            "A hit saves {saved:ms} of prefill, but most layers keep a window or state, and it must end where all do.",
            saved=saved,
        )
    return Worth.YES, msg("A hit saves {saved:ms} of {whole:ms} prefill.", saved=saved, whole=without_s)
