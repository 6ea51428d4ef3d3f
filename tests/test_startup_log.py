"""Start-up logs of many versions: what is read, what is refused, and that no text slows the reader or leaks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calc.errors import UnreadableFile
from calc.startup.log import StartupLog
from calc.units import GIB
from data import formats
from data.case_measured import log_answer
from data.formats.redact import redact
from data.formats.startup_log import MAX_LOG_BYTES, read_startup_bytes, read_startup_log

V06 = """INFO 12-01 10:00:00 llm_engine.py:1] Initializing an LLM engine (v0.6.5) with config: model='org/Model-8B',\
 tokenizer='org/Model-8B', dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2, pipeline_parallel_size=1,\
 quantization=None, enforce_eager=False, kv_cache_dtype=auto, use_v2_block_manager=True
INFO 12-01 10:00:20 model_runner.py:1] Loading model weights took 7.5123 GB
(VllmWorkerProcess pid=7) INFO 12-01 10:00:20 model_runner.py:1] Loading model weights took 7.4987 GB
INFO 12-01 10:00:25 worker.py:1] the current vLLM instance can use total_gpu_memory (79.22GiB) x\
 gpu_memory_utilization (0.90) = 71.30GiB
INFO 12-01 10:00:25 worker.py:1] model weights take 7.51GiB; non_torch_memory takes 0.62GiB; PyTorch activation peak\
 memory takes 1.20GiB; the rest of the memory reserved for KV Cache is 61.97GiB.
INFO 12-01 10:00:26 distributed_gpu_executor.py:1] # GPU blocks: 30100, # CPU blocks: 2048
INFO 12-01 10:00:26 distributed_gpu_executor.py:1] Maximum concurrency for 8192 tokens per request: 58.79x
INFO 12-01 10:00:40 model_runner.py:1] Graph capturing finished in 14 secs, took 0.35 GiB
"""
V06_TABLE = """INFO worker.py:1] Memory profiling results:
INFO worker.py:1] total_gpu_memory \t79.22GiB
INFO worker.py:1] gpu_memory_utilization \t0.90
INFO worker.py:1] the current vLLM instance can use \t71.29GiB
INFO worker.py:1] model weights take \t14.96GiB
INFO worker.py:1] non_torch_memory \t1.79GiB
INFO worker.py:1] PyTorch activation peak memory \t1.26GiB
INFO worker.py:1] available_kv_cache_memory \t53.29GiB
"""
V10 = """\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 08-01 09:00:00 [api_server.py:1] vLLM API server version 0.10.1
(APIServer pid=1) INFO [utils.py:1] non-default args: {'model_tag': 'org/Model-8B', 'model': 'org/Model-8B',\
 'max_model_len': 16384, 'served_model_name': ['chat'], 'tensor_parallel_size': 2, 'max_num_batched_tokens': 4096,\
 'max_num_seqs': 64, 'gpu_memory_utilization': 0.85, 'api_key': ['sk-not-a-real-key-000'], 'kv_cache_dtype': 'fp8'}
(VllmWorker TP0 pid=3) INFO [gpu_model_runner.py:1] Model loading took 7.5100 GiB and 9.123456 seconds
(VllmWorker TP1 pid=4) INFO [gpu_model_runner.py:1] Model loading took 7.5200 GiB and 9.223456 seconds
(VllmWorker TP0 pid=3) INFO [gpu_worker.py:1] Available KV cache memory: 8.11 GiB
(VllmWorker TP1 pid=4) INFO [gpu_worker.py:1] Available KV cache memory: 8.05 GiB
(EngineCore_0 pid=2) INFO [kv_cache_utils.py:1] GPU KV cache size: 178,880 tokens
(EngineCore_0 pid=2) INFO [kv_cache_utils.py:1] Maximum concurrency for 16,384 tokens per request: 10.92x
"""
V19 = """(EngineCore pid=9) INFO [core.py:1] Initializing a V1 LLM engine (v0.19.2rc1.dev8+gabc) with config:\
 model='/hub/models--org--Model-8B/snapshots/0a1b', speculative_config=SpeculativeConfig(method='mtp', num_spec=1),\
 dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=1, data_parallel_size=1, kv_cache_dtype=fp8_e4m3
