"""Five business types: a typical load, a target, and what their owners look at first.

Lengths are published planning values taken as P50; P95 is three times that for prompts and two and a half times for
outputs, our assumption where the source gives one number. Every field is a starting point to replace with a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.messages import Message, msg
from calc.workload import Closed, LogNormal, OpenLoop, Slo, Workload

PROMPT_SPREAD = 3.0
OUTPUT_SPREAD = 2.5
PLANNER = "llm-d-planner usecase_slo_workload.json, upper end of the range"
GUIDE = "GuideLLM SLO guide"
CHECKED_ON = "2026-11-30"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A business type with its load, target and questions."""

    id: str
    name: Message
    workload: Workload
    slo: Slo
    key_metrics: tuple[str, ...]
    """Metric names: ttft, itl, e2e, queue, throughput, cost …"""
    questions: tuple[Message, ...]
    """What the owner of such an application asks."""
    repetition: str
    """``low``, ``medium`` or ``high`` prefix repetition."""
    source: str
    checked_on: str = CHECKED_ON


def _load(
    code: str, prompt: float, output: float, *, rate_per_s: float = 0.0, concurrency: int = 0, hit_share: float = 0.0
) -> Workload:
    return Workload(
        prompt_tokens=LogNormal(p50_tokens=prompt, p95_tokens=prompt * PROMPT_SPREAD),
        output_tokens=LogNormal(p50_tokens=output, p95_tokens=output * OUTPUT_SPREAD),
        arrivals=Closed(concurrency=concurrency) if concurrency else OpenLoop(kind="poisson", rate_per_s=rate_per_s),
        prefix_hit_share=hit_share,
        business_type=code,
    )


_ALL = (
    Preset(
        id="online-service",
        name=msg("Online customer service"),
        workload=_load("online-service", 512, 256, rate_per_s=4.0, hit_share=0.3),
        slo=Slo(ttft_s=0.5, itl_s=0.05, e2e_s=13.3, percentile_share=0.95, source=PLANNER),
        key_metrics=("ttft", "e2e"),
        questions=(
            msg("Does the first word come before the customer looks away?"),
            msg("Is the whole answer there within the target for 95 of 100 customers?"),
            msg("How many conversations pause, and do they keep their cache meanwhile?"),
        ),
        repetition="medium",
        source=f"{PLANNER} (chatbot, 512 / 256 tokens)",
    ),
    Preset(
        id="knowledge-rag",
        name=msg("Enterprise knowledge Q&A"),
        workload=_load("knowledge-rag", 4096, 512, rate_per_s=1.0, hit_share=0.4),
        slo=Slo(ttft_s=1.2, itl_s=0.06, e2e_s=40.0, percentile_share=0.95, source=PLANNER),
        key_metrics=("ttft", "citation", "e2e"),
        questions=(
            msg("How long until the answer with its first citation appears?"),
            msg("Do many questions share the same documents, in the same order?"),
            msg("What happens to P99 when long documents arrive together?"),
        ),
        repetition="medium",
        source=f"{PLANNER} (RAG, 4096 / 512 tokens); hit share: the medium level of exact repetition, 40 %",
    ),
    Preset(
        id="agent",
        name=msg("Agent workflow"),
        workload=_load("agent", 8192, 256, rate_per_s=0.5, hit_share=0.6),
        slo=Slo(e2e_s=5.0, percentile_share=0.99, source=GUIDE),
        key_metrics=("step", "task", "failures"),
        questions=(
            msg("How long does one step take, and how many steps make a task?"),
            msg("Does a tool call in between let the cache of the task expire?"),
            msg("How often does a step fail and start the chain again?"),
        ),
        repetition="high",
        source=f"{GUIDE} (agent: E2E at most 5 s at P99); lengths assumed; hit share of N/G = 4 repetition, 60 %",
    ),
    Preset(
        id="code-completion",
        name=msg("Code completion"),
        workload=_load("code-completion", 512, 64, rate_per_s=8.0, hit_share=0.3),
        slo=Slo(ttft_s=0.2, itl_s=0.035, e2e_s=2.0, percentile_share=0.99, source=f"{PLANNER}; {GUIDE}"),
        key_metrics=("ttft", "itl", "cancels"),
        questions=(
            msg("Is the first suggestion there before the next key is pressed?"),
            msg("How many completions are cancelled, and is their cache freed at once?"),
            msg("Do files of one project share a prefix?"),
        ),
        repetition="medium",
        source=f"{PLANNER} (code completion, 512 tokens); {GUIDE} (IDE: E2E at most 2 s at P99); output length assumed",
    ),
    Preset(
        id="offline-batch",
        name=msg("Offline batch"),
        workload=_load("offline-batch", 4096, 512, concurrency=256, hit_share=0.0),
        slo=Slo(source="no latency target: throughput and cost decide"),
        key_metrics=("throughput", "cost"),
        questions=(
            msg("What does one job cost, and when is it finished?"),
            msg("May it run at night, apart from online traffic?"),
            msg("Is the pool kept full, or does the scheduler wait?"),
        ),
        repetition="low",
        source=f"{PLANNER} (short summary, 4096 / 512 tokens); low repetition",
    ),
)


def presets() -> Mapping[str, Preset]:
    """Business types by id, in reading order."""
    return MappingProxyType({preset.id: preset for preset in _ALL})
