"""What real use does to the plain formula, in words: reservation, blocks, eviction and cache formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calc.cache.block_size import (
    REPORTED_FROM_TOKENS,
    REPORTED_TO_TOKENS,
    REPORTED_TTFT_GAIN,
    BlockSize,
    prefill_gain_share,
)
from calc.cache.eviction import REPORTED_SMALLER, Budgets, Evicted, Policy
from calc.cache.formats import Alignment, FormatRow
from calc.cache.waste import Reservation, Waste, WasteReport
from ui import format as show
from ui.text import t

Rows = Sequence[Mapping[str, str]]
SHOWN_BLOCKS = (16, 64, 256)
"""Block sizes in the picture, beside the engine's own; the table has all."""


def reservation_name(row: Waste) -> str:
    """How memory is set aside, in a few words."""
    names = {
        Reservation.MAX_LENGTH: t("Maximum length"),
        Reservation.POWER_OF_TWO: t("Power of two"),
        Reservation.PAGED: t("Blocks of {size:count}", size=row.block_size_tokens),
    }
    return names[row.reservation]


def waste_sentence(found: WasteReport) -> str:
    """The engine's own way beside reserving the maximum."""
    whole = found.of(Reservation.MAX_LENGTH)
    return t(
        "With blocks of {size:tok} {own:pct} of what this load reserves is empty; reserving the maximum length would "
        "leave {whole:pct} empty and hold {few} running requests in place of {many}.",
        size=found.engine_block_tokens,
        own=found.own.share,
        whole=whole.share,
        few=show.decimal(whole.sequences),
        many=show.decimal(found.own.sequences),
    )


def pictured(found: WasteReport) -> list[tuple[str, Waste]]:
    """Rows of the picture."""
    sizes = {*SHOWN_BLOCKS, found.engine_block_tokens}
    return [
        (reservation_name(row), row)
        for row in found.rows
        if row.reservation is not Reservation.PAGED or row.block_size_tokens in sizes
    ]


def waste_rows(found: WasteReport) -> Rows:
    """Every way of reserving."""
    return [
        {
            t("Reserved by"): reservation_name(row) + (t(" (engine)") if row is found.own else ""),
            t("Per request"): show.tokens(row.reserved_tokens),
            t("Empty"): show.percent(row.share),
            t("Running requests held"): show.decimal(row.sequences),
        }
        for row in found.rows
    ]


def waste_alt(found: WasteReport) -> str:
    """The bars in words."""
    return t(
        "Share of reserved memory that is empty: {rows}.",
        rows=t(", ").join(f"{name} {show.percent(row.share)}" for name, row in pictured(found)),
    )


def waste_formulas(found: WasteReport) -> list[str]:
    """Held and reserved with the numbers put in, and what was published."""
    whole, own = found.of(Reservation.MAX_LENGTH), found.own
    return [
        t(
            "1 − held ÷ maximum = 1 − {held:tok} ÷ {limit:tok} = {share:pct} empty",
            held=found.held_tokens,
            limit=found.longest_tokens,
            share=whole.share,
        ),
        t(
            "1 − held ÷ whole blocks = 1 − {held:tok} ÷ {reserved:tok} = {share:pct}: {wasted:.3g} tokens of the last "
            "block, about half of {size:tok}",
            held=found.held_tokens,
            reserved=own.reserved_tokens,
            share=own.share,
            wasted=own.wasted_tokens,
            size=own.block_size_tokens,
        ),
        t(
            "held: prompt and the output so far, seen at a random moment of decode, over your own length "
            "distributions; prompt and output independent, cut at the maximum length"
        ),
        t(
            "published: 60 to 80 % wasted by reserving ahead, below 4 % with blocks of 16 tokens (OPT-13B, maximum "
            "2,048, chat lengths); requests below some 180 tokens still waste more than 4 %"
        ),
    ]


# Block size


def blocks_sentence(rows: Sequence[BlockSize], own_tokens: int, prefix_tokens: float) -> str:
    """What the engine's block loses of this prefix."""
    own = next(row for row in rows if row.block_size_tokens == own_tokens)
    return t(
        "Blocks of {size:tok} leave {lost:tok} of a prefix of {prefix:tok} unshared; of prefixes of any length "
        "{mean:.3g} on average.",
        size=own.block_size_tokens,
        lost=own.unshared_tokens,
        prefix=prefix_tokens,
        mean=own.mean_unshared_tokens,
    )


