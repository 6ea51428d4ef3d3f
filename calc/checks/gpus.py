"""Do the GPUs of one run share its work?"""

from __future__ import annotations

from collections.abc import Sequence

from calc.checks.run_facts import INFO, WARNING, ValidityFinding
from calc.messages import msg

IMBALANCE_SHARE = 0.2
"""Of the busiest or fullest GPU; ranks of one deployment differ by a few per cent."""
IDLE_SHARE = 0.1
"""GPUs that are all less busy did nothing, so no split can be seen."""
FEWEST_SAMPLES = 10
"""Readings of a resource log from which a mean says something."""


def imbalanced(uses: Sequence[tuple[float | None, ...]]) -> ValidityFinding | None:
    """``imbalanced_gpus`` when GPUs differ by more than 20 %; each entry holds one figure of every GPU."""
    for figures in uses:
        known = [value for value in figures if value is not None]
        if len(known) > 1 and max(known) > IDLE_SHARE and max(known) - min(known) > IMBALANCE_SHARE * max(known):
            text = msg(
                "the GPUs of this run differ by {share:pct} in use or memory: check the split, or leave idle ones out.",
                share=1 - min(known) / max(known),
            )
            return ValidityFinding(code="imbalanced_gpus", severity=WARNING, text=text, fields=("gpus",))
    return None


def too_few_samples(samples: int) -> ValidityFinding | None:
    """``few_samples`` below ten readings of a GPU."""
    if samples >= FEWEST_SAMPLES:
        return None
    text = msg("{samples:count} samples: take at least {needed:count} before judging use.", samples=samples,
               needed=FEWEST_SAMPLES)  # fmt: skip
    return ValidityFinding(code="few_samples", severity=INFO, text=text, fields=("samples",))
