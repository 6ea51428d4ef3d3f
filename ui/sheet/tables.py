"""The tables of the sheet as strings: rows, the colour of each origin, and what is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from calc.evidence import Provenance
from calc.messages import Message, msg
from ui import format as show
from ui.glossary import PROVENANCE
from ui.palette import PROVENANCE_COLOURS
from ui.sheet.plain import plain
from ui.sheet.review import Figure, Kind, NumberRow, Option, Party, Proof, State, Step
from ui.text import t

SENTENCE_LIMIT = 320
"""Longest sentence printed whole."""
OWNER_LIMIT = 40
DAY = 10
"""Characters of an ISO date."""
LATENCIES = ("ttft", "itl", "e2e")

PARTIES: Mapping[Party, Message] = MappingProxyType(
    {Party.BUSINESS: msg("Business"), Party.PLATFORM: msg("Platform"), Party.SECURITY: msg("Security")}
)

KINDS: Mapping[Kind, Message] = MappingProxyType(
    {
        Kind.CONFIGURATION: msg("Configuration"),
        Kind.RUNTIME: msg("Runtime"),
        Kind.RESPONSIBILITY: msg("Responsibility"),
        Kind.RETROSPECTIVE: msg("Retrospective"),
    }
)

STATES: Mapping[State, Message] = MappingProxyType(
    {
        State.VERIFIED: msg("verified"),
        State.PARTIAL: msg("partial"),
        State.MISSING: msg("missing"),
        State.STALE: msg("stale"),
    }
)

TONES: Mapping[State, str] = MappingProxyType(
    {State.VERIFIED: "met", State.PARTIAL: "open", State.MISSING: "open", State.STALE: "open"}
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells of one line. ``tone``: met, missed, open or empty; ``dots``: colours of the origins; ``strong``: bold."""

    cells: tuple[str, ...]
    tone: str = ""
    dots: tuple[str, ...] = ()
    strong: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A heading, column titles and rows. ``tone_column``: the cell that wears the row's tone, -1 for none."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    tone_column: int = -1


def say(message: Message) -> str:
    """A message in the current language as one plain line."""
    return plain(t(message), SENTENCE_LIMIT)


def figure_text(figure: Figure) -> str:
    """The number with its unit and percentile."""
    if isinstance(figure.value, float | int) and not isinstance(figure.value, bool) and figure.unit not in show.UNITS:
        number = show.money(figure.value, plain(figure.unit, 8))
    else:
        number = show.quantity(figure.value, figure.unit)
    return f"{figure.percentile} {number}".strip()


def latency_table(rows: Sequence[NumberRow]) -> Table:
    """TTFT, ITL and E2E, a column for each percentile; a measured run stands under the simulation it belongs to."""
    kept = [row for row in rows if row.key in LATENCIES]
    names = list(dict.fromkeys(figure.percentile for row in kept for figure in row.figures))
    return Table(
        heading=t("Latency at the planned load"),
        columns=(t("Latency"), *names, t("Target"), t("Met"), t("Origin")),
        rows=tuple(line for row in kept for line in _latency(row, names)),
        tone_column=len(names) + 2,
    )


def _latency(row: NumberRow, names: Sequence[str]) -> Iterator[Row]:
    label = say(row.label)
    values = [say(row.instead)] * len(names) if row.instead else _columns(row.figures, names)
    if row.measured:
        yield _row(label, values, "–", None, row.figures[0].provenance)
        label = plain(t("{metric} ({tool})", metric=label, tool=row.measured[0].source), OWNER_LIMIT)
        values = _columns(row.measured, names)
    origin = (*row.measured, *row.figures)[0]
    yield _row(label, values, _target(row), row.passes, origin.provenance, plain(origin.date[:DAY], DAY))


def _columns(figures: Sequence[Figure], names: Sequence[str]) -> list[str]:
    known = {figure.percentile: figure for figure in figures}
    return [show.quantity(known[name].value, known[name].unit) if name in known else "–" for name in names]


