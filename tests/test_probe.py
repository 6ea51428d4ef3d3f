"""The probe: paper counts against hand figures, the torch layer against itself, the process against its contract."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from calc.errors import InputError, ProbeError
from calc.evidence import Provenance
from calc.hardware import Gpu
from calc.messages import Message, msg
from calc.model import LatentAttention, LayerGroup, LayerKind, ModelSpec, MoE, WeightStorage
from calc.units import GIB, MIB
from data.catalogue.tables import models
from probe import device, microbench, wire
from probe.driver import driver_report
from probe.nvml import gpu_facts
from probe.plan import plan
from probe.result import DecodePoint, PrefillPoint, ProbeResult, Timing
from probe.roofline_view import compare, roof_of
from probe.runner import ROOT, ProbeRun, ProbeState, start
from probe.shape import LayerShape, layer_shape

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

LLAMA_8B = LayerShape(
    name="Llama-3-8B",
    hidden_size=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    v_head_dim=128,
    intermediate_size=14336,
    dtype="bf16",
)
DEEPSEEK_V3 = LayerShape(
    name="DeepSeek-V3 (dense layer)",
    hidden_size=7168,
    heads=128,
    kv_heads=1,
    head_dim=192,
    v_head_dim=128,
    intermediate_size=18432,
    dtype="bf16",
    latent=LatentAttention(q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128),
)
TINY = LayerShape(
    name="tiny", hidden_size=64, heads=4, kv_heads=2, head_dim=16, v_head_dim=16, intermediate_size=128, dtype="fp32"
)
TINY_LATENT = LayerShape(
    name="tiny MLA",
    hidden_size=64,
    heads=4,
    kv_heads=1,
    head_dim=24,
    v_head_dim=16,
    intermediate_size=128,
    dtype="fp32",
    latent=LatentAttention(q_rank=32, kv_rank=32, nope_dim=16, rope_dim=8, v_dim=16),
)


def model(**changes: Any) -> ModelSpec:
    llama = ModelSpec(
        name="Llama-3-8B",
        architecture="LlamaForCausalLM",
        layers=32,
        hidden_size=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        intermediate_size=14336,
        vocab_size=128256,
        max_position_tokens=8192,
        groups=(LayerGroup(kind=LayerKind.FULL, layers=32, kv_heads=8, head_dim=128, v_head_dim=128),),
        parameters=8_030_261_248,
        active_parameters=7_504_924_672,
        quantised_parameters=0,
        tp_replicated_parameters=0,
        embedding_parameters=525_336_576,
        tied_embeddings=False,
        storage=WeightStorage(code="bf16", bytes_per_parameter=2.0),
        kv_dtype="bf16",
    )
    return replace(llama, **changes)


# ---- the layer on paper


def test_a_llama_3_8b_layer_has_218_112_000_weights() -> None:
    """(8,030,261,248 parameters - 2 · 128256 · 4096 embeddings - 4096 final norm) / 32 layers."""
    assert LLAMA_8B.weights == 218_112_000 == (8_030_261_248 - 2 * 128256 * 4096 - 4096) // 32
    assert LLAMA_8B.weight_bytes == 436_224_000


def test_a_llama_3_8b_layer_keeps_4_kib_of_cache_per_token() -> None:
    assert LLAMA_8B.kv_bytes_per_token == 4096


def test_deepseek_v3_attention_has_the_published_187_107_328_parameters() -> None:
    """Per layer, as counted from the checkpoint: the MLA matrices and the two norms inside them."""
    inner_norms = DEEPSEEK_V3.norm_weights - 2 * 7168
    assert DEEPSEEK_V3.attention_weights + inner_norms == 187_107_328
    assert DEEPSEEK_V3.kv_bytes_per_token == 1152


def test_one_prompt_token_costs_the_same_by_prefill_and_by_decode() -> None:
    assert LLAMA_8B.prefill_flops(1) == LLAMA_8B.decode_flops(1, 1)


@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_prefilling_costs_the_flops_of_decoding_token_by_token(tokens: int) -> None:
    one_by_one = sum(LLAMA_8B.decode_flops(1, context) for context in range(1, tokens + 1))
    assert LLAMA_8B.prefill_flops(tokens) == one_by_one


def test_long_prompts_are_compute_bound_and_single_decodes_memory_bound_on_an_h100() -> None:
    """989 TFLOP/s over 3.35 TB/s puts the knee at 295 FLOP/byte; one bf16 sequence does 1 FLOP per byte."""
    knee = 989e12 / 3.35e12
    assert LLAMA_8B.prefill_flops(2048) / LLAMA_8B.prefill_bytes(2048) > knee
    assert LLAMA_8B.decode_flops(1, 1) / LLAMA_8B.decode_bytes(1, 1) == pytest.approx(1.0, rel=0.01)


def test_a_model_gives_its_layer() -> None:
    assert layer_shape(model()) == LLAMA_8B


def test_tensor_parallel_ranks_together_hold_the_layer() -> None:
    rank = layer_shape(model(), tp=4)
    assert (rank.heads, rank.kv_heads, rank.intermediate_size) == (8, 2, 3584)
    assert 4 * rank.matmul_weights == LLAMA_8B.matmul_weights


def test_more_ranks_than_kv_heads_replicate_them() -> None:
    assert layer_shape(model(), tp=16).kv_heads == 1


def test_a_tp_that_does_not_divide_the_heads_is_refused() -> None:
    with pytest.raises(InputError, match="TP 3 does not divide the 32 attention heads"):
        layer_shape(model(), tp=3)


def test_a_mixtral_layer_is_as_wide_as_two_experts_and_says_so() -> None:
    """Mixtral 8x7B: two active experts of 3 · 4096 · 14336 each."""
    moe = MoE(experts=8, experts_per_token=2, moe_layers=32, expert_parameters=3 * 4096 * 14336)
    shape = layer_shape(model(moe=moe))
    assert shape.intermediate_size == 2 * 14336
    assert "experts of a token (2)" in str(shape.notes[0])


def test_quantised_weights_are_measured_in_bf16_and_said_so() -> None:
    shape = layer_shape(model(storage=WeightStorage(code="fp8", bytes_per_parameter=1.0, compute_dtype="fp8")))
    assert shape.dtype == "bf16"
    assert str(shape.notes[0]) == "Weights stored as fp8 were measured as bf16."


def test_the_full_attention_layer_stands_for_a_model_with_windows() -> None:
    groups = (
        LayerGroup(kind=LayerKind.SLIDING, layers=40, kv_heads=16, head_dim=128, v_head_dim=128, window_tokens=1024),
        LayerGroup(kind=LayerKind.FULL, layers=8, kv_heads=4, head_dim=256, v_head_dim=256),
    )
    shape = layer_shape(model(groups=groups))
    assert (shape.kv_heads, shape.head_dim, shape.notes) == (4, 256, ())


def test_a_latent_model_gives_its_layer_and_one_without_sizes_is_refused() -> None:
    group = LayerGroup(kind=LayerKind.MLA, layers=61, kv_heads=1, head_dim=576, v_head_dim=0)
    deepseek = model(hidden_size=7168, heads=128, intermediate_size=18432, groups=(group,), latent=DEEPSEEK_V3.latent)
    assert layer_shape(deepseek).attention_weights == DEEPSEEK_V3.attention_weights
    with pytest.raises(InputError, match="latent-attention sizes of Llama-3-8B are not known"):
        layer_shape(replace(deepseek, latent=None))


def test_every_catalogue_model_gives_a_layer_with_the_weights_its_checkpoint_has() -> None:
    """Against the per-layer parameters read from each config; routers and biases are under 1 %, sparse indexers 3 %.

    A layer that leaves parts of the model's own out says how far it is off; attention over compressed keys is refused.
    """
    for name, entry in models().items():
        spec = entry.spec()
        if any(group.caches for group in spec.groups):
            with pytest.raises(InputError, match="compressed attention"):
                layer_shape(spec)
            continue
        sparse = any(group.sparse_index_bytes_per_token for group in spec.groups)
        shape = layer_shape(spec)
        within = any(
            shape.weights == pytest.approx(layer.active, rel=0.03 if sparse else 0.01) for layer in spec.layer_weights
        )
        assert within or "left out" in str(shape.notes[-1]), name


def test_a_layer_of_dense_attention_has_nothing_left_out() -> None:
    for name in ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "google/gemma-4-31B", "deepseek-ai/DeepSeek-V3"):
        assert not [note for note in layer_shape(models()[name].spec()).notes if "left out" in str(note)]


def test_an_mlp_without_gate_has_two_matrices() -> None:
    """phi-2: 4 · 2560² attention and 2 · 2560 · 10240 MLP weights."""
    phi = layer_shape(models()["microsoft/phi-2"].spec())
    assert phi.matmul_weights == 4 * 2560**2 + 2 * 2560 * 10240


# ---- the plan


def test_a_gpu_measures_the_layer_as_it_is() -> None:
    planned = plan(LLAMA_8B, "cuda")
    assert (planned.shape, planned.scale_divisor, planned.notes) == (LLAMA_8B, 1, ())


def test_the_gpu_plan_reaches_past_every_cache_and_fits_a_24_gib_card() -> None:
    planned = plan(LLAMA_8B, "cuda")
    largest_cache = max(batch * context for batch, context in planned.decode) * LLAMA_8B.kv_bytes_per_token
    assert largest_cache >= 250 * MIB
    assert planned.memory_need_bytes < 10 * GIB


def test_a_cpu_measures_a_smaller_layer_and_says_by_what() -> None:
    planned = plan(LLAMA_8B, "cpu")
    assert planned.scale_divisor == 8
    assert planned.shape.weights * 8 == pytest.approx(LLAMA_8B.weights, rel=0.01)
    assert any("divided by 8" in str(note) for note in planned.notes)


@pytest.mark.parametrize(("heads", "kv_heads"), [(30, 10), (25, 5), (28, 4), (128, 8), (1, 1)])
def test_any_head_count_can_be_scaled_down(heads: int, kv_heads: int) -> None:
    wide = replace(LLAMA_8B, heads=heads, kv_heads=kv_heads, intermediate_size=40_000)
    planned = plan(wide, "cpu")
    assert heads % planned.scale_divisor == 0
    assert planned.shape.heads % planned.shape.kv_heads == 0


# ---- the layer in torch


@needs_torch
@pytest.mark.parametrize(
    "shape", [TINY, TINY_LATENT, replace(TINY, kv_heads=4), replace(TINY, kv_heads=1, kv_projections=1)]
)
def test_decoding_the_last_token_gives_what_prefilling_the_prompt_gave(shape: LayerShape) -> None:
    """The cache is filled by one-token decodes, then laid out as one sequence; both ways must agree to rounding."""
    import torch

    from probe.layer import Layer, random_source

    torch.manual_seed(1)
    with torch.inference_mode():
        random = random_source(shape, "cpu")
        layer, prompt = Layer(shape, random), random(9, shape.hidden_size) * 8
        cells = layer.cache(9, 1)
        layer.decode(prompt, cells)
        history = tuple(cell.permute(2, 1, 0, 3).contiguous() for cell in cells)
        decoded = layer.decode(prompt[-1:], history)[0]
        prefilled = layer.prefill(prompt)[-1]
    assert torch.allclose(decoded, prefilled, rtol=1e-4, atol=1e-5)


@needs_torch
@pytest.mark.parametrize("shape", [TINY, TINY_LATENT, replace(TINY, kv_projections=1, mlp_matrices=2)])
def test_the_built_layer_holds_the_weights_counted_on_paper(shape: LayerShape) -> None:
    import torch

    from probe.layer import Layer, random_source

    built = 0
    source = random_source(shape, "cpu")

    def counted(*sizes: int) -> torch.Tensor:
        nonlocal built
        tensor = source(*sizes)
        built += tensor.numel()
        return tensor

    layer = Layer(shape, counted)
    assert built == shape.weights
    built = 0
    layer.cache(3, 5)
    assert built * shape.element_bytes == 3 * 5 * shape.kv_bytes_per_token


@needs_torch
def test_a_device_without_enough_memory_is_refused_before_anything_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda kind: 100 * MIB)
    with pytest.raises(ProbeError, match=r"needs 0\.\d GiB, but .* has 0\.1 GiB free"):
        microbench.run(TINY, "cpu", 1.0, lambda share, step: None)


# ---- the process


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny layers on a busy machine spend their time waiting for a second thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def probe(*options: str, code: str = "") -> subprocess.CompletedProcess[str]:
    head = ["-c", code] if code else ["-m", "probe"]
    return subprocess.run([sys.executable, *head, *options], capture_output=True, text=True, cwd=ROOT, check=False)


@needs_torch
def test_the_process_ends_in_time_with_one_json_line_and_progress_beside_it() -> None:
    done = probe("--json", wire.shape_line(TINY), "--device", "cpu", "--time-cap", "5")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["tool"], found["kind"], found["scaled"], found["scale_divisor"]) == (
        "plimsoll-probe",
        "cpu",
        False,
        1,
    )
    assert 0 < found["duration_s"] <= 5.5
    shares = [json.loads(line)["progress"] for line in done.stderr.splitlines()]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    result = wire.parse_outcome(done.stdout)
    assert isinstance(result, ProbeResult)
    assert len(result.prefill) == 3
    assert len(result.decode) == 4
    assert all(point.timing.median_s > 0 and point.timing.repeats >= 1 for point in (*result.prefill, *result.decode))


@needs_torch
def test_a_short_cap_leaves_measurements_out_and_says_how_many() -> None:
    done = probe("--json", wire.shape_line(LLAMA_8B), "--device", "cpu", "--time-cap", "0.3")
    result = wire.parse_outcome(done.stdout)
    assert isinstance(result, ProbeResult)
    assert result.scaled
    measured = len(result.prefill) + len(result.decode)
    measured += sum(rate is not None for rate in (result.matmul_flops_per_s, result.copy_bytes_per_s))
    assert measured < 9
    assert f"{9 - measured} of 9 measurements were left out" in str(result.notes[-1])


@needs_torch
def test_asking_for_a_gpu_that_is_not_there_is_one_sentence() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA GPU")
    with pytest.raises(ProbeError, match="finds no CUDA GPU: measure on the CPU"):
        microbench.run(TINY, "cuda", 1.0, lambda share, step: None)


def test_without_torch_the_process_says_what_to_install() -> None:
    code = "import sys, runpy; sys.modules['torch'] = None; runpy.run_module('probe', run_name='__main__')"
    done = probe("--json", wire.shape_line(TINY), code=code)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "The measurement needs PyTorch: install it with `pip install torch`."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no json", "one JSON object"),
        ("[1]", "needs the fields hidden_size"),
        ('{"hidden_size": 64}', "needs the fields hidden_size"),
        (
            wire.shape_line(TINY).replace('"heads": 4', '"heads": "four"'),
            "heads must be a whole number above 0, got four",
        ),
        (wire.shape_line(TINY).replace('"heads": 4', '"heads": 3'), "3 attention heads cannot share 2 KV heads"),
        (wire.shape_line(TINY).replace("fp32", "fp8"), "measured in bf16, fp16, fp32, got fp8"),
        (wire.shape_line(TINY).replace('"latent": null', '"latent": 3'), "needs the fields q_rank"),
    ],
)
def test_a_layer_that_cannot_be_is_one_clear_sentence(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        wire.parse_shape(text)


def test_a_bad_time_cap_is_refused() -> None:
    done = probe("--json", wire.shape_line(TINY), "--time-cap", "0")
    assert done.returncode == 1
    assert "time cap must be above 0" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize(
    "shape", [TINY, DEEPSEEK_V3, replace(TINY, kv_projections=1, notes=(msg("window {tokens:tok}", tokens=9),))]
)
def test_a_layer_survives_the_process_border(shape: LayerShape) -> None:
    assert wire.parse_shape(wire.shape_line(shape)) == shape


def test_a_result_survives_the_process_border() -> None:
    assert wire.parse_outcome(wire.result_line(h100_result())) == h100_result()


def test_other_lines_are_neither_progress_nor_outcome() -> None:
    for line in ("", "some warning", "[1, 2]", '{"progress_bar": 1}', "3"):
        assert wire.parse_progress(line) is None
        assert wire.parse_outcome(line) is None


# ---- the handle


@contextmanager
def running(code: str, limit_s: float = 20.0) -> Iterator[ProbeRun]:
    run = ProbeRun((sys.executable, "-c", code), limit_s=limit_s)
    try:
        yield run
    finally:
        run.cancel()


def ended(run: ProbeRun, within_s: float = 20.0) -> ProbeState:
    end = time.monotonic() + within_s
    while not run.poll().done:
        assert time.monotonic() < end, "the run did not end"
        time.sleep(0.01)
    return run.poll()


def state_of(pid: int) -> str:
    """The kernel's letter for a process: Z is ended but not yet collected by its parent; empty is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@needs_torch
