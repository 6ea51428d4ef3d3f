"""The simulated times of single requests: what percentiles, decomposition and SLO attainment are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calc.simulator.simulate import BoolArray, SimulationResult
from calc.workload import FloatArray, Slo


def answered(result: SimulationResult) -> BoolArray:
    """Which of the measured requests got their whole answer: not those given up or cancelled on the way."""
    whole: BoolArray = ~np.isnan(result.finished_s[result.measured])
    if result.cancelled is not None:
        whole = whole & ~result.cancelled[result.measured]
    return whole


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of the measured requests that were answered, in seconds and in order of arrival."""

    arrival_s: FloatArray
    queue_s: FloatArray
    prefill_s: FloatArray
    decode_s: FloatArray
    ttft_s: FloatArray
    e2e_s: FloatArray
    tpot_s: FloatArray
    """Of requests with more than one token."""
    mean_gap_s: FloatArray
    """Of every request; 0 where there is a single token."""
    earlier_s: FloatArray | float = 0.0
    """From a client's first attempt to the one that was answered."""
    gave_up: int = 0
    """Requests that never were."""

    @classmethod
    def of(
        cls,
        result: SimulationResult,
        http_s: float,
        first_token_steps: float = 0.0,
        only: BoolArray | None = None,
    ) -> Times:
        """Those of a simulated replica; ``http_s`` is spent outside the engine, each stream so many mean steps late.

        ``only`` = some of the measured requests.
        """
        later_s = first_token_steps * (result.gap_mean_s or 0.0)
        measured = result.measured
        done = answered(result) if only is None else answered(result) & only
        finished = result.finished_s[measured][done]
        arrival = result.arrival_s[measured][done]
        admitted = result.admitted_s[measured][done]
        first = result.first_token_s[measured][done]
        gaps = result.output_tokens[measured][done] - 1
        decode = finished - first
        queue, prefill = admitted - arrival, np.maximum(first - admitted + later_s, 0.0)
        ttft = queue + prefill + http_s
        mean_gap = decode / np.maximum(gaps, 1)
        return cls(
            arrival_s=arrival,
            queue_s=queue,
            prefill_s=prefill,
            decode_s=decode,
            ttft_s=ttft,
            e2e_s=ttft + decode,
            tpot_s=mean_gap[gaps > 0],
            mean_gap_s=mean_gap,
            earlier_s=0.0 if result.first_arrival_s is None else arrival - result.first_arrival_s[measured][done],
            gave_up=_gave_up(result, only),
        )

    @property
    def asked(self) -> int:
        """Requests answered or given up."""
        return self.ttft_s.size + self.gave_up

    def meeting(self, slo: Slo) -> int | None:
        """Requests within every target; a request's ITL is its mean gap. Waiting counts from the first attempt."""
        within = np.ones(self.ttft_s.size, bool)
        targets = (
            (self.ttft_s + self.earlier_s, slo.ttft_s),
            (self.mean_gap_s, slo.itl_s),
            (self.e2e_s + self.earlier_s, slo.e2e_s),
        )
        for values, target in targets:
            if target is not None:
                within &= values <= target
        return None if all(target is None for _, target in targets) else int(within.sum())

    def attained(self, slo: Slo) -> float | None:
        """Share of requests within every target; who gave up was not."""
        met = self.meeting(slo)
        return None if met is None else met / max(1, self.asked)


def _gave_up(result: SimulationResult, only: BoolArray | None) -> int:
    if result.gave_up_s is None:
        return 0
    gone = ~np.isnan(result.gave_up_s[result.measured])
    return int(gone.sum() if only is None else (gone & only).sum())
