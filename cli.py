"""Front door for scripts: the same calculations as the pages, JSON in and JSON Lines out.

One line per input, in input order; a case that cannot be answered gives ``{"id": …, "error": "one sentence"}`` in its
place, and the exit status is 1. Progress goes to standard error. Verbs import what they need when they run.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import click

from calc.errors import PlimsollError

Answer: TypeAlias = Callable[[Any], dict[str, Any]]

INPUT = click.argument("source", metavar="FILE|-", type=click.File("rb"))
DECLARED = "What the files leave out of every run: gpu, gpu_count, model, engine, engine_flags, strategy, repetition …"
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER|ZIP…", type=click.Path(path_type=Path))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="plimsoll")
def main() -> None:
    """How much load an LLM inference deployment can carry, what stops it, and what to do about it."""


@main.command()
@INPUT
def estimate(source: BinaryIO) -> None:
    """GPU memory and KV cache of each estimate case."""
    from data.questions import estimate as answer

    _answer_each(_cases(source), answer)


@main.command()
@INPUT
def predict(source: BinaryIO) -> None:
    """Latency percentiles of each predict case under its load."""
    from data.questions import predict as answer

    _answer_each(_cases(source), answer)


@main.command()
@INPUT
def search(source: BinaryIO) -> None:
    """Deployments that carry a load within its targets, cheapest first; fields of the case may be lists."""
    from functools import partial

    from data.questions import search as answer

    def tell(line: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{line}", err=True, nl=False)

    _answer_each(_cases(source), partial(answer, tell=tell))


@main.command()
@INPUT
def calibrate(source: BinaryIO) -> None:
    """The model's constants fitted to lines of {case, measured}, one line for each deployment among them."""
    from data.calibration_lines import fits

    failed = 0
    for line in fits(_cases(source)):
        failed += "error" in line
        _say(line)
    if failed:
        sys.exit(1)


@main.command()
@INPUT
def launch(source: BinaryIO) -> None:
    """The engine's start command for each estimate case."""
    from data.questions import launch as answer

    _answer_each(_cases(source), answer)


@main.command()
@INPUT
def decide(source: BinaryIO) -> None:
    """Outcome, runner-up and first lever from evidence, a scenario, or both."""
    from data.questions import decide as answer

    _answer_each(_cases(source), answer)


@main.command()
@FILES
def read(files: tuple[Path, ...]) -> None:
    """Benchmark results, logs and metrics of other tools as canonical records; folders and archives file by file."""
    from data.bundle_answer import found_files
    from data.questions import read as answer

    _answer_each(found_files(files), answer)