def test_a_page_starts_follows_and_gets_a_measurement() -> None:
    run = start(TINY, "cpu", 1.0)
    state = ended(run)
    assert state.error is None
    assert state.progress_share == 1.0
    assert state.result is not None
    assert state.result.shape == TINY


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells a process's state in /proc")
def test_cancelling_is_quick_and_leaves_no_process_behind() -> None:
    """The child starts a grandchild, as a library might; both must end, and the child must be collected."""
    code = """
import json, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
params = {"child": os.getpid(), "grandchild": child.pid}
print(json.dumps({"progress": 0.25, "step": "s", "msgid": "s", "params": params}), file=sys.stderr, flush=True)
time.sleep(60)
"""
    with running(code) as run:
        while run.poll().progress_share == 0:
            time.sleep(0.01)
        pids = run.poll().step.params
        begin = time.monotonic()
        run.cancel()
        assert time.monotonic() - begin < 2.0
        state = run.poll()
    assert (state.done, state.progress_share, str(state.error)) == (True, 0.25, "The measurement was cancelled.")
    assert state_of(pids["child"]) == ""
    assert state_of(pids["grandchild"]) in ("", "Z"), "an orphan may wait for the system's first process to collect it"


def test_a_server_that_ends_takes_its_measurement_with_it() -> None:
    line = json.dumps({"progress": 0.5, "msgid": "s", "params": {}})
    child = f"import sys, time; print({line!r}, file=sys.stderr); time.sleep(60)"
    server = f"""
import sys, time
from probe.runner import ProbeRun
run = ProbeRun((sys.executable, "-uc", {child!r}), limit_s=60)
while not run.poll().progress_share:
    time.sleep(0.01)
print(run._process.pid)
"""
    done = probe(code=server)
    assert done.returncode == 0, done.stderr
    assert state_of(int(done.stdout)) == ""


