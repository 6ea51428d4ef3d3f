"""Colours, one meaning each, on every page, in every chart and on the sheet.

Navy is the hull and the text, one blue is the water (the KV cache, the load, the latency), amber is kept for the load
line and warnings, red for what lies over a line. Hue never stands alone: a hatch, a label or a line style says the
same. Navy, blue and amber stay apart in all three common kinds of colour blindness, and in grey.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calc.evidence import Provenance

NAVY = "#0B2545"
NAVY_LIGHT = "#13315C"
WATER = "#2E86DE"
WATER_TEXT = "#1864AB"
"""Water dark enough to be read as text and to carry white text."""
WATER_MID = "#7FB5EC"
WATER_LIGHT = "#CFE3F8"
AMBER = "#E8A317"
AMBER_TEXT = "#8F6000"
"""Amber dark enough to be read as text on white (contrast 5.5:1)."""
AMBER_LIGHT = "#FDF3DC"
RED = "#C8102E"
RED_LIGHT = "#FBE4E7"
GREY_DARK = "#44546A"
GREY = "#8A99AD"
GREY_LIGHT = "#C9D2DE"
GREY_PALE = "#EEF2F7"
PAPER = "#FFFFFF"

MEMORY_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "weights": NAVY,
        "runtime": GREY,
        "kv_demand": WATER,
        "kv_free": WATER_LIGHT,
        "margin": GREY_PALE,
        "over": RED,
    }
)
"""Zones of the memory bar: a zone has the same colour everywhere."""

PERCENTILE_COLOURS: Mapping[str, str] = MappingProxyType({"P50": WATER_MID, "P95": WATER, "P99": NAVY})
"""One hue in three strengths."""

PROVENANCE_COLOURS: Mapping[Provenance, str] = MappingProxyType(
    {
        Provenance.MEASURED: NAVY,
        Provenance.SIMULATED: WATER,
        Provenance.ESTIMATED: WATER_MID,
        Provenance.DECLARED: GREY,
        Provenance.MISSING: AMBER,
    }
)
"""From known to unknown: the darker the better founded."""

CATEGORICAL: tuple[str, ...] = (
    WATER,
    NAVY,
    GREY,
    WATER_MID,
    GREY_DARK,
    "#1B9E94",
    "#6C5FA7",
    "#4FB3A9",
    "#A79CCB",
    GREY_LIGHT,
)
"""Ten colours for series without a meaning of their own; Streamlit's theme wants exactly ten."""

DARK_HULL = "#8FA9CF"
DARK_WATER = "#4DA3F0"
DARK_WATER_DEEP = "#2A6FB5"
DARK_WATER_PALE = "#CFE6FB"
DARK_WATER_FREE = "#245687"
DARK_RUNTIME = "#5F7189"
DARK_MARGIN = "#17283D"
DARK_QUIET = "#9FB3C8"
DARK_EDGE = "#3A506C"
DARK_PAPER = "#0A1626"
DARK_AMBER = "#F0B444"
DARK_RED = "#FF6B6B"
DARK_TEXT = "#E6EEF7"
"""The same meanings on the dark theme's deep navy ground."""