def blocks_rows(rows: Sequence[BlockSize]) -> Rows:
    """Loss and bookkeeping of each size."""
    return [
        {
            t("Block (tokens)"): show.count(row.block_size_tokens),
            t("Unshared of this prefix"): show.tokens(row.unshared_tokens),
            t("Table on the GPU (B/token)"): show.decimal(row.table_bytes_per_token),
            t("Hashes in CPU memory (B/token)"): show.decimal(row.hash_bytes_per_token),
        }
        for row in rows
    ]


def blocks_words(own_prompt_tokens: float) -> list[str]:
    """The reported gain and its condition, and what it would be here."""
    return [
        t(
            "Reported: TTFT up to {gain:pct} better with blocks of {small} in place of {large} tokens, for Llama-70B "
            "on H100 with TensorRT-LLM and short inputs.",
            gain=REPORTED_TTFT_GAIN,
            small=REPORTED_TO_TOKENS,
            large=REPORTED_FROM_TOKENS,
        ),
        t(
            "Here a prompt has {own:tok} of its own beside the prefix, so the same step saves {here:pct} of its "
            "prefill.",
            own=own_prompt_tokens,
            here=prefill_gain_share(own_prompt_tokens, REPORTED_FROM_TOKENS, REPORTED_TO_TOKENS),
        ),
    ]


def blocks_formulas(own_prompt_tokens: float) -> list[str]:
    """Mean remainder and bookkeeping."""
    return [
        t("unshared of a prefix of P tokens = P mod B; over all lengths (B − 1) ÷ 2"),
        t(
            "prefill saved by 8 in place of 64 = (31.5 − 3.5) ÷ (own + 31.5) = 28 ÷ ({own:count} + 31.5)",
            own=own_prompt_tokens,
        ),
        t(
            "bookkeeping = block tables · 4 bytes ÷ B on the GPU, 32 bytes (SHA-256) ÷ B in CPU memory: assumed from "
            "vLLM"
        ),
    ]


# Eviction


def eviction_sentence(found: Sequence[Evicted], length_tokens: int) -> str:
    """The largest gain, and that engines do not offer it."""
    best = max(found, key=lambda row: row.sequences)
    return t(
        "Dropping tokens would hold up to {many} sequences of {length:tok} in place of {now}. It may change answers: "
        "check quality first.",
        many=show.decimal(best.sequences),
        length=length_tokens,
        now=show.decimal(best.full_sequences),
    )


def eviction_rows(found: Sequence[Evicted], budgets: Budgets) -> Rows:
    """Each policy with its budget."""
    names = {
        Policy.WINDOW: t("Latest {size:tok}", size=budgets.window_tokens),
        Policy.SCORE: t("By attention score, {share:pct} kept", share=budgets.kept_share),
        Policy.LAYERS: t("By layer: {full:pct} of them keep all", full=budgets.full_layers_share),
    }
    return [
        {
            t("Policy"): names[row.policy],
            t("Kept"): show.tokens(row.kept_tokens),
            t("KV on each GPU"): show.mib(row.kv_bytes),
            t("Smaller"): f"{show.decimal(row.smaller)}×",
            t("Sequences per replica"): show.decimal(row.sequences),
        }
        for row in found
    ]


def eviction_words() -> list[str]:
    """Reported savings, and what engines offer."""
    low, high = REPORTED_SMALLER
    return [
        t(
            "Reported: a cache {low:g} to {high:g} times smaller with little loss (H2O, Scissorhands), for OPT and "
            "LLaMA in offline generation. Retrieval from the middle of long contexts suffers first.",
            low=low,
            high=high,
        ),
        t(
            "vLLM and SGLang have no flag for this beyond a window the model itself has; TensorRT-LLM can set a "
            "window, but not evict by score by default."
        ),
    ]


def eviction_formulas(found: Sequence[Evicted]) -> list[str]:
    """Sequences by budget."""
    return [
        t(
            "sequences · blocks of all tokens ÷ blocks of kept tokens = {now} · {smaller:.3g} = {then} ({kept:tok} "
            "kept)",
            now=show.decimal(row.full_sequences),
            smaller=row.smaller,
            then=show.decimal(row.sequences),
            kept=row.kept_tokens,
        )
        for row in found
    ]