def test_only_one_measurement_runs_at_a_time_and_the_next_may_start_after_it() -> None:
    with running("import time; time.sleep(60)"), pytest.raises(ProbeError, match="already runs on this server"):
        ProbeRun((sys.executable, "-c", ""), limit_s=1.0)
    with running("pass") as run:
        assert "exit code 0 and no result" in str(ended(run).error)


def test_a_hung_process_is_stopped_after_its_limit() -> None:
    with running("import time; time.sleep(60)", limit_s=1.0) as run:
        state = ended(run, within_s=4.0)
    assert str(state.error) == "The measurement did not end within 1 s and was stopped."


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})", "likely for lack of memory"),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGABRT)})", "crashed (SIGABRT): check driver"),
        ("raise SystemExit('driver too old')", "ended with exit code 1 and no result: driver too old"),
        ('import os; os.write(1, b\'{"tool": "plimsoll-pr\')', "exit code 0 and no result"),
        (f"print({wire.error_line(msg('Stop {what}.', what='it'))!r})", "Stop it."),
    ],
)
def test_a_process_that_fails_leaves_a_clear_sentence(code: str, sentence: str) -> None:
    with running(code) as run:
        state = ended(run)
    assert state.result is None
    assert sentence in str(state.error)


def test_a_chatty_process_does_not_block_on_full_pipes() -> None:
    """Far more than a pipe's 64 KiB on both streams."""
    code = "import sys; [print('x' * 999, file=s) for _ in range(2000) for s in (sys.stdout, sys.stderr)]"
    with running(code) as run:
        assert ended(run, within_s=10.0).done


