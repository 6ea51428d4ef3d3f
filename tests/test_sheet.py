"""The review sheet: one A4 page, the same numbers in every form, nothing of a hostile name taken as markup."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
import sheet_samples as samples
from pypdf import PdfReader

from calc import MODEL_VERSION
from calc.errors import UnreadableFile
from calc.evidence import Evidence, Provenance
from calc.judge.decide import scenario_decision
from calc.latency import predict, sweep
from calc.memory import estimate_memory
from calc.messages import msg
from calc.units import GIB
from calc.workload import Closed, Slo
from data import catalogue
from data.case import example_case, read_case
from ui.sheet import (
    Filing,
    Review,
    Status,
    build_review,
    render_html,
    render_markdown,
    render_pdf,
    review_from_json,
    review_hash,
    review_to_json,
)
from ui.sheet.page import Page, compose
from ui.sheet.plain import breakable, plain
from ui.sheet.review import Kind, State
from ui.sheet.svg import load_svg, memory_svg, ticks
from ui.story.words import missed
from ui.text import LANGUAGES

A4_PT = (595, 842)
HOSTILE = "#let x = 1 $a$ *b* <script>alert(1)</script> {{ 7*7 }} 模型 \U0001f600 \u202eevil\u202c שלום | `x` [l](http://e.com)"


@cache
def usual() -> Review:
    return samples.review()


@cache
def usual_pdf(language: str) -> str:
    (text,) = pdf_pages(render_pdf(usual(), language))
    return text


@cache
def usual_html(language: str) -> str:
    return render_html(usual(), language)


@cache
def hostile_pdf() -> str:
    (text,) = pdf_pages(render_pdf(hostile_review(), "en"))
    return text


@pytest.fixture
def review() -> Review:
    return usual()


@pytest.fixture(params=list(LANGUAGES))
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(review: Review, language: str) -> Page:
    return compose(review, language)


def pdf_pages(pdf: bytes) -> list[str]:
    reader = PdfReader(io.BytesIO(pdf))
    for leaf in reader.pages:
        assert (round(leaf.mediabox.width), round(leaf.mediabox.height)) == A4_PT
    return [leaf.extract_text().replace("\u200b", "") for leaf in reader.pages]


def words(text: str) -> str:
    """Text without white space, since a PDF breaks lines where it likes."""
    return re.sub(r"\s+", "", text)


class Tags(HTMLParser):
    """Every tag and attribute of a document, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def all_cells(page: Page) -> list[str]:
    tables = (page.latency, page.numbers, page.options)
    return [cell for table in tables for row in table.rows for cell in row.cells if any(map(str.isdigit, cell))]


def hostile_review() -> Review:
    decision = replace(
        samples.decision(),
        headline=msg("{name} wants more", name=HOSTILE),
        missing=tuple(msg("gap {n:count} {name}", n=n, name=HOSTILE * 5) for n in range(30)),
        risks=tuple(msg("{name}", name=HOSTILE * 8) for _ in range(9)),
        because=tuple(msg("{name}", name=HOSTILE * 8) for _ in range(3)),
    )
    scenario = samples.scenario(model_name="org/" + "A" * 300, name=HOSTILE)
    filing = Filing(title=HOSTILE * 4, author_role=HOSTILE, owners={"business": HOSTILE, "platform": "W" * 200})
    return build_review(scenario, samples.memory(), samples.latency(), decision, sweep=samples.sweep(), filing=filing)


# One page


def test_the_pdf_is_one_a4_page_with_model_and_decision(review: Review, language: str, page: Page) -> None:
    text = usual_pdf(language)
    assert "Qwen/Qwen3-32B" in text
    assert words(page.verdict) in words(text)
    assert MODEL_VERSION in text
    assert review_hash(review)[:12] in text


def test_the_same_review_gives_the_same_bytes(review: Review, language: str) -> None:
    assert render_pdf(review, language) == render_pdf(review, language)
    assert render_html(review, language) == render_html(review, language)


def test_a_review_with_too_much_text_is_cut_to_one_page_and_says_so() -> None:
    text = hostile_pdf()
    assert "Shortened to fit one page" in text


def test_a_usual_review_is_not_cut(review: Review, language: str, page: Page) -> None:
    text = usual_pdf(language)
    assert all(words(line) in words(text) for line in (*page.boundaries.items, *page.risks.items))


