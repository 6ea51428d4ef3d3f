"""The desk of the GPU probe: one run per server, its progress, and its result kept in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from calc.errors import PlimsollError
from calc.hardware import Gpu
from calc.messages import Message
from calc.scenario import Scenario
from data.store import Store
from probe.nvml import GpuFacts
from probe.result import ProbeResult
from probe.roofline_view import RooflinePoint
from probe.runner import ProbeRun, ProbeState, start
from probe.shape import layer_shape
from probe.wire import parse_outcome, result_line
from ui import format as show
from ui.charts.latency import RooflineSpot
from ui.glossary import BOUNDS
from ui.story import words
from ui.story.words import Figure
from ui.text import t

TIME_CAP_S = 20.0
"""The measurement ends by itself after this; starting torch comes on top."""


@dataclass
class Desk:
    """Shared by all visitors of this server: a second one sees the first one's run instead of disturbing it."""

    store: Store
    run: ProbeRun | None = None
    problem: Message | None = None
    _lock: Lock = field(default_factory=Lock)

    def begin(self, scenario: Scenario) -> None:
        """Start to measure the scenario's layer on the GPU of this machine, else on its CPU."""
        with self._lock:
            self.problem = None
            try:
                deployment = scenario.deployment
                self.run = start(layer_shape(deployment.model, deployment.tp), time_cap_s=TIME_CAP_S)
            except PlimsollError as error:
                self.problem = error.message

    def cancel(self) -> None:
        """Stop the run; nothing of it is stored."""
        if self.run is not None:
            self.run.cancel()

    def look(self) -> ProbeState | None:
        """Where the run is. A finished one is stored once and leaves the desk."""
        with self._lock:
            if self.run is None:
                return None
            now = self.run.poll()
            if now.done:
                self.run, self.problem = None, now.error
                if now.result is not None:
                    self.store.add_probe(json.loads(result_line(now.result)), measured_at=now.result.started_at)
            return now


def latest(store: Store) -> ProbeResult | None:
    """The newest stored measurement that can still be read."""
    for row in store.probes():
        outcome = parse_outcome(json.dumps(dict(row.probe)))
        if isinstance(outcome, ProbeResult):
            return outcome
    return None


def spots(points: tuple[RooflinePoint, ...]) -> list[RooflineSpot]:
    """The measured steps as marks under the roof."""
    return [
        RooflineSpot(
            name=step_name(point),
            intensity_flops_per_byte=point.intensity_flop_per_byte,
            achieved_flops_per_s=point.achieved_flops_per_s,
        )
        for point in points
    ]


def step_name(point: RooflinePoint) -> str:
    """What one measured step was."""
    if point.phase == "prefill":
        return t("Prefill of {tokens:tok}", tokens=point.tokens)
    return t("Decode, batch {batch}, context {context:tok}", batch=point.batch, context=point.tokens)


def rows(points: tuple[RooflinePoint, ...]) -> list[Mapping[str, str]]:
    """One row per measured step, against the roof."""
    bounds: Mapping[str | None, str] = {
        "memory": t(BOUNDS["memory_bandwidth"]),
        "compute": t(BOUNDS["compute"]),
        None: show.missing(),
    }
    return [
        {
            t("Step"): step_name(point),
            t("Time per layer"): show.ms(point.seconds),
            t("Achieved"): show.tflops(point.achieved_flops_per_s),
            t("Bandwidth"): show.gbps(point.achieved_bytes_per_s),
            t("Of the roof"): show.percent(point.roof_share),
            t("Binds"): bounds[point.bound],
            t("Provenance"): t("measured"),
        }
        for point in points
    ]


def gpu_rows(gpus: tuple[GpuFacts, ...]) -> list[Mapping[str, str]]:
    """One row per GPU of this machine, as the driver tells it."""
    columns: tuple[tuple[str, Callable[[GpuFacts], str]], ...] = (
        (t("GPU"), lambda gpu: gpu.name or show.missing()),
        (t("Memory used"), lambda gpu: f"{show.gib(gpu.memory_used_bytes)} / {show.gib(gpu.memory_total_bytes)}"),
        (t("Busy"), lambda gpu: show.percent(gpu.utilisation_share)),
        (t("Temperature"), lambda gpu: show.quantity(gpu.temperature_c, "°C")),
        (t("Power"), lambda gpu: f"{show.quantity(gpu.power_w, 'W')} / {show.quantity(gpu.power_limit_w, 'W')}"),
        (t("SM clock"), lambda gpu: show.megahertz(gpu.sm_clock_hz)),
        (t("Held back by"), _throttle),
        (
            "PCIe",
            lambda gpu: show.missing() if gpu.pcie_generation is None else f"{gpu.pcie_generation} ×{gpu.pcie_width}",
        ),
        (t("Processes"), lambda gpu: show.count(gpu.process_count)),
    )
    return [{title: cell(gpu) for title, cell in columns} for gpu in gpus]


def _throttle(gpu: GpuFacts) -> str:
    if gpu.throttle_reasons is None:
        return show.missing()
    return t(", ").join(t(reason) for reason in gpu.throttle_reasons) or t("nothing")


def verdict(result: ProbeResult | None, gpu: Gpu) -> str:
    """What was measured last, in one sentence."""
    if result is None:
        return t("Nothing has been measured on this machine yet.")
    if result.kind == "cpu":
        return t(
            "Measured on the CPU {name}: it tests the way, it says nothing about {gpu}.",
            name=result.device_name,
            gpu=gpu.name,
        )
    return t("Measured on {name}, set against the figures of {gpu}.", name=result.device_name, gpu=gpu.name)


def figures(result: ProbeResult | None) -> list[Figure]:
    """Device, matrix product, copy and date of the newest measurement."""
    device = result.device_name if result else show.missing()
    product, copy = (result.matmul_flops_per_s, result.copy_bytes_per_s) if result else (None, None)
    kind = "measured" if result else "missing"
    return [
        Figure(label=t("Device"), value=device, provenance=kind),
        Figure(label=t("Matrix product"), value=show.tflops(product), provenance=kind),
        Figure(label=t("Memory copy"), value=show.gbps(copy), provenance=kind),
        Figure(label=t("Measured on"), value=words.day(result.started_at if result else None), provenance=kind),
    ]