(EngineCore pid=9) INFO Model loading took 15.0 GiB memory and 5.4 seconds
(EngineCore pid=9) DEBUG Memory profiling takes 7.2 seconds. Total non KV cache memory: 17.12GiB; torch peak memory\
 increase: 1.89GiB; non-torch forward increase memory: 0.25GiB; weights memory: 14.99GiB.
(EngineCore pid=9) INFO Setting attention block size to 1568 tokens to ensure that attention page size is >= mamba page
(EngineCore pid=9) WARNING Add 3 padding layers, may waste at most 6.25% KV cache memory
(EngineCore pid=9) INFO Estimated CUDA graph memory: 0.73 GiB total
(EngineCore pid=9) INFO Available KV cache memory: 57.98 GiB
(EngineCore pid=9) INFO In v0.19, CUDA graph memory profiling will be enabled by default
(EngineCore pid=9) INFO CUDA graph pool memory: 0.64 GiB (actual), 0.73 GiB (estimated), difference: 0.09 GiB (12.3%).
"""
V32 = """INFO [gpu_worker.py:1] Available KV cache memory: 56.21 GiB
INFO [kv_cache_utils.py:1] GPU KV cache size: 460,496 tokens, Maximum concurrency for 131,072 tokens per request: 3.51x
INFO [gpu_worker.py:1] Free memory on device (78.84/79.25 GiB) on startup. Desired GPU memory utilization is (0.92,\
 72.91 GiB). Actual usage is 15.26 GiB for consumed memory (weights + non-torch), 1.44 GiB for peak activation, and\
 0.23 GiB for CUDAGraph memory. Current kv cache memory in use is 56.21 GiB.
"""
SGLANG = """[2026-05-15 08:39:19] server_args=ServerArgs(model_path='org/Model-8B', tp_size=2, pp_size=1, dp_size=1,\
 mem_fraction_static=0.88, kv_cache_dtype='auto', chunked_prefill_size=8192, max_running_requests=None, page_size=1)
[2026-05-15 08:39:21 TP0] Init torch distributed ends. mem usage=1.77 GB
[2026-05-15 08:39:21 TP1] Init torch distributed ends. mem usage=2.01 GB
[2026-05-15 08:39:31 TP0] Load weight end. elapsed=9.0 s, type=LlamaForCausalLM, avail mem=70.1 GB, mem usage=7.51 GB.
[2026-05-15 08:39:31 TP1] Load weight end. elapsed=9.0 s, type=LlamaForCausalLM, avail mem=70.1 GB, mem usage=7.51 GB.
[2026-05-15 08:39:32 TP0] KV Cache is allocated. dtype: torch.bfloat16,\
 #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2026-05-15 08:39:32 TP1] KV Cache is allocated. dtype: torch.bfloat16,\
 #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2026-05-15 08:39:32 TP0] Memory pool end. avail mem=9.01 GB
[2026-05-15 08:39:50 TP0] Capture cuda graph end. Time elapsed: 18.2 s. mem usage=0.81 GB. avail mem=8.20 GB.
[2026-05-15 08:39:51 TP0] max_total_num_tokens=367404, chunked_prefill_size=4096, max_prefill_tokens=16384,\
 max_running_requests=2048, context_len=40960, available_gpu_mem=8.20 GB