def test_a_command_that_does_not_exist_frees_the_place_for_the_next() -> None:
    for _ in range(2):
        with pytest.raises(ProbeError, match="could not start"):
            ProbeRun(("/nowhere/python",), limit_s=1.0)


# ---- measured against the roof


def h100_result() -> ProbeResult:
    def timing(seconds: float) -> Timing:
        return Timing(median_s=seconds, spread_share=0.02, repeats=30)

    return ProbeResult(
        device_name="NVIDIA H100 80GB HBM3",
        kind="cuda",
        dtype="bf16",
        torch_version="2.9.0",
        cuda_version="12.8",
        shape=LLAMA_8B,
        prefill=(PrefillPoint(tokens=2048, timing=timing(1.4e-3), flops_per_s=LLAMA_8B.prefill_flops(2048) / 1.4e-3),),
        decode=(
            DecodePoint(
                batch=1, context_tokens=512, timing=timing(1.6e-4), bytes_per_s=LLAMA_8B.decode_bytes(1, 512) / 1.6e-4
            ),
        ),
        matmul_flops_per_s=700e12,
        copy_bytes_per_s=2.9e12,
        started_at="2026-01-01T00:00:00+00:00",
        duration_s=9.0,
        notes=(msg("{points} late", points=2),),
    )


