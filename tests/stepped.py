"""The scheduling rules once more, plainly: one step at a time, lists and objects, no leaps. Checks the fast one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from calc.simulator.simulate import ClassRule, RequestPlan, SchedulerRules, StepCosts

FRACTIONS = 65536
"""A pace is a whole number of these parts of a token."""


@dataclass
class Request:
    """One request and where it stands."""

    index: int
    prompt: int
    output: int
    cached: int
    rule: ClassRule
    fetch: int = 0
    tier: int = 0
    pace: int = FRACTIONS
    arrival: float = math.nan
    first_arrival: float = math.nan
    admitted: float = math.nan
    first: float = math.nan
    finish: float = math.nan
    gave_up: float = math.nan
    fetch_wait: float = 0.0
    attempts: int = 1
    order: tuple[int, int] = (0, 0)
    state: str = "away"
    generated: int = 0
    base: int = 0
    """Tokens generated when decoding began, after the prefill's own token."""
    progress: int = 0
    """Parts of tokens gained since."""
    kv: int = 0
    target: int = 0
    blocks: int = 0
    found: int = 0

    @property
    def decoding(self) -> bool:
        return self.state == "running" and self.kv >= self.target

    @property
    def context(self) -> float:
        """Tokens whose KV a decode step reads or writes, fractions included."""
        return self.prompt + self.base + self.progress / FRACTIONS

    @property
    def done(self) -> bool:
        return not (math.isnan(self.finish) and math.isnan(self.gave_up))


@dataclass
class Fetch:
    request: Request
    tokens: int
    begun: float
    ready: float
    """End of the latency."""
    ends_at: float = math.nan
    """Tokens that each transfer of the tier will have moved when this one ends."""


@dataclass
class TierState:
    """Fetches of one tier: under way, and those that wait for a place."""

    active: list[Fetch] = field(default_factory=list)
    pending: list[tuple[Request, int, float]] = field(default_factory=list)
    moved: float = 0.0
    clock: float = 0.0


