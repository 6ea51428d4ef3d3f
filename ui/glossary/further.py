"""What the user is asked beyond the usual: how requests are served, their kinds and clients, the engine's details."""

from __future__ import annotations

from dataclasses import replace

from calc.messages import msg
from ui.glossary.fields import Field, table_of

_LINK = Field(key="", label=msg("Bandwidth"), unit="GB/s", low=0.001, high=1_000_000, step=5, help=msg("One way."))

FURTHER_FIELDS = table_of(
    Field(
        key="block_size",
        label=msg("Block size"),
        unit="tokens",
        low=1,
        high=4096,
        step=16,
        help=msg("Tokens of one KV block. Empty = the version's default."),
    ),
    Field(
        key="chunked_prefill",
        label=msg("Chunked prefill"),
        help=msg("Long prompts are computed in pieces beside running answers. Auto = the version's default."),
    ),
    Field(
        key="kv_tokens",
        label=msg("KV tokens, as logged"),
        unit="tokens",
        low=1,
        high=1_000_000_000_000,
        step=1000,
        help=msg("The pool of one replica as the engine logged it; it replaces the estimate. Empty = estimated."),
    ),
    Field(
        key="async_scheduling",
        label=msg("Asynchronous scheduling"),
        help=msg("The next step is planned while the GPU works on this one. Auto = the version's default."),
    ),
    Field(
        key="hybrid_kv",
        label=msg("Hybrid KV cache manager"),
        help=msg("Layers with a window keep only it. Off: they keep every token. Auto = the version's default."),
    ),
    Field(
        key="num_requests",
        label=msg("Requests of a benchmark"),
        unit="requests",
        low=1,
        high=100_000,
        step=100,
        help=msg("Exactly so many are simulated, ramp included. Empty = steady load."),
    ),
    Field(
        key="http",
        label=msg("Latency at the client"),
        help=msg("On: as a client sees it over HTTP. Off: inside the engine."),
    ),
    Field(
        key="batching",
        label=msg("Batching"),
        help=msg("Continuous: requests join and leave at every step. Static: a batch waits for its longest answer."),
    ),
    Field(
        key="routing",
        label=msg("Routing"),
        help=msg("Which replica a request goes to. Random is an even, independent split."),
    ),
    Field(
        key="prefix_groups",
        label=msg("Distinct shared prefixes"),
        low=1,
        high=1_000_000,
        step=1,
        help=msg(
            "System prompts, tenants or documents that requests share. Few replicas see each of them often; with many, "
            "routing decides what is found. Empty = every replica finds the hit share."
        ),
    ),
    Field(
        key="preemption",
        label=msg("Preemption"),
        help=msg("What happens to a request that loses its blocks: computed again, or swapped to CPU memory and back."),
    ),
    replace(
        _LINK,
        key="swap_bandwidth",
        label=msg("Bandwidth to CPU memory"),
        help=msg("One way, of one replica. Swapping needs it."),
    ),
    Field(
        key="tier_name",
        label=msg("Offload tier"),
        help=msg("Where KV lies outside the GPU, so that a later request fetches it instead of computing it again."),
    ),
    replace(
        _LINK,
        key="tier_bandwidth",
        label=msg("Tier bandwidth"),
        help=msg("Reading back, one way, of one replica: the sum over its GPUs' links."),
    ),
    Field(
        key="tier_latency",
        label=msg("Tier latency"),
        unit="ms",
        low=0,
        high=1_000_000,
        step=0.1,
        help=msg("Once per fetch, before the first byte."),
    ),
    Field(
        key="tier_concurrency",
        label=msg("Fetches at once"),
        low=1,
        high=100_000,
        step=1,
        help=msg("They share the bandwidth; further ones wait."),
    ),
    Field(
        key="tier_capacity",
        label=msg("Tier capacity"),
        unit="GiB",
        low=0.01,
        high=1_048_576,
        step=50,
        help=msg("Of one replica. Empty = enough for what is hit."),
    ),
    Field(
        key="tier_share",
        label=msg("Hits found in this tier"),
        unit="%",
        low=0,
        high=100,
        step=5,
        help=msg("Part of the offload hits; the other tiers hold the rest."),
    ),
    Field(
        key="further_tiers",
        label=msg("Further tiers"),
        help=msg(
            "One a line: name, bandwidth, then latency, fetches at once, capacity and part of the hits where "
            "known, e.g. disk 4 GB/s 1 ms x8 2000 GiB 25%."
        ),
    ),
    Field(
        key="offload_hit",
        label=msg("Offload hit share"),
        unit="%",
        low=0,
        high=100,
        step=1,
        help=msg(
            "Share of prompt tokens that the GPU's cache no longer holds but a tier does. With the prefix hit "
            "share at most 100 %."
        ),
    ),
    Field(
        key="spec_method",
        label=msg("Speculative decoding"),
        help=msg("Draft tokens are proposed and checked in one step; as the engine names the method."),
    ),
    Field(
        key="spec_tokens",
        label=msg("Draft tokens per step"),
        low=1,
        high=64,
        step=1,
        help=msg("Each is checked, accepted or not: more of them make every step longer."),
    ),
    Field(
        key="accepted",
        label=msg("Accepted draft tokens"),
        low=0,
        high=64,
        step=0.1,
        help=msg(
            "Of them per step, on average, as the engine's counters say; it depends on your texts. Empty = not "
            "measured: latency is then shown without speculation."
        ),
    ),
    Field(
        key="prefill_replicas",
        label=msg("Prefill replicas"),
        low=0,
        high=1024,
        step=1,
        help=msg("Of the GPUs above, replicas that only prefill; the others then only decode. 0 = not split."),
    ),
    replace(
        _LINK,
        key="transfer_bandwidth",
        label=msg("Bandwidth between replicas"),
        help=msg("Over which a finished prompt's KV goes to the decoding replica. A split needs it."),
    ),
    Field(
        key="transfer_ms",
        label=msg("Time of a handover"),
        unit="ms",
        low=0,
        high=1_000_000,
        step=1,
        help=msg("Once per request, beside the bytes: hand-shake and proxy."),
    ),
    Field(
        key="state_rates",
        label=msg("Rates"),
        unit="requests/s",
        help=msg("Two to eight rates between which the load jumps, e.g. 4.62, 7.02 (conversations at Azure)."),
    ),
    Field(
        key="state_stays",
        label=msg("Mean stays"),
        unit="s",
        help=msg("How long each rate lasts on average, in the same order, e.g. 117, 72."),
    ),
    Field(
        key="trace",
        label=msg("Log of arrivals"),
        help=msg("One arrival a line: its time in seconds, or time, prompt tokens, output tokens."),
    ),
    Field(
        key="classes",
        label=msg("Kinds of requests"),
        help=msg(
            "One a line: name, share, then what differs from the load above: prompt= and output= lengths (800 all "
            "equal, 800/2000 P50/P95, 100-900 evenly between), hit=60%, priority=1 (lower is served first), "
            "max=4 running at once. Shares add up to 100 %."
        ),
    ),
    Field(
        key="cancel_share",
        label=msg("Cancelled while answering"),
        unit="%",
        low=0,
        high=100,
        step=1,
        help=msg("Share of requests whose client goes away while tokens come."),
    ),
    Field(
        key="patience",
        label=msg("Patience"),
        unit="s",
        low=0.001,
        high=1_000_000,
        step=5,
        help=msg("A client without a first token after this long gives up. Empty = waits for ever."),
    ),
    Field(
        key="retries",
        label=msg("Retries"),
        low=0,
        high=100,
        step=1,
        help=msg("How often a client that gave up tries again."),
    ),
    Field(
        key="retry_after",
        label=msg("Pause before a retry"),
        unit="s",
        low=0,
        high=1_000_000,
        step=1,
        help=msg("From giving up to trying again."),
    ),
)
