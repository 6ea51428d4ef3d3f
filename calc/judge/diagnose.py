"""Three layers read together — cache, resource, service — and what they say binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calc.evidence import Evidence, value_of
from calc.judge.decision import Finding, LayerState, Strain, Verdict
from calc.judge.ladder import Step
from calc.judge.rules import RULES
from calc.messages import msg
from calc.metrics import Layer


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What is wrong (one of four, or unknown), what binds, and the three layers behind it."""

    diagnosis: str
    bottleneck: str
    layers: tuple[LayerState, ...]


SIGNS: Mapping[Layer, tuple[str, ...]] = {
    Layer.CACHE: (
        "memory.cache-fills",
        "schedule.preemption-thrash",
        "schedule.memory-not-released",
        "cache.block-too-long",
        "cache.diluted",
        "cache.hits-missing",
        "cache.hit-improvable",
        "cache.waste",
    ),
    Layer.RESOURCE: (
        "memory.does-not-fit",
        "memory.gap-is-workspace",
        "architecture.link-dominates",
        "transfer.offload-slow",
        "transfer.tp-over-pcie",
        "transfer.over-sharded",
        "transfer.split-hurts",
        "schedule.host-bound",
        "memory.weights-share",
    ),
    Layer.SERVICE: (
        "memory.load-above-capacity",
        "schedule.queue-with-free-kv",
        "schedule.max-seqs-binds",
        "memory.lost-requests",
        "architecture.idle-misses-slo",
        "schedule.itl-tail",
        "schedule.long-blocks-short",
    ),
}
"""Conditions that speak for a layer, the most telling first."""

CALM_SIGNS: Mapping[Layer, tuple[tuple[str, Verdict], ...]] = {
    Layer.CACHE: (
        ("calm.nothing-waits", Verdict.MET),
        ("memory.cache-fills", Verdict.NOT_MET),
        ("schedule.preemption-thrash", Verdict.NOT_MET),
        ("cache.hits-missing", Verdict.NOT_MET),
    ),
    Layer.RESOURCE: (
        ("memory.weights-share", Verdict.NOT_MET),
        ("memory.does-not-fit", Verdict.NOT_MET),
        ("schedule.host-bound", Verdict.NOT_MET),
    ),
    Layer.SERVICE: (
        ("calm.slo-with-headroom", Verdict.MET),
        ("calm.nothing-waits", Verdict.MET),
        ("memory.load-above-capacity", Verdict.NOT_MET),
    ),
}
"""Verdicts that speak for a calm layer, the most telling first."""

CAUSES = (
    "memory.does-not-fit",
    "memory.gap-is-workspace",
    "architecture.link-dominates",
    "transfer.offload-slow",
    "transfer.tp-over-pcie",
    "transfer.over-sharded",
    "transfer.split-hurts",
    "memory.cache-fills",
    "schedule.preemption-thrash",
    "memory.lost-requests",
    "schedule.memory-not-released",
    "schedule.max-seqs-binds",
    "schedule.queue-with-free-kv",
    "cache.block-too-long",
    "cache.diluted",
    "cache.hits-missing",
    "cache.hit-improvable",
    "memory.load-above-capacity",
)
"""Which finding names the cause when several layers are strained: what happens first in a request's way comes first."""

BINDS: Mapping[str, str] = {
    "compute": "compute",
    "memory_bandwidth": "memory_bandwidth",
    "memory_capacity": "memory_capacity",
    "sequences": "scheduling",
    "communication": "transfer",
    "overhead": "scheduling",
}
"""What binds an engine step → bottleneck of the service."""

MODEL_OR_SCHEDULING = "model_or_scheduling"
_RULES = {rule.code: rule for rule in RULES}


def diagnose(findings: tuple[Finding, ...], evidence: Mapping[str, Evidence], step: Step) -> Diagnosis:
    """What the layers say; ``step`` is the deciding step, whose own conditions name the cause first."""
    verdicts = {finding.rule: finding for finding in findings}
    met = [code for code in (*step.all_of, *CAUSES) if verdicts[code].verdict is Verdict.MET]
    named = next((_RULES[code] for code in met if _RULES[code].diagnosis), None)
    bound = BINDS.get(str(value_of(evidence, "bound")), "")
    layers = tuple(_state(layer, verdicts) for layer in Layer)
    if named is not None:
        own = named.bottleneck if named.code != "memory.load-above-capacity" else bound or named.bottleneck
        return Diagnosis(diagnosis=named.diagnosis, bottleneck=own or bound or "unknown", layers=layers)
    if any(state.strain is not Strain.UNKNOWN for state in layers if state.layer is not Layer.RESOURCE):
        return Diagnosis(diagnosis=MODEL_OR_SCHEDULING, bottleneck=bound or "none", layers=layers)
    return Diagnosis(diagnosis="unknown", bottleneck=bound or "unknown", layers=layers)


def _state(layer: Layer, verdicts: Mapping[str, Finding]) -> LayerState:
    found = [verdicts[code] for code in SIGNS[layer]]
    strained = [finding for finding in found if finding.verdict is Verdict.MET]
    slo = verdicts["calm.slo-with-headroom"]
    if layer is Layer.SERVICE and slo.verdict is Verdict.NOT_MET:
        strained.append(slo)
    calm = [verdicts[code] for code, verdict in CALM_SIGNS[layer] if verdicts[code].verdict is verdict]
    if strained:
        return LayerState(layer=layer, strain=Strain.STRAINED, statement=strained[0].statement)
    if calm:
        return LayerState(layer=layer, strain=Strain.CALM, statement=calm[0].statement)
    return LayerState(layer=layer, strain=Strain.UNKNOWN, statement=msg("Not measured."))