H100 = Gpu(
    id="h100-sxm",
    name="H100",
    memory_bytes=80 * GIB,
    bandwidth_bytes_per_s=3.35e12,
    flops_per_s={"bf16": 989e12},
)


def test_prefill_sits_under_the_flat_roof_and_decode_under_the_slope() -> None:
    prefill, decode = compare(h100_result(), H100)
    assert (prefill.bound, prefill.roof_flops_per_s) == ("compute", 989e12)
    assert decode.bound == "memory"
    assert decode.roof_share == pytest.approx(decode.achieved_bytes_per_s / 3.35e12)
    assert 0 < prefill.roof_share < 1  # type: ignore[operator]


def test_without_a_catalogue_gpu_the_run_is_its_own_roof() -> None:
    roof = roof_of(h100_result())
    assert (roof.flops_per_s, roof.bytes_per_s, roof.provenance) == (700e12, 2.9e12, Provenance.MEASURED)


def test_a_cpu_run_is_never_set_against_a_gpu() -> None:
    assert roof_of(replace(h100_result(), kind="cpu"), H100).provenance is Provenance.MEASURED


def test_an_unknown_peak_gives_no_roof_and_no_verdict() -> None:
    points = compare(h100_result(), replace(H100, flops_per_s={}))
    assert {(point.roof_flops_per_s, point.roof_share, point.bound) for point in points} == {(None, None, None)}


