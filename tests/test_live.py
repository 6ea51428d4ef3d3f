"""Watching a running engine: a real HTTP server on this machine, real DuckDB, and what is seen when it goes wrong."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from calc.errors import InputError, UnreadableFile
from calc.judge.decide import decide
from calc.trend import trend
from data.live import recorder
from data.live.entry import Entry, Kind, Problem, Recording, Trouble
from data.live.poll import fetch, read_engine
from data.live.recorder import Desk, Watcher
from data.live.recording_file import looks_like_recording, read_recording, write_recording
from data.live.sample import PATH as SAMPLE
from data.live.timeline import Event, timeline
from data.live.window import evidence_of, window_of
from data.settings import read_settings
from data.sources.prometheus import evidence, parse_metrics
from data.store import Store

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Engine:
    """An HTTP server whose answer a test changes while it runs."""

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer, self.asked = answer, 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                owner.asked += 1
                try:
                    owner.answer(self)
                except (BrokenPipeError, ConnectionResetError):  # the asking side had enough
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/metrics"

    def kill(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def sends(body: bytes, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def metrics(finished: float, *, usage: float = 0.5, waiting: float = 0, start: float = 100.0) -> bytes:
    label = '{engine="0",model_name="m"}'
    return f"""vllm:num_requests_running{label} 5
