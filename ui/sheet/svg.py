"""The two pictures of the sheet as SVG text, the same in PDF and HTML: the memory hull and latency over load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from ui import format as show
from ui.palette import (
    AMBER,
    AMBER_TEXT,
    GREY,
    GREY_DARK,
    GREY_LIGHT,
    GREY_PALE,
    MEMORY_COLOURS,
    NAVY,
    PAPER,
    PERCENTILE_COLOURS,
    RED,
    WATER,
    WATER_TEXT,
)
from ui.sheet.review import LoadCurve, MemoryBar
from ui.text import t

FONT = "'Noto Sans SC','Source Han Sans SC','PingFang SC','Microsoft YaHei','Segoe UI',sans-serif"
WIDTH = 300.0
HULL_HEIGHT = 94.0
LOAD_HEIGHT = 138.0
TEXT_SIZE = 7.6
BAR_TOP, BAR_HEIGHT = 17.0, 24.0
LEGEND_TOP = 55.0
LEGEND_COLUMNS = 2
LEGEND_ROW = 11.0
KNOWN_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Axis ticks fall on these times a power of ten."""
TICKS = 4
ABOVE_SLO = 2.5
"""The picture is cut at this many times the SLO: what lies above is missed anyway."""
MISSED = "#FCF1F3"
"""Wash over the part of the picture where the SLO is missed."""
LABEL_ROOM = 60.0
"""Width a label needs beside its line. It stands before the line, where latency is still low, if there is room."""


def _text(x: float, y: float, words: str, *, fill: str = GREY_DARK, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{TEXT_SIZE}" fill="{fill}" text-anchor="{anchor}"{weight} '
        f'stroke="{PAPER}" stroke-width="2" stroke-linejoin="round" paint-order="stroke">{escape(words)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1.0, dash: str = "") -> str:
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
        f'stroke-width="{width}"{dashes}/>'
    )


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="0.6"/>'
    )


def _picture(height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label={quoteattr(label)} font-family="{FONT}">' + "".join(parts) + "</svg>"
    )


def memory_svg(bar: MemoryBar) -> str:
    """One stacked bar: what fills the fullest GPU, with the engine's budget and the GPU's end as lines."""
    scale = WIDTH / max(bar.total_bytes, bar.budget_bytes + bar.over_bytes, bar.budget_bytes + bar.outside_bytes)
    over = (
        '<pattern id="hull-over" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f"{_rect(0, 0, 5, 5, PAPER)}{_rect(0, 0, 2, 5, RED)}</pattern>"
    )
    parts = [f"<defs>{over}</defs>", _rect(0, BAR_TOP, bar.total_bytes * scale, BAR_HEIGHT, MEMORY_COLOURS["margin"])]
    parts.extend(_hull_zones(bar, scale))
    parts.extend(_hull_lines(bar, scale))
    parts.extend(_hull_legend(bar))
    label = t(
        "Memory of one GPU: {used:gib} of {total:gib} needed",
        used=bar.weights_bytes + bar.runtime_bytes + bar.outside_bytes + bar.demand_bytes,
        total=bar.total_bytes,
    )
    return _picture(HULL_HEIGHT, label, parts)


def _hull_zones(bar: MemoryBar, scale: float) -> Iterator[str]:
    """Zones inside the budget from the left, what the engine keeps outside it behind the line, the excess hatched."""
    in_pool = min(bar.demand_bytes, bar.pool_bytes)
    at_bytes = 0
    for key, size_bytes in (
        ("weights", bar.weights_bytes),
        ("runtime", bar.runtime_bytes),
        ("kv_demand", in_pool),
        ("kv_free", bar.pool_bytes - in_pool),
    ):
        inside_bytes = min(size_bytes, max(bar.budget_bytes - at_bytes, 0))
        yield _rect(at_bytes * scale, BAR_TOP, inside_bytes * scale, BAR_HEIGHT, MEMORY_COLOURS[key])
        at_bytes += inside_bytes
    start = bar.budget_bytes * scale
    yield _rect(start, BAR_TOP, bar.outside_bytes * scale, BAR_HEIGHT, MEMORY_COLOURS["runtime"])
    if bar.over_bytes:
        yield _rect(start, BAR_TOP, bar.over_bytes * scale, BAR_HEIGHT, "url(#hull-over)", RED)


