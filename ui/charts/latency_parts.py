"""Latency in its parts: slow requests beside usual ones, and behind whose prefill a request waits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import plotly.graph_objects as go

from calc.anatomy.groups import Group
from calc.anatomy.splits import Split
from calc.units import MILLI
from ui import format as show
from ui.charts.frame import LEGEND_PIXELS, Tones, frame
from ui.charts.sketch import Sketch
from ui.text import t

ROW_PIXELS = 44
"""Of one bar."""


def splits(rows: Sequence[tuple[str, Split]], metric: str, tones: Tones) -> go.Figure:
    """One bar for each group of requests: queue + prefill + decode + network; TTFT in ms, E2E in s."""
    scale, shown = (MILLI, show.ms) if metric == "ttft" else (1.0, show.seconds)
    parts = [
        ("T_queue", tones.runtime, [split.queue_s for _, split in rows]),
        ("T_prefill", tones.hull, [split.prefill_s for _, split in rows]),
        ("T_decode", tones.water, [split.decode_s for _, split in rows]),
        ("T_network", tones.water_free, [split.network_s for _, split in rows]),
    ]
    sketch = Sketch()
    for name, colour, sizes in parts:
        if name != "T_decode" or metric != "ttft":
            _bars(sketch, name, [label for label, _ in rows], [size / scale for size in sizes], colour, shown, scale)
    title = t("TTFT (ms)") if metric == "ttft" else t("E2E (s)")
    return _stacked(sketch, len(rows), title)


def waits(rows: Sequence[tuple[str, Group]], tones: Tones) -> go.Figure:
    """The mean wait of each group of requests, by whose prompts are prefilled meanwhile."""
    names = [label for label, _ in rows]
    own = [tones.water_free, tones.percentiles["P50"], tones.water, tones.hull]
    colours = own[-len(rows) :] if len(rows) <= len(own) else list(itertools.islice(itertools.cycle(own), len(rows)))
    sketch = Sketch()
    for place, behind in enumerate(names):
        sizes = [group.behind_s[place] / MILLI for _, group in rows]
        _bars(sketch, t("behind {group}", group=behind), names, sizes, colours[place], show.ms, MILLI)
    others = [group.other_s / MILLI for _, group in rows]
    _bars(sketch, t("no prefill: step, slot, quota or blocks"), names, others, tones.runtime, show.ms, MILLI)
    return _stacked(sketch, len(rows), t("Mean wait for the first step (ms)"))


def _bars(
    sketch: Sketch, name: str, labels: list[str], sizes: list[float], colour: str, shown: show.Formatter, scale: float
) -> None:
    sketch.add_bar(
        y=labels,
        x=sizes,
        name=name,
        orientation="h",
        marker={"color": colour, "line": {"width": 0}},
        customdata=[shown(size * scale) for size in sizes],
        hovertemplate="%{y}, %{fullData.name}: %{customdata}<extra></extra>",
    )


def _stacked(sketch: Sketch, rows: int, title: str) -> go.Figure:
    frame(sketch, height=ROW_PIXELS * rows + 2 * LEGEND_PIXELS, x_title=title)
    sketch.update_layout(barmode="stack", bargap=0.35)
    sketch.update_axis("y", autorange="reversed", ticksuffix="  ")
    return sketch.figure()
