"""The catalogue in words: rows of what ships and of the team's own, and what was read of a pasted model."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from calc.cache.kv import kv_bytes_per_token
from calc.errors import PlimsollError
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import LayerGroup, ModelSpec
from calc.room.weights import stage_weights_bytes
from calc.units import GB, GIB, KIB, TERA
from data import catalogue
from data.own_hardware import OWN_PRICE, gpu_of, price_of, prices_of
from data.store import OwnEntry
from ui import format as show
from ui import pricing
from ui.story.words import Figure, day
from ui.text import t

Row = Mapping[str, str]

KIND_NAMES: Mapping[str, Message] = {
    "full": msg("full attention"),
    "sliding": msg("sliding window"),
    "chunked": msg("chunked attention"),
    "mla": msg("latent attention (MLA)"),
}
"""Words for how a layer keeps its history; a newer kind is shown by its code."""
CONFIDENCE: Mapping[str, Message] = {
    "high": msg("high: read at the source"),
    "medium": msg("medium: partly derived"),
    "low": msg("low: recalled or conflicting"),
}
BILLION = 1e9


@dataclass(frozen=True, kw_only=True)
class Own:
    """The team's own rows, newest of each, and the day on which they are looked at."""

    models: Sequence[OwnEntry]
    gpus: Sequence[OwnEntry]
    prices: Sequence[OwnEntry]
    """With history."""
    today: date

    @property
    def stale(self) -> list[str]:
        """GPUs whose newest price is stale."""
        names = dict.fromkeys(row.name for row in self.prices)
        newest = [prices_of(self.prices, name)[0] for name in names]
        return [priced_gpu(row.name) for row in newest if pricing.is_stale(row.checked_on, self.today)]


def sentence(own: Own) -> str:
    """What is there, or which prices are old."""
    if own.stale:
        return t(
            "The newest price of {gpus} is older than {limit:count} days: look at its source again.",
            gpus=", ".join(own.stale),
            limit=pricing.STALE_DAYS,
        )
    return t(
        "{models:count} models and {gpus:count} GPUs ship with source and date; {own:count} rows are your own.",
        models=len(catalogue.models()),
        gpus=len(catalogue.gpus()),
        own=len(own.models) + len(own.gpus) + len(own.prices),
    )


def figures(own: Own) -> list[Figure]:
    """How much is known, how much of it is shaky, and how many prices are old."""
    confidences = [row.confidence for row in catalogue.models().values()]
    confidences += [row.confidence for row in catalogue.gpus().values()]
    shaky = confidences.count("low")
    return [
        Figure(label=t("Models"), value=_with_own(len(catalogue.models()), len(own.models)), provenance="declared"),
        Figure(label=t("GPU types"), value=_with_own(len(catalogue.gpus()), len(own.gpus)), provenance="declared"),
        Figure(label=t("Prices"), value=show.count(len(own.prices)), provenance="declared"),
        Figure(
            label=t("Shaky rows"), value=show.count(shaky), provenance="declared",
            help=t("Shipped rows that were recalled, or whose sources conflict. Results that rest on them say so."),
        ),
    ]  # fmt: skip


def _with_own(shipped: int, own: int) -> str:
    return f"{shipped:,} + {own:,}" if own else f"{shipped:,}"


def found(rows: Sequence[Row], wanted: str) -> list[Row]:
    """Rows in which every wanted word stands in some cell."""
    words = wanted.casefold().split()
    return [row for row in rows if all(word in " ".join(row.values()).casefold() for word in words)]


def gpu_figures(gpu: Gpu) -> dict[str, str]:
    """The figures of a GPU, unknown ones as such."""
    peaks = {
        name: _figure(gpu.flops_per_s.get(code), TERA)
        for code, name in (("bf16", "BF16"), ("fp8", "FP8"), ("int8", "INT8"), ("fp4", "FP4"))
    }
    return {
        t("Memory (GiB)"): f"{gpu.memory_bytes / GIB:,.2f}",
        t("Bandwidth (GB/s)"): _figure(gpu.bandwidth_bytes_per_s, GB),
        **{t("{dtype}, dense (TFLOP/s)", dtype=name): value for name, value in peaks.items()},
        t("Link, one direction (GB/s)"): _figure(gpu.nvlink_bytes_per_s, GB),
        t("PCIe (GB/s)"): _figure(gpu.pcie_bytes_per_s, GB),
    }


def _figure(value: float | None, unit: float) -> str:
    return t("not known") if value is None else f"{value / unit:,.4g}"


def shipped_gpus() -> list[Row]:
    """GPUs that ship, with source, date and confidence."""
    return [
        {t("Name"): gpu.name, t("Id"): gpu.id, **gpu_figures(gpu), **_origin(gpu.source, gpu.checked_on),
         t("Confidence"): _confidence(gpu.confidence)}
        for gpu in catalogue.gpus().values()
    ]  # fmt: skip


def own_gpus(rows: Iterable[OwnEntry]) -> list[Row]:
    """The team's own GPUs, every version."""
    return [
        {t("Name"): row.name, t("Version"): f"v{row.version}", **gpu_figures(gpu_of(row)),
         **_origin(row.source, row.checked_on)}
        for row in rows
    ]  # fmt: skip


