"""What an engine says of each figure that belongs into its three layers, and plainly which ones it does not export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calc.messages import Message, msg
from calc.metrics import Layer
from data.records import GpuMetrics, LatencyStats, MetricsSnapshot
from data.sources.metric_names import LIFETIME
from data.sources.metrics_text import stats_of

NOT_EXPORTED = msg("not exported by this engine version")
GPU_EXPORTER = msg("not in this text; the DCGM exporter says it")
NEEDS_TWO = msg("needs two scrapes")
BEYOND_BUCKETS = msg("lies outside the buckets of its histogram")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One figure of a layer; ``value`` is ``None`` where ``reason`` says why."""

    layer: Layer
    name: Message
    value: float | None
    unit: str
    reason: Message | None = None


Read = Callable[[MetricsSnapshot], float | None]


def items(snapshot: MetricsSnapshot) -> tuple[Item, ...]:
    """Every figure that a platform team watches, in the order of the layers. Counts are of the snapshot's window."""
    return tuple(
        Item(
            layer=layer, name=name, value=value, unit=unit, reason=None if value is not None else _reason(snapshot, row)
        )
        for row in _ROWS
        for layer, name, unit, value in [(row.layer, row.name, row.unit, row.read(snapshot))]
    )


@dataclass(frozen=True, kw_only=True)
class _Row:
    layer: Layer
    name: Message
    unit: str
    read: Read
    counter: str = ""
    """What it is the rate of: known only between two scrapes."""
    latency: str = ""
    """The histogram it is read from."""
    gpu: bool = False
    """Of a GPU exporter, not of the engine."""


def _reason(snapshot: MetricsSnapshot, row: _Row) -> Message:
    if row.counter and getattr(snapshot, row.counter) is not None and snapshot.window_s is None:
        return NEEDS_TWO
    if row.latency and getattr(snapshot, row.latency) is not None:
        return BEYOND_BUCKETS
    return GPU_EXPORTER if row.gpu and not snapshot.gpus else NOT_EXPORTED


def _rate(name: str) -> Read:
    def read(snapshot: MetricsSnapshot) -> float | None:
        value: float | None = getattr(snapshot, name)
        return value / snapshot.window_s if value is not None and snapshot.window_s else None

    return read


def _plain(name: str) -> Read:
    def read(snapshot: MetricsSnapshot) -> float | None:
        value: float | None = getattr(snapshot, name)
        return value

    return read


def _stat(name: str, stat: str) -> Read:
    def read(snapshot: MetricsSnapshot) -> float | None:
        stats: LatencyStats | None = getattr(snapshot, name)
        return None if stats is None else getattr(stats, stat)

    return read


def _gpus(name: str, combine: Callable[[Sequence[float]], float]) -> Read:
    def read(snapshot: MetricsSnapshot) -> float | None:
        known = [value for gpu in snapshot.gpus if (value := getattr(gpu, name)) is not None]
        return combine(known) if known else None

    return read


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _used_tokens(snapshot: MetricsSnapshot) -> float | None:
    usage, capacity = snapshot.kv_usage_share, snapshot.kv_capacity_tokens
    return None if usage is None or capacity is None else usage * capacity


def _lifetime(snapshot: MetricsSnapshot) -> float | None:
    stats = stats_of(snapshot.histograms.get(LIFETIME))
    return None if stats is None else stats.mean_s


def _cpu(snapshot: MetricsSnapshot) -> float | None:
    return _rate("cpu_seconds_total")(snapshot)


def _lost(snapshot: MetricsSnapshot) -> float | None:
    finished, lost = snapshot.requests_finished_total, snapshot.requests_aborted_total
    return lost / (finished + lost) if finished is not None and lost is not None and finished + lost else None


def mean_busy_share(snapshot: MetricsSnapshot) -> float | None:
    """Mean share of time in which the GPUs are busy."""
    return _gpus("busy_share", _mean)(snapshot)


def fullest_memory_bytes(snapshot: MetricsSnapshot) -> float | None:
    """Memory used on the fullest GPU."""
    return _gpus("memory_used_bytes", max)(snapshot)


def fullest_memory_share(snapshot: MetricsSnapshot) -> float | None:
    """Memory used / memory used and free, on the fullest GPU."""
    known = [
        gpu.memory_used_bytes / (gpu.memory_used_bytes + gpu.memory_free_bytes)
        for gpu in snapshot.gpus
        if gpu.memory_used_bytes and gpu.memory_free_bytes is not None
    ]
    return max(known, default=None)


def _gpu_seconds(snapshot: MetricsSnapshot) -> float | None:
    """GPUs of the text × window ÷ requests finished in it."""
    finished, window = snapshot.requests_finished_total, snapshot.window_s
    return len(snapshot.gpus) * window / finished if snapshot.gpus and window and finished else None


def _never(_snapshot: MetricsSnapshot) -> None:
    """No exporter of today's engines says it."""


def _transfer(gpu: GpuMetrics) -> float | None:
    known = [value for value in (gpu.pcie_sent_bytes_per_s, gpu.pcie_received_bytes_per_s) if value is not None]
    return sum(known) if known else None


def pcie_bytes_per_s(snapshot: MetricsSnapshot) -> float | None:
    """Both directions of the busiest GPU."""
    known = [value for gpu in snapshot.gpus if (value := _transfer(gpu)) is not None]
    return max(known) if known else None


