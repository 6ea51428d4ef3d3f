"""The profile of a log for scripts: one object of plain numbers, what is not known left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calc.errors import InputError
from calc.messages import msg
from calc.profile.arrivals import ArrivalProfile
from calc.profile.profile import LogProfile, Parts
from calc.profile.spread import Spread
from calc.units import KILO, SECONDS_PER_MINUTE
from data.logs.given import GivenLog
from data.logs.load import Tell, load_log, silent
from data.logs.profile import profile_log
from data.store import Store
from data.store.database import IN_MEMORY
from data.store.logs import StoredLog, request_log

TOP = (1, 5)
"""Tenants whose common share is told."""


def profile_file(path: Path, columns: Mapping[str, str] | None = None, tell: Tell = silent) -> dict[str, Any]:
    """Profile of a log or trace; nothing of it is stored."""
    with Store(IN_MEMORY) as store:
        added = load_log(store.database, GivenLog.of_path(path), declared=columns, tell=tell)
        return profile_answer(profile_log(store, added.log_id), request_log(store.database, added.log_id))


def declared_columns(given: str) -> dict[str, str]:
    """What a user says of columns, as JSON: header → meaning."""
    try:
        columns = json.loads(given or "{}")
    except ValueError:
        columns = None
    if not isinstance(columns, dict):
        raise InputError(
            msg(
                "columns must be a JSON object such as {example}, got {given}.",
                example='{"ts": "time_ms"}',
                given=given,
            )
        )
    return {str(header): str(meaning) for header, meaning in columns.items()}


def profile_answer(profile: LogProfile, log: StoredLog) -> dict[str, Any]:
    """The keys of the command line; lengths under both of their names."""
    prompt, output = _spread(profile.prompt_tokens), _spread(profile.output_tokens)
    answer = {
        "format": log.format,
        "requests": profile.requests,
        **_arrivals(profile.arrivals),
        "prompt_tokens": prompt,
        "input_tokens": prompt,
        "output_tokens": output,
        "pearson_input_output": profile.pearson,
        "spearman_input_output": profile.spearman,
        "share_input_gt": {str(tokens): share for tokens, share in profile.longer_share.items()},
        "zero_output": profile.zero_outputs,
        "zero_input": profile.zero_prompts,
        "file_sorted_by_time": profile.arrivals.sorted_by_time,
        "token_rate": {
            "input_per_s": profile.token_rate_per_s(profile.prompt_tokens),
            "output_per_s": profile.token_rate_per_s(profile.output_tokens),
        },
        **_latencies(profile),
        **_sharing(profile),
        "problem_rows": log.problem_rows,
        "problems": [{"line": row["line"], "reason": str(row["reason"])} for row in log.problems],
        "notes": [str(note) for note in log.notes],
    }
    return {key: value for key, value in answer.items() if value is not None}


def _arrivals(arrivals: ArrivalProfile) -> dict[str, Any]:
    per_minute = None if arrivals.rate_per_s is None else arrivals.rate_per_s * SECONDS_PER_MINUTE
    gaps = arrivals.gaps
    return {
        "duration_s": arrivals.duration_s,
        "mean_rate_per_s": arrivals.rate_per_s,
        "mean_rate_per_min": per_minute,
        "minutes": arrivals.minutes,
        "per_minute_requests": arrivals.per_minute.tolist(),
        "peak_minute_requests": arrivals.peak_minute_requests,
        "peak_minute_to_mean": arrivals.peak_to_mean,
        "minute_count_mean": arrivals.mean_per_minute,
        "minute_index_of_dispersion": arrivals.minute_index_of_dispersion,
        "empty_minutes": arrivals.empty_minutes,
        "peak_second_requests": arrivals.peak_second_requests,
        "interarrival": gaps
        and {
            "mean_s": gaps.mean_s,
            "cv_samp": gaps.cv_samp,
            "cv_pop": gaps.cv_pop,
            "p50_s": gaps.p50_s,
            "p99_s": gaps.p99_s,
            "max_s": gaps.max_s,
            "share_zero": gaps.zero_share,
        },
        "ticked": arrivals.ticked,
        "tick_s": arrivals.tick_s,
    }


def _latencies(profile: LogProfile) -> dict[str, Any]:
    return {
        "ttft_ms": _milliseconds(profile.ttft_s),
        "e2e_ms": _milliseconds(profile.e2e_s),
        "avg_itl_ms": _milliseconds(profile.itl_s),
        "cached_tokens_total": profile.cached_tokens,
        "measured_hit_rate_tokens": profile.cached_share,
        "requests_with_more_cached_than_prompt_tokens": profile.cached_beyond or None,
        "concurrency": profile.concurrency and {k: v for k, v in asdict(profile.concurrency).items() if v is not None},
    }


def _sharing(profile: LogProfile) -> dict[str, Any]:
    sessions, prefixes = profile.sessions, profile.prefixes
    parts = {f"{name}s": _parts(found) for name, found in profile.parts.items()}
    return {
        "sessions": sessions and sessions.sessions,
        "session_turns": sessions and _spread(sessions.turns),
        "multi_turn_share": sessions and sessions.multi_turn_share,
        "think_s": sessions and _spread(sessions.think_s),
        "session_groups": {
            group.name: {
                "requests": group.requests,
                "share": group.share,
                "prompt_tokens": _spread(group.prompt_tokens),
                "output_tokens": _spread(group.output_tokens),
            }
            for group in profile.groups
        },
        "long_conversation_share": profile.long_share,
        **parts,
        **asdict(profile.behaviour),
        "block_size": prefixes and prefixes.block_size_tokens,
        "blocks": prefixes and prefixes.blocks,
        "prefixes": prefixes and _prefixes(asdict(prefixes)),
    }


def _prefixes(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if value is not None}


def _parts(parts: Parts) -> dict[str, Any]:
    tops = {f"top{number}_share": parts.top_share(number) for number in TOP}
    shares = {part.name: part.share for part in parts.largest}
    return {"count": parts.count, **tops, "shares": shares}


def _spread(told: Spread | None, scale: float = 1.0) -> dict[str, Any] | None:
    if told is None:
        return None
    names = ("mean", "p50", "p90", "p95", "p99", "max", "min")
    spread = {name: getattr(told, name) * scale for name in names}
    return {
        **spread,
        "total": round(told.total * scale),
        "stddev_samp": None if told.std is None else told.std * scale,
    }


def _milliseconds(told: Spread | None) -> dict[str, Any] | None:
    return _spread(told, KILO)
