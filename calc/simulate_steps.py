"""One scheduling round after another: preempt, admit, prefill, decode. Compiled, like the kernel."""

from __future__ import annotations

from math import isinf, sqrt

from numba import njit

from calc.simulate_kernel import (
    KEY_BITS,
    Book,
    Record,
    account,
    advance,
    blocks,
    count_gaps,
    decode_s,
    finish,
    issue,
    join,
    leave,
    measuring,
    next_arrival,
    tokens_s,
)

UNTOUCHED = -1.0
"""``lost_at`` of a request that was not preempted since its last token."""


@njit(cache=True)
def take_blocks(s: Record, count: int) -> None:
    """Blocks leave the free list; what was cached in them is gone."""
    s.free -= count
    s.allocated += count


@njit(cache=True)
def last_admitted(s: Record, book: Book) -> int:
    """The running request that was admitted last: the stack forgets finished ones when it meets them."""
    while book.stack_at[book.stack[s.stacked - 1]] != s.stacked - 1:
        s.stacked -= 1
    return int(book.stack[s.stacked - 1])


@njit(cache=True)
def put_back(r: Record, s: Record, book: Book, request: int) -> None:
    """Preempts: blocks are freed, the request waits at the front and recomputes what is evicted until it returns."""
    book.lost_older[request] = s.free + s.allocated
    if request == s.partial:
        kv_tokens = s.partial_done
        held = blocks(s.partial_length, r.block_tokens)
        s.free += held
        s.partial = -1
    else:
        book.generated[request] = s.step + book.base[request] + 1 - book.prompt[request]
        kv_tokens = leave(r, s, book, request)
        held = blocks(kv_tokens, r.block_tokens)
        book.lost_at[request] = s.now
    book.lost_tokens[request] = kv_tokens
    book.lost_blocks[request] = held
    book.stack_at[request] = -1
    book.front[s.in_front] = request
    s.in_front += 1
    s.preemptions += 1


@njit(cache=True)
def preempt(r: Record, s: Record, book: Book) -> bool:
    """Sequences whose last block is full need one more; while there are too few, the last admitted gives way."""
    residue = s.step % r.block_tokens
    any_preempted = False
    while book.residues[residue] > s.free:
        put_back(r, s, book, last_admitted(s, book))
        any_preempted = True
    take_blocks(s, book.residues[residue])
    return any_preempted


