"""The main job in a real browser, and every page as a visitor sees it."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import FLAGS, chromium, serving, wait_until_idle

PAGES = [
    "", "workload", "memory", "latency", "alternatives", "gpu_probe", "benchmarks", "live_engine", "decision",
    "review_sheet", "guide", "catalogue",
]  # fmt: skip
VIEWS = [("light", "en", 1440), ("dark", "zh_CN", 390)]
A4_POINTS = (595, 842)
WIDE = """() => {
  const vw = document.documentElement.clientWidth;
  const main = document.querySelector('[data-testid="stMain"]');
  return Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - vw);
}"""
MEASURED = {
    "backend": "vllm", "model_id": "Qwen/Qwen3-14B", "date": "20261101-101500", "num_prompts": 600, "request_rate": 4.0,
    "burstiness": 1.0, "max_concurrency": None, "duration": 151.0, "completed": 600, "total_input_tokens": 2400000,
    "total_output_tokens": 240000, "request_throughput": 3.97, "output_throughput": 1589.0,
    "total_token_throughput": 17483.0, "mean_ttft_ms": 260.0, "median_ttft_ms": 230.0, "std_ttft_ms": 80.0,
    "p99_ttft_ms": 610.0, "mean_tpot_ms": 19.0, "median_tpot_ms": 18.6, "std_tpot_ms": 2.0, "p99_tpot_ms": 27.0,
    "mean_itl_ms": 19.0, "median_itl_ms": 15.0, "std_itl_ms": 14.0, "p99_itl_ms": 95.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("site") / "store.duckdb") as (url, _):
        yield url


def choose(page: Any, label: str, option: str) -> None:
    """Pick an option of a select box by typing it."""
    box = page.get_by_test_id("stSelectbox").filter(has_text=label).locator("input")
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).first.click()
    wait_until_idle(page)


def type_number(page: Any, label: str, value: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(value)
    box.press("Enter")
    wait_until_idle(page)


def metrics(page: Any) -> list[str]:
    values = page.get_by_test_id("stMetricValue")
    values.first.wait_for()
    return list(values.all_inner_texts())


def test_a_platform_engineer_goes_from_the_example_to_a_signed_sheet(browser: Any, site: str, tmp_path: Path) -> None:
    from pypdf import PdfReader

    page = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US").new_page()
    page.goto(site)
    wait_until_idle(page)
    example = metrics(page)
    assert len(example) == 4, "the worked example is answered on the first screen"

    choose(page, "Model", "Qwen/Qwen3-14B")
    choose(page, "GPU", "NVIDIA H200 SXM 141GB")
    type_number(page, "Request rate (requests/s)", "4")
    assert metrics(page) != example

    page.goto(page.url.replace(site, site + "/benchmarks", 1) if "/benchmarks" not in page.url else page.url)
    wait_until_idle(page)
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(
        {"name": "result.json", "mimeType": "application/json", "buffer": json.dumps(MEASURED).encode()}
    )
    wait_until_idle(page)
    page.get_by_role("button", name="Store 1 load point").click()
    wait_until_idle(page)
    assert metrics(page)[0] == "1"
    assert "not measured" not in metrics(page)[1:3], "the error of TTFT and TPOT is stated"

    query = urlsplit(page.url).query
    assert "model=" in query, "the changed scenario travels in the link"
    page.goto(f"{site}/decision?{query}")
    wait_until_idle(page)
    decision = metrics(page)[0]
    assert page.get_by_text("First leg").count() == 1

    page.goto(f"{site}/review_sheet?{query}")
    wait_until_idle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="PDF").click()
    pdf = PdfReader(io.BytesIO(Path(download.value.path()).read_bytes()))
    assert len(pdf.pages) == 1
    box = pdf.pages[0].mediabox
    assert (round(box.width), round(box.height)) == A4_POINTS
    text = pdf.pages[0].extract_text()
    assert "Qwen3-14B" in text
    assert decision in text


@pytest.fixture(scope="module", params=VIEWS, ids=lambda view: "-".join(map(str, view)))
def visitor(browser: Any, request: pytest.FixtureRequest) -> Iterator[tuple[Any, str]]:
    """A visitor who keeps the scripts in the browser's cache from page to page: the context and the language."""
    theme, language, width = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale="en-US")
    yield context, language
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_clean(visitor: tuple[Any, str], site: str, name: str) -> None:
    context, language = visitor
    page = context.new_page()
    said: list[str] = []
    outside: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: outside.append(request.url) if _is_outside(request.url, site) else None)
    page.goto(f"{site}/{name}?lang={language}")
    wait_until_idle(page)
    assert page.get_by_test_id("stException").count() == 0
    assert [text for text in said if "404" not in text] == []  # on a deep link Streamlit first asks <page>/_stcore/…
    assert outside == []
    assert page.evaluate(WIDE) <= 2, "the page is wider than the screen"
    page.close()


def _is_outside(url: str, site: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(site).netloc


def test_values_survive_a_reload(browser: Any, site: str) -> None:
    from playwright.sync_api import expect

    page = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US").new_page()
    page.goto(site)
    wait_until_idle(page)
    type_number(page, "Request rate (requests/s)", "1.75")
    page.wait_for_url("**rate=1.75**")
    page.reload()
    wait_until_idle(page)
    expect(page.get_by_label("Request rate (requests/s)", exact=True)).to_have_value("1.75")


def test_a_server_killed_during_an_upload_opens_again_with_earlier_rows_whole(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "store.duckdb"
    page = browser.new_context(viewport={"width": 1440, "height": 1000}, locale="en-US").new_page()
    with serving(store) as (url, process):
        page.goto(f"{url}/benchmarks")
        wait_until_idle(page)
        upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
        upload.set_input_files(
            {"name": "a.json", "mimeType": "application/json", "buffer": json.dumps(MEASURED).encode()}
        )
        wait_until_idle(page)
        page.get_by_role("button", name="Store 1 load point").click()
        wait_until_idle(page)
        second = MEASURED | {"request_rate": 5.0}
        upload.set_input_files(
            {"name": "b.json", "mimeType": "application/json", "buffer": json.dumps(second).encode()}
        )
        page.get_by_role("button", name="Store 1 load point").click()
        process.send_signal(signal.SIGKILL)
        process.wait()
    with serving(store) as (url, _):
        page.goto(f"{url}/benchmarks?benchmarks_view=stored")
        wait_until_idle(page)
        assert metrics(page)[0] in ("1", "2")
        assert page.get_by_text(".json").count() >= 1  # whichever is the newest