# Formats


def formats_sentence(rows: Sequence[FormatRow], length_tokens: int) -> str:
    """What FP8 brings over BF16 at this length."""
    by_code = {row.kv_dtype: row for row in rows}
    plain, fp8 = by_code["bf16"], by_code["fp8"]
    text = t(
        "At {length:tok} the pool holds {plain} sequences in BF16 and {fp8} in FP8 ({gain:.2f} times).",
        length=length_tokens,
        plain=show.decimal(plain.sequences),
        fp8=show.decimal(fp8.sequences),
        gain=fp8.sequences / plain.sequences,
    )
    if plain.fixed_share:
        text += " " + t("{share:pct} of a sequence does not shrink with the format.", share=plain.fixed_share)
    return text


def formats_rows(rows: Sequence[FormatRow], current: str) -> Rows:
    """Every format; the scenario's own is marked."""
    names = {"bf16": "BF16", "fp8": "FP8", "int8": "INT8", "nvfp4": "NVFP4"}
    native = {True: t("yes"), False: t("no"), None: "–"}
    return [
        {
            t("Cache format"): ("● " if row.kv_dtype == current else "") + names[row.kv_dtype],
            t("Per token and GPU"): show.kib(row.bytes_per_token),
            t("Of BF16"): show.percent(row.of_bf16_share),
            t("Sequences per replica"): show.decimal(row.sequences),
            t("GPU computes in it"): native[row.native],
        }
        for row in rows
    ]


def formats_words(rows: Sequence[FormatRow]) -> list[str]:
    """NVFP4's real size, and what to check."""
    by_code = {row.kv_dtype: row for row in rows}
    ratio = by_code["nvfp4"].bytes_per_token / by_code["fp8"].bytes_per_token
    lines = [
        t(
            "NVFP4 is announced at half of FP8; with a scale for every 16 values it takes 0.5625 bytes per value: "
            "{ratio:pct} of FP8 here.",
            ratio=ratio,
        ),
        t(
            "INT8 keeps one 4-byte scale per token, head and side. Check answers on your own tasks before going below "
            "BF16: long contexts lose accuracy first."
        ),
    ]
    if by_code["bf16"].fixed_share:
        lines.append(
            t(
                "Measured on hybrids with recurrent layers: FP8 gave 1.84 times the sequences at 32k tokens and no "
                "more at short ones, for states keep their format and blocks their size (vLLM, A10G)."
            )
        )
    if by_code["nvfp4"].native is False:
        lines.append(
            t("NVFP4 caches need FP4 units (Blackwell): this GPU has none, so engines refuse or emulate them.")
        )
    if by_code["fp8"].native is False:
        lines.append(t("This GPU has no FP8 units: FP8 caches are turned back to 16 bits before attention."))
    return lines


def alignment_words(found: Alignment) -> str:
    """What blocks of this model round away."""
    return t(
        "A sequence of {length:tok} fills {lost:.3g} tokens less than its blocks hold ({share:pct}); groups of "
        "layers: {groups}, blocks of {size:tok}.",
        length=found.length_tokens,
        lost=found.lost_tokens,
        share=found.lost_share,
        groups=found.groups,
        size=found.block_size_tokens,
    )


def formats_formulas(rows: Sequence[FormatRow], found: Alignment) -> list[str]:
    """Bytes per format and alignment with the numbers put in."""
    lines = [
        t(
            "bytes per value: BF16 2 · FP8 1 · INT8 1 + 4 ÷ head size · NVFP4 0.5 + 1 ÷ 16; {plain:count} bytes per "
            "token in BF16, {fp8:count} in FP8",
            plain=rows[0].bytes_per_token,
            fp8=rows[1].bytes_per_token,
        ),
        t(
            "blocks − tokens and states = {held} − {used} on each GPU",
            held=show.mib(found.used_bytes + found.rounded_bytes),
            used=show.mib(found.used_bytes),
        ),
    ]
    if found.in_flight_bytes:
        lines.append(
            t(
                "While it runs, {size:gib} more are held for tokens on their way through a window.",
                size=found.in_flight_bytes,
            )
        )
    return lines