_CACHE = (
    _Row(layer=Layer.CACHE, name=msg("KV capacity"), unit="tokens", read=_plain("kv_capacity_tokens")),
    _Row(layer=Layer.CACHE, name=msg("KV usage"), unit="share", read=_plain("kv_usage_share")),
    _Row(layer=Layer.CACHE, name=msg("KV tokens held"), unit="tokens", read=_used_tokens),
    _Row(layer=Layer.CACHE, name=msg("Requests running"), unit="count", read=_plain("requests_running")),
    _Row(layer=Layer.CACHE, name=msg("Prefix hit rate"), unit="share", read=_plain("prefix_hit_share")),
    _Row(
        layer=Layer.CACHE, name=msg("Tokens evicted per second"), unit="tokens/s",
        read=_rate("evicted_tokens_total"), counter="evicted_tokens_total",
    ),
    _Row(layer=Layer.CACHE, name=msg("Preemptions per second"), unit="per_s",
         read=_rate("preemptions_total"), counter="preemptions_total"),
    _Row(
        layer=Layer.CACHE, name=msg("Offloaded per second"), unit="bytes/s",
        read=_rate("offload_stored_bytes_total"), counter="offload_stored_bytes_total",
    ),
    _Row(
        layer=Layer.CACHE, name=msg("Reloaded per second"), unit="tokens/s",
        read=_rate("offload_loaded_tokens_total"), counter="offload_loaded_tokens_total",
    ),
    _Row(layer=Layer.CACHE, name=msg("Cache outside the GPU in use"), unit="share",
         read=_plain("host_cache_usage_share")),
    _Row(layer=Layer.CACHE, name=msg("Mean life of a cache block"), unit="s", read=_lifetime),
)  # fmt: skip
_RESOURCE = (
    _Row(layer=Layer.RESOURCE, name=msg("GPU memory used, fullest GPU"), unit="bytes", gpu=True,
         read=_gpus("memory_used_bytes", max)),
    _Row(layer=Layer.RESOURCE, name=msg("GPU memory free, fullest GPU"), unit="bytes", gpu=True,
         read=_gpus("memory_free_bytes", min)),
    _Row(layer=Layer.RESOURCE, name=msg("GPU memory kept by the driver"), unit="bytes", gpu=True,
         read=_gpus("memory_reserved_bytes", max)),
    _Row(layer=Layer.RESOURCE, name=msg("GPU busy, mean"), unit="share", gpu=True, read=_gpus("busy_share", _mean)),
    _Row(layer=Layer.RESOURCE, name=msg("Tensor cores active, mean"), unit="share", gpu=True,
         read=_gpus("tensor_active_share", _mean)),
    _Row(layer=Layer.RESOURCE, name=msg("Memory interface active, mean"), unit="share", gpu=True,
         read=_gpus("dram_active_share", _mean)),
    _Row(layer=Layer.RESOURCE, name=msg("Busy share, busiest less idlest GPU"), unit="share", gpu=True,
         read=_gpus("busy_share", _spread)),
    _Row(layer=Layer.RESOURCE, name=msg("PCIe, busiest GPU"), unit="bytes/s", gpu=True, read=pcie_bytes_per_s),
    _Row(layer=Layer.RESOURCE, name=msg("NVLink, busiest GPU"), unit="bytes/s", gpu=True,
         read=_gpus("nvlink_bytes_per_s", max)),
    _Row(layer=Layer.RESOURCE, name=msg("GPU power, all"), unit="W", gpu=True, read=_gpus("power_w", sum)),
    _Row(layer=Layer.RESOURCE, name=msg("CPU cores used by the server"), unit="number",
         counter="cpu_seconds_total", read=_cpu),
    _Row(layer=Layer.RESOURCE, name=msg("CPU memory of the server"), unit="bytes", read=_plain("cpu_memory_bytes")),
    _Row(layer=Layer.RESOURCE, name=msg("Fragmentation of GPU memory"), unit="share", read=_never),
    _Row(layer=Layer.RESOURCE, name=msg("Storage and network bandwidth"), unit="bytes/s", read=_never),
)  # fmt: skip
_SERVICE = (
    *(
        _Row(layer=Layer.SERVICE, name=msg("{latency}, {stat}", latency=label, stat=word), unit="ms",
             latency=field, read=_stat(field, stat))
        for field, label in (("ttft", "TTFT"), ("itl", "ITL"), ("tpot", "TPOT"), ("e2e", "E2E"))
        for stat, word in (("mean_s", msg("mean")), ("p95_s", "P95"), ("p99_s", "P99"))
    ),
    _Row(layer=Layer.SERVICE, name=msg("Time in the queue, mean"), unit="ms", read=_stat("queue", "mean_s")),
    _Row(layer=Layer.SERVICE, name=msg("Requests waiting"), unit="count", read=_plain("requests_waiting")),
    _Row(layer=Layer.SERVICE, name=msg("Requests answered per second"), unit="requests/s",
         counter="requests_finished_total", read=_rate("requests_finished_total")),
    _Row(layer=Layer.SERVICE, name=msg("Output tokens per second"), unit="tokens/s",
         counter="output_tokens_total", read=_plain("output_tokens_per_s")),
    _Row(layer=Layer.SERVICE, name=msg("Requests aborted or failed"), unit="share", read=_lost),
    _Row(layer=Layer.SERVICE, name=msg("GPU seconds per request"), unit="s", gpu=True,
         counter="requests_finished_total", read=_gpu_seconds),
    _Row(layer=Layer.SERVICE, name=msg("Timeouts"), unit="count", read=_never),
    _Row(layer=Layer.SERVICE, name=msg("Retries"), unit="count", read=_never),
    _Row(layer=Layer.SERVICE, name=msg("Out-of-memory events"), unit="count", read=_never),
)  # fmt: skip
_ROWS: Sequence[_Row] = (*_CACHE, *_RESOURCE, *_SERVICE)


def by_layer(snapshot: MetricsSnapshot) -> Mapping[Layer, tuple[Item, ...]]:
    """The same, a layer at a time."""
    found = items(snapshot)
    return {layer: tuple(item for item in found if item.layer is layer) for layer in Layer}