def _row(label: str, values: Sequence[str], target: str, passes: bool | None, origin: Provenance, day: str = "") -> Row:
    return Row(
        cells=(label, *values, target, _met(passes), f"{t(PROVENANCE[origin])} {day}".strip()),
        tone=_tone(passes),
        dots=(PROVENANCE_COLOURS[origin],),
    )


def numbers_table(rows: Sequence[NumberRow]) -> Table:
    """Memory, load, cache and cost: value, target, whether it is met, and where the value comes from."""
    return Table(
        heading=t("The numbers"),
        columns=(t("Figure"), t("Value"), t("Target"), t("Met"), t("Origin")),
        rows=tuple(_number(row) for row in rows if row.key not in LATENCIES),
        tone_column=3,
    )


def _number(row: NumberRow) -> Row:
    used = row.measured or row.figures
    return _row(
        say(row.label),
        [say(row.instead) if row.instead else _joined(used)],
        _target(row),
        row.passes,
        used[0].provenance,
        plain(used[0].date[:DAY], DAY),
    )


def _joined(figures: Sequence[Figure]) -> str:
    return show.missing() if all(figure.value is None for figure in figures) else " · ".join(map(figure_text, figures))


def _target(row: NumberRow) -> str:
    if row.target is None or row.target.value is None:
        return "–"
    return f"{'≥' if row.at_least else '≤'} {figure_text(row.target)}"


def _met(passes: bool | None) -> str:
    return "–" if passes is None else t("yes") if passes else t("no")


def _tone(passes: bool | None) -> str:
    return "" if passes is None else "met" if passes else "missed"


def options_table(options: Sequence[Option], chosen: str | None) -> Table:
    """Hit rate, memory peak, P99 and unit cost of every option in one table."""
    return Table(
        heading=t("What if, simulated on the same load"),
        columns=(
            t("Option"),
            t("Hit rate"),
            t("Memory peak, per GPU"),
            t("TTFT P99"),
            t("E2E P99"),
            t("Cost per million tokens"),
            t("Meets SLO"),
        ),
        rows=tuple(_option(option, strong=bool(option.lever) and option.lever == chosen) for option in options),
        tone_column=6,
    )


def _option(option: Option, *, strong: bool) -> Row:
    unstable = t("unstable")
    return Row(
        cells=(
            say(option.title),
            figure_text(option.hit_share),
            _peak(option),
            unstable if option.unstable else show.quantity(option.ttft_p99.value, option.ttft_p99.unit),
            unstable if option.unstable else show.quantity(option.e2e_p99.value, option.e2e_p99.unit),
            figure_text(option.unit_cost),
            _met(option.meets_slo),
        ),
        tone=_tone(option.meets_slo),
        strong=strong,
    )


def _peak(option: Option) -> str:
    if option.unstable:
        return t("unstable")
    peak = figure_text(option.memory_peak)
    return peak if option.memory_fits is not False else t("{peak}, does not fit", peak=peak)


def proofs_table(proofs: Sequence[Proof]) -> Table:
    """The four kinds of evidence with state, check and owner."""
    return Table(
        heading=t("Evidence"),
        columns=(t("Kind"), t("State"), t("What it says"), t("How to check it"), t("Owner")),
        rows=tuple(
            Row(
                cells=(
                    t(KINDS[proof.kind]),
                    _state(proof),
                    say(proof.says),
                    say(proof.check),
                    _owners(proof.owner),
                ),
                tone=TONES[proof.state],
            )
            for proof in proofs
        ),
        tone_column=1,
    )


def _state(proof: Proof) -> str:
    return f"{t(STATES[proof.state])} {plain(proof.date[:DAY], DAY)}".strip()


def _owners(parties: Sequence[Party]) -> str:
    return t("All") if len(parties) == len(Party) else t(", ").join(t(PARTIES[party]) for party in parties)


def steps_table(steps: Sequence[Step]) -> Table:
    """Next actions; the due date is left open for the table."""
    return Table(
        heading=t("Next steps"),
        columns=(t("Action"), t("Owner"), t("Due")),
        rows=tuple(Row(cells=(say(step.action), t(PARTIES[step.owner]), "")) for step in steps),
    )