def test_a_saturated_load_and_a_full_pool_still_make_one_page(language: str) -> None:
    review = build_review(
        samples.scenario(), samples.memory(demand_gib=60.0), samples.latency(9.0, saturated=True), samples.decision()
    )
    (text,) = pdf_pages(render_pdf(review, language))
    assert compose(review, language).latency.rows[0].cells[1] in text


# The same numbers everywhere


def test_pdf_html_and_markdown_show_the_same_numbers(review: Review, language: str, page: Page) -> None:
    pdf = usual_pdf(language)
    html = Tags(usual_html(language)).text
    markdown = render_markdown(review, language).replace("\\", "")
    for cell in all_cells(page):
        assert words(cell) in words(pdf)
        assert cell in html
        assert cell in markdown


@pytest.mark.parametrize(
    ("key", "in_base_unit", "shown"),
    [
        ("weights", 30.6 * GIB, "30.6 GiB"),
        ("kv_demand", 27.4 * GIB, "27.4 GiB"),
        ("hit_rate", 0.25, "25 %"),
        ("knee", 3.2, "3.20 requests/s"),
        ("cost", 1.08, "1.08 USD"),
    ],
)
def test_markdown_rounds_the_number_that_the_json_holds(
    review: Review, key: str, in_base_unit: float, shown: str
) -> None:
    saved = json.loads(review_to_json(review))["review"]
    (value,) = [row["figures"][0]["value"] for row in saved["numbers"] if row["key"] == key]
    assert value == pytest.approx(in_base_unit, rel=1e-9)
    assert f"| {shown} |" in render_markdown(review, "en")


def test_every_number_says_where_it_comes_from(review: Review) -> None:
    figures = [figure for row in review.numbers for figure in (*row.figures, *row.measured)]
    assert all(figure.source for figure in figures if figure.value is not None)
    assert all(figure.provenance is Provenance.MISSING for figure in figures if figure.value is None)


def test_hit_rate_memory_peak_p99_and_unit_cost_stand_in_one_table(page: Page) -> None:
    as_is, first, *_ = page.options.rows
    assert as_is.cells[1:6] == ("25 %", "63.0 GiB", "2,970 ms", "38.20 s", "1.08 USD")
    assert first.strong
    assert first.cells[1] == "60 %"


def test_mean_latency_is_shown_as_the_sum_of_its_four_parts(review: Review) -> None:
    assert (
        "E2E 11.11 s = queue 0.21 s + prefill 0.47 s + decode 10.40 s + network 0.03 s"
        in compose(review, "en").load.caption
    )


def test_percentiles_of_a_saturated_load_are_not_printed() -> None:
    review = build_review(
        samples.scenario(), samples.memory(), samples.latency(9.0, saturated=True), samples.decision()
    )
    page = compose(review, "en")
    assert {cell for row in page.latency.rows for cell in row.cells[1:4]} == {"unstable"}
    assert {row.tone for row in page.latency.rows} == {"missed"}
    assert "=" not in page.load.caption


def test_what_cannot_be_served_has_no_memory_peak_either() -> None:
    review = build_review(
        samples.scenario(), samples.memory(demand_gib=700.0), samples.latency(9.0, saturated=True), samples.decision()
    )
    page = compose(review, "en")
    assert page.options.rows[0].cells[2:5] == ("unstable", "unstable", "unstable")
    assert "700" not in render_markdown(review, "en")


def test_a_deployment_that_does_not_fit_gives_a_sheet_that_says_by_how_much() -> None:
    memory = replace(samples.memory(), fits=False, over_bytes=round(43.4 * GIB), kv_pool_bytes=0, kv_demand_bytes=0)
    review = build_review(samples.scenario(), memory, None, samples.decision())
    page = compose(review, "en")
    assert "43.4 GiB" in page.boundaries.items[0]
    assert {cell for row in page.latency.rows for cell in row.cells[1:4]} == {"does not fit"}
    assert page.options.rows[0].tone == "missed"
    pdf_pages(render_pdf(review, "en"))


