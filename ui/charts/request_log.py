"""A log of requests over time, and who sent them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from calc.profile.profile import Parts
from calc.units import SECONDS_PER_MINUTE
from ui.charts.frame import AIR, BAR_HEIGHT, Tones, frame, level
from ui.charts.sketch import Sketch
from ui.text import t

MAX_STEPS = 720
"""Steps drawn; minutes of longer logs are put together."""
SHOWN_PARTS = 10
ROW_PIXELS, BARS_PIXELS = 32, 70
NAME_CHARACTERS = 24


def over_time(values: Sequence[float], title: str, mean: float | None, tones: Tones) -> go.Figure:
    """One figure a minute as steps; of a long log the highest of so many minutes, with the mean as a line."""
    together = -(-len(values) // MAX_STEPS)
    padded = np.pad(np.asarray(values, dtype=np.float64), (0, -len(values) % together), mode="edge")
    highest = padded.reshape(-1, together).max(axis=1).tolist()
    hours = len(values) > 3 * SECONDS_PER_MINUTE
    step = together / (SECONDS_PER_MINUTE if hours else 1)
    sketch = Sketch()
    sketch.add_scatter(
        x=[place * step for place in range(len(highest) + 1)],
        y=[*highest, highest[-1]],
        mode="lines",
        line={"color": tones.water, "width": 2, "shape": "hv"},
        fill="tozeroy",
        fillcolor=tones.water_free,
        showlegend=False,
        hovertemplate="%{x:.2f}: %{y:,.0f}<extra></extra>",
    )
    frame(sketch, height=BAR_HEIGHT, x_title=t("Time (h)") if hours else t("Time (min)"), y_title=title, legend=False)
    if mean is not None:
        level(sketch, mean, t("mean"), tones.quiet)
    sketch.update_axis("y", range=[0, max(*highest, 1.0) * AIR])
    sketch.update_axis("x", range=[0, len(highest) * step])
    return sketch.figure()


def shares(parts: Parts, tones: Tones) -> go.Figure:
    """Share of requests and of prompt tokens of the largest parts."""
    shown = parts.largest[:SHOWN_PARTS][::-1]
    names = [_short(part.name, place) for place, part in enumerate(shown)]
    sketch = Sketch()
    for name, values, colour in (
        (t("Prompt tokens"), [part.prompt_tokens_share * 100 for part in shown], tones.quiet),
        (t("Requests"), [part.share * 100 for part in shown], tones.water),
    ):
        sketch.add_bar(
            y=names, x=values, name=name, orientation="h", marker={"color": colour, "line": {"width": 0}},
            hovertemplate="%{y}: %{x:.1f} %<extra></extra>",
        )  # fmt: skip
    frame(sketch, height=BARS_PIXELS + ROW_PIXELS * (len(shown) + 1), x_title=t("Share (%)"))
    sketch.update_axis("y", type="category")
    sketch.update_layout(barmode="group", bargap=0.3)
    return sketch.figure()


def _short(name: str, place: int) -> str:
    """Names are categories of an axis: two cut ones may not be the same, and none may be read as markup."""
    plain = name.replace("<", "‹").replace(">", "›")
    return plain if len(plain) <= NAME_CHARACTERS else f"{plain[: NAME_CHARACTERS - 4]}… {place + 1}"
