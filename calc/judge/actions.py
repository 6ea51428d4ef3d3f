"""What can be done under each outcome: the usual remedies and the engines' settings, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calc.judge.decision import Outcome
from calc.messages import Message, msg


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing to do; ``caution`` is what it may cost besides money."""

    code: str
    outcome: Outcome
    title: Message
    caution: Message | None = None


_QUALITY = msg("Check answer quality on your own tasks before and after.")
_LEAVES_ROOM = msg("Leave room for bursts: an out-of-memory error ends every request of the replica.")
_CHECK_FOUR = msg("Check quality, latency, cost and operations together.")

_ROWS: tuple[tuple[Outcome, tuple[tuple[str, Message, Message | None], ...]], ...] = (
    (
        Outcome.OPTIMISE_CACHE,
        (
            ("prefix-cache", msg("Reuse shared prefixes"), msg("Needs stable prompts; ask which tenants may share.")),
            ("stabilise-prompts", msg("Stabilise prompts, tools and templates; move what changes to the end"), None),
            ("cut-history", msg("Cut needless history and repeated retrieval"), _QUALITY),
            ("block-size", msg("Tune block size and reclamation"), msg("Small blocks share more and cost metadata.")),
            ("route-by-prefix", msg("Route by prefix and load"), msg("By prefix alone the hottest replica overloads.")),
            ("cache-cap", msg("Cap the cache at what is read again"), None),
            ("isolate-cache", msg("Isolate caches by tenant, model and sensitivity"), None),
            ("watch-hits", msg("Monitor hit rate and prefill tokens saved"), None),
            ("keep-hot-content", msg("Manage long-lived, much-read content apart from the rest"), None),
            ("fp8-kv", msg("Keep KV in FP8"), _QUALITY),
        ),
    ),
    (
        Outcome.ADD_MEMORY,
        (
            ("more-gpus", msg("Split the model over more GPUs"), msg("Pays only with a fast link between the GPUs.")),
            ("more-replicas", msg("Add replicas"), msg("Route by prefix, or each replica warms its own cache.")),
            ("bigger-gpu", msg("Use a GPU with more memory"), None),
        ),
    ),
    (
        Outcome.RE_ARCHITECT,
        (
            ("fitting-model", msg("Use a model that fits the context need, or has fewer KV heads"), _QUALITY),
            ("fp8-weights", msg("Serve the weights in FP8"), _QUALITY),
            ("shorter-prompts", msg("Summarise, layer memory or compress retrieval to shorten prompts"), _QUALITY),
            ("split-flows", msg("Split long flows into stages"), msg("Splitting adds round trips and state.")),
            (
                "route-by-difficulty",
                msg("Route simple tasks to a small model"),
                msg("Answers may become less uniform."),
            ),
            ("separate-offline", msg("Separate offline batches from online requests"), None),
            ("tenant-quotas", msg("Give each tenant quotas for context and concurrency"), None),
            ("shape-traffic", msg("Keep long and short requests apart by traffic shaping"), None),
            ("static-apart", msg("Organise static context apart from dynamic content"), _CHECK_FOUR),
            ("keep-kv-on-gpu", msg("Keep KV where it is used, or shorten its way"), _CHECK_FOUR),
        ),
    ),
    (
        Outcome.TUNE_SCHEDULING,
        (
            ("raise-max-seqs", msg("Raise the limit of running requests"), None),
            ("lower-max-seqs", msg("Lower the limit of running requests"), msg("Requests wait instead of thrashing.")),
            ("raise-batched-tokens", msg("Raise the token budget of a step"), msg("Favours TTFT, stretches ITL.")),
            ("lower-batched-tokens", msg("Lower the token budget of a step"), msg("Favours ITL, stretches TTFT.")),
            ("chunked-prefill", msg("Prefill long prompts in chunks"), None),
            ("raise-memory-fraction", msg("Give the engine a larger share of memory"), _LEAVES_ROOM),
            ("lower-memory-fraction", msg("Leave more memory outside the engine's budget"), None),
            ("shorter-context", msg("Lower the longest request accepted to what is needed"), None),
            ("limit-long-prefills", msg("Limit how many long prompts prefill at once"), None),
            ("fix-release", msg("Find what is not released: engine version, aborted requests, leaked slots"), None),
            ("relieve-host", msg("Relieve the host: tokeniser, API processes, CPU cores"), None),
            ("speculation-off", msg("Switch speculation off under load, or draft fewer tokens"), None),
            ("replicas-instead-of-tp", msg("Use replicas instead of tensor parallelism"), None),
            ("rebalance-split", msg("Rebalance the prefill/decode split, or serve both together"), None),
            ("offload-off", msg("Switch offload off, or speed up its path"), None),
        ),
    ),
    (
        Outcome.MEASURE_FIRST,
        (
            ("repeat-the-run", msg("Repeat the benchmark run without its errors"), None),
            ("measure", msg("Measure what is missing"), None),
        ),
    ),
)

ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        code: Action(code=code, outcome=outcome, title=title, caution=caution)
        for outcome, rows in _ROWS
        for code, title, caution in rows
    }
)
"""Every action by code."""


def actions_for(outcome: Outcome) -> tuple[Action, ...]:
    """The actions under one outcome, in order of effort."""
    return tuple(action for action in ACTIONS.values() if action.outcome is outcome)