def test_answers_of_one_token_cannot_miss_a_target_for_itl() -> None:
    case = example_case()
    one = {"distribution": "fixed", "value": 1}
    scenario, _ = read_case({**case, "workload": {**case["workload"], "output_tokens": one, "num_requests": 200}})
    latency = predict(scenario)
    assert latency.itl.mean_s is None
    assert missed(latency, scenario.slo) == []


def test_without_targets_nothing_is_met_or_missed() -> None:
    free = replace(samples.scenario(), slo=Slo())
    latency = replace(samples.latency(), slo_met=None, slo_attainment_share=None)
    review = build_review(free, samples.memory(), latency, samples.decision(), sweep=samples.sweep())
    page = compose(review, "en")
    assert {row.tone for row in page.latency.rows} == {""}
    assert page.options.rows[0].cells[-1] == "–"
    assert "no target is set" in render_markdown(review, "en")


def test_no_load_within_the_slo_is_said_in_words() -> None:
    never = samples.review(sweep=replace(samples.sweep(), knee_load=None))
    (row,) = [row for row in never.numbers if row.key == "knee"]
    assert row.passes is False
    assert "none of those simulated" in render_markdown(never, "en")


def test_a_missing_cost_is_called_missing() -> None:
    row = compose(samples.review(cost_per_million_tokens=None), "en").numbers.rows[-1]
    assert row.cells == ("Cost per million tokens", "not measured", "–", "–", "missing")


# Measurement beside prediction, evidence, status


def test_a_run_at_this_load_stands_under_the_prediction_and_is_judged() -> None:
    slow = samples.run(ttft=replace(samples.run().ttft, p95_s=2.4))
    page = compose(samples.review(runs=(slow,)), "en")
    predicted, measured = page.latency.rows[:2]
    assert predicted.cells[-2:] == ("–", "simulated")
    assert measured.cells == (
        "TTFT (guidellm)",
        "655 ms",
        "2,400 ms",
        "3,300 ms",
        "≤ P95 2,000 ms",
        "no",
        "measured 2026-11-21",
    )
    assert measured.tone == "missed"


@pytest.mark.parametrize(
    "other",
    [
        {"model": "Qwen/Qwen3-14B"},
        {"gpu_count": 4},
        {"request_rate_per_s": 6.0},
        {"request_rate_per_s": None},
        {"backend": "sglang"},
        {"model": None},
    ],
)
def test_a_run_of_another_deployment_or_load_is_not_compared(other: dict[str, object]) -> None:
    review = samples.review(runs=(samples.run(**other),))
    assert all(not row.measured for row in review.numbers)
    assert {proof.kind: proof.state for proof in review.proofs}[Kind.RETROSPECTIVE] is not State.VERIFIED


def test_the_prediction_error_is_relative_to_the_measurement(review: Review) -> None:
    proof = next(proof for proof in review.proofs if proof.kind is Kind.RETROSPECTIVE)
    assert str(proof.says) == "TTFT P95: 1,920 ms measured (prediction -4 %)"


@pytest.mark.parametrize(
    ("run", "state", "status"),
    [
        (samples.run(), State.VERIFIED, Status.FOR_REVIEW),
        (samples.run(date="2026-10-30"), State.STALE, Status.DRAFT),
        (samples.run(date="2026-10-31"), State.VERIFIED, Status.FOR_REVIEW),
        (samples.run(date=None), State.PARTIAL, Status.DRAFT),
        (samples.run(model="another"), State.MISSING, Status.DRAFT),
    ],
)
def test_runtime_evidence_older_than_thirty_days_is_stale(run: object, state: State, status: Status) -> None:
    review = samples.review(runs=(run,))
    assert next(proof.state for proof in review.proofs if proof.kind is Kind.RUNTIME) is state
    assert review.status is status


@pytest.mark.parametrize("lacking", ["real_requests", "real_roles", "real_figures"])
def test_without_real_requests_roles_or_figures_it_is_a_demonstration(lacking: str, language: str) -> None:
    review = samples.review(filing=replace(samples.filing(), **{lacking: False}))
    assert review.status is Status.DEMONSTRATION
    page = compose(review, language)
    markdown = render_markdown(review, language)
    assert page.status in markdown
    assert page.demonstration in markdown


