"""The measuring process: ``python -m probe --json '<layer>' [--device auto|cpu|cuda] [--time-cap 20]``,
or ``python -m probe --facts`` for what the driver tells.

Progress goes to standard error; the last line of standard output is one JSON object, the result or the error.
"""

from __future__ import annotations

import argparse
import sys

from calc.errors import PlimsollError
from calc.messages import Message
from probe.microbench import DEFAULT_TIME_CAP_S, run
from probe.nvml import gpu_facts
from probe.wire import error_line, parse_shape, progress_line, report_line, result_line


def _progress(share: float, step: Message) -> None:
    print(progress_line(share, step), file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m probe", description="Measure one transformer layer.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--json", help="the layer as one JSON object")
    what.add_argument("--facts", action="store_true", help="only say what the driver tells about its GPUs")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--time-cap", type=float, default=DEFAULT_TIME_CAP_S, help="seconds")
    return parser.parse_args()


def main() -> int:
    """Measure and print; 1 when nothing could be measured."""
    arguments = _arguments()
    if arguments.facts:
        print(report_line(gpu_facts()), flush=True)
        return 0
    try:
        result = run(parse_shape(arguments.json), arguments.device, arguments.time_cap, _progress)
    except PlimsollError as error:
        print(error_line(error.message), flush=True)
        return 1
    print(result_line(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