def shipped_models() -> list[Row]:
    """Models that ship, with what their config says."""
    return [
        {t("Name"): entry.id, t("Family"): entry.family, **_model_figures(entry.id),
         **_origin(entry.source, entry.checked_on), t("Confidence"): _confidence(entry.confidence)}
        for entry in catalogue.models().values()
    ]  # fmt: skip


def _model_figures(name: str) -> dict[str, str]:
    numbers = _numbers_of(name)
    if numbers is None:
        return {t("Parameters"): t("not known"), t("KV per token"): t("not known")}
    return {t("Parameters"): _billions(numbers[0]), t("KV per token"): _kib(numbers[1])}


@functools.cache
def _numbers_of(name: str) -> tuple[int, int] | None:
    """Parameters and KV bytes per token of a shipped model; half a second for all of them, so once."""
    try:
        spec = catalogue.model(name).spec()
    except PlimsollError:  # its page says why
        return None
    return spec.parameters, kv_bytes_per_token(spec, spec.kv_dtype, 1)


def own_models(rows: Iterable[OwnEntry]) -> list[Row]:
    """The team's own models, every version."""
    return [
        {t("Name"): row.name, t("Version"): f"v{row.version}", t("Architecture"): _architecture(row),
         t("Declared weights"): _declared(row.entry.get("weight_bytes")), **_origin(row.source, row.checked_on)}
        for row in rows
    ]  # fmt: skip


def _declared(size_bytes: float | None) -> str:
    return t("none, estimated") if size_bytes is None else show.gib(size_bytes)


def _architecture(row: OwnEntry) -> str:
    config = row.entry.get("config") or {}
    named = config.get("architectures") or [config.get("model_type")]
    return ", ".join(str(name) for name in named) if isinstance(named, list) and named[0] else t("not known")


def engines() -> list[Row]:
    """Engine versions whose defaults are known."""
    return [
        {t("Engine"): row.id, t("Version"): row.version, t("Released"): row.released,
         t("Memory fraction"): show.percent(row.memory_fraction), **_origin(row.source, row.checked_on)}
        for row in catalogue.engines()
    ]  # fmt: skip


def price_rows(rows: Iterable[OwnEntry], today: date) -> list[Row]:
    """Prices with what they are prices of; old ones are marked."""
    return [_price_row(row, today) for row in rows]


def _price_row(row: OwnEntry, today: date) -> Row:
    price = price_of(row)
    stale = pricing.is_stale(price.checked_on, today)
    return {
        t("GPU"): priced_gpu(row.name),
        t("Price of a GPU-hour"): show.money(price.gpu_hour, price.currency),
        t("Commitment"): pricing.commitment(price.commitment),
        t("Region"): price.region,
        **_origin(row.source, row.checked_on),
        t("State"): t("stale, older than {limit:count} days", limit=pricing.STALE_DAYS) if stale else t("current"),
        t("Provenance"): t("declared"),
    }


def priced_gpu(name: str) -> str:
    """The GPU that a price is named after."""
    gpu = catalogue.gpus().get(name)
    return name.removeprefix(OWN_PRICE) if gpu is None else gpu.name


def _origin(source: str, checked_on: str) -> dict[str, str]:
    return {t("Source"): source or t("not stated"), t("Checked on"): day(checked_on) if checked_on else t("not stated")}


def _confidence(code: str) -> str:
    return t(CONFIDENCE[code]) if code in CONFIDENCE else code


def read_of(spec: ModelSpec) -> list[str]:
    """What was read of a config, one fact a line, for a check before it is stored."""
    estimated = sum(stage_weights_bytes(spec, 1, 1))
    if spec.weights_bytes_declared is None:
        weights = t(
            "Weights {size:gib} as {dtype}, estimated from the parameters.", size=estimated, dtype=spec.storage.code
        )
    else:
        weights = t("Weights {size:gib}, declared.", size=spec.weights_bytes_declared)
    return [
        t("Architecture {name}.", name=spec.architecture),
        t("{number:count} layers: {kinds}.", number=spec.layers,
          kinds=t(", ").join(_group(one) for one in spec.groups)),
        t("KV cache {size} per token in {dtype}, on one GPU.", dtype=spec.kv_dtype,
          size=_kib(kv_bytes_per_token(spec, spec.kv_dtype, 1))),
        t("{total} parameters, {active} per token.", total=_billions(spec.parameters),
          active=_billions(spec.active_parameters)),
        weights,
        t("Up to {limit:tok} of context.", limit=spec.max_position_tokens),
    ]  # fmt: skip


def _group(group: LayerGroup) -> str:
    words = KIND_NAMES.get(group.kind.value)
    kind = group.kind.value if words is None else t(words)
    window = f" {group.window_tokens:,}" if group.window_tokens else ""
    return f"{group.layers:,} × {kind}{window}"


def _billions(number: float) -> str:
    return t("{number:,.3g} billion", number=number / BILLION)


def _kib(size_bytes: float) -> str:
    return f"{size_bytes / KIB:,.4g} KiB"
