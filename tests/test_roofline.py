"""Step times against hand arithmetic, published kernel figures and physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calc.deployment import Deployment
from calc.errors import InputError
from calc.step.efficiency import efficiency_of
from calc.step.kernels import KernelClass, touched_share
from calc.step.roofline import StepModel, binding, step_model
from calc.units import GB, TERA
from data.case import read_deployment


def deployed(model: str = "meta-llama/Meta-Llama-3.1-8B-Instruct", gpu: str = "h100-sxm", **more: object) -> Deployment:
    return read_deployment({"model": model, "gpu": gpu, "engine": "vllm", "engine_version": "0.15.1", **more})[0]


def tokens_s(model: StepModel, tokens: float) -> float:
    return float(model.tokens_s(np.array([tokens]))[0])


def test_one_token_costs_about_one_read_of_the_weights() -> None:
    """Llama-3.1-8B: 15.0 GB of weights without the input embedding over 3.35 TB/s = 4.5 ms; with a bandwidth share
    of .83 and 32 layers of launches 6 to 7 ms (measured warm TPOT of such deployments at one request: 6.5-7 ms)."""
    step_s = step_model(deployed()).decode_s(1, 500)
    assert 4.5e-3 < step_s < 7.2e-3


def test_a_long_prompt_costs_its_flops() -> None:
    """2 · 7.5e9 · 8192 FLOPs at .83 of 989 TFLOP/s = 150 ms, causal attention at half the peak 36 ms, and 40 GB that
    the kernels between move at about two thirds of the bandwidth, 18 ms: 0.2 s, .64 of peak (CodeLlama-34B: .65)."""
    prompt = np.array([8192.0])
    prefill_s = float(step_model(deployed()).prefill_only_s(prompt, np.zeros(1))[0])
    assert prefill_s == pytest.approx(0.205, rel=0.05)


@pytest.mark.parametrize(("tokens", "share"), [(128, 0.35), (256, 0.65), (512, 0.82), (2048, 0.83)])
def test_the_bend_between_memory_and_compute_is_the_measured_one(tokens: int, share: float) -> None:
    """H100 BF16 matrix products, share of peak by rows: kernel table of aiconfigurator-core 0.12.0 (medians)."""
    (plain,) = step_model(deployed()).classes
    reached = plain.flops_per_token * tokens / float(plain.seconds(np.array([float(tokens)]))[0]) / (989 * TERA)
    assert reached == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize(
    ("tp", "tokens", "measured_us"),
    [(2, 16, 6.3), (4, 16, 11.4), (8, 16, 12.0), (4, 1024, 191), (8, 4096, 577)],
)
def test_all_reduces_take_what_was_measured(tp: int, tokens: int, measured_us: float) -> None:
    """H100 NVLink, hidden size 8192, vLLM custom kernel under CUDA graphs; ranks also wait for each other, and NCCL
    takes over large messages, hence a factor of 1.8 either way."""
    model = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", tp=tp))
    one_s = float(model.collective_s(np.array([float(tokens)]))[0]) / 160
    assert measured_us / 1.8 < one_s * 1e6 < measured_us * 1.8


@pytest.mark.parametrize(("tp", "measured_us"), [(2, 266), (4, 341), (8, 373)])
def test_large_all_reduces_go_to_nccl(tp: int, measured_us: float) -> None:
    """H100, 64 MB, NCCL (aiconfigurator-core 0.12.0): the custom kernel takes 469 to 619 µs."""
    model = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", tp=tp))
    assert float(model.collective_s(np.array([4096.0]))[0]) / 160 * 1e6 == pytest.approx(measured_us, rel=0.25)


def test_tensor_parallelism_over_pcie_is_bound_by_communication() -> None:
    l40s = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", "l40s", tp=4))
    h100 = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", "h100-sxm", tp=4))
    prefill = {"tokens": 2048, "sequences": 1, "context_tokens": 2048}
    assert binding(l40s, **prefill) == "communication"
    assert binding(h100, **prefill) == "compute"


def test_decode_waits_for_memory_and_prefill_for_arithmetic() -> None:
    model = step_model(deployed())
    assert binding(model, tokens=8, sequences=8, context_tokens=8000) == "memory_bandwidth"
    assert binding(model, tokens=4096, sequences=1, context_tokens=4096) == "compute"
    ridge = 989 * TERA / (3350 * GB)
    assert model.intensity(8, 8000) < ridge < model.intensity(4096, 0)


def test_the_split_of_a_step_adds_up() -> None:
    model = step_model(deployed())
    parts = model.parts_s(40, 40, 30_000)
    assert sum(parts.values()) == pytest.approx(model.decode_s(40, 30_000))


def expert_kernel(model: str, **more: object) -> KernelClass:
    return {kernel.name: kernel for kernel in step_model(deployed(model, **more)).classes}["experts"]


def test_a_batch_touches_experts_until_all_are_read() -> None:
    """Mixtral: 2 of 8 experts per token; one token reads 2/8, many read all."""
    experts = expert_kernel("mistralai/Mixtral-8x7B-v0.1", tp=2)
    one, many = experts.memory_s(np.array([1.0, 20_000.0]))
    assert one / many == pytest.approx(2 / 8, rel=1e-3)
    assert many == pytest.approx(experts.weight_bytes / experts.bytes_per_s, rel=1e-3)


def test_uneven_experts_are_touched_later_than_even_ones() -> None:
    """Equally popular: 1 − (1 − k/E)^n. Draws of beta-distributed popularities give the same share as the formula."""
    tokens, taken = np.array([1.0, 8.0, 32.0, 128.0]), 8 / 256
    even = 1 - (1 - taken) ** tokens
    assert touched_share(taken, 1e4, tokens) == pytest.approx(even, rel=1e-2)
    popularity = np.random.default_rng(1).beta(2.0, 2.0 / taken - 2.0, 400_000)
    drawn = [1 - ((1 - popularity) ** n).mean() for n in tokens]
    assert touched_share(taken, 2.0, tokens) == pytest.approx(drawn, rel=1e-2)
    assert (touched_share(taken, 2.0, tokens)[1:] < even[1:]).all()


def test_with_expert_parallelism_a_step_waits_for_the_busiest_rank() -> None:
    """Simulated: 8 tokens on 1 of 16 experts each, 8 experts on either of two ranks; the larger count of the two."""
    together, apart = (
        expert_kernel("meta-llama/Llama-4-Scout-17B-16E-Instruct", tp=2, ep=ep, weight_dtype="fp8")
        for ep in (False, True)
    )
    rng = np.random.default_rng(1)
    popularity = rng.beta(2.0, 2.0 * 15, (20_000, 16))
    hit = rng.random((20_000, 16)) < 1 - (1 - popularity) ** 8
    busiest = hit.reshape(-1, 2, 8).sum(axis=2).max(axis=1).mean() / 8
    found = float((apart.memory_s(np.array([8.0])) / (apart.weight_bytes / apart.bytes_per_s))[0])
    assert found == pytest.approx(busiest, rel=0.05)
    assert (together.memory_s(np.array([8.0])) < apart.memory_s(np.array([8.0]))).all()


@pytest.mark.parametrize("batch", [1, 32, 256])
def test_more_bandwidth_or_flops_never_slow_a_step(batch: int) -> None:
    deployment = deployed()
    gpu = deployment.gpu
    base = step_model(deployment).decode_s(batch, batch * 1000)
    assert gpu.bandwidth_bytes_per_s is not None
    wider = replace(gpu, bandwidth_bytes_per_s=2 * gpu.bandwidth_bytes_per_s)
    stronger = replace(gpu, flops_per_s={code: 2 * peak for code, peak in gpu.flops_per_s.items()})
    assert step_model(replace(deployment, gpu=wider)).decode_s(batch, batch * 1000) < base
    assert step_model(replace(deployment, gpu=stronger)).decode_s(batch, batch * 1000) <= base


def test_steps_grow_with_tokens_sequences_and_context() -> None:
    model = step_model(deployed("openai/gpt-oss-20b"))
    assert (np.diff(model.tokens_s(np.arange(1.0, 512.0))) > 0).all()
    assert (np.diff(model.tokens_s(np.arange(1.0, 3000.0))) >= 0).all()
    assert (np.diff(model.tokens_s(np.arange(4000.0, 9000.0))) > 0).all()
    assert model.decode_s(8, 8000) < model.decode_s(16, 8000) < model.decode_s(16, 80_000)


def test_windowed_layers_stop_reading_at_their_window() -> None:
    """gpt-oss-20b: half the layers see 128 tokens, so a long context costs half of what full layers would."""
    model = step_model(deployed("openai/gpt-oss-20b"))
    assert model.window_tokens == 128
    slope = model.decode_s(1, 20_000) - model.decode_s(1, 10_000)
    assert slope == pytest.approx(10_000 * model.context_s)


def test_fp8_weights_halve_the_read() -> None:
    wide = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", tp=4))
    narrow = step_model(deployed("meta-llama/Meta-Llama-3.1-70B-Instruct", tp=4, weight_dtype="fp8"))
    assert 0.5 < narrow.weight_bytes / wide.weight_bytes < 0.55
    assert narrow.decode_s(1, 100) < wide.decode_s(1, 100)


def test_synchronous_engines_pay_more_per_step() -> None:
    deployment = deployed()
    late = replace(
        deployment, engine=replace(deployment.engine, async_scheduling=not deployment.engine.async_scheduling)
    )
    steps = {d.engine.async_scheduling: step_model(d) for d in (deployment, late)}
    assert steps[False].fixed_s > steps[True].fixed_s
    assert steps[True].queued_step


@pytest.mark.parametrize(
    ("missing", "tp", "named"),
    [
        ({"bandwidth_bytes_per_s": None}, 1, "memory bandwidth"),
        ({"flops_per_s": {}}, 1, "FLOP/s"),
        ({"nvlink_bytes_per_s": None, "pcie_bytes_per_s": None}, 2, "NVLink or PCIe"),
    ],
)
def test_an_unknown_figure_is_asked_for_by_name(missing: dict[str, object], tp: int, named: str) -> None:
    deployment = deployed(tp=tp)
    with pytest.raises(InputError, match=named):
        step_model(replace(deployment, gpu=replace(deployment.gpu, **missing)))


def test_a_gpu_without_measurements_says_so() -> None:
    assert efficiency_of(deployed(gpu="mi300x").gpu).row == "generic"
    assert "generic" not in {efficiency_of(deployed(gpu=gpu).gpu).row for gpu in ("h100-sxm", "a100-80-sxm", "l40s")}
    assert step_model(deployed(gpu="mi300x")).notes
    like = step_model(deployed(gpu="l40"))
    assert efficiency_of(deployed(gpu="l40").gpu).row == "l40s"
    assert "L40S" in str(like.notes)
    assert not step_model(deployed()).notes


def test_engines_that_prefill_alone_read_the_weights_twice() -> None:
    """Decode and prefill in one step share a read of the weights; in two they do not."""
    mixed, alone = (step_model(deployed(engine=engine, engine_version=None)) for engine in ("vllm", "sglang"))
    decoding, fresh = np.array([16.0]), np.array([64.0])
    assert mixed.mixed_s(decoding, fresh) == pytest.approx(mixed.tokens_s(decoding + fresh))
    assert alone.mixed_s(decoding, fresh) > alone.tokens_s(decoding) + alone.weight_bytes / alone.bandwidth_bytes_per_s


def test_a_step_beyond_captured_graphs_takes_at_least_its_launches() -> None:
    """DeepSeek-R1 over 8 GPUs, 600 tokens: little arithmetic, 61 layers launched kernel by kernel."""
    model = step_model(deployed("deepseek-ai/DeepSeek-R1", "h200", tp=8, engine="sglang", engine_version="0.5.3"))
    assert tokens_s(model, 600) == model.eager_s
    assert tokens_s(model, 500) < model.eager_s
    parts = model.parts_s(600, 0, 0)
    assert sum(parts.values()) == pytest.approx(model.eager_s)


@pytest.mark.parametrize(
    ("model", "tp", "measured_ms"),
    [("meta-llama/Meta-Llama-3.1-70B-Instruct", 4, 16.23), ("mistralai/Mixtral-8x7B-v0.1", 2, 14.98)],
)
def test_the_first_engine_of_vllm_takes_longer_between_steps(model: str, tp: int, measured_ms: float) -> None:
    """vLLM CI, build 9515 (V0 engine), H200: 8 sequences of 32 + 128 tokens, end-to-end time over 128 tokens."""
    first, second = (
        step_model(deployed(model, "h200", tp=tp, engine_version=version)).decode_s(8, 8 * 96) * 1000
        for version in ("0.6.3", "0.9.0")
    )
    assert first == pytest.approx(measured_ms, rel=0.05)
    assert second < first


def test_narrow_caches_are_read_no_faster_by_old_kernels_on_hopper() -> None:
    """FlashAttention 3 before September 2025: an FP8 cache takes as long as a BF16 one; later 1.39 times as fast (pull
    request 96 of vllm-project/flash-attention). On B200 half the bytes take half the time."""
    llama = "meta-llama/Meta-Llama-3.1-8B-Instruct"
    for gpu, version, gain in (("h200", "0.11.0", 1.0), ("h200", "0.15.1", 1.39), ("b200", "0.11.0", 2.0)):
        wide, narrow = (
            step_model(deployed(llama, gpu, engine_version=version, kv_dtype=dtype)) for dtype in ("bf16", "fp8")
        )
        assert wide.context_s / narrow.context_s == pytest.approx(gain, rel=0.02)
