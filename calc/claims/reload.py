"""Headlines about KV kept outside the GPU: TTFT when a long prefix comes back from CPU memory, disk or a store."""

from __future__ import annotations

from calc.claims.claim import Claim, Shelf, Yours
from calc.deployment import Deployment
from calc.messages import Message, msg
from calc.offload.fetch import Fetch, Offload
from calc.offload.links import NVME, gpus_sharing, host_link, links_of
from calc.scenario import Scenario
from calc.serving import Tier

LLAMA = "meta-llama/Meta-Llama-3-70B-Instruct"
PREFIX_TOKENS = 4096
PREFIX_SPAN = (2048, 16_384)
NEW_TOKENS = 50
DOCUMENT_TOKENS = 10_000
_BLOG = msg("NVIDIA developer blog on GH200 multi-turn inference, quoted in the early-reuse post, 2024-11-08")
_COUNTER = msg(
    "Measured under load with partial hits: llm-d mean TTFT -25 % (9.0 to 6.7 s), nothing where the GPU's own cache "
    "hits (120 against 130 ms); Llama-2-7B -11 % (LMCache#970)."
)


def _host(deployment: Deployment) -> Tier:
    return host_link(deployment.gpu).as_tier(gpus_sharing(deployment))


def _disk(deployment: Deployment) -> Tier:
    link = next(link for link in links_of(deployment.gpu) if link.code == NVME)
    return link.as_tier(gpus_sharing(deployment))


def _multi_turn(shelf: Shelf, gpu: str) -> tuple[Fetch, float, float]:
    """The path of a hit in CPU memory, and the ratios at the ends of the span."""
    deployment = shelf.deploy(LLAMA, gpu, tp=2, weights="fp8")
    engine, tier = Offload.of(deployment), _host(deployment)
    one, low, high = (engine.fetch(tokens, NEW_TOKENS, tier) for tokens in (PREFIX_TOKENS, *PREFIX_SPAN))
    return one, low.speedup, high.speedup


def _claim(code: str, title: Message, claimed: float, found: tuple[Fetch, float, float], where: Message) -> Claim:
    one, low, high = found
    return Claim(
        code=code,
        title=title,
        claimed=(claimed, claimed),
        is_most=True,
        computed=one.speedup,
        span=(low, high),
        conditions=where,
        working=msg(
            "{prefix:tok} computed again take {again:ms}; {size:gib} over {speed:gbps} take {moved:ms}, the new tokens "
            "{rest:ms}.",
            prefix=one.hit.prefix_tokens,
            again=one.hit.recompute_s,
            size=one.hit.moved_bytes,
            speed=one.tier.bytes_per_s,
            moved=one.transfer_s,
            rest=one.hit.rest_s,
        ),
        assumed=msg(
            "Two GPUs, weights in FP8, KV in BF16, {new:count} new tokens, nothing else running; span over prefixes of "
            "{low:count} to {high:tok}.",
            new=NEW_TOKENS,
            low=PREFIX_SPAN[0],
            high=PREFIX_SPAN[1],
        ),
        source=_BLOG,
        counter=_COUNTER,
    )


def cpu_offload(shelf: Shelf) -> Claim:
    """Up to 14 times TTFT on an x86 server with H100."""
    return _claim(
        "cpu-offload",
        msg("A conversation's prefix from CPU memory on H100: TTFT"),
        14.0,
        _multi_turn(shelf, "h100-sxm"),
        msg("Llama 3 70B, multi-turn, all of the prefix in CPU memory, PCIe Gen5."),
    )


def cpu_offload_coherent(shelf: Shelf) -> Claim:
    """Up to 28 times on GH200."""
    return _claim(
        "cpu-offload-gh200",
        msg("The same on GH200 over NVLink-C2C: TTFT"),
        28.0,
        _multi_turn(shelf, "gh200-96"),
        msg("Llama 3 70B, multi-turn, all of the prefix in CPU memory, NVLink-C2C."),
    )


def several_tiers(shelf: Shelf) -> Claim:
    """Three to ten times, over several tiers."""
    deployment = shelf.deploy(LLAMA, "h100-sxm", tp=2, weights="fp8")
    engine = Offload.of(deployment)
    memory, disk = (engine.fetch(DOCUMENT_TOKENS, NEW_TOKENS, tier(deployment)) for tier in (_host, _disk))
    mean = 2 * memory.hit.recompute_s / (memory.total_s + disk.total_s)
    return Claim(
        code="multi-tier",
        title=msg("Long documents from CPU memory and disk: TTFT"),
        claimed=(3.0, 10.0),
        computed=mean,
        span=(disk.speedup, memory.speedup),
        conditions=msg("Multi-turn questions and RAG over long documents, vLLM with LMCache, 2024."),
        working=msg(
            "{tokens:tok}: {disk:.2g} times from one disk, {memory:.2g} from CPU memory; half in each, {mean:.2g}.",
            tokens=DOCUMENT_TOKENS,
            disk=disk.speedup,
            memory=memory.speedup,
            mean=mean,
        ),
        assumed=msg("Llama 3 70B on two H100 in FP8, documents of {tokens:tok}, one disk.", tokens=DOCUMENT_TOKENS),
        source=msg("LMCache README and release post, 2024-09-17"),
        counter=_COUNTER,
    )


def _on_yours(scenario: Scenario, tier: Tier) -> Yours:
    load = scenario.workload
    prompt = round(load.prompt_tokens.quantile(0.95))
    share = load.prefix_hit_share + load.offload_hit_share
    prefix = round(prompt * share)
    if not prefix:
        return Yours(value=None, statement=msg("No hits are declared for this load: nothing would come back."))
    found = Offload.of(scenario.deployment, scenario.calibration).fetch(prefix, max(1, prompt - prefix), tier)
    return Yours(
        value=found.speedup,
        statement=msg(
            "A P95 prompt with {prefix:tok} in {tier}: {again:ms} computed again, {fetched:ms} fetched.",
            prefix=prefix,
            tier=tier.name,
            again=found.hit.recompute_s,
            fetched=found.total_s,
        ),
    )


def from_memory_on_yours(scenario: Scenario) -> Yours:
    """The hit part of a P95 prompt, all of it in CPU memory."""
    return _on_yours(scenario, _host(scenario.deployment))


def from_disk_on_yours(scenario: Scenario) -> Yours:
    """The same from one disk."""
    return _on_yours(scenario, _disk(scenario.deployment))
