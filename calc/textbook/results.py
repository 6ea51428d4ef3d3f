"""What the textbook answers: one formula, the first token as a sum, and the report of a load."""

from __future__ import annotations

from dataclasses import dataclass

from calc.messages import Message
from calc.simulator.stability import Limits


@dataclass(frozen=True, kw_only=True)
class TextbookResult:
    """One formula on this load."""

    code: str
    """``prefill-mg1``, ``slots-mmc``, ``decode-ps``, ``first-token``, ``closed-tpot`` and so on."""
    title: Message
    value_s: float | None
    """Seconds; ``None`` = no steady state, or not applicable (then ``holds`` is False)."""
    utilisation_share: float | None
    formula: str
    conditions: tuple[Message, ...]
    holds: bool
    """Whether the load meets the conditions that can be checked."""
    simulated_s: float | None = None
    """The simulated figure it stands beside; ``None`` = no steady state."""
    simulated: Message | None = None
    """What was simulated."""

    @property
    def off_share(self) -> float | None:
        """How far the formula is from the simulation, as a share of the latter."""
        if self.value_s is None or not self.simulated_s:
            return None
        return self.value_s / self.simulated_s - 1


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """The mean TTFT of an engine that prefills between decode steps, as a sum (seconds)."""

    residual_s: float
    """Until the step in progress ends."""
    behind_s: float
    """Until the prompts that came before are prefilled."""
    queued_s: float
    """Asynchronous scheduling: the decode step that was already queued."""
    own_s: float
    """The request's own steps."""
    ingress_s: float
    """Client and HTTP."""
    own_steps: float
    """Mean number of steps a prompt takes."""

    @property
    def waiting_s(self) -> float:
        """Until the first own step begins."""
        return self.residual_s + self.behind_s + self.queued_s

    @property
    def total_s(self) -> float:
        """The sum."""
        return self.waiting_s + self.own_s + self.ingress_s


@dataclass(frozen=True, kw_only=True)
class QueueReport:
    """Stability limits of one replica and the textbook's answers at the operating load."""

    limits: Limits
    rate_per_s: float | None
    """Offered to one replica; ``None`` for a closed loop."""
    utilisation_share: float | None
    """Offered over the stability limit."""
    results: tuple[TextbookResult, ...]
    arrival_cv2: float = 1.0
    """Variability of arrivals used: c_a² of the gaps, or the dispersion of their counts where the rate changes."""
    given_cv2: float = 1.0
    """The same as the scenario's own arrivals have it."""
    first_token: FirstToken | None = None
    """``None`` = no steady state, or a closed loop."""