class Stepped:
    """One replica. Nothing is counted ahead: every step looks at every request."""

    def __init__(self, plan: RequestPlan, rules: SchedulerRules, costs: StepCosts) -> None:
        self.plan, self.rules, self.costs = plan, rules, costs
        self.requests = [self.request(i) for i in range(plan.prompt_tokens.size)]
        self.coming = sorted(float(time) for time in plan.start_s)
        self.again: list[tuple[float, Request]] = []
        self.waiting: list[Request] = []
        self.fetched: list[Request] = []
        self.running: list[Request] = []
        self.tiers = [TierState() for _ in rules.tiers]
        self.issued = self.orders = 0
        self.free = rules.total_blocks
        self.taken_ever = 0
        self.freed_at: dict[int, tuple[int, int, int]] = {}
        self.now = self.before = self.moving = 0.0
        self.gaps: list[float] = []
        self.last_token: dict[int, float] = {}
        self.preemptions = 0
        self.padding: list[Request] = []
        self.patience = math.inf if plan.patience_s is None else plan.patience_s

    def request(self, index: int) -> Request:
        plan = self.plan

        def given(values, default: int) -> int:  # type: ignore[no-untyped-def]
            return default if values is None else int(values[index])

        rules = self.rules.classes or (ClassRule(),)
        pace = FRACTIONS if plan.pace_tokens is None else max(FRACTIONS, round(plan.pace_tokens[index] * FRACTIONS))
        return Request(
            index,
            int(plan.prompt_tokens[index]),
            int(plan.output_tokens[index]),
            int(plan.cached_tokens[index]),
            rules[given(plan.class_index, 0)],
            fetch=given(plan.fetch_tokens, 0) if self.rules.tiers else 0,
            tier=given(plan.fetch_tier, 0),
            pace=pace,
        )

    @property
    def static(self) -> bool:
        return self.rules.reserved_tokens is not None

    def run(self) -> None:
        """Until everybody is served or gone."""
        while not all(request.done for request in self.requests):
            self.attend()
            self.step()

    # Between steps

    def attend(self) -> None:
        while True:
            idle = not self.running
            self.issue(self.before if self.rules.queued_step and not idle else self.now)
            self.fetch_until(self.now)
            self.lose_patience()
            if self.running or self.may_start(self.first_in_line(), [], self.rules.max_tokens):
                return
            if all(request.done for request in self.requests):
                return
            self.now = self.before = max(self.now, self.next_event())

    def next_event(self) -> float:
        times = [self.coming[0]] if self.coming and self.issued < len(self.requests) else []
        times += [time for time, _ in self.again[:1]]
        times += [self.fetch_event(tier)[0] for tier in range(len(self.tiers)) if self.tiers[tier].active]
        times += [request.arrival + self.patience for request in self.impatient()]
        return min(times)

    def issue(self, until: float) -> None:
        while True:
            new = self.coming[0] if self.coming and self.issued < len(self.requests) else math.inf
            again = self.again[0][0] if self.again else math.inf
            if min(new, again) > until:
                return
            if new <= again:
                request = self.requests[self.issued]
                request.first_arrival = self.coming.pop(0)
                self.issued += 1
                self.line_up(request, request.first_arrival)
            else:
                time, request = self.again.pop(0)
                self.line_up(request, time)

    def line_up(self, request: Request, time: float) -> None:
        request.arrival, request.state = time, "waiting"
        request.order = (request.rule.priority, self.orders)
        self.orders += 1
        self.waiting.append(request)

    def impatient(self) -> list[Request]:
        inside = ("waiting", "fetching", "fetched", "running")
        return [one for one in self.requests if one.state in inside and one.generated == 0]

    def lose_patience(self) -> None:
        for request in sorted(self.impatient(), key=lambda one: one.order[1]):
            if request.arrival + self.patience <= self.now:
                self.give_up(request)

    def give_up(self, request: Request) -> None:
        for line in (self.waiting, self.fetched, self.running):
            if request in line:
                line.remove(request)
        if request.state == "fetching":
            self.drop_fetch(request)
        self.free += request.blocks
        request.blocks = request.kv = 0
        request.fetch_wait = 0.0
        request.state = "away"
        self.freed_at.pop(request.index, None)
        if request.attempts <= self.plan.retries:
            request.attempts += 1
            request.admitted = math.nan
            self.again.append((self.now + self.plan.retry_after_s, request))
        else:
            request.gave_up = self.now
            self.user_returns()

    def user_returns(self) -> None:
        if self.plan.closed:
            self.coming.append(self.now + self.plan.think_s)
            self.coming.sort()

    # Fetches

    def begin_fetch(self, request: Request, tokens: int) -> None:
        tier, rule = self.tiers[request.tier], self.rules.tiers[request.tier]
        request.state = "fetching"
        if len(tier.active) < rule.concurrency:
            tier.active.append(Fetch(request, tokens, self.now, self.now + rule.latency_s))
        else:
            tier.pending.append((request, tokens, self.now))

    def moving_now(self, tier: int) -> list[Fetch]:
        return [fetch for fetch in self.tiers[tier].active if not math.isnan(fetch.ends_at)]

    def fetch_event(self, number: int) -> tuple[float, Fetch]:
        tier, rule = self.tiers[number], self.rules.tiers[number]
        count = len(self.moving_now(number))

        def when(fetch: Fetch) -> float:
            if math.isnan(fetch.ends_at):
                return fetch.ready
            return tier.clock + (fetch.ends_at - tier.moved) * (rule.token_s * count)

        soonest = min(tier.active, key=when)
        return when(soonest), soonest

    def move(self, number: int, until: float) -> None:
        tier = self.tiers[number]
        count = len(self.moving_now(number))
        if count:
            tier.moved += (until - tier.clock) / (self.rules.tiers[number].token_s * count)
        tier.clock = until

    def fetch_until(self, until: float) -> None:
        for number, tier in enumerate(self.tiers):
            while tier.active:
                time, fetch = self.fetch_event(number)
                if time > until:
                    break
                self.move(number, time)
                if math.isnan(fetch.ends_at):
                    fetch.ends_at = tier.moved + fetch.tokens
                    continue
                self.end_fetch(number, fetch, time)
                if not fetch.request.generated:
                    fetch.request.fetch_wait += time - fetch.begun
                fetch.request.state = "fetched"
                self.fetched.append(fetch.request)
                self.fetched.sort(key=lambda one: one.order)

    def end_fetch(self, number: int, fetch: Fetch, time: float) -> None:
        tier = self.tiers[number]
        tier.active.remove(fetch)
        if tier.pending:
            request, tokens, begun = tier.pending.pop(0)
            tier.active.append(Fetch(request, tokens, begun, time + self.rules.tiers[number].latency_s))

    def drop_fetch(self, request: Request) -> None:
        tier = self.tiers[request.tier]
        waiting = [one for one in tier.pending if one[0] is request]
        if waiting:
            tier.pending.remove(waiting[0])
            return
        self.move(request.tier, self.now)
        self.end_fetch(request.tier, next(one for one in tier.active if one.request is request), self.now)

    # Blocks

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.rules.block_tokens)

    def need(self, request: Request) -> int:
        if self.static:
            reserved = self.blocks_for(request.prompt + (self.rules.reserved_tokens or 0)) + self.rules.fixed_blocks
            return min(reserved, self.rules.total_blocks)
        return self.blocks_for(request.prompt + request.generated) + self.rules.fixed_blocks

    def wanted(self, request: Request) -> int:
        """Blocks a decoding sequence needs for the coming step, drafted tokens included."""
        tokens = min(request.kv + self.rules.verified_tokens, request.prompt + request.output - 1)
        return self.blocks_for(tokens) + self.rules.fixed_blocks

    def grow(self) -> bool:
        """More blocks for every sequence that has too few, in order; who is served last gives way."""
        if self.static:
            return False
        preempted = False
        for request in sorted(self.running, key=lambda one: one.order):
            if request not in self.running or not request.decoding:
                continue
            more = self.wanted(request) - request.blocks
            while more > 0 and self.free < more and request in self.running:
                self.preempt(max(self.running, key=lambda one: one.order))
                preempted = True
            if more > 0 and request in self.running:
                self.free -= more
                self.taken_ever += more
                request.blocks += more
        return preempted

    def preempt(self, victim: Request) -> None:
        self.running.remove(victim)
        held = victim.blocks - self.rules.fixed_blocks
        self.freed_at[victim.index] = (self.free + self.taken_ever, held, victim.kv)
        self.free += victim.blocks
        if self.rules.swap_block_s is not None:
            self.moving += self.blocks_for(victim.kv) * self.rules.swap_block_s
        victim.blocks = victim.kv = 0
        victim.state = "waiting"
        self.waiting.append(victim)
        self.preemptions += 1

    def hit(self, request: Request) -> int:
        """Tokens found: the shared prefix, what was swapped, or what was not evicted since a preemption (older free
        blocks go first)."""
        size = self.rules.block_tokens
        found = request.cached
        if request.index in self.freed_at:
            older, blocks, tokens = self.freed_at[request.index]
            if self.rules.swap_block_s is not None:
                return tokens
            if self.rules.prefix_caching:
                evicted = max(0, self.taken_ever - older)
                found = max(found, min(max(0, blocks - evicted) * size, tokens // size * size))
        return found

    # Admission

    def whole(self, request: Request) -> int:
        """Blocks at its last token."""
        return self.blocks_for(request.prompt + request.output - 1) + self.rules.fixed_blocks

    def promised(self) -> int:
        return sum(self.whole(one) for one in self.requests if one.state in ("running", "fetching", "fetched"))

    def first_in_line(self) -> Request | None:
        if self.fetched:
            return self.fetched[0]
        inside = [one for one in self.requests if one.state in ("running", "fetching", "fetched")]
        open_classes = [
            one
            for one in self.waiting
            if one.rule.max_running is None or sum(other.rule is one.rule for other in inside) < one.rule.max_running
        ]
        return min(open_classes, key=lambda one: one.order, default=None)

    def found(self, request: Request) -> int:
        if request.state == "fetched":
            return request.found
        return max(self.hit(request), request.cached + request.fetch)

    def may_start(self, request: Request | None, chunks: list[tuple[Request, int]], budget: int) -> bool:
        if request is None or len(self.running) + len(self.padding) >= self.rules.slots:
            return False
        if self.static and any(one.decoding for one in self.running):
            return False
        reserve = self.rules.watermark_blocks if self.running else 0
        if request.state != "fetched" and self.need(request) > self.free - reserve:
            return False
        if self.static:
            return True
        more = 0 if request.state == "fetched" else self.whole(request)
        if self.rules.reserves_output and self.promised() + more > self.rules.total_blocks:
            return False
        if self.rules.chunked:
            return budget > 0
        length = request.prompt + request.generated
        alone = length > self.rules.max_tokens and not chunks
        return length - self.found(request) <= budget or alone

    def start(self, request: Request) -> bool:
        """Blocks and slot; False if the request fetches first."""
        if request.state == "fetched":
            self.fetched.remove(request)
        else:
            self.waiting.remove(request)
            if math.isnan(request.admitted):
                request.admitted = self.now
            hit, need = self.hit(request), self.need(request)
            request.blocks, request.found = need, self.found(request)
            self.free -= need
            self.taken_ever += need - hit // self.rules.block_tokens
            if self.rules.swap_block_s is not None and request.index in self.freed_at:
                self.moving += self.blocks_for(self.freed_at[request.index][2]) * self.rules.swap_block_s
            if request.found > hit:
                self.begin_fetch(request, request.found - hit)
                return False
        request.state = "running"
        request.kv, request.target = request.found, request.prompt + request.generated
        self.running.append(request)
        return True

    # Steps

    def step(self) -> None:
        preempted = self.grow()
        decoding = [request for request in self.running if request.decoding] + self.padding
        budget = self.rules.max_tokens - len(decoding) * self.rules.verified_tokens
        chunks: list[tuple[Request, int]] = []
        chunked = self.rules.chunked and not self.static
        for request in self.running:
            if not request.decoding:
                chunk = min(request.target - request.kv, budget) if chunked else request.target - request.kv
                chunks.append((request, chunk))
                budget -= chunk
        admissions = 0
        stopped = preempted or any(request.kv + chunk < request.target for request, chunk in chunks)
        while not stopped:
            first = self.first_in_line()
            if first is None or not self.may_start(first, chunks, budget):
                break
            if not self.start(first):
                continue
            fresh = first.target - first.kv
            chunk = min(fresh, budget) if chunked else fresh
            chunks.append((first, chunk))
            budget -= chunk
            admissions += 1
            stopped = chunk < fresh
        if decoding or chunks:
            self.execute(decoding, chunks, admissions)

    def execute(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> None:
        took = self.seconds(decoding, chunks, admissions) + self.moving
        self.moving = 0.0
        self.before, self.now = self.now, self.now + took
        for request in decoding:
            request.progress += request.pace
            if request in self.running:
                gained = request.base + request.progress // FRACTIONS - request.generated
                request.kv += gained
                self.tokens(request, gained)
        for request, chunk in chunks:
            request.kv += chunk
            if request.kv == request.target:
                self.first_of_prefill(request)
        if self.static and not self.running:
            self.free = self.rules.total_blocks
            self.padding = []

    def first_of_prefill(self, request: Request) -> None:
        if request.generated == 0 and not self.static and self.now > request.arrival + self.patience:
            self.give_up(request)
            return
        self.freed_at.pop(request.index, None)
        request.base, request.progress = request.generated + 1, 0
        self.tokens(request, 1)

    def tokens(self, request: Request, gained: int) -> None:
        """A step has given a request tokens, streamed as one chunk."""
        request.generated = min(request.generated + gained, request.output)
        if math.isnan(request.first):
            request.first = self.now
        else:
            self.gaps.append(self.now - self.last_token[request.index])
        self.last_token[request.index] = self.now
        if request.generated == request.output:
            request.finish = self.now
            request.state = "done"
            self.running.remove(request)
            if self.static:
                self.padding.append(request)
            else:
                self.free += request.blocks
            request.blocks = 0
            self.user_returns()

    def seconds(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> float:
        costs = self.costs
        window = costs.window_tokens
        fresh = sum(chunk for _, chunk in chunks)
        verified = len(decoding) * self.rules.verified_tokens
        parts = [verified + fresh]
        if self.rules.prefill_alone and decoding and chunks:
            parts = [verified, fresh]
        last = len(costs.tokens_s) - 1
        total = sum(float(costs.tokens_s[min(n, last)]) + max(0, n - last) * costs.token_beyond_s for n in parts)
        total += costs.sequence_s * (len(decoding) + len(chunks)) + costs.prefill_s * admissions
        for request in decoding:
            total += costs.context_s * request.context
            if window:
                total += costs.window_s * min(request.context, window)
        for request, chunk in chunks:
            end = request.kv + chunk
            total += costs.context_s * end
            total += costs.pair_s * sum(range(request.kv + 1, end + 1))
            if window:
                total += costs.window_s * min(end, window + chunk)
                total += costs.window_pair_s * sum(min(seen, window) for seen in range(request.kv + 1, end + 1))
        return total