def test_a_demonstration_is_stamped_on_the_page(language: str) -> None:
    review = build_review(samples.scenario(), samples.memory(), samples.latency(), samples.decision())
    page = compose(review, language)
    (text,) = pdf_pages(render_pdf(review, language))
    assert words(page.status) in words(text)
    assert words(page.demonstration) in words(text)


def test_all_four_kinds_of_evidence_are_there_even_when_nothing_is_known() -> None:
    bare = build_review(samples.scenario(), samples.memory(), samples.latency(), samples.decision())
    assert [proof.kind for proof in bare.proofs] == list(Kind)
    assert [proof.state for proof in bare.proofs] == [State.PARTIAL, State.MISSING, State.MISSING, State.MISSING]


def test_a_measured_hit_rate_replaces_the_declared_one() -> None:
    counter = Evidence(
        metric="hit_rate_share",
        value=0.31,
        unit="share",
        provenance=Provenance.MEASURED,
        source="m.txt",
        date="2026-11-29",
    )
    page = compose(samples.review(evidence=(counter,)), "en")
    (row,) = [row for row in page.numbers.rows if row.cells[0] == "Hit rate"]
    assert row.cells[1:] == ("31 %", "–", "–", "measured 2026-11-29")


def test_business_platform_and_security_sign(page: Page) -> None:
    assert len({sign.party for sign in page.signs}) == 3
    assert all(len(sign.choices) == 3 for sign in page.signs)


def test_boundaries_carry_the_numbers_of_this_deployment() -> None:
    text = " ".join(compose(samples.review(), "en").boundaries.items)
    assert "3.20 requests/s" in text
    assert "5.40 requests/s" in text
    assert "32,768 tokens" in text
    assert "61 requests" in text  # 35.6 GiB / 0.58 GiB


def test_a_closed_loop_speaks_of_users_and_concurrency() -> None:
    scenario = samples.scenario()
    closed = replace(scenario, workload=replace(scenario.workload, arrivals=Closed(concurrency=64)))
    rising = replace(
        samples.sweep(),
        axis="concurrency",
        loads=(8.0, 16.0, 32.0, 64.0, 96.0, 128.0, 256.0),
        operating_load=64.0,
        knee_load=70.0,
    )
    review = build_review(closed, samples.memory(), samples.latency(), samples.decision(), sweep=rising)
    markdown = render_markdown(review, "en")
    assert "64 users who wait for each answer" in markdown
    assert "Above 70 concurrent requests" in markdown


# Snapshot


def test_a_saved_review_opens_with_the_same_numbers_hash_and_version(review: Review, language: str) -> None:
    opened = review_from_json(review_to_json(review))
    assert opened == review
    assert review_hash(opened) == review_hash(review)
    assert opened.model_version == MODEL_VERSION
    assert compose(opened, language) == compose(review, language)


def test_a_review_that_passed_through_another_json_writer_still_opens(review: Review) -> None:
    assert review_from_json(json.dumps(json.loads(review_to_json(review)))) == review


def test_a_changed_snapshot_is_refused(review: Review) -> None:
    forged = review_to_json(review).replace('"passes": true', '"passes": false')
    with pytest.raises(UnreadableFile, match="hash differs"):
        review_from_json(forged)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": "plimsoll-review", "hash": "x", "review": {}}'])
def test_something_else_is_not_taken_for_a_saved_review(text: str) -> None:
    with pytest.raises(UnreadableFile):
        review_from_json(text)


def test_the_hash_follows_every_number() -> None:
    assert review_hash(samples.review()) == review_hash(samples.review())
    assert review_hash(samples.review()) != review_hash(samples.review(cost_per_million_tokens=1.0801))


# Hostile text


def test_a_hostile_name_is_plain_text_in_html(language: str) -> None:
    parsed = Tags(render_html(hostile_review(), language))
    assert "script" not in parsed.tags
    assert "<script>alert(1)</script>" in parsed.text
    assert "{{ 7*7 }}" in parsed.text
    assert "\u202e" not in parsed.text


def test_html_asks_nothing_of_the_network(language: str) -> None:
    document = usual_html(language)
    parsed = Tags(document)
    assert not {"script", "link", "img", "iframe", "object", "base"} & {*parsed.tags}
    assert not [value for name, value in parsed.attributes if name in ("src", "href", "xlink:href", "action")]
    assert {target[:5] for target in re.findall(r"url\(([^)]*)", document)} <= {"data:", "#hull", "#load"}
    assert "http://" not in document
    assert "https://" not in document
    assert "@import" not in document


