"""A metrics text in words: sentence, numbers, and one row per metric in three layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.errors import UnreadableFile
from calc.evidence import Evidence
from calc.messages import msg
from calc.metrics import METRICS
from data.formats import read
from data.records import MetricsSnapshot, ReadResult
from data.sources.prometheus import difference
from ui import format as show
from ui.glossary import LAYERS, PROVENANCE
from ui.story.words import Figure
from ui.text import t


def understand(first: bytes, second: bytes | None, seconds: float | None = None) -> tuple[ReadResult, MetricsSnapshot]:
    """The metrics in a text; with a second, later text the difference of both, ``seconds`` apart if nothing says so."""
    earlier = _read(first)
    if second is None:
        return earlier, earlier.snapshots[0]
    later = _read(second)
    return later, difference(earlier.snapshots[0], later.snapshots[0], seconds)


def _read(content: bytes) -> ReadResult:
    result = read(content, "metrics.txt")
    if not result.snapshots:
        raise UnreadableFile(
            msg(
                "expected the text of an engine's /metrics, got a file of {format}: paste what that address shows.",
                format=result.format,
            )
        )
    return result


def sentence(snapshot: MetricsSnapshot) -> str:
    """What the engine is doing."""
    return t(
        "{running} running, {waiting} waiting, KV usage {usage}.",
        running=show.count(snapshot.requests_running),
        waiting=show.count(snapshot.requests_waiting),
        usage=show.percent(snapshot.kv_usage_share),
    )


def calm(snapshot: MetricsSnapshot) -> bool | None:
    """True when nothing waits; None when something does, or the text does not say."""
    return True if snapshot.requests_waiting == 0 else None


def figures(snapshot: MetricsSnapshot, kind: str) -> list[Figure]:
    """KV usage, hit share, TTFT and waiting."""
    ttft = snapshot.ttft.p95_s if snapshot.ttft else None
    return [
        Figure(label=t("KV usage"), value=show.percent(snapshot.kv_usage_share), provenance=kind),
        Figure(label=t("Hit rate"), value=show.percent(snapshot.prefix_hit_share), provenance=kind),
        Figure(label="TTFT P95", value=show.ms(ttft), provenance=kind),
        Figure(label=t("Waiting"), value=show.count(snapshot.requests_waiting), provenance=kind),
    ]


def rows(evidence: Sequence[Evidence], kind: str) -> list[Mapping[str, str]]:
    """One row per metric the text holds, by layer."""
    known = {metric.name: metric for metric in METRICS.values()}
    found = sorted(evidence, key=lambda one: known[one.metric].layer.value if one.metric in known else "")
    return [
        {
            t("Layer"): t(LAYERS[known[one.metric].layer]) if one.metric in known else "",
            t("Metric"): t(known[one.metric].meaning) if one.metric in known else one.metric,
            t("Value"): show.quantity(one.value, one.unit),
            t("Provenance"): t(PROVENANCE[kind]),
            t("Source"): one.source,
        }
        for one in found
    ]
