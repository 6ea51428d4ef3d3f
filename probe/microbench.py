"""The micro-benchmark: raw copy and matrix product, then prefill and decode of one layer, inside a time cap.

Prefill multiplies every weight with many tokens and is usually bound by FLOP/s; decode reads every weight and the whole
cache for one token per sequence and is usually bound by bytes/s. The points walk from one to the other.
Kernels are launched one by one, without CUDA graphs, and attention is torch's own, not an engine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

from calc.errors import ProbeError
from calc.messages import Message, msg
from probe import device
from probe.layer import Layer, random_source
from probe.plan import Plan, plan
from probe.result import DecodePoint, PrefillPoint, ProbeResult, Timing
from probe.shape import FLOP_PER_WEIGHT, LayerShape
from probe.timing import Deadline, Step, measure

DEFAULT_TIME_CAP_S = 20.0
MAX_TIME_CAP_S = 600.0
OnProgress: TypeAlias = Callable[[float, Message], None]
SEED = 7
COPY_PASSES = 2
"""A copy reads and writes every byte."""


def run(shape: LayerShape, asked: str, time_cap_s: float, on_progress: OnProgress) -> ProbeResult:
    """Measure ``shape`` on ``auto``, ``cuda`` or ``cpu``; refuses when the device has too little free memory."""
    _check_cap(time_cap_s)
    _require_torch()
    deadline = Deadline(time_cap_s)
    kind = device.resolve(asked)
    planned = plan(shape, kind, device.dtype(kind, shape.dtype))
    _check_memory(planned)
    return _guarded(planned, deadline, on_progress)


class _Bench:
    """One run: a device, a plan and the time that is left."""

    def __init__(self, planned: Plan, deadline: Deadline, on_progress: OnProgress) -> None:
        import torch

        torch.manual_seed(SEED)
        self.plan, self._deadline, self._on_progress = planned, deadline, on_progress
        self._tasks = 2 + len(planned.prefill_tokens) + len(planned.decode)
        self._tasks_done = 0
        self._skipped = 0
        self._launch_bound = 0
        self._random = random_source(planned.shape, planned.kind)
        elements = planned.copy_bytes // torch.float32.itemsize
        self._buffer = torch.ones(elements, dtype=torch.float32, device=planned.kind)

    def measure_all(self) -> ProbeResult:
        """Raw rates first, then the layer from small points to large, so that a short cap still tells the most."""
        import torch

        started_at, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
        copy, matmul = self._copy(), self._matmul()
        layer = Layer(self.plan.shape, self._random)
        decode = [self._decode(layer, batch, context) for batch, context in self.plan.decode]
        prefill = [self._prefill(layer, tokens) for tokens in self.plan.prefill_tokens]
        return ProbeResult(
            device_name=device.name(self.plan.kind),
            kind=self.plan.kind,
            dtype=self.plan.shape.dtype,
            torch_version=str(torch.__version__),
            cuda_version=torch.version.cuda,
            shape=self.plan.shape,
            prefill=tuple(point for point in prefill if point),
            decode=tuple(point for point in decode if point),
            matmul_flops_per_s=matmul,
            copy_bytes_per_s=copy,
            started_at=started_at,
            duration_s=time.perf_counter() - begin,
            scale_divisor=self.plan.scale_divisor,
            notes=(*self.plan.notes, *self._notes()),
        )

    def _time(self, name: Message, prepare: Callable[[], Step]) -> Timing | None:
        """Time what ``prepare`` sets up; nothing is set up once the time is over."""
        self._on_progress(self._tasks_done / self._tasks, name)
        budget_s = self._deadline.share_s(self._tasks - self._tasks_done)
        timing = measure(prepare(), self._buffer.sum, self.plan.kind, budget_s) if budget_s > 0 else None
        self._tasks_done += 1
        self._skipped += timing is None
        self._launch_bound += timing is not None and timing.launch_bound
        return timing

    def _copy(self) -> float | None:
        import torch

        def prepare() -> Step:
            target = torch.empty_like(self._buffer)
            return lambda: target.copy_(self._buffer)

        timing = self._time(msg("Memory copy"), prepare)
        return None if timing is None else COPY_PASSES * self.plan.copy_bytes / timing.median_s

    def _matmul(self) -> float | None:
        size = self.plan.matmul_size

        def prepare() -> Step:
            left, right = self._random(size, size), self._random(size, size)
            return lambda: left @ right

        timing = self._time(msg("Matrix product"), prepare)
        return None if timing is None else FLOP_PER_WEIGHT * size**3 / timing.median_s

    def _prefill(self, layer: Layer, tokens: int) -> PrefillPoint | None:
        def prepare() -> Step:
            hidden = self._random(tokens, self.plan.shape.hidden_size)
            return lambda: layer.prefill(hidden)

        timing = self._time(msg("Prefill of {tokens:tok}", tokens=tokens), prepare)
        if timing is None:
            return None
        flops_per_s = self.plan.shape.prefill_flops(tokens) / timing.median_s
        return PrefillPoint(tokens=tokens, timing=timing, flops_per_s=flops_per_s)

    def _decode(self, layer: Layer, batch: int, context_tokens: int) -> DecodePoint | None:
        def prepare() -> Step:
            hidden, cache = self._random(batch, self.plan.shape.hidden_size), layer.cache(batch, context_tokens)
            return lambda: layer.decode(hidden, cache)

        name = msg("Decode, batch {batch}, context {context:tok}", batch=batch, context=context_tokens)
        timing = self._time(name, prepare)
        if timing is None:
            return None
        bytes_per_s = self.plan.shape.decode_bytes(batch, context_tokens) / timing.median_s
        return DecodePoint(batch=batch, context_tokens=context_tokens, timing=timing, bytes_per_s=bytes_per_s)

    def _notes(self) -> tuple[Message, ...]:
        notes = []
        if self._skipped:
            notes.append(
                msg(
                    "{skipped} of {tasks} measurements were left out for lack of time: raise the time cap.",
                    skipped=self._skipped,
                    tasks=self._tasks,
                )
            )
        if self._launch_bound:
            notes.append(
                msg(
                    "In {points} measurements the host launched kernels more slowly than the GPU ran them; "
                    "an engine with CUDA graphs is faster there.",
                    points=self._launch_bound,
                )
            )
        return tuple(notes)


def _guarded(planned: Plan, deadline: Deadline, on_progress: OnProgress) -> ProbeResult:
    import torch

    try:
        with torch.inference_mode():
            return _Bench(planned, deadline, on_progress).measure_all()
    except torch.OutOfMemoryError as error:
        raise ProbeError(
            msg("{device} ran out of memory: stop other processes on it.", device=device.name(planned.kind))
        ) from error


def _check_cap(time_cap_s: float) -> None:
    if not 0 < time_cap_s <= MAX_TIME_CAP_S:
        raise ProbeError(
            msg(
                "The time cap must be above 0 and at most {limit:count} s, got {cap:s}: {usual:count} s is usual.",
                limit=MAX_TIME_CAP_S,
                cap=time_cap_s,
                usual=DEFAULT_TIME_CAP_S,
            )
        )


def _require_torch() -> None:
    try:
        import torch  # noqa: F401 (only whether it is there)
    except ImportError as error:
        raise ProbeError(msg("The measurement needs PyTorch: install it with `pip install torch`.")) from error


def _check_memory(planned: Plan) -> None:
    free = device.free_bytes(planned.kind)
    if free is not None and planned.memory_need_bytes > free:
        raise ProbeError(
            msg(
                "The measurement needs {need:gib}, but {device} has {free:gib} free: "
                "stop other processes on it or choose a larger TP.",
                need=planned.memory_need_bytes,
                device=device.name(planned.kind),
                free=free,
            )
        )