"""
TRTLLM = """[TRT-LLM] [I] TensorRT-LLM version: 1.1.0
[TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: 14.98 GiB
[TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage profiling: 0.85 GiB
[TRT-LLM] [I] Peak memory during memory usage profiling (torch + non-torch): 18.36 GiB, available KV cache memory when\
 calculating max tokens: 54.83 GiB, fraction is set 0.9, kv size is 131072. device total memory 79.11 GiB
[TRT-LLM] [I] [MemUsageChange] Allocated 54.83 GiB for max tokens in paged KV cache (449152).
"""


def values(log: StartupLog) -> dict[str, object]:
    """Every figure; bytes in GiB, rounded as logged."""
    return {
        name: round(seen.value / GIB, 2) if name.endswith("_bytes") and isinstance(seen.value, float) else seen.value
        for name, seen in log.seen().items()
    }


READ: dict[str, tuple[str, dict[str, object]]] = {
    "vLLM 0.6": (
        V06,
        {
            "version": "0.6.5", "model": "org/Model-8B", "gpu_memory_bytes": 79.22, "budget_bytes": 71.3,
            "memory_fraction": 0.9, "max_model_len_tokens": 8192, "tp": 2, "pp": 1, "weights_bytes": 7.51,
            "activation_bytes": 1.2, "non_torch_bytes": 0.62, "graph_bytes": 0.35, "kv_pool_bytes": 61.97,
            "num_blocks": 30100, "max_concurrency": 58.79, "concurrency_tokens": 8192,
        },
    ),
    "vLLM 0.6, a table": (
        V06_TABLE,
        {
            "gpu_memory_bytes": 79.22, "memory_fraction": 0.9, "budget_bytes": 71.29, "weights_bytes": 14.96,
            "non_torch_bytes": 1.79, "activation_bytes": 1.26, "kv_pool_bytes": 53.29,
        },
    ),
    "vLLM 0.10": (
        V10,
        {
            "version": "0.10.1", "model": "org/Model-8B", "max_model_len_tokens": 16384, "tp": 2,
            "max_num_batched_tokens": 4096, "max_num_seqs": 64, "memory_fraction": 0.85, "kv_dtype": "fp8",
            "weights_bytes": 7.52, "kv_pool_bytes": 8.05, "kv_tokens": 178880,
        },
    ),
    "vLLM 0.19": (
        V19,
        {
            "version": "0.19.2rc1.dev8+gabc", "model": "org/Model-8B", "spec_method": "mtp", "kv_dtype": "fp8_e4m3",
            "weights_bytes": 15.0, "activation_bytes": 1.89, "non_torch_bytes": 0.25, "block_size_tokens": 1568,
            "padding_layers": 3, "graph_bytes": 0.64, "graph_estimate_bytes": 0.73, "kv_pool_bytes": 57.98,
        },
    ),
    "vLLM 0.32": (
        V32,
        {
            "consumed_bytes": 15.26, "activation_bytes": 1.44, "graph_bytes": 0.23, "budget_bytes": 72.91,
            "memory_fraction": 0.92, "gpu_memory_bytes": 79.25, "kv_pool_bytes": 56.21, "kv_tokens": 460496,
            "max_concurrency": 3.51,
        },
    ),
    "SGLang": (
        SGLANG,
        {
            "model": "org/Model-8B", "tp": 2, "memory_fraction": 0.88, "weights_bytes": 7.51, "non_torch_bytes": 2.01,
            "kv_pool_bytes": 16.46, "kv_tokens": 367404, "max_num_batched_tokens": 4096, "max_num_seqs": 2048,
            "max_model_len_tokens": 40960, "graph_bytes": 0.81,
        },
    ),
    "TensorRT-LLM": (
        TRTLLM,
        {
            "version": "1.1.0", "weights_bytes": 14.98, "activation_bytes": 0.85, "kv_pool_bytes": 54.83,
            "memory_fraction": 0.9, "gpu_memory_bytes": 79.11, "kv_tokens": 449152,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", READ)
def test_each_versions_lines_are_read(version: str) -> None:
    text, expected = READ[version]
    read = values(read_startup_log(text))
    assert {name: read.get(name) for name in expected} == expected


def test_ranks_are_kept_apart_and_the_binding_one_counts() -> None:
    log = read_startup_log(V10)
    assert log.kv_pool_bytes
    assert log.weights_bytes
    assert (log.kv_pool_bytes.low, log.kv_pool_bytes.high) == (8.05 * GIB, 8.11 * GIB)
    assert log.kv_pool_bytes.value == log.kv_pool_bytes.low
    assert log.weights_bytes.value == log.weights_bytes.high
    assert (log.kv_pool_bytes.line_number, log.kv_pool_bytes.times) == (6, 2)


def test_the_last_of_several_starts_counts() -> None:
    second = V10.replace("8.05 GiB", "6.00 GiB").replace("0.85", "0.80")
    log = read_startup_log(V10 + second)
    assert log.starts == 2
    assert log.kv_pool_bytes
    assert log.memory_fraction
    assert (log.kv_pool_bytes.value, log.memory_fraction.value) == (6.0 * GIB, 0.8)
    assert log.kv_pool_bytes.line_number == 14


PREFIXES: dict[str, Callable[[str], str]] = {
    "journald": lambda line: f"Nov 30 03:00:00 node7 vllm[4242]: {line}",
    "docker": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-11-30T03:00:00Z"}),
    "kubernetes": lambda line: f"2026-11-30T03:00:00.123456789Z stderr F {line}",
    "compose": lambda line: f"engine-1  | {line}",
    "JSON lines": lambda line: json.dumps({"level": "INFO", "message": line}),
    "a quoted paste": lambda line: f"> {line}",
    "Windows ends": lambda line: line + "\r",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", [V06, V10, V32, SGLANG], ids=["0.6", "0.10", "0.32", "sglang"])
def test_prefixes_do_not_matter(prefix: str, text: str) -> None:
    wrapped = "\n".join(PREFIXES[prefix](line) for line in text.splitlines())
    assert values(read_startup_log(wrapped)) == values(read_startup_log(text))
    result = formats.read(wrapped.encode(), "any.name")
    assert result.format in ("vllm_log", "sglang_log")
    assert result.startup is not None


REFUSALS = {
    "no_room": "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
    "too_long": "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be"
    " stored in KV cache (79392). Try increasing",
    "not_free": "ValueError: Free memory on device cuda:0 (3.25/23.43 GiB) on startup is less than desired GPU memory"
    " utilization (0.96, 22.49 GiB).",
    "out_of_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total",
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals_are_told(kind: str) -> None:
    log = read_startup_log(REFUSALS[kind] + "\n" + REFUSALS[kind])
    assert [refusal.kind for refusal in log.refusals] == [kind]


def test_the_needed_and_the_left_memory_of_a_refusal_are_read() -> None:
    for head in ("the model's max seq len (32000), (1.1 GiB", "the models's max seq len (32000), 1.1 GiB"):
        text = f"To serve at least one request with {head} KV cache is needed, which is larger than the available KV cache memory (0.59 GiB)."  # noqa: E501
        (refusal,) = read_startup_log(text).refusals
        assert refusal.text.params == {"length": 32000.0, "needed": 1.1 * GIB, "free": 0.59 * GIB}


SECRETS = ("hf_AbCdEfGhIjKlMnOp", "sk-live-0123456789abcdef", "ghp_0123456789abcdefghij", "hunter2pass")


def test_no_secret_and_nothing_else_of_a_line_is_kept() -> None:
    noise = f"HF_TOKEN={SECRETS[0]} 'api_key': ['{SECRETS[1]}'] https://bob:{SECRETS[3]}@host/x token: {SECRETS[2]} "
    text = "\n".join(noise + line + " " + noise for line in V10.splitlines())
    kept = json.dumps(log_answer(read_startup_log(text)))
    assert not [secret for secret in SECRETS if secret in kept]
    assert "bob" not in kept


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_redacted_by_name_or_by_shape(secret: str) -> None:
    for line in (f"password={secret}", f"'token': '{secret}'", f"Authorization: Bearer {secret}", f"s3://u:{secret}@h"):
        assert secret not in redact(line)


MOST_SECONDS = 8
"""Ten million characters take well under a second on an idle machine."""
BOMBS = {
    "one line a million times": "Available KV cache memory: 1 GiB\n" * 300_000,
    "words without figures": "Load weight end. " * 600_000,
    "an endless figure": "Available KV cache memory: " + "9," * 5_000_000,
    "an endless list of arguments": "server_args=ServerArgs(" + "model_path='" * 900_000,
    "quotes": "non-default args: {" + "'model': '" * 900_000,
    "starts without end": "vLLM API server version 1\nModel loading took 1 GiB\n" * 180_000,
    "refusals": "To serve at least one request" * 300_000,
    "braces": "{" * 10_000_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_hostile_text_takes_little_time_and_gets_one_sentence(bomb: str) -> None:
    begun = time.perf_counter()
    said = answer_to(BOMBS[bomb])
    assert time.perf_counter() - begun < MOST_SECONDS
    assert "\n" not in said


def answer_to(text: str) -> str:
    """What the reader says: nothing, or one sentence."""
    try:
        read_startup_log(text)
    except UnreadableFile as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n", b"\x00\x01\x02", b"PK\x03\x04....", b"hello", b"x" * (MAX_LOG_BYTES + 1)]
)
def test_what_is_no_log_is_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(UnreadableFile) as error:
        read_startup_bytes(content, "some.file")
    assert str(error.value).count("\n") == 0


def test_control_characters_do_not_reach_what_is_kept() -> None:
    text = V10.replace("/Model", "/Mo\x07del\u0085")
    assert not any(ord(sign) < 32 for seen in read_startup_log(text).seen().values() for sign in str(seen.line))


def test_a_log_in_utf16_is_recognised() -> None:
    """PowerShell writes what it redirects in UTF-16."""
    assert formats.read(V10.encode("utf-16"), "out.txt").format == "vllm_log"


@pytest.fixture
def logged(cases_dir: Path) -> list[dict[str, Any]]:
    """Figures of recorded starts."""
    path = cases_dir / "memory" / "logged_capacity.jsonl"
    if not path.exists():
        pytest.skip("the recorded starts are not here")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def lines_of(case: dict[str, Any]) -> list[str]:
    """The log lines that a case's figures were written in."""
    seen, lines = case["observed"], []
    if "available_kv_gib" in seen:
        lines.append(f"Available KV cache memory: {seen['available_kv_gib']} GiB")
    if "kv_tokens" in seen and case["engine"] == "vllm" and not seen.get("refused"):
        lines.append(f"GPU KV cache size: {seen['kv_tokens']:,} tokens")
    if "k_size_gib" in seen:
        k_and_v = f"K size: {seen['k_size_gib']} GB, V size: {seen['v_size_gib']} GB"
        lines.append(f"KV Cache is allocated. #tokens: {seen['kv_tokens']}, {k_and_v}")
    if "gpu_blocks" in seen:
        lines.append(f"# GPU blocks: {seen['gpu_blocks']}, # CPU blocks: {seen.get('cpu_blocks', 0)}")
    return lines


def test_recorded_figures_come_back_from_the_lines_they_were_logged_in(logged: list[dict[str, Any]]) -> None:
    cases = [case for case in logged if lines_of(case)]
    assert len(cases) >= 5
    for case in cases:
        seen, found = case["observed"], values(read_startup_log("\n".join(lines_of(case))))
        expected = {
            "kv_pool_bytes": seen.get("available_kv_gib", seen.get("kv_size_gib")),
            "kv_tokens": seen.get("kv_tokens"),
            "num_blocks": seen.get("gpu_blocks"),
        }
        assert {name: found[name] for name in found} == pytest.approx({name: expected[name] for name in found})


def test_a_log_of_many_starts_is_read_in_time_that_grows_with_its_length() -> None:
    once = (Path(__file__).parent.parent / "data/samples/sample-startup-vllm.log").read_text(encoding="utf-8")
    begun_s = time.perf_counter()
    log = read_startup_log("\n".join([once] * 3000))
    assert log.starts > 2000
    assert time.perf_counter() - begun_s < 5
