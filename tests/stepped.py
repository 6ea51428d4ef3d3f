"""The scheduling rules once more, plainly: one step at a time, lists and objects, no leaps. Checks the fast one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from calc.simulator.simulate import RequestPlan, SchedulerRules, StepCosts


@dataclass
class Request:
    """One request and where it stands."""

    index: int
    prompt: int
    output: int
    cached: int
    arrival: float = math.nan
    admitted: float = math.nan
    first: float = math.nan
    finish: float = math.nan
    generated: int = 0
    kv: int = 0
    target: int = 0
    blocks: int = 0
    survivors: list[int] = field(default_factory=list)
    """Blocks freed by a preemption that still hold their content, oldest content first."""
    kept_tokens: int = 0

    @property
    def decoding(self) -> bool:
        return self.blocks > 0 and self.kv >= self.target


class Stepped:
    """One replica. The free list is a real queue of block numbers, so that eviction order is seen, not computed."""

    def __init__(self, plan: RequestPlan, rules: SchedulerRules, costs: StepCosts) -> None:
        self.plan, self.rules, self.costs = plan, rules, costs
        lengths = zip(plan.prompt_tokens, plan.output_tokens, plan.cached_tokens, strict=True)
        self.requests = [Request(i, int(p), int(o), int(c)) for i, (p, o, c) in enumerate(lengths)]
        self.coming = sorted(float(time) for time in plan.start_s)
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.issued = 0
        self.free = rules.total_blocks
        self.taken_ever = 0
        self.freed_at: dict[int, tuple[int, int, int]] = {}
        self.now = self.before = 0.0
        self.gaps: list[float] = []
        self.last_token: dict[int, float] = {}
        self.preemptions = self.decoded = 0

    def run(self) -> None:
        """Until everybody is served."""
        while any(math.isnan(request.finish) for request in self.requests):
            self.admit_arrivals()
            self.step()

    def admit_arrivals(self) -> None:
        idle = not self.running
        self.issue(self.before if self.rules.queued_step and not idle else self.now)
        if idle and not self.waiting:
            self.now = self.before = self.coming[0]
            self.issue(self.now)

    def issue(self, until: float) -> None:
        while self.issued < len(self.requests) and self.coming and self.coming[0] <= until:
            request = self.requests[self.issued]
            request.arrival = self.coming.pop(0)
            self.waiting.append(request)
            self.issued += 1

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.rules.block_tokens)

    def whole(self, request: Request) -> int:
        """Blocks at its last token."""
        return self.blocks_for(request.prompt + request.output - 1)

    def promised(self) -> int:
        return sum(self.whole(request) for request in self.running)

    def take(self, count: int, hits: int = 0) -> None:
        assert count <= self.free
        self.free -= count
        self.taken_ever += count - hits

    def preempt(self) -> None:
        victim = self.running.pop()
        self.freed_at[victim.index] = (self.free + self.taken_ever, victim.blocks, victim.kv)
        self.free += victim.blocks
        victim.blocks = victim.kv = 0
        self.waiting.insert(0, victim)
        self.preemptions += 1

    def hit(self, request: Request) -> int:
        """Tokens found: the shared prefix, or what was not evicted since a preemption (older free blocks go first)."""
        size = self.rules.block_tokens
        found = request.cached
        if self.rules.prefix_caching and request.index in self.freed_at:
            older, blocks, tokens = self.freed_at[request.index]
            evicted = max(0, self.taken_ever - older)
            found = max(found, min(max(0, blocks - evicted) * size, tokens // size * size))
        return found

    def grow(self) -> bool:
        """One block more for every sequence whose last block is full; the last admitted gives way."""
        preempted = False
        for request in list(self.running):
            if request not in self.running or not request.decoding:
                continue
            if self.blocks_for(request.kv + 1) == request.blocks:
                continue
            while self.free < 1:
                self.preempt()
                preempted = True
                if request not in self.running:
                    break
            if request in self.running:
                self.take(1)
                request.blocks += 1
        return preempted

    def step(self) -> None:
        preempted = self.grow()
        decoding = [request for request in self.running if request.decoding]
        budget = self.rules.max_tokens - len(decoding)
        chunks: list[tuple[Request, int]] = []
        for request in self.running:
            if not request.decoding:
                fresh = request.target - request.kv
                chunk = min(fresh, budget) if self.rules.chunked else fresh
                chunks.append((request, chunk))
                budget -= chunk
        admissions = 0
        stopped = preempted or any(request.kv + chunk < request.target for request, chunk in chunks)
        while not stopped and self.waiting and len(self.running) < min(self.rules.max_seqs, self.rules.max_tokens):
            request = self.waiting[0]
            length = request.prompt + request.generated
            need = self.blocks_for(length)
            reserve = self.rules.watermark_blocks if self.running else 0
            found = self.hit(request)
            fresh = length - found
            if need > self.free - reserve or budget <= 0:
                break
            if self.rules.reserves_output and self.promised() + self.whole(request) > self.rules.total_blocks:
                break
            whole = length > self.rules.max_tokens and not chunks
            if not self.rules.chunked and fresh > budget and not whole:
                break
            self.waiting.pop(0)
            self.running.append(request)
            self.take(need, found // self.rules.block_tokens)
            request.blocks, request.kv, request.target = need, found, length
            if math.isnan(request.admitted):
                request.admitted = self.now
            chunk = min(fresh, budget) if self.rules.chunked else fresh
            chunks.append((request, chunk))
            budget -= chunk
            admissions += 1
            stopped = chunk < fresh
        self.execute(decoding, chunks, admissions)

    def execute(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> None:
        took = self.seconds(decoding, chunks, admissions)
        self.before, self.now = self.now, self.now + took
        for request in decoding:
            request.kv += 1
            self.token(request)
            self.decoded += 1
        for request, chunk in chunks:
            request.kv += chunk
            if request.kv == request.target:
                self.freed_at.pop(request.index, None)
                self.token(request)

    def token(self, request: Request) -> None:
        request.generated += 1
        if request.generated == 1:
            request.first = self.now
        else:
            self.gaps.append(self.now - self.last_token[request.index])
        self.last_token[request.index] = self.now
        if request.generated == request.output:
            request.finish = self.now
            self.free += request.blocks
            request.blocks = 0
            self.running.remove(request)
            if self.plan.closed:
                self.coming.append(self.now + self.plan.think_s)
                self.coming.sort()

    def seconds(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> float:
        costs = self.costs
        window = costs.window_tokens
        fresh = sum(chunk for _, chunk in chunks)
        parts = [len(decoding) + fresh]
        if self.rules.prefill_alone and decoding and chunks:
            parts = [len(decoding), fresh]
        last = len(costs.tokens_s) - 1
        total = sum(float(costs.tokens_s[min(n, last)]) + max(0, n - last) * costs.token_beyond_s for n in parts)
        total += costs.sequence_s * (len(decoding) + len(chunks)) + costs.prefill_s * admissions
        for request in decoding:
            total += costs.context_s * (request.kv + 1)
            if window:
                total += costs.window_s * min(request.kv + 1, window)
        for request, chunk in chunks:
            end = request.kv + chunk
            total += costs.context_s * end
            total += costs.pair_s * sum(range(request.kv + 1, end + 1))
            if window:
                total += costs.window_s * min(end, window + chunk)
                total += costs.window_pair_s * sum(min(seen, window) for seen in range(request.kv + 1, end + 1))
        return total