vllm:num_requests_waiting{label} {waiting}
vllm:kv_cache_usage_perc{label} {usage}
vllm:generation_tokens_total{label} {finished * 100}
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="m"}} {finished}
process_start_time_seconds {start}
""".encode()


@pytest.fixture
def engine() -> Iterator[Engine]:
    running = Engine(sends(metrics(1)))
    yield running
    running.kill()


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as opened:
        yield opened


# asking


def test_an_engine_that_answers_is_read(engine: Engine) -> None:
    reading = read_engine("a", {"a": engine.url})
    assert reading.problem is None
    assert reading.snapshot is not None
    assert (reading.snapshot.kv_usage_share, reading.snapshot.requests_finished_total) == (0.5, 1)


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (sends(b"<html><body>Grafana</body></html>"), Trouble.NOT_METRICS),
        (sends(bytes(range(256)) * 50), Trouble.NOT_METRICS),
        (sends(b"", 404), Trouble.STATUS),
        (sends(b"who are you", 401), Trouble.STATUS),
        (sends(b"", 503), Trouble.STATUS),
        (lambda request: request.wfile.write(b"\x00\x01nonsense\r\n"), Trouble.UNREACHABLE),
    ],
)
def test_whatever_else_it_answers_is_one_sentence(engine: Engine, answer: Answer, trouble: Trouble) -> None:
    engine.answer = answer
    found = fetch(engine.url, timeout_s=2.0)
    assert found.problem is not None
    assert found.problem.trouble is trouble
    assert str(found.problem.sentence("prod")).startswith("prod ")


def test_a_redirect_is_not_followed(engine: Engine) -> None:
    other = Engine(sends(metrics(1)))
    engine.answer = sends(b"", 302, (("Location", other.url),))
    found = fetch(engine.url)
    other.kill()
    assert found.problem == Problem(trouble=Trouble.REDIRECT, detail=other.url)
    assert other.asked == 0


def test_a_proxy_of_the_environment_is_not_used(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetch(engine.url).problem is None


def _dripping(request: http.server.BaseHTTPRequestHandler) -> None:
    """A byte at a time: no single wait is long, the whole is endless."""
    request.send_response(200)
    request.end_headers()
    for _ in range(100):
        request.wfile.write(b"vllm:num_requests_running 3\n")
        request.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [lambda request: time.sleep(1.5), _dripping], ids=["silent", "dripping"])
def test_a_slow_engine_costs_no_more_than_the_time_limit(engine: Engine, answer: Answer) -> None:
    engine.answer = answer
    began = time.monotonic()
    found = fetch(engine.url, timeout_s=0.5)
    assert time.monotonic() - began < 1.2
    assert found.problem == Problem(trouble=Trouble.SLOW, detail="0.5")


def test_an_endless_answer_is_cut_off(engine: Engine) -> None:
    engine.answer = sends(metrics(1) * 20_000)
    found = fetch(engine.url, limit_bytes=1_000_000)
    assert found.problem == Problem(trouble=Trouble.TOO_LARGE, detail="1")


def test_an_answer_cut_short_is_not_taken_for_whole(engine: Engine) -> None:
    def short(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "5000")
        request.end_headers()
        request.wfile.write(metrics(1))

    engine.answer = short
    found = fetch(engine.url)
    assert found.problem is not None
    assert found.problem.trouble is Trouble.UNREACHABLE


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host/x", "http://", "http://[::1/x", "", "metrics"])
def test_only_web_addresses_are_asked(address: str) -> None:
    found = fetch(address)
    assert found.problem == Problem(trouble=Trouble.BAD_ADDRESS)


def test_a_visitor_can_ask_for_names_only(engine: Engine, store: Store) -> None:
    assert read_engine(engine.url, {"a": "http://127.0.0.1:9/"}).problem == Problem(trouble=Trouble.NOT_ALLOWED)
    with pytest.raises(InputError, match="not among the engines"):
        Desk({"a": engine.url}, store.recordings, 30).watcher(engine.url)
    assert engine.asked == 0


def test_replicas_and_a_gpu_exporter_are_read_together(engine: Engine) -> None:
    gpus = Engine(sends(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 91\n'))
    reading = read_engine("a", {"a": f"{engine.url} {engine.url} {gpus.url} http://127.0.0.1:9/"})
    gpus.kill()
    assert reading.snapshot is not None
    assert (reading.snapshot.requests_running, reading.snapshot.engines) == (10, 2)
    assert reading.snapshot.gpus[0].busy_share == 0.91
    assert reading.problem is not None
    assert reading.problem.trouble is Trouble.UNREACHABLE


def test_the_operator_may_name_several_addresses_and_a_retention(tmp_path: Path) -> None:
    file = tmp_path / "plimsoll.toml"
    file.write_text(
        '[engines]\na = ["http://x/metrics", "http://y/metrics"]\nb = "http://z/metrics"\n', encoding="utf-8"
    )
    assert dict(read_settings(file).engines) == {"a": "http://x/metrics http://y/metrics", "b": "http://z/metrics"}
    assert read_settings(file).keep_days == 30
    for wrong in ('"long"', "-1", "true", "1.5"):
        file.write_text(f"[recording]\nkeep_days = {wrong}\n", encoding="utf-8")
        with pytest.raises(InputError, match="keep_days"):
            read_settings(file)


# recording


def _until(condition: Callable[[], bool], seconds: float = 8.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "SHORTEST_S", 0.05)
    monkeypatch.setattr(recorder, "LOOKING_S", 0.05)


def test_a_recording_holds_pauses_gaps_and_restarts_and_no_negative_rate(store: Store, quick: None) -> None:
    count = iter(range(1, 10_000))
    engine = Engine(lambda request: sends(metrics(next(count)))(request))
    desk = Desk({"prod": engine.url}, store.recordings, 30)
    watcher = desk.watcher("prod")
    recording = watcher.start(0.05)
    _until(lambda: watcher.state().written >= 3)
    watcher.pause()
    stored = store.recordings.all()[0].scrapes
    time.sleep(0.3)
    assert store.recordings.all()[0].scrapes == stored
    watcher.resume()
    _until(lambda: watcher.state().written >= 6)
    port = engine.server.server_port
    engine.kill()
    _until(lambda: watcher.state().recent[-1].kind is Kind.GAP)
    again = iter(range(1, 10_000))
    engine = Engine(lambda request: sends(metrics(next(again), start=900.0))(request), port)
    written = watcher.state().written
    _until(lambda: watcher.state().written >= written + 3)
    watcher.stop()
    desk.close()
    engine.kill()
    entries, step = store.recordings.entries(recording.recording_id)
    line = timeline(entries, step)
    kinds = [entry.kind for entry in entries]
    assert [kinds.count(kind) for kind in (Kind.PAUSED, Kind.RESUMED, Kind.STOPPED)] == [1, 1, 1]
    assert kinds.count(Kind.GAP) == 1
    events = [mark.event for mark in line.marks]
    assert events.count(Event.RESTART) == 1
    assert Event.GAP in events
    assert all(rate is None or rate > 0 for rate in line.course("requests_per_s"))


def test_an_engine_that_is_down_from_the_start_is_a_gap_and_not_an_error(store: Store, quick: None) -> None:
    desk = Desk({"down": "http://127.0.0.1:9/metrics"}, store.recordings, 30)
    watcher = desk.watcher("down")
    recording = watcher.start(0.05)
    _until(lambda: bool(watcher.state().recent))
    time.sleep(0.2)
    desk.close()
    entries, _ = store.recordings.entries(recording.recording_id)
    assert [entry.kind for entry in entries] == [Kind.GAP, Kind.STOPPED]


def test_ten_visitors_ask_an_engine_no_more_often_than_one(engine: Engine, store: Store) -> None:
    desk = Desk({"prod": engine.url}, store.recordings, 30)
    for _ in range(10):
        desk.watcher("prod").look()
    _until(lambda: bool(desk.watcher("prod").look().recent))
    desk.close()
    assert engine.asked == 1
    assert store.recordings.all() == ()


def test_an_engine_nobody_looks_at_is_left_alone(
    engine: Engine, store: Store, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "LEASE_S", 0.2)
    desk = Desk({"prod": engine.url}, store.recordings, 30)
    desk.watcher("prod").look()
    time.sleep(0.6)
    asked = engine.asked
    time.sleep(0.3)
    assert engine.asked == asked >= 1
    desk.close()


def test_what_is_held_in_memory_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "RECENT", 5)
    clock = iter(range(1, 100))
    watcher = Watcher("a", lambda: read_engine("a", {}), store.recordings, 30)
    for _ in range(20):
        snapshot = parse_metrics(metrics(next(clock)).decode())
        monkeypatch.setattr(watcher, "_read", lambda snapshot=snapshot: recorder.Reading(snapshot=snapshot))
        watcher._observe()
    assert len(watcher.state().recent) == 5


def test_a_clock_that_goes_back_leaves_a_gap(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = parse_metrics(metrics(1).decode())
    watcher = Watcher("a", lambda: recorder.Reading(snapshot=snapshot), store.recordings, 30)
    watcher._observe()
    monkeypatch.setattr(recorder.time, "time", lambda: 1000.0)
    watcher._observe()
    problem = watcher.state().recent[-1].problem
    assert problem == Problem(trouble=Trouble.OUT_OF_ORDER)


def test_old_lines_are_removed_and_new_ones_stay(store: Store) -> None:
    snapshot = parse_metrics(metrics(1).decode())
    for name, begun in (("old", 1_000.0), ("new", 9_000.0)):
        store.recordings.begin(Recording(recording_id=name, engine="e", interval_s=1.0, started_at_s=begun))
        store.recordings.add(name, [Entry(at_s=begun + i, kind=Kind.SCRAPE, snapshot=snapshot) for i in range(3)])
    store.recordings.forget_before(9_001.0)
    left = store.recordings.all()
    assert [(row.recording.recording_id, row.scrapes) for row in left] == [("new", 2)]


def test_a_long_recording_is_read_thinned_out_and_loses_no_count(store: Store) -> None:
    store.recordings.begin(Recording(recording_id="r", engine="e", interval_s=1.0, started_at_s=0.0))
    lines = [
        Entry(at_s=float(i), kind=Kind.SCRAPE, snapshot=parse_metrics(metrics(10.0 * i).decode()))
        for i in range(1, 101)
    ]
    store.recordings.add("r", lines)
    entries, step = store.recordings.entries("r", most=10)
    assert (len(entries), step, entries[-1].at_s) == (10, 10, 100.0)
    assert set(timeline(entries, step).course("requests_per_s")[1:]) == {10.0}


# the file


def test_a_recording_survives_its_file_and_the_store(store: Store) -> None:
    recording, entries = read_recording(SAMPLE.read_bytes(), "sample")
    content = write_recording(recording, entries)
    assert looks_like_recording(content)
    again, same = read_recording(content, "again")
    assert same == entries
    assert store.recordings.add_whole(again, same)
    assert not store.recordings.add_whole(again, same)
    stored, step = store.recordings.entries(again.recording_id, most=1000)
    assert (stored, step) == (entries, 1)
    store.delete("recording", again.recording_id)
    assert store.recordings.all() == ()
    store.recordings.add_whole(again, same)
    assert len(store.recordings.all()) == 1


GOOD = '{"plimsoll_recording":1,"engine":"e","interval_s":1,"started_at_s":1}'
LINE = '{"at_s":1,"kind":"scrape","snapshot":{"source":"vLLM /metrics"}}'


@pytest.mark.parametrize(
    "lines",
    [
        [""],
        ["{}"],
        [GOOD],
        [GOOD, "not json"],
        [GOOD, "[" * 5000],
        [GOOD, '{"at_s":NaN,"kind":"scrape","snapshot":{}}'],
        [GOOD, '{"at_s":1,"kind":"explode"}'],
        [GOOD, '{"at_s":1,"kind":"scrape","snapshot":{"source":"x","kv_usage_share":"=cmd()"}}'],
        [GOOD, '{"at_s":1,"kind":"scrape","snapshot":{"source":"x","requests_running":-1}}'],
        [GOOD, '{"at_s":1,"kind":"scrape","snapshot":{"source":"x","requests_running":1e400}}'],
        [GOOD, '{"at_s":1,"kind":"gap","problem":{"trouble":"slow","detail":"{engine.__class__}\\u0000"}}', LINE],
        [GOOD, LINE.replace('"source"', '"histograms":{"ttft":{"bounds":[2,1],"counts":[1,2]}},"source"')],
        [GOOD, LINE.replace('"at_s":1', '"at_s":5'), LINE],
        [GOOD.replace(":1,", ":99,"), LINE],
        [GOOD, *["\n"] * 3, LINE.replace("}}", '},"snapshot":[]}')],
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_one_sentence(lines: list[str]) -> None:
    with pytest.raises(UnreadableFile) as refused:
        read_recording("\n".join(lines).encode(), "x.jsonl")
    assert str(refused.value).startswith("x.jsonl")
    assert len(str(refused.value)) < 400


def test_unknown_parts_of_a_line_are_not_kept() -> None:
    line = json.loads(LINE)
    line["snapshot"] |= {"prompt": "a secret", "settings": {"block_size": "16"}}
    _, entries = read_recording(f"{GOOD}\n{json.dumps(line)}".encode(), "x")
    assert "secret" not in repr(entries)
    assert entries[0].snapshot is not None
    assert entries[0].snapshot.settings == {"block_size": "16"}


def test_the_sample_says_that_it_is_made_up_and_tells_three_troubles_apart() -> None:
    """The phases are known: an hour of calm, 25 minutes without hits, 35 minutes beyond the cache, then calm."""
    recording, entries = read_recording(SAMPLE.read_bytes(), "sample")
    assert recording.made_up
    assert "no engine was measured" in recording.note
    said = {}
    for minute in (50, 80, 115, len(entries)):
        window = window_of(entries[:minute], 900.0)
        assert window is not None
        known = {one.metric: one for one in evidence_of(window, "e")}
        decision = decide(known)
        said[minute] = (decision.outcome.value, decision.diagnosis)
    assert said[50][0] == said[len(entries)][0] == "no-change"
    assert said[80][1] == "cache_not_hit"
    assert said[115][1] == "cache_fills_memory"


def test_slow_fetching_is_told_from_fast_where_the_scenario_is_of_the_same_model() -> None:
    """Break-even of the example is a few GB/s: 1 GB/s is below it, 50 GB/s above."""
    from data.case import example_case
    from ui import resources
    from ui.live import desk

    asked = resources.ask(example_case())
    said = []
    for seconds, model in ((5.0, "Qwen/Qwen3-32B"), (0.1, "Qwen/Qwen3-32B"), (5.0, "another")):
        text = f'''vllm:num_requests_running{{model_name="{model}"}} 5
vllm:external_prefix_cache_hits_total 1000
vllm:kv_offload_load_bytes_total 5e9
vllm:kv_offload_load_time_total {seconds}
'''
        snapshot = parse_metrics(text)
        said.append(desk.judged(evidence(snapshot), snapshot.model, asked).diagnosis)
    assert [one == "transfer_is_bottleneck" for one in said] == [True, False, False]


def test_a_window_is_cut_at_a_restart() -> None:
    _, entries = read_recording(SAMPLE.read_bytes(), "sample")
    window = window_of(entries, 1e9)
    assert window is not None
    assert window.scrapes == 12
    assert len(window.notes) == 1


def test_rates_over_a_window_are_counts_over_time() -> None:
    lines = [
        Entry(at_s=float(at), kind=Kind.SCRAPE, snapshot=parse_metrics(metrics(3.0 * at, usage=0.01 * at).decode()))
        for at in (10, 20, 30)
    ]
    window = window_of(lines, 100.0)
    assert window is not None
    found = {one.metric: one.value for one in evidence_of(window, "e")}
    assert found["request_rate_per_s"] == 3.0
    assert found["output_tokens_per_s"] == 300.0
    assert (found["kv_usage_mean_share"], found["kv_usage_max_share"]) == (pytest.approx(0.2), 0.3)


# drift


def test_the_slope_of_a_line_is_found_exactly() -> None:
    times = np.linspace(0, 7200, 200)
    found = trend(times.tolist(), (0.2 + 1e-5 * times).tolist())
    assert found is not None
    assert found.slope_per_s == pytest.approx(1e-5)
    assert (found.first, found.last) == (pytest.approx(0.2), pytest.approx(0.272))
    assert found.drifts


@pytest.mark.parametrize(("memory", "most"), [(0.0, 0.09), (0.8, 0.11)])
def test_noise_is_seldom_taken_for_drift(memory: float, most: float) -> None:
    """About 5 in 100 by construction, also where neighbouring readings are alike (autocorrelation 0.8)."""
    rng = np.random.default_rng(5)
    times = np.arange(600.0)
    alarms = 0
    for _ in range(400):
        values = rng.normal(size=600)
        for i in range(1, 600):
            values[i] += memory * values[i - 1]
        found = trend(times.tolist(), values.tolist())
        alarms += found is not None and found.drifts
    assert 0.02 <= alarms / 400 <= most


def test_too_little_is_no_trend() -> None:
    assert trend([1.0, 2.0], [1.0, 2.0]) is None
    assert trend([1.0] * 9, [1.0] * 9) is None
    assert trend([float(i) for i in range(9)], [None] * 9) is None


# the page


def test_the_page_replays_the_sample_shows_recordings_and_watches_an_engine(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit
    from streamlit.testing.v1 import AppTest

    from ui.live import desk

    count = iter(range(1, 10_000))
    engine.answer = lambda request: sends(metrics(next(count), usage=0.95, waiting=30))(request)
    config = tmp_path / "plimsoll.toml"
    config.write_text(f'[engines]\nprod = "{engine.url}"\n', encoding="utf-8")
    monkeypatch.setenv("PLIMSOLL_CONFIG", str(config))
    monkeypatch.setenv("PLIMSOLL_STORE", str(tmp_path / "store.duckdb"))
    monkeypatch.setattr(recorder, "LOOKING_S", 0.1)
    streamlit.cache_resource.clear()
    app = AppTest.from_file(str(Path(__file__).parent.parent / "ui" / "shell.py"), default_timeout=60).run()
    app.switch_page("../pages/live_engine.py").run()
    watcher = desk.desk().watcher("prod")
    _until(lambda: len(watcher.state().recent) > 2)
    app.button(key="live_start").click().run()
    assert not app.exception
    assert any("Recording every" in caption.value for caption in app.caption)
    assert engine.url not in repr([element.value for element in (*app.caption, *app.markdown, *app.selectbox)])
    _until(lambda: watcher.state().written > 0)
    app.button(key="live_use").click().run()
    app.button(key="live_stop").click().run()
    app.selectbox(key="live_engine").set_value("_sample").run()
    assert any("the cache is not hit" in box.value for box in app.error)
    app.segmented_control(key="live_view").set_value("recorded").run()
    assert not app.exception
    assert "prod" in app.selectbox(key="live_recording").format_func(app.selectbox(key="live_recording").value)
    app.switch_page("../pages/decision.py").run()
    assert any("measured figures" in caption.value for caption in app.caption)
    desk.close()
    streamlit.cache_resource.clear()
