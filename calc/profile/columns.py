"""The requests of a log as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass

from calc.lengths import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LogColumns:
    """n requests in the order of their file; ``None`` = the log does not say, NaN or -1 = not of this request."""

    arrival_s: FloatArray
    """From the log's first request on."""
    prompt_tokens: IntArray
    output_tokens: IntArray
    ttft_s: FloatArray | None = None
    e2e_s: FloatArray | None = None
    itl_s: FloatArray | None = None
    session: IntArray | None = None
    """One number per session, -1 = of none."""

    @property
    def requests(self) -> int:
        """n."""
        return len(self.arrival_s)