@njit(cache=True)
def hit_tokens(r: Record, s: Record, book: Book, request: int) -> int:
    """Prompt tokens found in the cache: the given share, or after a preemption what was not evicted since (LRU)."""
    hit = book.cached[request]
    if r.prefix_caching and book.lost_blocks[request] > 0:
        evicted = max(0, s.allocated - book.lost_older[request])
        kept = max(0, book.lost_blocks[request] - evicted) * r.block_tokens
        hit = max(hit, min(kept, book.lost_tokens[request] // r.block_tokens * r.block_tokens))
    return int(hit)


@njit(cache=True)
def next_waiting(s: Record, book: Book) -> int:
    """Preempted requests first, then in order of arrival; -1 = nobody waits."""
    if s.in_front > 0:
        return int(book.front[s.in_front - 1])
    if s.head < s.issued:
        return int(s.head)
    return -1


@njit(cache=True)
def may_start(r: Record, s: Record, book: Book, request: int) -> bool:
    """Whether the first waiting request fits in this step: slot, blocks for its whole prompt, token budget."""
    running = s.decoding + s.ready + (s.partial >= 0)
    if request < 0 or running >= r.max_seqs:
        return False
    length = book.prompt[request] + book.generated[request]
    reserve = r.watermark_blocks if running > 0 else 0
    if blocks(length, r.block_tokens) > s.free - reserve:
        return False
    budget = r.max_tokens - s.decoding - s.tokens
    if r.chunked:
        return bool(budget > 0)
    fresh = length - hit_tokens(r, s, book, request)
    return bool(fresh <= budget or (fresh > r.max_tokens and s.tokens == 0))


@njit(cache=True)
def chunk(r: Record, s: Record, book: Book, request: int, done: int, length: int) -> None:
    """Prefills as much of a prompt as the budget of this step allows; the rest becomes the partial request."""
    fresh = length - done
    if r.chunked:
        fresh = min(fresh, r.max_tokens - s.decoding - s.tokens)
    end = done + fresh
    s.tokens += fresh
    s.reads += end
    s.pairs += fresh * (done + (fresh + 1) / 2)
    if r.window_tokens > 0:
        s.window_reads += min(end, r.window_tokens + fresh)
        growing = max(0, min(end, r.window_tokens) - done)
        s.window_pairs += growing * (done + (growing + 1) / 2) + (fresh - growing) * r.window_tokens
    if end < length:
        s.partial = request
        s.partial_done = end
        s.partial_length = length
    else:
        s.partial = -1
        book.ready[s.ready] = request
        s.ready += 1


@njit(cache=True)
def start(r: Record, s: Record, book: Book, request: int) -> None:
    """Admits the first waiting request: takes blocks for its whole prompt and prefills a first chunk."""
    if s.in_front > 0:
        s.in_front -= 1
    else:
        s.head += 1
        book.admitted[request] = s.now
    length = book.prompt[request] + book.generated[request]
    hit = hit_tokens(r, s, book, request)
    needed = blocks(length, r.block_tokens)
    s.free -= needed
    s.allocated += needed - hit // r.block_tokens
    if s.stacked == book.stack.size:
        restack(s, book)
    book.stack[s.stacked] = request
    book.stack_at[request] = s.stacked
    s.stacked += 1
    s.admissions += 1
    chunk(r, s, book, request, hit, length)


@njit(cache=True)
def restack(s: Record, book: Book) -> None:
    """Closes the gaps finished requests left in the order of admission."""
    kept = 0
    for at in range(s.stacked):
        request = book.stack[at]
        if book.stack_at[request] == at:
            book.stack[kept] = request
            book.stack_at[request] = kept
            kept += 1
    s.stacked = kept


@njit(cache=True)
def fill(r: Record, s: Record, book: Book, admit: bool) -> None:
    """Composes the prefill part of a step: the partial request first, then waiting ones while they fit."""
    s.tokens = 0
    s.reads = 0
    s.window_reads = 0
    s.pairs = 0.0
    s.window_pairs = 0.0
    s.ready = 0
    s.admissions = 0
    if s.partial >= 0:
        chunk(r, s, book, s.partial, s.partial_done, s.partial_length)
    request = next_waiting(s, book)
    while admit and s.partial < 0 and may_start(r, s, book, request):
        start(r, s, book, request)
        request = next_waiting(s, book)


@njit(cache=True)
def mixed_step(r: Record, s: Record, book: Book) -> None:
    """One step with prefill in it: every decoding sequence still advances by one token."""
    plain_s = decode_s(r, s, book.token_cost_s) if s.decoding > 0 else 0.0
    prefills = s.ready + (s.partial >= 0)
    step_s = (
        tokens_s(r, book.token_cost_s, s.decoding + s.tokens)
        + r.sequence_s * (s.decoding + prefills)
        + r.prefill_s * s.admissions
        + r.context_s * (s.context + s.reads)
        + r.window_s * (s.window_context + s.window_reads)
        + r.pair_s * s.pairs
        + r.window_pair_s * s.window_pairs
    )
    if measuring(r, s):
        s.prefill_busy_s += step_s - plain_s
        s.mixed_tokens += s.decoding
        s.prefill_tokens += s.tokens
    account(r, s, book, step_s, 0.0, 1)
    s.before = s.now
    s.now += step_s
    advance(r, s, book, 1)
    for at in range(s.ready):
        emit(r, s, book, book.ready[at])
    s.ready = 0
    s.tokens = 0


@njit(cache=True)
def emit(r: Record, s: Record, book: Book, request: int) -> None:
    """A finished prefill gives one token: the first, or after a preemption the next."""
    kv_tokens = book.prompt[request] + book.generated[request]
    book.generated[request] += 1
    book.lost_blocks[request] = 0
    if book.generated[request] == 1:
        book.first[request] = s.now
    elif measuring(r, s):
        count_gaps(s, book, s.now - book.lost_at[request], 0.0, 1, 1)
    if book.generated[request] == book.output[request]:
        s.free += blocks(kv_tokens, r.block_tokens)
        finish(r, s, book, request)
    else:
        join(r, s, book, request, kv_tokens)


@njit(cache=True)
def block_steps(r: Record, s: Record, book: Book, steps: int) -> int:
    """How many of ``steps`` steps the free blocks allow (the first has its blocks already)."""
    more = steps - 1
    if (more // r.block_tokens + 1) * s.decoding <= s.free:
        return steps
    cycles = s.free // s.decoding
    left = s.free - cycles * s.decoding
    allowed = cycles * r.block_tokens
    while allowed < more:
        left -= book.residues[(s.step + 1 + allowed) % r.block_tokens]
        if left < 0:
            break
        allowed += 1
    return int(min(allowed, more) + 1)


@njit(cache=True)
def grow(r: Record, s: Record, book: Book, more: int) -> None:
    """Blocks of the ``more`` steps after the coming one."""
    cycles = more // r.block_tokens
    count = cycles * s.decoding
    for step in range(s.step + 1 + cycles * r.block_tokens, s.step + 1 + more):
        count += book.residues[step % r.block_tokens]
    take_blocks(s, count)


@njit(cache=True)
def steps_until(wait_s: float, first_s: float, rise_s: float, limit: int) -> int:
    """Fewest steps (at least 1, at most ``limit``) that take ``wait_s``: root of the sum of a rising series."""
    if rise_s > 0.0:
        half = first_s - rise_s / 2
        root = (sqrt(half * half + 2 * rise_s * max(wait_s, 0.0)) - half) / rise_s
    else:
        root = wait_s / first_s if first_s > 0.0 else limit
    steps = int(min(max(root, 1.0), limit))
    while steps < limit and steps * first_s + rise_s * steps * (steps - 1) / 2 < wait_s:
        steps += 1
    while steps > 1 and (steps - 1) * first_s + rise_s * (steps - 1) * (steps - 2) / 2 >= wait_s:
        steps -= 1
    return steps


@njit(cache=True)
def leap(r: Record, s: Record, book: Book, longest: int) -> None:
    """Decodes until something changes: a sequence is due, blocks run out, a window fills or a request arrives."""
    first_s = decode_s(r, s, book.token_cost_s)
    rise_s = r.context_s * s.decoding + r.window_s * s.window_growing
    steps = min((book.done[0] >> KEY_BITS) - s.step, longest)
    if s.cross_heap > 0:
        steps = min(steps, max(1, (book.cross[0] >> KEY_BITS) - s.step))
    if steps > 1:
        steps = block_steps(r, s, book, steps)
    if steps > 1 and next_waiting(s, book) < 0:
        arrival = next_arrival(s, book)
        if not isinf(arrival):
            queued = 1 if r.queued_step else 0
            wait_s = arrival - s.now
            until = steps_until(wait_s, first_s, rise_s, steps) if wait_s > 0.0 else 0
            steps = min(steps, max(1, until + queued))
    grow(r, s, book, steps - 1)
    account(r, s, book, first_s, rise_s, steps)
    s.before = s.now + (steps - 1) * first_s + rise_s * (steps - 1) * (steps - 2) / 2
    s.now += steps * first_s + rise_s * steps * (steps - 1) / 2
    advance(r, s, book, steps)


@njit(cache=True)
def arrive(r: Record, s: Record, book: Book) -> bool:
    """Lets requests in at a step boundary; an idle engine jumps to the next arrival. False: nothing is left to do."""
    idle = s.decoding == 0 and s.partial < 0
    issue(s, book, s.before if r.queued_step and not idle else s.now)
    if idle and next_waiting(s, book) < 0:
        arrival = next_arrival(s, book)
        if isinf(arrival):
            return False
        s.now = arrival
        s.before = arrival
        issue(s, book, arrival)
    return True


@njit(cache=True)
def run(rules: Record, state: Record, book: Book) -> None:
    """Simulates until every measured request is finished, nothing is left, or ``max_events`` rounds are done."""
    r = rules[0]
    s = state[0]
    wanted = r.end_measured - r.first_measured
    while s.measured < wanted and s.events < r.max_events and arrive(r, s, book):
        s.events += 1
        preempted = preempt(r, s, book)
        fill(r, s, book, not preempted)
        if s.ready > 0 or s.partial >= 0:
            mixed_step(r, s, book)
        else:
            leap(r, s, book, 1 if preempted else 1 << 40)
