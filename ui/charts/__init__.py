"""Every picture on the pages. Builders are pure: results in, figure out; no page draws by itself."""

from ui.charts.frame import BAR_HEIGHT, CONFIG, HEIGHT, Tones
from ui.charts.latency import decomposition, load_curve, roofline
from ui.charts.memory import hull, room_curve, waste_bars
from ui.charts.offload import fetch_curve
from ui.charts.runs import compare_runs, measured_over_model
from ui.charts.search import cheap_front, fast_front
from ui.charts.workload import length_curve

__all__ = [
    "BAR_HEIGHT",
    "CONFIG",
    "HEIGHT",
    "Tones",
    "cheap_front",
    "compare_runs",
    "decomposition",
    "fast_front",
    "fetch_curve",
    "hull",
    "length_curve",
    "load_curve",
    "measured_over_model",
    "roofline",
    "room_curve",
    "waste_bars",
]