def _hull_lines(bar: MemoryBar, scale: float) -> Iterator[str]:
    budget, end = bar.budget_bytes * scale, bar.total_bytes * scale
    low = BAR_TOP + BAR_HEIGHT
    yield _line(budget, BAR_TOP - 5, budget, low + 4, AMBER, 2.0)
    words = t("budget {size:gib}", size=bar.budget_bytes)
    yield _text(max(budget - 3, LABEL_ROOM), BAR_TOP - 6, words, fill=AMBER_TEXT, anchor="end", bold=True)
    yield _line(end, BAR_TOP - 2, end, low + 4, NAVY, 1.2)
    beside = end > WIDTH - LABEL_ROOM
    words = t("GPU {size:gib}", size=bar.total_bytes)
    yield _text(end if beside else end + 3, low + 11, words, anchor="end" if beside else "start")


def _hull_legend(bar: MemoryBar) -> Iterator[str]:
    entries = [
        ("weights", t("Weights"), bar.weights_bytes),
        ("runtime", t("Runtime"), bar.runtime_bytes + bar.outside_bytes),
        ("kv_demand", t("KV demand"), bar.demand_bytes),
        ("kv_free", t("KV pool, free"), max(bar.pool_bytes - bar.demand_bytes, 0)),
        ("margin", t("Margin"), max(bar.total_bytes - bar.budget_bytes - bar.outside_bytes, 0)),
    ]
    if bar.over_bytes:
        entries.append(("over", t("Over the line"), bar.over_bytes))
    for index, (key, words, size_bytes) in enumerate(entries):
        x = (index % LEGEND_COLUMNS) * WIDTH / LEGEND_COLUMNS
        y = LEGEND_TOP + (index // LEGEND_COLUMNS) * LEGEND_ROW + 8
        over = key == "over"
        yield _rect(x, y - 6, 7, 7, "url(#hull-over)" if over else MEMORY_COLOURS[key], GREY_LIGHT)
        yield _text(x + 10, y, f"{words} {show.gib(size_bytes)}", fill=RED if over else GREY_DARK, bold=over)


class _Frame:
    """Plot area and scales of the load picture."""

    left, right, top, bottom = 34.0, WIDTH - 6, 14.0, LOAD_HEIGHT - 26

    def __init__(self, curve: LoadCurve) -> None:
        shown = [value for series in (curve.p50_s, curve.p95_s, curve.p99_s) for value in series if value is not None]
        tallest = max([*shown, (curve.slo_s or 0) * 1.2]) or 1.0
        self.y_max = min(tallest, curve.slo_s * ABOVE_SLO) if curve.slo_s else tallest
        self.x_max = max([*curve.loads, curve.operating_load]) * 1.03 or 1.0

    def x(self, load: float) -> float:
        return self.left + (self.right - self.left) * load / self.x_max

    def y(self, value_s: float) -> float:
        return self.bottom - (self.bottom - self.top) * value_s / self.y_max


def load_svg(curve: LoadCurve | None) -> str:
    """P50, P95 and P99 of one latency over load, with the SLO, the planned load and the highest load within the SLO."""
    if curve is None or not curve.loads:
        return _picture(
            LOAD_HEIGHT,
            t("Latency over load: not measured"),
            [
                _rect(0, 0, WIDTH, LOAD_HEIGHT, GREY_PALE),
                _text(WIDTH / 2, LOAD_HEIGHT / 2, t("Latency over load: not measured"), anchor="middle"),
            ],
        )
    frame = _Frame(curve)
    area = _rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top, PAPER)
    clip = f'<clipPath id="load-area">{area}</clipPath>'
    parts = [f"<defs>{clip}</defs>", *_axes(curve, frame), *_load_lines(curve, frame)]
    parts.extend(_series(curve, frame))
    parts.extend(_load_labels(curve, frame))
    label = t("{metric} over load, planned load {load:.3g}", metric=curve.metric, load=curve.operating_load)
    return _picture(LOAD_HEIGHT, label, parts)


def ticks(top: float, number: int = TICKS) -> list[float]:
    """Round values from 0 up to ``top``, about ``number`` of them."""
    step = top / number
    size = 10.0 ** _exponent(step)
    rounded = next(known * size for known in KNOWN_STEPS if known * size >= step * 0.999)
    return [index * rounded for index in range(int(top / rounded) + 1)]


def _exponent(value: float) -> int:
    return int(f"{value:e}".split("e")[1])


