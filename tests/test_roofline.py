"""Step times against hand arithmetic, published kernel figures and physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calc.deployment import Deployment
from calc.errors import InputError
from calc.step.efficiency import efficiency_of
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
    """2 · 7.5e9 · 8192 FLOPs at .83 of 989 TFLOP/s = 150 ms, and causal attention beside it."""
    prompt = np.array([8192.0])
    prefill_s = float(step_model(deployed()).prefill_only_s(prompt, np.zeros(1))[0])
    assert 0.15 < prefill_s < 0.20


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
    one_s = (model.allreduce_s + tokens * model.allreduce_token_s) / 160
    assert measured_us / 1.8 < one_s * 1e6 < measured_us * 1.8


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


def test_a_batch_touches_experts_until_all_are_read() -> None:
    """Mixtral: 2 of 8 experts per token; one token reads 2/8, many read all."""
    experts = {kernel.name: kernel for kernel in step_model(deployed("mistralai/Mixtral-8x7B-v0.1", tp=2)).classes}[
        "experts"
    ]
    one, many = experts.memory_s(np.array([1.0, 200.0]))
    assert one / many == pytest.approx(2 / 8)
    assert many == pytest.approx(experts.weight_bytes / experts.bytes_per_s)


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
    assert (np.diff(model.tokens_s(np.arange(1.0, 3000.0))) > 0).all()
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
    assert not step_model(deployed()).notes