# ---- what the driver says


class NvmlError(Exception):
    pass


class LibraryNotFound(NvmlError):
    pass


class DriverNotLoaded(NvmlError):
    pass


class NoPermission(NvmlError):
    pass


class NotSupported(NvmlError):
    pass


def answer(value: object) -> Any:
    def call(*_: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return call


def driver(**changes: object) -> SimpleNamespace:
    """An NVML binding of one H100; ``changes`` replace single answers, an exception is raised."""
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlSystemGetDriverVersion": "580.65.06",
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * GIB, used=60 * GIB, free=20 * GIB),
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87, memory=40),
        "nvmlDeviceGetTemperature": 64,
        "nvmlDeviceGetPowerUsage": 512_300,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetClockInfo": 1755,
        "nvmlDeviceGetMaxClockInfo": 1980,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 0x04 | 0x40,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetNvLinkState": 1,
        "nvmlDeviceGetComputeRunningProcesses": [object(), object()],
        **changes,
    }
    errors = {"NVMLError": NvmlError, "NVMLError_LibraryNotFound": LibraryNotFound}
    errors |= {"NVMLError_DriverNotLoaded": DriverNotLoaded, "NVMLError_NoPermission": NoPermission}
    constants = {"NVML_TEMPERATURE_GPU": 0, "NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2}
    return SimpleNamespace(**{name: answer(value) for name, value in answers.items()}, **errors, **constants)


def test_the_driver_s_figures_arrive_in_base_units() -> None:
    report = gpu_facts(driver())
    (gpu,) = report.gpus
    assert (report.available, report.reason, report.driver_version) == (True, None, "580.65.06")
    assert (gpu.memory_used_bytes, gpu.utilisation_share) == (60 * GIB, 0.87)
    assert gpu.power_w == pytest.approx(512.3)
    assert (gpu.sm_clock_hz, gpu.temperature_c, gpu.process_count) == (1.755e9, 64, 2)
    assert [str(reason) for reason in gpu.throttle_reasons or ()] == ["power cap", "thermal limit (hardware)"]


UNSUPPORTED = (
    ("nvmlDeviceGetPowerUsage", "power_w"),
    ("nvmlDeviceGetUtilizationRates", "utilisation_share"),
    ("nvmlDeviceGetTemperature", "temperature_c"),
    ("nvmlDeviceGetMemoryInfo", "memory_used_bytes"),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", "throttle_reasons"),
    ("nvmlDeviceGetNvLinkState", "nvlinks_active"),
    ("nvmlDeviceGetComputeRunningProcesses", "process_count"),
    ("nvmlDeviceGetCurrPcieLinkWidth", "pcie_width"),
    ("nvmlDeviceGetName", "name"),
)


@pytest.mark.parametrize(("call", "fact"), UNSUPPORTED)
def test_what_a_gpu_does_not_support_is_none_and_the_rest_stays(call: str, fact: str) -> None:
    (gpu,) = gpu_facts(driver(**{call: NotSupported()})).gpus
    assert getattr(gpu, fact) is None
    assert gpu.pcie_generation == 5


@pytest.mark.parametrize("blank", [0x7FFFFFF0, 0x7FFFFFF2, 0x7FFFFFFFFFFFFFF2, 140737488355330.0, 4294967295])
def test_a_blank_value_is_none_not_a_number(blank: float) -> None:
    (gpu,) = gpu_facts(driver(nvmlDeviceGetPowerUsage=blank)).gpus
    assert gpu.power_w is None


def test_zero_is_a_measurement() -> None:
    zero = driver(
        nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=0, memory=0), nvmlDeviceGetComputeRunningProcesses=[]
    )
    (gpu,) = gpu_facts(zero).gpus
    assert (gpu.utilisation_share, gpu.process_count) == (0, 0)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (LibraryNotFound(), "No NVIDIA driver was found"),
        (DriverNotLoaded(), "installed but not loaded"),
        (NoPermission(), "may not talk to the NVIDIA driver"),
        (NotSupported("mismatch"), "did not answer (mismatch)"),
    ],
)
def test_no_driver_is_a_calm_report(error: Exception, sentence: str) -> None:
    report = gpu_facts(driver(nvmlInit=error))
    assert not report.available
    assert isinstance(report.reason, Message)
    assert sentence in str(report.reason)


def test_this_machine_s_own_driver_or_its_absence_is_reported() -> None:
    report = gpu_facts()
    assert report.available == (report.reason is None)
    assert report.available or not report.gpus


def test_binding_has_every_call_the_fake_has() -> None:
    """So that the fake cannot drift from the real one."""
    import pynvml

    assert [name for name in vars(driver()) if not hasattr(pynvml, name)] == []


def test_the_driver_is_asked_in_a_process_of_its_own() -> None:
    report = driver_report()
    assert report.available or report.reason is not None


def test_a_driver_that_hangs_is_left_behind_with_a_sentence() -> None:
    started = time.monotonic()
    report = driver_report((sys.executable, "-c", "import time; time.sleep(60)"), patience_s=0.5)
    assert time.monotonic() - started < 5
    assert report.reason is not None
    assert "did not answer" in str(report.reason)


def test_a_driver_report_survives_the_pipe() -> None:
    report = gpu_facts(driver())
    assert report.available
    assert wire.parse_report(wire.report_line(report)) == report