def _axes(curve: LoadCurve, frame: _Frame) -> Iterator[str]:
    in_ms = curve.metric != "E2E"
    for value in ticks(frame.y_max * (1000 if in_ms else 1)):
        y = frame.y(value / (1000 if in_ms else 1))
        yield _line(frame.left, y, frame.right, y, GREY_PALE, 0.8)
        yield _text(frame.left - 4, y + 2.6, f"{value:,.6g}", anchor="end")
    for value in ticks(frame.x_max, 6):
        x = frame.x(value)
        yield _line(x, frame.bottom, x, frame.bottom + 3, GREY, 0.8)
        yield _text(x, frame.bottom + 11, f"{value:,.6g}", anchor="middle")
    yield _line(frame.left, frame.bottom, frame.right, frame.bottom, GREY, 0.8)
    yield _text(0, frame.top - 6, f"{curve.metric}, {'ms' if in_ms else 's'}", bold=True)
    axis = t("requests per second") if curve.axis == "rate" else t("concurrent requests")
    yield _text(frame.right, frame.bottom + 21, axis, anchor="end")


def _load_lines(curve: LoadCurve, frame: _Frame) -> Iterator[str]:
    if curve.limit_load is not None and curve.limit_load < frame.x_max:
        limit = frame.x(curve.limit_load)
        yield _rect(limit, frame.top, frame.right - limit, frame.bottom - frame.top, GREY_PALE)
        yield _line(limit, frame.top, limit, frame.bottom, GREY, 1.0, "1.5 2")
    if curve.slo_s is not None:
        y = frame.y(curve.slo_s)
        yield _rect(frame.left, frame.top, frame.right - frame.left, y - frame.top, MISSED)
        yield _line(frame.left, y, frame.right, y, AMBER, 2.0)
    x = frame.x(curve.operating_load)
    yield _line(x, frame.top, x, frame.bottom, NAVY, 1.4)
    if curve.knee_load is not None:
        knee = frame.x(curve.knee_load)
        yield _line(knee, frame.top, knee, frame.bottom, WATER, 1.2, "1.5 2")
        yield f'<path d="M{knee:.1f} {frame.bottom:.1f}l-4 7h8z" fill="{WATER_TEXT}"/>'


def _load_labels(curve: LoadCurve, frame: _Frame) -> Iterator[str]:
    if curve.slo_s is not None:
        limit = show.seconds(curve.slo_s) if curve.metric == "E2E" else show.ms(curve.slo_s)
        words = t("SLO {percentile} {limit}", percentile=curve.slo_percentile, limit=limit)
        yield _text(frame.left + 3, frame.y(curve.slo_s) - 3, words, fill=AMBER_TEXT, bold=True)
    x = frame.x(curve.operating_load)
    before = x > frame.left + LABEL_ROOM
    words = t("planned {load:.3g}", load=curve.operating_load)
    yield _text(
        x - 4 if before else x + 4,
        frame.top + 8,
        words,
        fill=NAVY,
        anchor="end" if before else "start",
        bold=True,
    )
    if curve.limit_load is not None and curve.limit_load < frame.x_max:
        yield _text(
            frame.right - 2, frame.bottom - 4, t("unstable from {load:.3g}", load=curve.limit_load), anchor="end"
        )
    if curve.knee_load is not None:
        words = t("▲ SLO holds up to {load:.3g}", load=curve.knee_load)
        yield _text(frame.left, frame.bottom + 21, words, fill=WATER_TEXT, bold=True)


def _series(curve: LoadCurve, frame: _Frame) -> Iterator[str]:
    for index, (name, values) in enumerate((("P50", curve.p50_s), ("P95", curve.p95_s), ("P99", curve.p99_s))):
        colour = PERCENTILE_COLOURS[name]
        x = frame.right - (3 - index) * 32
        yield _line(x, frame.top - 8.5, x + 10, frame.top - 8.5, colour, 2.0)
        yield _text(x + 13, frame.top - 6, name, fill=GREY_DARK)
        points = list(zip(curve.loads, values, strict=True))
        for known, run in groupby(points, key=lambda point: point[1] is not None):
            if known:
                yield _polyline([(frame.x(load), frame.y(value or 0)) for load, value in run], colour)


def _polyline(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{colour}"/>' for x, y in points)
    return (
        f'<g clip-path="url(#load-area)"><polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        f"{dots}</g>"
    )
