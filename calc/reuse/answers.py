"""What a later turn finds of the answer before it: engines keep blocks of answers too, logs name those of prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from calc.errors import InputError
from calc.messages import msg
from calc.reuse.trace import BlockTrace, IntArray

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Which request goes on from which: a conversation, an agent's next step, a longer version of the same prompt."""

    parent: IntArray
    """Shape (n): the earlier request whose whole prompt this one begins with; -1 = none."""

    @property
    def later(self) -> IntArray:
        """Requests that go on from another."""
        return np.flatnonzero(self.parent >= 0)


def turns(trace: BlockTrace) -> Turns:
    """A request goes on from the one with the longest prompt that it begins with, in full blocks, and is longer itself.

    Only a prompt whose last full block was new when it came counts as such a start: an end inside a common system
    prompt says nothing of who goes on from it. Where the log names conversations, both must be of the same one.
    """
    session = np.full(trace.requests, -1, np.int64) if trace.session is None else trace.session
    return Turns(
        parent=_parents(
            trace.offsets,
            trace.block_ids,
            trace.looked_up,
            trace.prompt_tokens,
            trace.block_size_tokens,
            trace.unique_blocks,
            session,
        )
    )


def with_answers(trace: BlockTrace) -> BlockTrace:
    """The same requests with the full blocks of their answers cached, found by the first later turn that names them.

    An upper bound: it takes the answer to stand at the start of what the next turn adds. Where reasoning is left out of
    the history or the chat template writes it anew, less is found.
    """
    if trace.output_tokens is None:
        raise InputError(msg("counting earlier answers needs the output tokens of each request: this trace has none."))
    if trace.answer_blocks is not None:
        return trace
    ends = (trace.prompt_tokens + trace.output_tokens) // trace.block_size_tokens
    begins = np.minimum(trace.prompt_tokens // trace.block_size_tokens, trace.looked_up)
    answers = np.maximum(ends - begins, 0)
    offsets = trace.offsets + np.concatenate([[0], np.cumsum(answers)])
    ids, unique = _with_answer_ids(
        trace.offsets, trace.block_ids, turns(trace).parent, offsets, begins, answers, trace.unique_blocks
    )
    return replace(trace, offsets=offsets, block_ids=ids, unique_blocks=int(unique), answer_blocks=answers)


@njit(cache=True, nogil=True)
def _parents(
    offsets: Array,
    ids: Array,
    looked_up: Array,
    prompt_tokens: Array,
    block_tokens: int,
    unique: int,
    session: Array,
) -> Array:
    parent = np.full(len(offsets) - 1, -1, np.int64)
    ended_by = np.full(unique, -1, np.int64)
    seen = np.zeros(unique, np.bool_)
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request] + looked_up[request]]
        for place in range(len(own) - 1, -1, -1):
            before = ended_by[own[place]]
            if before >= 0 and prompt_tokens[before] < prompt_tokens[request] and session[before] == session[request]:
                parent[request] = before
                break
        full = min(prompt_tokens[request] // block_tokens, len(own))
        # A turn that adds less than a block ends in the block of the turn before: the next one goes on from the latest.
        if full > 0 and (not seen[own[full - 1]] or 0 <= ended_by[own[full - 1]] == parent[request]):
            ended_by[own[full - 1]] = request
        seen[own] = True
    return parent


@njit(cache=True, nogil=True)
def _with_answer_ids(
    offsets: Array, ids: Array, parent: Array, into: Array, begins: Array, answers: Array, unique: int
) -> tuple[Array, int]:
    """Prompt ids, then those of the answer: the ids of the first later turn that brings them, else ids of its own."""
    result = np.full(into[-1], -1, np.int64)
    seen = np.zeros(unique, np.bool_)
    for request in range(len(offsets) - 1):
        own = ids[offsets[request] : offsets[request + 1]]
        result[into[request] : into[request] + len(own)] = own
        before = parent[request]
        if before >= 0:
            answer = into[before + 1] - answers[before]
            for place in range(begins[before], min(begins[before] + answers[before], len(own))):
                if not seen[own[place]] and result[answer + place - begins[before]] < 0:
                    result[answer + place - begins[before]] = own[place]
        seen[own] = True
    for place in range(len(result)):
        if result[place] < 0:
            result[place] = unique
            unique += 1
    return result, unique
