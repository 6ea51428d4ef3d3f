"""Evidence worked out from other evidence: ratios, shares, targets. No better known than its weakest part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.evidence import Evidence, Provenance, flag, is_measured, number, weakest
from calc.metrics import METRICS
from calc.workload import Slo

USUAL_PERCENTILE_SHARE = Slo().percentile_share
"""Percentile of a target that states none: the same as in a scenario."""
LATENCIES = ("ttft", "itl", "e2e")
"""Those an SLO can name."""
_STATS = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99"}


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """``name`` = ``above`` / ``below`` − ``less``."""

    name: str
    above: str
    below: str
    less: float = 0.0


RATIOS = (
    Ratio(name="rho", above="request_rate_per_s", below="max_rate_per_s"),
    Ratio(name="kv_demand_ratio", above="kv_demand_bytes", below="kv_pool_bytes"),
    Ratio(name="weights_share", above="weights_bytes", below="gpu_memory_bytes"),
    Ratio(name="ttft_tail_ratio", above="ttft_p99_s", below="ttft_p50_s"),
    Ratio(name="itl_tail_ratio", above="itl_p99_s", below="itl_p50_s"),
    Ratio(name="prompt_tail_ratio", above="prompt_p99_tokens", below="prompt_p50_tokens"),
    Ratio(name="queue_share", above="queue_s", below="e2e_mean_s"),
    Ratio(name="seqs_used_share", above="running", below="max_num_seqs"),
    Ratio(name="headroom_share", above="knee_per_s", below="request_rate_per_s", less=1.0),
)


def derived_from(given: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """``given`` with every ratio that follows from it; a figure given directly is kept."""
    evidence = dict(given)
    for ratio in (*RATIOS, *_target_ratios(number(evidence, "slo_percentile_share") or USUAL_PERCENTILE_SHARE)):
        _add(evidence, ratio)
    _add_no_hits(evidence)
    _add_reuse(evidence)
    _add_worst(evidence)
    _add_idle(evidence)
    return evidence


def _target_ratios(percentile_share: float) -> tuple[Ratio, ...]:
    """Latency at the SLO's own percentile over its target; a percentile nobody keeps gives none."""
    stat = _STATS.get(percentile_share)
    if stat is None:
        return ()
    return tuple(
        Ratio(name=f"{latency}_target_ratio", above=f"{latency}_{stat}_s", below=f"{latency}_slo_s")
        for latency in LATENCIES
    )


def _add(evidence: dict[str, Evidence], ratio: Ratio) -> None:
    above, below = number(evidence, ratio.above), number(evidence, ratio.below)
    if above is None or not below or number(evidence, ratio.name) is not None:
        return
    value = above / below - ratio.less
    evidence[ratio.name] = _worked_out(evidence, ratio.name, value, (ratio.above, ratio.below))


def _worked_out(evidence: Mapping[str, Evidence], name: str, value: float, parts: tuple[str, ...]) -> Evidence:
    known = [evidence[part] for part in parts if part in evidence]
    # A target or a limit is declared by its nature; what counts is how the figure set against it is known.
    figures = [part for part in known if part.provenance is not Provenance.DECLARED] or known
    return Evidence(
        metric=name,
        value=value,
        unit=METRICS[name].unit,
        provenance=weakest(part.provenance for part in figures),
        source=" / ".join(parts),
        date=max((part.date for part in known), default=""),
        caveats=tuple(caveat for part in known for caveat in part.caveats),
    )


def _add_no_hits(evidence: dict[str, Evidence]) -> None:
    """Prefix caching switched off means a hit rate of exactly 0."""
    if flag(evidence, "prefix_caching") is False and not is_measured(evidence, "hit_rate_share"):
        evidence["hit_rate_share"] = _worked_out(evidence, "hit_rate_share", 0.0, ("prefix_caching",))


def _add_reuse(evidence: dict[str, Evidence]) -> None:
    """What repeats and is not hit, and that times the share of prefill in TTFT: the most reuse can take off it."""
    repeated, hit = number(evidence, "prefix_share"), number(evidence, "hit_rate_share")
    if repeated is None or hit is None or number(evidence, "reuse_gap_share") is not None:
        return
    gap = max(0.0, repeated - hit)
    evidence["reuse_gap_share"] = _worked_out(evidence, "reuse_gap_share", gap, ("prefix_share", "hit_rate_share"))
    prefill, ttft = number(evidence, "prefill_s"), number(evidence, "ttft_mean_s")
    if prefill is not None and ttft:
        gain = gap / (1 - hit) * min(1.0, prefill / ttft) if gap else 0.0
        evidence["reuse_gain_share"] = _worked_out(evidence, "reuse_gain_share", gain, ("prefix_share", "prefill_s"))


def _add_worst(evidence: dict[str, Evidence]) -> None:
    """The target used most; while a stated target has no figure, only a miss of another one is sure."""
    ratios = [f"{latency}_target_ratio" for latency in LATENCIES]
    values = {ratio: value for ratio in ratios if (value := number(evidence, ratio)) is not None}
    stated = [latency for latency in LATENCIES if number(evidence, f"{latency}_slo_s") is not None]
    if not values or number(evidence, "worst_target_ratio") is not None:
        return
    worst = max(values, key=lambda ratio: values[ratio])
    if len(values) < len(stated) and values[worst] <= 1:
        return
    evidence["worst_target_ratio"] = _worked_out(evidence, "worst_target_ratio", values[worst], (worst,))


def _add_idle(evidence: dict[str, Evidence]) -> None:
    """How far an idle server is from the targets: the tightest of them."""
    parts = [
        (value / target, f"unloaded_{latency}_s")
        for latency in LATENCIES
        if (value := number(evidence, f"unloaded_{latency}_s")) is not None
        and (target := number(evidence, f"{latency}_slo_s"))
    ]
    if parts and number(evidence, "unloaded_target_ratio") is None:
        worst, source = max(parts)
        evidence["unloaded_target_ratio"] = _worked_out(evidence, "unloaded_target_ratio", worst, (source,))
