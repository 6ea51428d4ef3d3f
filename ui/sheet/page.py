"""A review put into words: every string of the sheet, once, for PDF, HTML and Markdown alike.

Renderers only lay out; they neither format a number nor choose a word. So the three always agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from calc.messages import Message, msg
from ui.glossary import BOUNDS, OUTCOMES, PROVENANCE
from ui.palette import PROVENANCE_COLOURS
from ui.sheet import tables
from ui.sheet.codec import SHORT_HASH, review_hash
from ui.sheet.plain import plain
from ui.sheet.review import Filing, Kind, Party, Review, State, Status, Verdict
from ui.sheet.svg import load_svg, memory_svg
from ui.sheet.tables import PARTIES, Table, say
from ui.text import current, speaking, t

MAX_IDS = 4
"""Uploads named in the foot; the saved review names all."""
MAX_GAPS = 5
PERSON_LIMIT = 40
NAME_LIMIT = 72
"""Longest name printed whole; longer ones are cut with an ellipsis."""

STATUS_NAMES: Mapping[Status, Message] = MappingProxyType(
    {
        Status.DEMONSTRATION: msg("Demonstration only"),
        Status.DRAFT: msg("Draft"),
        Status.FOR_REVIEW: msg("For review"),
    }
)

GROUPS: Mapping[str, Message] = MappingProxyType(
    {
        "logs": msg("Logs"),
        "metrics": msg("Metrics"),
        "configuration": msg("Configuration"),
        "owners": msg("Owners"),
    }
)

CONFIRMS: Mapping[Party, Message] = MappingProxyType(
    {
        Party.BUSINESS: msg(
            "SLO, cost and boundaries; affected applications, teams and data; result and pace of extension"
        ),
        Party.PLATFORM: msg("Capacity, monitoring, logs and rollback are ready; who watches capacity, cost, stability"),
        Party.SECURITY: msg(
            "Permissions and audit; data in the cache, tenants kept apart, offloaded KV and its retention"
        ),
    }
)
"""What each party answers for with its signature."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A short label and the text that belongs to it."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading over a list of sentences."""

    heading: str
    items: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One field to sign."""

    party: str
    confirms: str
    choices: tuple[str, ...]
    condition: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture, its heading and the sentence under it."""

    heading: str
    svg: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """All words of one sheet in one language, in reading order."""

    language: str
    kicker: str
    title: str
    subtitle: str
    status: str
    status_code: str
    demonstration: str
    """What is missing for more than a demonstration; empty when nothing is."""
    facts: tuple[Labelled, ...]
    verdict_label: str
    verdict: str
    headline: str
    because: tuple[str, ...]
    asides: tuple[Labelled, ...]
    applies: Section
    boundaries: Section
    memory: Chart
    load: Chart
    latency: Table
    numbers: Table
    options: Table
    proofs: Table
    missing: Section
    checks_heading: str
    checks: tuple[Labelled, ...]
    risks: Section
    steps: Table
    signs_heading: str
    signs: tuple[Sign, ...]
    legend: tuple[Labelled, ...]
    """Provenance words with their colour as label."""
    footer: str
    notes: tuple[str, ...] = ()
    """What a renderer had to change: signs the font lacks, text that was cut."""


def compose(review: Review, language: str) -> Page:
    """The words of ``review`` in ``language``, whatever the screen speaks."""
    with speaking(language):
        return _compose(review)


def _compose(review: Review) -> Page:
    filing = review.filing
    return Page(
        language=current().replace("_", "-"),
        kicker=t("Review of an LLM inference deployment"),
        title=plain(filing.title or review.scenario_name or review.model, NAME_LIMIT),
        subtitle=" · ".join(_deployment(review)),
        status=t(STATUS_NAMES[review.status]),
        status_code=review.status,
        demonstration=_demonstration(filing),
        facts=_facts(review),
        verdict_label=t("Decision"),
        verdict=t(OUTCOMES[review.verdict.outcome]),
        headline=_headline(review.verdict),
        because=tuple(say(reason) for reason in review.verdict.because),
        asides=_asides(review),
        applies=Section(heading=t("Where it applies"), items=tuple(say(line) for line in review.applies)),
        boundaries=Section(heading=t("Where it does not apply"), items=tuple(say(line) for line in review.boundaries)),
        memory=Chart(heading=t("Memory of one GPU"), svg=memory_svg(review.memory), caption=""),
        load=Chart(heading=t("Latency over load"), svg=load_svg(review.curve), caption=_split(review)),
        latency=tables.latency_table(review.numbers),
        numbers=tables.numbers_table(review.numbers),
        options=tables.options_table(review.options, review.chosen_lever),
        proofs=tables.proofs_table(review.proofs),
        missing=Section(heading=t("Missing"), items=_missing(review.missing)),
        checks_heading=t("To verify by hand"),
        checks=tuple(Labelled(label=t(GROUPS[one.group]), text=say(one.text)) for one in review.checks),
        risks=Section(heading=t("Risks"), items=tuple(say(risk) for risk in review.risks)),
        steps=tables.steps_table(review.steps),
        signs_heading=t("Sign-off"),
        signs=tuple(_sign(party, filing) for party in Party),
        legend=tuple(
            Labelled(label=colour, text=t(PROVENANCE[provenance])) for provenance, colour in PROVENANCE_COLOURS.items()
        ),
        footer=_footer(review),
    )


def _deployment(review: Review) -> tuple[str, ...]:
    gpus = t("{gpu} × {number:count}", gpu=review.gpu, number=review.gpu_count)
    return plain(review.model, NAME_LIMIT), plain(gpus, NAME_LIMIT), plain(review.engine, NAME_LIMIT)


def _demonstration(filing: Filing) -> str:
    lacking = [
        t(words)
        for words, there in (
            (msg("real requests"), filing.real_requests),
            (msg("real permission roles"), filing.real_roles),
            (msg("real operating figures"), filing.real_figures),
        )
        if not there
    ]
    return t("Missing for a review: {lacking}", lacking=t(", ").join(lacking)) if lacking else ""


def _facts(review: Review) -> tuple[Labelled, ...]:
    filing = review.filing
    return (
        Labelled(label=t("Sheet"), text=review_hash(review)[:SHORT_HASH]),
        Labelled(label=t("Date"), text=plain(filing.created_at, 10) or t("not dated")),
        Labelled(label=t("Author"), text=plain(filing.author_role, PERSON_LIMIT) or t("not named")),
    )


def _asides(review: Review) -> tuple[Labelled, ...]:
    verdict = review.verdict
    runner_up = t(OUTCOMES[verdict.runner_up]) if verdict.runner_up else t("none")
    pairs = [
        (t("First lever"), say(verdict.first_lever) if verdict.first_lever else t("none")),
        (t("Runner-up"), runner_up),
        (t("It flips when"), say(verdict.flips_when) if verdict.flips_when else t("no flip was found")),
        (t("Bottleneck"), t(BOUNDS.get(verdict.bottleneck, BOUNDS["unknown"]))),
    ]
    if verdict.conditions_met + verdict.conditions_not_met + verdict.conditions_unknown:
        pairs.append((t("Conditions"), _conditions(verdict)))
    if not verdict.legs_agree:
        pairs.append((t("Note"), t("conditions and what-ifs point to different answers")))
    return tuple(Labelled(label=label, text=text) for label, text in pairs)


def _headline(verdict: Verdict) -> str:
    """The sentence under the answer, which need not begin with the answer again."""
    sentence, answer = say(verdict.headline), t(OUTCOMES[verdict.outcome])
    rest = sentence.removeprefix(answer).lstrip(":： ") if sentence.startswith(answer) else sentence
    return rest[:1].upper() + rest[1:]


def _conditions(verdict: Verdict) -> str:
    return t(
        "{met:count} met, {not_met:count} not met, {unknown:count} unknown",
        met=verdict.conditions_met,
        not_met=verdict.conditions_not_met,
        unknown=verdict.conditions_unknown,
    )


def _split(review: Review) -> str:
    if review.split_s is None:
        return t("Nothing is served: it does not fit in memory")
    if review.saturated:
        return t("The load exceeds what can be served: latency grows with time")
    queue, prefill, decode, network = review.split_s
    return t(
        "Mean E2E {total:s} = queue {queue:s} + prefill {prefill:s} + decode {decode:s} + network {network:s}",
        total=sum(review.split_s),
        queue=queue,
        prefill=prefill,
        decode=decode,
        network=network,
    )


def _sign(party: Party, filing: Filing) -> Sign:
    name = plain(filing.owners.get(party, ""), PERSON_LIMIT)
    return Sign(
        party=t(PARTIES[party]),
        confirms=t(CONFIRMS[party]),
        choices=(t("agree"), t("with conditions"), t("reject")),
        condition=t("Condition"),
        name=t("{name}, date", name=name) if name else t("Name, date"),
    )


def _missing(gaps: Sequence[Message]) -> tuple[str, ...]:
    listed = tuple(say(gap) for gap in gaps[:MAX_GAPS])
    more = len(gaps) - len(listed)
    return (*listed, t("and {more:count} more", more=more)) if more else listed


def _calibrated(given: object) -> list[str]:
    """What the predictions were fitted to, where the scenario carries a calibration."""
    if isinstance(given, Mapping):
        return [t("calibrated on {name}", name=plain(str(given.get("source", "")), PERSON_LIMIT))]
    return [t("calibrated on {number:count} measured points", number=len(given))] if isinstance(given, list) else []


def _measured(review: Review) -> str:
    runtime = any(one.kind is Kind.RUNTIME and one.state is not State.MISSING for one in review.proofs)
    return t("measured runs and metrics: see Evidence") if runtime else t("no upload or measurement is attached")


def _footer(review: Review) -> str:
    ids = ", ".join(plain(one[:SHORT_HASH], SHORT_HASH) for one in review.filing.snapshot_ids[:MAX_IDS])
    parts = [
        t("Plimsoll, calculation {version}", version=review.model_version),
        *_calibrated(review.case.get("calibration")),
        t("sheet {hash}", hash=review_hash(review)[:SHORT_HASH]),
        t("rests on {ids}", ids=ids) if ids else _measured(review),
    ]
    return " · ".join(parts)
