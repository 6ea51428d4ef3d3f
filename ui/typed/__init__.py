"""What is typed as text, and the parts of a case it stands for, both ways."""

from ui.typed.classes import classes_text, parse_classes
from ui.typed.numbers import numbers_text, pairs_text, parse_numbers, parse_pairs
from ui.typed.tiers import parse_tiers, tiers_text
from ui.typed.trace import parse_trace, trace_text

__all__ = [
    "classes_text",
    "numbers_text",
    "pairs_text",
    "parse_classes",
    "parse_numbers",
    "parse_pairs",
    "parse_tiers",
    "parse_trace",
    "tiers_text",
    "trace_text",
]
