"""The pieces every page is laid out with: title, answer row, notes, and how a number is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from calc.messages import Message
from ui import charts, state
from ui.glossary import PROVENANCE
from ui.story.words import Figure
from ui.text import t

NARROW, WIDE = 150, 215
"""Least pixels of a card: two in a row on a phone, or one where a value is a phrase."""
PHRASE = 16
"""Signs from which a value counts as a phrase."""
NO_BREAK = "\u00a0"
SHORT, SHORT_HEAD, SHORT_CJK = 14, 8, 3
"""Cells, column heads and Chinese words of up to so many signs are not broken over lines."""
WORD_JOINER, CJK = "\u2060", "\u2e80"
"""Forbids a line break; the first sign of the scripts that break after any sign."""


def heading(title: str, question: str) -> None:
    """The page's name and the question it answers."""
    with st.container(gap=None):
        st.title(title, anchor=False)
        st.caption(question)


def section(title: str, sentence: str = "") -> None:
    """The head of a part of a page, with one quiet sentence."""
    with st.container(gap=None):
        st.subheader(title, anchor=False)
        if sentence:
            st.caption(escape(sentence))


def bullets(lines: Iterable[str]) -> None:
    """Facts, one a line."""
    st.markdown("\n".join(f"- {escape(line)}" for line in lines))


def answer(sentence: str, figures: Sequence[Figure], *, good: bool | None) -> None:
    """The answer first: one sentence, then three or four numbers. ``good`` None = cannot be said."""
    box = {True: st.success, False: st.error, None: st.warning}[good]
    icon = {True: ":material/check_circle:", False: ":material/cancel:", None: ":material/help:"}[good]
    box(f"**{escape(sentence)}**", icon=icon)
    width = WIDE if any(len(figure.value) >= PHRASE for figure in figures) else NARROW
    with st.grid(len(figures), min_column_width=width, gap="small"):
        for figure in figures:
            target = f"{'>' if figure.over else '≤'} {figure.target} · " if figure.target else ""
            st.metric(
                figure.label,
                figure.value,
                target + t(PROVENANCE[figure.provenance]),
                delta_color="red" if figure.over else "orange" if figure.provenance == "missing" else "off",
                delta_arrow="off",
                help=figure.help or None,
                border=True,
                height="stretch",
            )


def escape(text: str) -> str:
    """Text as it is: no Markdown or HTML meaning in names that users typed."""
    for sign in ("\\", "*", "_", "`", "[", "]", "<", ">", "$", "#", "~", ":", "|"):
        text = text.replace(sign, "\\" + sign)
    return text


def notes(messages: Iterable[Message]) -> None:
    """Remarks that belong to a result, each said once."""
    with st.container(gap=None):
        for text in dict.fromkeys(t(message) for message in messages):
            st.caption(f":material/info: {escape(text)}")


def chart(figure: Any, alt: str, key: str) -> None:
    """A picture of fixed height with its text alternative."""
    st.plotly_chart(figure, key=key, alt=alt, config=charts.CONFIG)


def table(rows: Sequence[Mapping[str, Any]], key: str, **options: Any) -> None:
    """Rows as a table, every one shown unless a height is given; wide ones scroll inside."""
    st.dataframe(list(rows), key=key, hide_index=True, width="stretch", **{"height": "content", **options})


def prose(rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows of sentences, every one shown in full."""
    shown = [{_whole(name, SHORT_HEAD): _whole(escape(str(cell))) for name, cell in row.items()} for row in rows]
    st.table(shown, hide_index=True, border="horizontal", width="stretch")


def verdicts(rows: Sequence[Mapping[str, str]]) -> None:
    """Judged conditions in three columns that a phone can show: verdict, condition with evidence, and where from."""
    shown = []
    for row in rows:
        first, second, _, _, last = row
        verdict, condition, evidence, provenance, source = (escape(cell) for cell in row.values())
        shown.append(
            {
                first: _whole(verdict),
                second: f"**{condition}**  \n{evidence}",
                last: f":gray[{provenance}  \n{source}]",
            }
        )
    st.table(shown, hide_index=True, border="horizontal", width="stretch")


def _whole(cell: str, short: int = SHORT) -> str:
    """Short cells such as ``30.5 GiB`` stay on one line; so do short words of a script that breaks after any sign."""
    if len(cell) > short:
        return cell
    if len(cell) <= SHORT_CJK and all(sign >= CJK for sign in cell):
        return WORD_JOINER.join(cell)
    return cell.replace(" ", NO_BREAK)


def remarks(lines: Iterable[str]) -> None:
    """Quiet sentences below a result, one under the other."""
    with st.container(gap=None):
        for line in lines:
            st.caption(escape(line))


def computed(lines: Iterable[str], sources: Iterable[str]) -> None:
    """How this is computed: formulas with the numbers put in, then where they come from."""
    with st.expander(t("How this is computed"), icon=":material/functions:"):
        for line in lines:
            st.markdown(line)
        for source in dict.fromkeys(source for source in sources if source):
            st.caption(t("Source: {source}", source=source))


def pick(label: str, names: Mapping[str, str], key: str, index: int = 0) -> str:
    """A select box of codes shown by their names; codes stay the same in every language."""
    return str(
        st.selectbox(
            label, list(names), index, key=key, format_func=lambda code: names.get(code, code), persist_state="session"
        )
    )


def switch(label: str, names: Mapping[str, str], key: str, default: str, *, linked: bool = False) -> str:
    """A row of buttons of which one is on; that of a ``linked`` row is part of the page's address."""
    if linked:
        state.take_linked(key, names)
    chosen = str(
        st.segmented_control(
            label, list(names), default=default if state.get(key) is None else None, required=True, key=key,
            persist_state="session", format_func=lambda code: names.get(code, code),
        )
    )  # fmt: skip
    if linked:
        state.write_linked(key, chosen, default)
    return chosen


def link(page: str, label: str) -> None:
    """The way to another page."""
    st.page_link(f"../pages/{page}.py", label=label, icon=":material/arrow_forward:")


def tones() -> charts.Tones:
    """The tones of the visitor's theme."""
    return charts.Tones.of(dark=state.dark())
