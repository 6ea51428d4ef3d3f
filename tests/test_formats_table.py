"""Hand-made tables: headers in three languages, numbers in every notation, and every way to lay a table out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from calc.errors import InputError
from data.formats import FIELD_CHOICES, propose_columns, read
from data.formats.fields import ColumnMeaning
from data.formats.headers import understand
from data.formats.numbers import Number, Special, parse_cell, uses_decimal_comma
from data.formats.row_checks import RefusedRow
from data.records import BenchmarkRun, ReadResult

GOLDEN = Path(__file__).parent / "golden" / "headers.csv"
HEADERS = list(csv.DictReader(GOLDEN.read_text(encoding="utf-8").splitlines()))


def table(text: str, columns: dict[str, str] | None = None, encoding: str = "utf-8") -> ReadResult:
    return read(text.encode(encoding), "table.csv", columns)


def ttft_ms(run: BenchmarkRun) -> float:
    assert run.ttft is not None
    assert run.ttft.mean_s is not None
    return run.ttft.mean_s * 1000


def e2e_s(run: BenchmarkRun) -> float:
    assert run.e2e is not None
    assert run.e2e.mean_s is not None
    return run.e2e.mean_s


@pytest.mark.parametrize("row", HEADERS, ids=[row["header"] for row in HEADERS])
def test_a_real_header_is_understood(row: dict[str, str]) -> None:
    found = understand(row["header"])
    assert found is not None
    assert str(ColumnMeaning(code=found.code, statistic=found.statistic, unit=found.unit)) == row["choice"]


def test_what_a_header_leaves_open_is_marked() -> None:
    for header in ("TTFT (ms)", "延迟(ms)", "Batch Size", "latency avg (s)"):
        found = understand(header)
        assert found is not None
        assert found.assumed, header
    certain = understand("TTFT P99 (ms)")
    assert certain is not None
    assert not certain.assumed


@pytest.mark.parametrize(
    ("cell", "comma", "value", "unit"),
    [
        ("1,434.6", False, 1434.6, None),
        ("1.204,8", True, 1204.8, None),
        ("1.600", True, 1600, None),
        ("1\u202f204.5", False, 1204.5, None),
        ("1'204", False, 1204, None),
        ("412.5ms", False, 412.5, "ms"),
        ("1.89 s", False, 1.89, "s"),
        ("９９．５％", False, 99.5, "%"),
        ("95 %", False, 95, "%"),
        ("7650 MiB", False, 7650, "MiB"),
        ("1.5万", False, 15_000, None),
        ("1e-3", False, 0.001, None),
        ("-3.2", False, -3.2, None),
        ("1,02", True, 1.02, None),
    ],
)
def test_a_number_is_read_as_its_writer_meant_it(cell: str, comma: bool, value: float, unit: str | None) -> None:
    parsed = parse_cell(cell, decimal_comma=comma, what="x")
    assert isinstance(parsed, Number)
    assert parsed.value == pytest.approx(value)
    assert parsed.unit == unit


def test_mean_and_spread_in_one_cell_are_parted() -> None:
    assert parse_cell("1.2±0.1 s", decimal_comma=False, what="x") == Number(value=1.2, unit="s", spread=0.1)


@pytest.mark.parametrize("cell", ["", "-", "--", "N/A", "n/a", "nan", "null", "None", "无", "未测", "[Not Supported]"])
def test_nothing_is_written_in_many_ways(cell: str) -> None:
    assert parse_cell(cell, decimal_comma=False, what="x") is Special.EMPTY


@pytest.mark.parametrize("cell", ["OOM", "失败", "超时", "timeout"])
def test_a_failed_point_is_not_an_empty_cell(cell: str) -> None:
    assert parse_cell(cell, decimal_comma=False, what="x") is Special.FAILED


@pytest.mark.parametrize("cell", ["[12,2048]:411.2", "12~15", "12-15", "53.59 / 53.96 / 54.24"])
def test_a_range_is_no_number(cell: str) -> None:
    assert parse_cell(cell, decimal_comma=False, what="x") is Special.RANGE


@pytest.mark.parametrize("cell", ["about five", "1.2k", "3 apples", "1.2.3", "1e999"])
def test_words_and_unclear_multipliers_refuse_the_row(cell: str) -> None:
    with pytest.raises(RefusedRow):
        parse_cell(cell, decimal_comma=False, what="x")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["231,7", "1.204,8"], True),
        (["0.95", "1"], False),
        (["1,434.6"], False),
        (["1.204"], None),
        (["400", "1,204"], None),
        (["1.204.800"], True),
    ],
)
def test_the_decimal_sign_of_a_column_is_judged_by_its_clear_cells(cells: list[str], expected: bool | None) -> None:
    assert uses_decimal_comma(cells) is expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_a_chinese_table_reads_the_same_in_every_encoding(encoding: str) -> None:
    text = "模型,并发数,首Token时延(ms),成功率\n千问,16,412.5,99.5%\n"
    run = table(text, encoding=encoding).runs[0]
    assert (run.model, run.max_concurrency) == ("千问", 16)
    assert run.success_share == pytest.approx(0.995)
    assert ttft_ms(run) == pytest.approx(412.5)


def test_latin_1_is_not_mistaken_for_chinese() -> None:
    result = read("Modell;Gesamtlatenz (s);Parallelität\nGröße é;3,5;4\n".encode("latin-1"), "x.csv")
    assert result.runs[0].model == "Größe é"
    assert result.runs[0].max_concurrency == 4
    assert "encoding_latin1" in result.notes


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_separator_is_found(separator: str) -> None:
    lines = [["Concurrency", "TTFT (ms)", "QPS"], ["8", "120.5", "3.2"]]
    run = table("\n".join(separator.join(line) for line in lines)).runs[0]
    assert (run.max_concurrency, run.request_throughput_per_s) == (8, 3.2)


def test_a_title_and_comments_may_stand_above_the_header() -> None:
    text = "vLLM 压测结果,,\n# run by Ann,,\n\n并发,首字延迟(ms),QPS\n4,80,1.5\n"
    result = table(text)
    assert ttft_ms(result.runs[0]) == 80
    assert result.runs[0].line == 5


def test_two_header_rows_with_merged_cells_are_joined() -> None:
    text = ",,TTFT (ms),,,TPOT (ms),,\n并发,QPS,avg,P95,P99,avg,P95,P99\n8,1.5,100,200,300,10,20,30\n"
    run = table(text).runs[0]
    assert run.ttft is not None
    assert run.tpot is not None
    assert (run.ttft.mean_s, run.ttft.p95_s, run.ttft.p99_s) == pytest.approx((0.1, 0.2, 0.3))
    assert (run.tpot.mean_s, run.tpot.p99_s) == pytest.approx((0.01, 0.03))
    assert (run.max_concurrency, run.request_throughput_per_s) == (8, 1.5)


def test_pairs_of_metric_and_value_are_one_run() -> None:
    run = table("指标,数值\n模型,Qwen3\n并发数,32\n首Token时延(ms),410\n端到端时延(s),15.5\n").runs[0]
    assert (run.model, run.max_concurrency, e2e_s(run)) == ("Qwen3", 32, 15.5)


def test_metrics_down_and_concurrency_across_is_one_run_a_column() -> None:
    result = table("指标,并发1,并发8,并发32\n首Token时延(ms),40,90,410\n非首Token时延(ms),10,12,29\nQPS,0.2,1.4,2.1\n")
    assert [run.max_concurrency for run in result.runs] == [1, 8, 32]
    assert [ttft_ms(run) for run in result.runs] == pytest.approx([40, 90, 410])


def test_a_markdown_table_is_a_table() -> None:
    text = (
        "| ISL | OSL | Concurrency | TTFT (ms) | TPOT (ms) |\n|---|---|---:|---|---|\n| 128 | 128 | 32 | 95.5 | n/a |\n"
    )
    result = table(text)
    assert (result.runs[0].max_concurrency, result.runs[0].tpot) == (32, None)
    assert "lengths_nominal" in {warning.code for warning in result.warnings}


def test_one_request_a_row_is_summed_up() -> None:
    rows = "\n".join(f"{i},text,100,{n},{0.1 + 0.02 * (n - 1):.3f},100,20" for i, n in enumerate((11, 21, 31)))
    header = "测试次数,响应,输入 token 数,输出 token 数,耗时（秒）,首Token延迟(ms),非首Token平均延迟(ms)"
    text = f"{header}\n{rows}\n9,,100,0,0,0,0\n"
    result = table(text)
    run = result.runs[0]
    assert (len(result.runs), run.num_prompts, run.completed, run.failed) == (1, 4, 3, 1)
    assert run.output_tokens_mean == 21
    assert e2e_s(run) == pytest.approx(0.5)
    assert "text" not in str(run)


def test_a_point_that_ran_out_of_memory_stays_and_says_so() -> None:
    result = table("Concurrency,TTFT (ms),QPS\n8,100,2\n64,OOM,OOM\n")
    assert result.runs[1].extra["failed_point"] == "yes"
    assert result.runs[1].ttft is None
    assert "failed_point" in result.notes


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("8,-5,20,0.5,2", "negative"),
        ("8,five,20,0.5,2", "number was expected"),
        ("8,900,20,0.5,2", "above E2E"),
        ("8,1,204,20,0.5,2", "quotes"),
        ("900000,100,20,0.5,2", "concurrency"),
        ("8,100,20,0.5,-2", "request_throughput_per_s"),
        (",,,,", None),
    ],
)
def test_a_row_that_cannot_be_is_listed_with_its_line(row: str, said: str | None) -> None:
    header = "Concurrency,TTFT mean (ms),TPOT mean (ms),E2E mean (s),QPS"
    result = table(f"{header}\n4,50,10,0.4,1\n{row}\n4,60,10,0.4,1\n")
    assert [ttft_ms(run) for run in result.runs] == pytest.approx([50, 60])
    if said is None:
        assert not result.problems
    else:
        assert result.problems[0].line == 3
        assert said in str(result.problems[0].reason)


def test_swapped_percentile_columns_are_listed() -> None:
    result = table("Concurrency,TTFT P50 (ms),TTFT P99 (ms)\n8,300,100\n8,100,300\n")
    assert len(result.runs) == 1
    assert "swapped" in str(result.problems[0].reason)


def test_two_columns_of_one_meaning_are_named_and_the_first_counts() -> None:
    result = table("Concurrency,TTFT (ms),TTFT (ms),QPS\n8,100,200,2\n")
    assert ttft_ms(result.runs[0]) == 100
    assert "TTFT (ms) (2)" in str(result.problems[0].reason)


def test_what_was_understood_is_shown_with_samples_and_goes_back_unchanged() -> None:
    text = "模型,并发数,首Token时延(ms),响应\nQwen,8,120.5,secret words\n"
    guesses = propose_columns(text.encode(), "x.csv")
    assert [guess.choice for guess in guesses] == ["model", "max_concurrency", "ttft.mean:ms", "answer_text"]
    assert guesses[2].samples == ("120.5",)
    assert guesses[2].assumed
    assert guesses[3].samples == ()
    assert all(guess.choice in FIELD_CHOICES for guess in guesses)
    columns = {guess.header: guess.choice for guess in guesses}
    assert table(text, columns).runs == table(text).runs


def test_a_correction_decides_meaning_and_unit() -> None:
    text = "Concurrency,latency,speed,TTFT (ms)\n8,1.5,300,100\n"
    run = table(text, {"latency": "e2e.p99:s", "speed": "output_token_throughput:/s", "TTFT (ms)": "ignore"}).runs[0]
    assert run.e2e is not None
    assert (run.e2e.p99_s, run.output_token_throughput_per_s, run.ttft) == (1.5, 300, None)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"nope": "ttft.mean:ms"}, "no column nope"),
        ({"QPS": "speediness"}, "speediness is no field"),
        ({"QPS": "ttft.p42:ms"}, "p42 is no statistic"),
        ({"QPS": "ttft.mean:parsec"}, "parsec is no unit"),
        ({"QPS": "max_concurrency:ms"}, "ms is no unit"),
    ],
)
def test_a_correction_that_means_nothing_is_an_error(columns: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        table("Concurrency,TTFT (ms),QPS\n8,100,2\n", columns)


def test_a_unit_nobody_wrote_is_assumed_from_the_size_and_marked() -> None:
    guesses = {g.header: g for g in propose_columns(b"Concurrency,TTFT,TPOT,E2E\n8,0.41,0.03,15\n8,1.2,0.05,40\n", "x")}
    assert (guesses["TTFT"].unit, guesses["TPOT"].unit, guesses["E2E"].unit) == ("s", "s", "s")
    assert all(guesses[name].assumed for name in ("TTFT", "TPOT", "E2E"))
    assert propose_columns(b"Concurrency,TTFT\n8,410\n", "x")[1].unit == "ms"


def test_a_wrong_unit_in_a_label_is_found_by_the_identity() -> None:
    text = "Concurrency,TTFT (s),TPOT (ms),E2E (s),输出 token 数\n8,0.4,29,15.2,512\n"
    assert "unit_implausible" not in {w.code for w in table(text).warnings}
    assert "unit_implausible" in {w.code for w in table(text.replace("TPOT (ms)", "TPOT (s)")).warnings}


def test_every_choice_can_be_read_back() -> None:
    for choice in FIELD_CHOICES:
        assert table("QPS,GPUs,x\n5,8,1\n5,9,1\n", {"x": choice}).runs or choice == "request_index", choice


def test_a_bare_latency_alone_is_never_used_as_ttft_or_e2e() -> None:
    result = table("concurrency,Latency (ms),QPS\n8,400,2\n")
    run = result.runs[0]
    assert (run.ttft, run.e2e) == (None, None)
    assert run.extra["latency_ambiguous_mean_s"] == pytest.approx(0.4)
    assert "latency_ambiguous" in result.notes
    asked = {guess.header: guess for guess in propose_columns(b"concurrency,Latency (ms),QPS\n8,400,2\n", "x")}
    assert asked["Latency (ms)"].assumed
    confirmed = table("concurrency,Latency (ms),QPS\n8,400,2\n", {"Latency (ms)": "ttft.mean:ms"})
    assert ttft_ms(confirmed.runs[0]) == pytest.approx(400)


def test_a_bare_latency_beside_a_ttft_is_the_e2e_latency_and_is_asked() -> None:
    text = "并发,TTFT P99 (ms),延迟 P99 (s)\n8,400,12\n"
    assert table(text).runs[0].e2e.p99_s == 12  # type: ignore[union-attr]
    assert [guess.assumed for guess in propose_columns(text.encode(), "x")] == [False, False, True]


@pytest.mark.parametrize("header", ["batch", "Batch Size", "批大小"])
def test_a_batch_is_never_used_as_a_concurrency(header: str) -> None:
    run = table(f"{header},TTFT (ms),QPS\n8,400,2\n").runs[0]
    assert run.max_concurrency is None
    assert run.extra["batch_ambiguous"] == 8


@pytest.mark.parametrize("header", ["TPS", "吞吐", "tokens/s", "Throughput (tok/s)", "系统吞吐", "每秒输出token数"])
def test_a_throughput_of_unsaid_kind_is_never_used_as_another(header: str) -> None:
    run = table(f"concurrency,TTFT (ms),{header}\n8,400,900\n").runs[0]
    assert run.ambiguous_throughput_per_s == 900
    assert run.output_token_throughput_per_s is None
    assert run.total_token_throughput_per_s is None
    assert run.request_throughput_per_s is None


def test_thousands_of_a_rate_are_read_and_of_a_length_refused() -> None:
    result = table("concurrency,output throughput (tok/s),总请求数,ISL\n8,1.2k,1.5万,2048\n16,1.3k,2k,2k\n")
    assert result.runs[0].output_token_throughput_per_s == pytest.approx(1200)
    assert result.runs[0].num_prompts == 15_000
    assert [problem.line for problem in result.problems] == [3]


@pytest.mark.parametrize(
    "cell", ["OOM", "CUDA out of memory", "OOM killed", "请求超时", "显存不足", "timed out", "failed"]
)
def test_a_row_that_failed_marks_the_limit_and_is_kept(cell: str) -> None:
    result = table(f"concurrency,TTFT (ms),QPS\n8,400,2\n64,{cell},\n")
    assert [run.max_concurrency for run in result.runs] == [8, 64]
    assert result.runs[1].extra["failed_point"] == "yes"
    assert result.runs[1].ttft is None
    assert "failed_point" in result.notes


def test_pairs_of_metric_unit_and_value_are_one_run() -> None:
    result = table("指标,单位,数值\n并发数,,8\n首Token时延,ms,412.5\n端到端时延,s,12\nQPS,,2\n")
    assert len(result.runs) == 1
    assert ttft_ms(result.runs[0]) == pytest.approx(412.5)
    assert e2e_s(result.runs[0]) == pytest.approx(12)


def test_a_header_written_again_in_the_middle_is_no_row() -> None:
    text = "concurrency,TTFT (ms),QPS\n8,400,2\n\nconcurrency,TTFT (ms),QPS\n16,500,3\n"
    result = table(text)
    assert [run.max_concurrency for run in result.runs] == [8, 16]
    assert not result.problems


def test_errors_of_a_spreadsheet_are_empty_cells() -> None:
    result = table("concurrency,TTFT (ms),QPS\n8,#DIV/0!,2\n16,#N/A,3\n")
    assert [run.ttft for run in result.runs] == [None, None]
