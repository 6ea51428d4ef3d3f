"""Excel workbooks: what a sheet shows is what is read, and nothing in a workbook is run or allowed to fill memory."""

from __future__ import annotations

import io
import zipfile
from datetime import date
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from calc.errors import UnreadableFile
from data.formats import propose_columns, read, records, workbook
from data.records import ReadResult

ROWS: list[list[Any]] = [["并发数", "QPS", "首Token时延(ms)", "成功率"], [8, 2.5, 412.5, 0.995], [16, 3, 980, 1]]


def book(rows: list[list[Any]] = ROWS, **sheets: list[list[Any]]) -> Workbook:
    made = Workbook()
    for row in rows:
        first(made).append(row)
    for title, more in sheets.items():
        sheet = made.create_sheet(title)
        for row in more:
            sheet.append(row)
    return made


def first(made: Workbook) -> Worksheet:
    return made.worksheets[0]


def content(made: Workbook) -> bytes:
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def result_of(made: Workbook, columns: dict[str, str] | None = None) -> ReadResult:
    return read(content(made), "book.xlsx", columns)


def test_a_sheet_is_read_like_a_table() -> None:
    result = result_of(book())
    assert result.format == "generic_xlsx"
    assert [(r["max_concurrency"], r["request_throughput"], r["ttft_ms"]["mean"]) for r in records(result)] == [
        (8, 2.5, 412.5),
        (16, 3, 980),
    ]
    assert [run.line for run in result.runs] == [2, 3]


def test_a_title_above_and_merged_headers_in_two_rows_are_joined() -> None:
    made = book(
        [
            ["Load test of January", None, None, None, None, None],
            [],
            ["model", "并发", "TTFT (ms)", None, "TPOT (ms)", None],
            [None, None, "avg", "P99", "avg", "P99"],
            ["m", 8, 400, 900, 20, 30],
            [None, 16, 500, 990, 22, 33],
        ]
    )
    for area in ("A1:F1", "A3:A4", "B3:B4", "C3:D3", "E3:F3", "A5:A6"):
        first(made).merge_cells(area)
    one, second = records(result_of(made))
    assert one["ttft_ms"] == {"mean": 400, "p99": 900}
    assert one["tpot_ms"] == {"mean": 20, "p99": 30}
    assert second["model"] == "m"


def test_a_cell_shown_in_percent_is_percent_whatever_the_header_says() -> None:
    made = book([["concurrency", "TTFT (ms)", "success rate (%)"], [8, 400, 0.995]])
    first(made)["C2"].number_format = "0.0%"
    assert records(result_of(made))[0]["success_pct"] == pytest.approx(99.5)


def test_dates_hidden_rows_and_further_sheets_are_kept() -> None:
    made = book(
        [["date", "concurrency", "TTFT (ms)"], [date(2026, 1, 31), 8, 400], [date(2026, 2, 1), 16, 500]],
        second=[["concurrency", "TTFT (ms)"], [32, 700]],
        notes=[["We measured it and it was fast."]],
    )
    first(made).row_dimensions[3].hidden = True
    made["second"].sheet_state = "hidden"
    result = result_of(made)
    assert [run.max_concurrency for run in result.runs] == [8, 16, 32]
    assert result.runs[0].date == "2026-01-31"
    assert result.runs[2].extra["sheet"] == "second"
    assert "notes" in str(result.problems[0].reason)


def test_numbers_of_excel_are_never_taken_for_thousands() -> None:
    made = book([["concurrency", "TTFT (s)", "E2E (s)"], [8, 1.204, "12,5"], [16, 1.6, "13,25"]])
    assert [record["ttft_ms"]["mean"] for record in records(result_of(made))] == pytest.approx([1204, 1600])


def test_a_formula_gives_its_stored_result_and_is_never_computed() -> None:
    made = content(book([["concurrency", "TTFT (ms)"], [8, 400], [16, "=1+1"]]))
    assert [problem.line for problem in read(made, "x").problems] == [3]
    shown = _replaced(made, b"<f>1+1</f><v />", b"<f>1+1</f><v>512</v>")
    assert records(read(shown, "x"))[1]["ttft_ms"]["mean"] == 512


def test_columns_of_a_workbook_can_be_corrected() -> None:
    made = book([["concurrency", "TTFT (ms)", "speed"], [8, 400, 100]])
    assert [guess.header for guess in propose_columns(content(made), "x")] == ["concurrency", "TTFT (ms)", "speed"]
    corrected = result_of(made, {"speed": "output_token_throughput:/s"})
    assert corrected.runs[0].output_token_throughput_per_s == 100


def _replaced(made: bytes, old: bytes, new: bytes, member: str = "xl/worksheets/sheet1.xml") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            part = source.read(name)
            target.writestr(name, part.replace(old, new) if name == member else part)
    return file.getvalue()


ENTITY = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><worksheet'
BROKEN: dict[str, tuple[bytes, str]] = {
    "entities": (_replaced(content(book()), b"<worksheet", ENTITY), "document type"),
    "entities in UTF-16": (
        _replaced(content(book()), b"<worksheet", ENTITY.decode().encode("utf-16-le")),
        "document type",
    ),
    "XML cut short": (_replaced(content(book()), b"</sheetData>", b""), "damaged"),
    "half a file": (content(book())[:2000], "breaks off"),
    "a bomb": (_replaced(content(book()), b"</sheetData>", b" " * 90_000_000 + b"</sheetData>"), "at most"),
    "no sheet filled": (content(book([[]])), "no sheet"),
    "no results": (content(book([["name", "age"], ["Ann", 31]])), "expected"),
}


@pytest.mark.parametrize(("made", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_workbook_that_is_no_result_is_refused_in_one_sentence(made: bytes, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said) as refused:
        read(made, "book.xlsx")
    assert "\n" not in str(refused.value)


def test_a_sheet_too_wide_or_with_too_many_cells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = book()
    first(made)["ZZ900"] = 1
    with pytest.raises(UnreadableFile, match="at most 500 columns"):
        result_of(made)
    monkeypatch.setattr(workbook, "MAX_CELLS", 10)
    with pytest.raises(UnreadableFile, match="at most 10 cells"):
        result_of(book())


def test_a_single_cell_in_the_last_row_costs_nothing() -> None:
    made = book()
    first(made)["A1048576"] = 1
    assert len(result_of(made).runs) == 2
