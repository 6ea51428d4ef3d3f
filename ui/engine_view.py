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
from ui.story.words import Figure
from ui.text import t


def understand(first: bytes, second: bytes | None) -> tuple[ReadResult, MetricsSnapshot]:
    """The metrics in a text; with a second, later text the difference of both."""
    earlier = _read(first)
    if second is None:
        return earlier, earlier.snapshots[0]
    later = _read(second)
    return later, difference(earlier.snapshots[0], later.snapshots[0])


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


def healthy(snapshot: MetricsSnapshot) -> bool | None:
    """False when requests wait; None when the text does not say."""
    return None if snapshot.requests_waiting is None else snapshot.requests_waiting == 0


def figures(snapshot: MetricsSnapshot) -> list[Figure]:
    """KV usage, hit share, TTFT and waiting."""
    ttft = snapshot.ttft.p95_s if snapshot.ttft else None
    return [
        Figure(label=t("KV usage"), value=show.percent(snapshot.kv_usage_share), provenance="measured"),
        Figure(label=t("Hit rate"), value=show.percent(snapshot.prefix_hit_share), provenance="measured"),
        Figure(label="TTFT P95", value=show.ms(ttft), provenance="measured"),
        Figure(label=t("Waiting"), value=show.count(snapshot.requests_waiting), provenance="measured"),
    ]


def rows(evidence: Sequence[Evidence]) -> list[Mapping[str, str]]:
    """One row per metric the text holds, by layer."""
    known = {metric.name: metric for metric in METRICS.values()}
    found = sorted(evidence, key=lambda one: known[one.metric].layer.value if one.metric in known else "")
    return [
        {
            t("Layer"): t(known[one.metric].layer.value) if one.metric in known else "",
            t("Metric"): t(known[one.metric].meaning) if one.metric in known else one.metric,
            t("Value"): show.quantity(one.value, one.unit),
            t("Provenance"): t(one.provenance.value),
            t("Source"): one.source,
        }
        for one in found
    ]