def test_a_hostile_name_is_plain_text_in_the_pdf() -> None:
    text = hostile_pdf()
    assert "#let x = 1 $a$ *b* <script>alert(1)</script>" in text
    assert "模型" in text


def test_signs_the_font_lacks_are_replaced_and_named() -> None:
    text = hostile_pdf()
    assert "U+1F600" in text
    assert "U+05D5" in text
    assert "\U0001f600" not in text


def test_a_hostile_name_cannot_break_a_markdown_table() -> None:
    markdown = render_markdown(hostile_review(), "en")
    assert "<script" not in markdown
    assert "\\[l\\](http" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (4, 6, 8) for row in rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\tc", "a b c"),
        ("\u202eabc\u202c", "abc"),
        ("x\x00y\x1b[31m", "xy[31m"),
        ("e\u0301", "é"),
        ("abcdefghijkl", "abcdefghi…"),
    ],
)
def test_text_from_outside_becomes_one_visible_line(text: str, expected: str) -> None:
    assert plain(text, 10) == expected


def test_long_words_may_break_and_short_ones_stay_whole() -> None:
    assert breakable("meta-llama/Meta-Llama-3.1-8B-Instruct") == "meta-llama/Meta-Llama-3.1-8B-Instruct"
    broken = breakable("vllm:prefix_cache_queries_total")
    assert broken.replace("\u200b", "") == "vllm:prefix_cache_queries_total"
    assert max(map(len, breakable("W" * 500).split("\u200b"))) <= 25


# Pictures


def test_the_hull_is_as_long_as_the_gpu_and_hatches_what_is_over() -> None:
    fits = memory_svg(samples.review().memory)
    over = memory_svg(
        build_review(samples.scenario(), samples.memory(demand_gib=49.0), samples.latency(), samples.decision()).memory
    )
    widths = [float(width) for width in re.findall(r'y="17.0" width="([\d.]+)"', fits)]
    assert widths[0] == pytest.approx(300, abs=0.1)  # the GPU
    assert sum(widths[1:5]) == pytest.approx(300 * 71.2 / 79.1, abs=0.3)  # the budget
    assert 'fill="url(#hull-over)"' not in fits
    assert 'fill="url(#hull-over)"' in over
    assert "13.4 GiB" in over  # 30.6 + 5.0 + 49.0 - 71.2


def test_the_load_picture_marks_slo_planned_load_and_highest_load() -> None:
    svg = load_svg(samples.review().curve)
    assert "SLO P95 2,000 ms" in svg
    assert "planned 3" in svg
    assert "SLO holds up to 3.2" in svg
    assert svg.count("<polyline") == 3


def test_without_a_sweep_the_picture_says_not_measured() -> None:
    assert "not measured" in load_svg(None)


@pytest.mark.parametrize("top", [0.003, 0.9, 5.15, 37.0, 2500.0, 81234.0])
def test_axis_ticks_are_round_rising_and_inside(top: float) -> None:
    values = ticks(top)
    assert values[0] == 0
    assert values == sorted(set(values))
    assert 3 <= len(values) <= 9
    assert values[-1] <= top


def test_pictures_carry_hostile_text_escaped() -> None:
    svg = load_svg(replace(samples.review().curve, slo_percentile="<b>&P95"))
    assert "&lt;b&gt;&amp;P95" in svg


# The real calculation


def test_the_worked_example_fits_one_page_uncut(language: str) -> None:
    scenario, _ = read_case(example_case())
    latency = predict(scenario, requests=300)
    memory = estimate_memory(scenario.deployment, scenario.workload, latency.concurrency)
    decision = scenario_decision(scenario, tuple(catalogue.gpus().values()), requests=300)
    review = build_review(scenario, memory, latency, decision, sweep=sweep(scenario, points=5, requests=300))
    assert review_from_json(review_to_json(review)) == review
    (text,) = pdf_pages(render_pdf(review, language))
    page = compose(review, language)
    assert words(page.verdict) in words(text)
    assert all(words(step.cells[0]) in words(text) for step in page.steps.rows)