def _numbers(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[float, ...]:
    """Numbers between commas."""
    try:
        numbers = tuple(float(part) for part in (text or "").split(",") if part.strip())
    except ValueError as error:
        raise click.BadParameter(f"write numbers between commas, not {text!r}.") from error
    if not all(map(math.isfinite, numbers)):
        raise click.BadParameter("write finite numbers.")
    return numbers


@main.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--capacities", metavar="0,100,…", callback=_numbers, help="Blocks of one cache.")
@click.option("--ttl", metavar="S,…", callback=_numbers, help="Seconds after which unused blocks are dropped.")
@click.option(
    "--replicas", type=click.IntRange(1, 1024), default=1, help="Each has a cache of its own of each capacity."
)
@click.option("--routing", type=click.Choice(["round-robin", "prefix-aware"]), default="round-robin", show_default=True)
@click.option("--by-tenant", is_flag=True, help="The log's tenants never find each other's blocks.")
@click.option(
    "--tenants", type=click.IntRange(0, 1024), default=0, help="As if so many tenants sent the requests in turn."
)
@click.option("--own-caches", is_flag=True, help="Each tenant has an equal part of the capacity for itself.")
@click.option("--full-blocks", is_flag=True, help="Only full blocks are cached, as in vLLM.")
@click.option("--answers", is_flag=True, help="A later turn finds the blocks of the answer before it.")
@click.option("--coarser", type=click.IntRange(1, 65536), default=1, help="Blocks of so many of the trace's.")
def reuse(file: Path, capacities: tuple[float, ...], ttl: tuple[float, ...], **conditions: Any) -> None:
    """Hit rate against cache capacity of a trace with block hashes, exactly, every capacity in one pass."""
    from data.logs.reuse_answer import ReuseAsked, reuse_line

    def answer(path: Path) -> dict[str, Any]:
        return reuse_line(path, ReuseAsked(capacities_blocks=tuple(map(int, capacities)), ttl_s=ttl, **conditions))

    _answer_each([file], answer)


@main.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--columns", metavar="JSON", default="", help='What columns mean: {"ts": "time_ms", "in": "prompt_tokens"}.'
)
def profile(file: Path, columns: str) -> None:
    """Workload profile of a request log or trace: CSV, TSV, JSON Lines or Parquet, plain or gzipped, of any size."""
    from data.logs.answer import declared_columns, profile_file

    def tell(done_bytes: int, total_bytes: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{done_bytes:,} of {total_bytes:,} bytes", err=True, nl=False)

    def answer(path: Path) -> dict[str, Any]:
        return profile_file(path, declared_columns(columns), tell)

    _answer_each([file], answer)


@main.command()
@FILES
@click.option("--declare", metavar="FACTS.json", type=click.Path(path_type=Path), help=DECLARED)
def ingest(files: tuple[Path, ...], declare: Path | None) -> None:
    """Store files, or what folders and archives hold; the same file twice gives the same id."""
    from functools import partial

    from data.bundle_answer import found_files
    from data.questions import ingest as answer

    _answer_each(found_files(files), partial(answer, declared=declare))


@main.command()
@click.argument("kind")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Ends in .csv or .parquet.")
def export(kind: str, output: Path) -> None:
    """Write a table of the store (run, file, request_log, log_request, scenario …) to a file."""
    from data.questions import export as answer

    form = output.suffix.removeprefix(".")
    if form not in ("csv", "parquet"):
        raise click.UsageError(f"{output.name} must end in .csv or .parquet.")
    _answer_each([output], lambda path: answer(kind, form, path))


def _cases(source: BinaryIO) -> list[Any]:
    from data.case_lines import split_cases

    try:
        return split_cases(source.read())
    except PlimsollError as error:
        return [error]


def _answer_each(inputs: Iterable[Any], answer: Answer) -> None:
    """Print one line per input as soon as it is known; exit 1 if any was an error."""
    failed = 0
    for number, asked in enumerate(inputs, start=1):
        line = _answer_one(asked, answer)
        failed += "error" in line
        _say(line)
        if sys.stderr.isatty():
            click.echo(f"{number} answered, {failed} failed", err=True)
    if failed:
        sys.exit(1)


def _say(line: Mapping[str, Any]) -> None:
    # A lone surrogate in a name has no UTF-8; its backslash form is JSON again.
    click.echo(json.dumps(line, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace"))


def _answer_one(asked: Any, answer: Answer) -> dict[str, Any]:
    known = _identity(asked)
    try:
        if isinstance(asked, PlimsollError):
            raise asked
        return known | answer(asked)
    except PlimsollError as error:
        return known | {"error": str(error)}
    except MemoryError:
        return known | {"error": "This input needs more memory than there is: ask for fewer requests or replicas."}
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # Our own defect must not cost the user the other answers; it is shown in full, and counted as failed.
        click.echo(traceback.format_exc(), err=True)
        return known | {
            "error": "This input hit a defect of Plimsoll: please report it with the lines on standard error."
        }


def _identity(asked: Any) -> dict[str, Any]:
    if isinstance(asked, Path):
        return {"file": str(asked)}
    if shown := getattr(asked, "shown", None):  # a file of a folder or an archive
        return {"file": shown}
    if not isinstance(asked, Mapping) or "id" not in asked:
        return {}
    from data.case_fields import plain_json

    return {"id": plain_json(asked["id"])}


@main.command()
@click.argument("scenario", metavar="[SCENARIO|-]", required=False, type=click.File("rb"))
@click.option("--example", is_flag=True, help="The worked example instead of a scenario of your own.")
@click.option("--language", type=click.Choice(["en", "zh_CN"]), default="en", show_default=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Ends in .pdf, .html or .md.")
def sheet(scenario: BinaryIO | None, example: bool, language: str, output: Path) -> None:
    """The one-page review of a scenario, or of a saved review, as PDF, HTML or Markdown."""
    if example == (scenario is not None):
        raise click.UsageError("Give either a scenario or --example.")
    from ui.sheet import render_html, render_markdown, render_pdf
    from ui.sheet.of_case import review_of

    renderers: dict[str, Callable[[Any, str], str | bytes]] = {
        ".pdf": render_pdf,
        ".html": render_html,
        ".md": render_markdown,
    }
    if output.suffix not in renderers:
        raise click.UsageError(f"{output.name} must end in {', '.join(renderers)}.")
    try:
        drawn = renderers[output.suffix](review_of(scenario.read() if scenario else None), language)
    except PlimsollError as error:
        raise click.ClickException(str(error)) from error
    output.write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
    click.echo(json.dumps({"file": str(output), "language": language}, ensure_ascii=False))


@main.command()
@click.option("--model", "model_id", default="meta-llama/Meta-Llama-3.1-8B-Instruct", show_default=True)
@click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="GPUs the layer is split over.")
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@click.option("--time-cap", type=click.FloatRange(1), default=20.0, show_default=True, help="Seconds.")
@click.option("--json", is_flag=True, hidden=True, expose_value=False, help="The output is always JSON.")
def probe(model_id: str, tp: int, device: str, time_cap: float) -> None:
    """Measure one layer of a model on this machine, in a process of its own; one JSON line, storable with ingest."""
    from data import catalogue
    from probe.shape import layer_shape
    from probe.wire import shape_line

    try:
        shape = shape_line(layer_shape(catalogue.model(model_id).spec(), tp))
    except PlimsollError as error:
        raise click.ClickException(str(error)) from error
    options = ["--json", shape, "--device", device, "--time-cap", str(time_cap)]
    sys.exit(subprocess.run([sys.executable, "-m", "probe", *options], check=False).returncode)


@main.command("plan")
@click.argument("scenario", metavar="[SCENARIO|-]", required=False, type=click.File("rb"))
@click.option("--tool", "tools", multiple=True, help="Load generator, may be given several times; all of them if not.")
@click.option("--set", "which", default="recommended", show_default=True, help="minimal, recommended or full.")
@click.option("--url", default="http://HOST:8000", show_default=True, help="Where the server answers.")
def plan_verb(scenario: BinaryIO | None, tools: tuple[str, ...], which: str, url: str) -> None:
    """The evaluation matrix of a scenario, a cell a line with ready commands; what they come to on standard error."""
    from data.case import example_case
    from data.plan_answer import plan_answer

    case = example_case() if scenario is None else _cases(scenario)[0]
    try:
        if isinstance(case, PlimsollError):
            raise case
        lines, total = plan_answer(case, which, tools, url)
    except PlimsollError as error:
        _say(_identity(case) | {"error": str(error)})
        sys.exit(1)
    for line in lines:
        _say(_identity(case) | line)
    click.echo(json.dumps(total, ensure_ascii=False), err=True)


@main.command("bench-simulator")
def bench_simulator() -> None:
    """Simulated requests per second on one core, best of five; the last line is JSON."""
    from data.questions import bench_simulator as answer

    click.echo(json.dumps(answer(lambda text: click.echo(text, err=True))))


if __name__ == "__main__":
    main()
