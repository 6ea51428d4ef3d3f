"""Figures of single requests collected while a file passes: eight bytes a figure, and nothing else of a request."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

from data.formats.request_figures import Column, RequestFigures, figure

ALIGNED = ("ttft_s", "e2e_s", "tpot_s", "input_tokens", "output_tokens", "started_s", "ended_s")
"""Figures that each answered request has once; NaN where it does not give one."""


class RequestColumns:
    """The answered requests so far, and how many failed."""

    def __init__(self, names: Iterable[str] = ALIGNED) -> None:
        self.failed = 0
        self._columns = {name: array("d") for name in names}
        self._gaps = array("d")

    @property
    def answered(self) -> int:
        """Requests that were added."""
        return len(next(iter(self._columns.values())))

    def add(self, **figures: object) -> None:
        """One answered request; a figure it does not have is unknown."""
        for name, values in self._columns.items():
            values.append(figure(figures.get(name)))

    def add_gap(self, gap: object) -> None:
        """A gap between two chunks."""
        self._gaps.append(figure(gap))

    def add_gaps(self, gaps_s: Column) -> None:
        """Every gap between the chunks of a request."""
        self._gaps.frombytes(np.where(gaps_s >= 0, gaps_s, np.nan).tobytes())

    def figures(self) -> RequestFigures:
        """All of them, to be summed up."""
        found: dict[str, Any] = {name: np.array(values) for name, values in self._columns.items()}
        return RequestFigures(**found, gaps_s=np.array(self._gaps), failed=self.failed)
