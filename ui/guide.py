"""The guide's texts: first steps, glossary rows, questions, misconceptions, and where each number comes from."""

from __future__ import annotations

from collections.abc import Mapping

from calc.messages import Message, msg
from ui import format as show
from ui.glossary import FIELDS, PROVENANCE, TERMS, Term
from ui.text import t

STEPS = (
    msg("Describe the deployment and the load at the side; the worked example is filled in."),
    msg("Read Memory and Latency: what fits, where the load line is, what binds."),
    msg("Upload a benchmark to see how far the model is off, read the decision, and print the review sheet."),
)

QUESTIONS: tuple[tuple[Message, Message], ...] = (
    (
        msg("Why does the KV cache cause memory pressure?"),
        msg(
            "Each token of each request in flight leaves its keys and values in GPU memory until the request ends. "
            "The need is the product of context length and concurrency, so it grows with success, while the weights "
            "stay as they are. When the pool is full, requests wait or lose their blocks and are computed again."
        ),
    ),
    (
        msg("Does a cache help in every case?"),
        msg(
            "The cache inside one request always does: without it every step would compute all history again. Reuse "
            "across requests only helps when prompts begin exactly alike, long enough and often enough. Short prompts, "
            "small models, changing prompts and slow offload tiers gain little; the Decision page checks this on your load."
        ),
    ),
    (
        msg("Which metrics should I watch?"),
        msg(
            "Three layers on one time axis. Cache: usage, hit rate, preemptions. Resource: memory peak, compute, links. "
            "Service: TTFT, ITL and E2E at P50, P95 and P99, waiting requests, failures. One layer alone misleads: high "
            "usage without waiting is a well-used cache."
        ),
    ),
    (
        msg("Which length do I enter: the maximum or the usual one?"),
        msg(
            "Both: the lengths of the load as P50 and P95, and the max model length as the limit of the engine. The engine "
            "must be able to hold one sequence of the maximum; the load decides how many fit in practice."
        ),
    ),
    (
        msg("Why is the estimate not exactly what my engine shows?"),
        msg(
            "Runtime memory differs by version, driver and model, so the pool is a point with a band. Latency constants "
            "are generic until your own measurements are there. Upload a run to see the error stated."
        ),
    ),
    (
        msg("Why does P99 get worse before the mean does?"),
        msg(
            "Bursts and long requests make a few requests wait while most do not. The mean hides them until the queue "
            "is there for everybody."
        ),
    ),
)  # fmt: skip

MISCONCEPTIONS: tuple[tuple[Message, Message], ...] = (
    (
        msg("“A cache is about speed.”"),
        msg(
            "It trades memory for compute. The memory it takes limits how many requests run at once, so the same cache "
            "that shortens one answer can lengthen the queue."
        ),
    ),
    (
        msg("“The higher the hit rate, the better.”"),
        msg(
            "A hit only saves prefill. If decode, the queue or memory binds, a higher hit rate changes little. Hit rate, "
            "memory peak, P99 and unit cost belong in one table."
        ),
    ),
    (
        msg("“The cache is full, so add memory.”"),
        msg(
            "A full pool with nothing waiting is doing its job. Look first where the gap comes from: weights, runtime, or "
            "KV; and whether requests wait or are preempted."
        ),
    ),
    (
        msg("“A faster GPU makes it faster.”"),
        msg(
            "Decode reads all weights and the cache for every token: memory bandwidth binds, not FLOP/s. Only prefill "
            "follows compute."
        ),
    ),
    (
        msg("“The average latency meets the target.”"),
        msg("A promise is made at a percentile. Half of the users see worse than the median, and P99 is where trust is lost."),
    ),
)  # fmt: skip

NUMBERS: tuple[tuple[Message, str, Message], ...] = (
    (msg("Weights"), "estimated", msg("Parameters of the config.json times bytes of their storage, split over TP, PP and EP as the engine does.")),
    (msg("Runtime"), "estimated", msg("Activation peak from batched tokens and widths, context and NCCL by TP, CUDA graphs by version; constants are dated and sourced.")),
    (msg("KV pool"), "estimated", msg("Memory fraction of the GPU as the driver shows it, minus weights and runtime; cut into blocks as the engine version does.")),
    (msg("Step time"), "estimated", msg("Per kernel class the larger of compute and memory time at measured efficiencies, plus launch and communication.")),
    (msg("TTFT, ITL, E2E"), "simulated", msg("Continuous batching replayed event by event with your arrivals and lengths; percentiles over the simulated requests.")),
    (msg("Stability limit"), "estimated", msg("The lowest of the compute, memory and sequence limits on requests per second.")),
    (msg("Knee"), "simulated", msg("The highest load at which every target is met at its percentile, found by bisection.")),
    (msg("Decision"), "estimated", msg("Published conditions against the evidence, beside each lever simulated on the same load; no hidden score.")),
    (msg("Uploaded runs"), "measured", msg("As the file states them, units converted; checks that fired stay with the run.")),
)  # fmt: skip

KINDS: Mapping[str, Message] = {
    "measured": msg("Seen on a machine: an uploaded run, an engine's counters, the GPU probe."),
    "simulated": msg("Replayed by the simulator on your load."),
    "estimated": msg("Calculated from a formula with sourced constants."),
    "declared": msg("Typed in or taken from a data sheet; nobody has checked it here."),
    "missing": msg("Not known. Never counted as zero."),
}


def steps() -> list[str]:
    """How to begin."""
    return [t(step) for step in STEPS]


def glossary(wanted: str) -> list[Mapping[str, str]]:
    """Terms and input fields whose name or meaning holds the wanted text."""
    rows = [(_word(term), show.unit(term.unit), t(term.meaning), t(term.formula)) for term in TERMS.values()]
    rows += [(t(field.label), show.unit(field.unit), t(field.help), "") for field in FIELDS.values()]
    return [
        {t("Word"): word, t("Unit"): unit, t("Meaning"): meaning, t("Formula"): formula}
        for word, unit, meaning, formula in rows
        if wanted.casefold() in f"{word} {meaning}".casefold()
    ]


def _word(term: Term) -> str:
    """The standard name, with the visitor's own word where there is another one."""
    word = t(term.word) if term.word else term.label
    return word if term.label in word else f"{word} ({term.label})"


def questions() -> list[tuple[str, str]]:
    """Questions a newcomer asks, answered."""
    return [(t(question), t(answer)) for question, answer in QUESTIONS]


def misconceptions() -> list[tuple[str, str]]:
    """What people believe, and what is so."""
    return [(t(claim), t(truth)) for claim, truth in MISCONCEPTIONS]


def numbers() -> list[Mapping[str, str]]:
    """Each number, its provenance and how it is made."""
    return [
        {t("Number"): t(name), t("Provenance"): t(PROVENANCE[kind]), t("How it is made"): t(way)}
        for name, kind, way in NUMBERS
    ]


def provenance() -> list[Mapping[str, str]]:
    """What each provenance word promises."""
    return [{t("Word"): t(PROVENANCE[kind]), t("Meaning"): t(meaning)} for kind, meaning in KINDS.items()]
