"""Several replicas once more, plainly: every replica steps by itself, and whatever comes next in time happens next."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calc.simulator.fleet import Fleet
from calc.simulator.simulate import RequestPlan, SchedulerRules, StepCosts

OVERLOAD_FACTOR, OVERLOAD_REQUESTS = 1.5, 32
ANONYMOUS = (-1, 0)


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

    @property
    def decoding(self) -> bool:
        return self.blocks > 0 and self.kv >= self.target


class Node:
    """A replica that takes requests while it runs, keeps blocks until their KV is fetched, and caches prefixes.

    The free list is a list: which prefix a block still holds, and which part of it; blocks are taken from its front.
    """

    def __init__(self, plan: RequestPlan, rules: SchedulerRules, costs: StepCosts, *, prefills: bool = False) -> None:
        self.plan, self.rules, self.costs = plan, rules, costs
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.taken_ever = self.preemptions = 0
        self.freed_at: dict[int, tuple[int, int, int]] = {}
        self.now = self.before = 0.0
        self.gaps: list[float] = []
        self.last_token: dict[int, float] = {}
        self.prefills = prefills
        self.inbox: list[tuple[float, Request]] = []
        self.left: list[float] = []
        self.reserved: list[Request] = []
        self.line: list[Request] = []
        self.paid: dict[int, int] = {}
        self.sent = 0
        self.queue: list[tuple[int, int]] = [ANONYMOUS] * rules.total_blocks
        self.group: dict[int, tuple[int, int]] = {}
        self.holders: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.coming: dict[int, int] = {}
        self.found = self.asked = 0

    def put(self, when: float, request: Request) -> None:
        self.inbox.append((when, request))

    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def next_boundary(self) -> float:
        """When it schedules next; never while it has nothing to do."""
        if self.waiting and not self.running and not self.fits(self.first()):
            return max(self.now, self.inbox[0][0]) if self.inbox and not self.prefills else math.inf
        if self.busy():
            return self.now
        return max(self.now, self.inbox[0][0]) if self.inbox else math.inf

    def issue(self, until: float) -> None:
        while self.inbox and self.inbox[0][0] <= until:
            when, request = self.inbox.pop(0)
            request.arrival = when
            self.waiting.append(request)

    def advance(self) -> list[Request]:
        """One step; who left at its end."""
        idle = not self.running
        self.issue(self.before if self.rules.queued_step and not idle else self.now)
        if idle and self.inbox and not (self.waiting and self.fits(self.first())):
            self.now = self.before = max(self.now, self.inbox[0][0])
            self.issue(self.now)
        self.gone: list[Request] = []
        if self.running or self.fits(self.first()):
            self.step()
        return self.gone

    # --- blocks ---

    def shared(self, request: Request) -> int:
        return self.group[request.index][1] if request.index in self.group else 0

    def pinned(self, request: Request) -> int:
        if request.index not in self.group:
            return 0
        group, shared = self.group[request.index]
        return min(shared, self.held[group]) if self.holders.get(group, 0) else 0

    def kept(self, request: Request) -> int:
        if request.index not in self.group:
            return 0
        group, shared = self.group[request.index]
        return min(shared, sum(block[0] == group for block in self.queue))

    def prefix_blocks(self, request: Request) -> int:
        return self.pinned(request) or self.kept(request)

    def hit(self, request: Request) -> int:
        """Tokens found: the shared prefix, or what was not evicted since a preemption (older free blocks go first)."""
        size = self.rules.block_tokens
        found = max(request.cached, self.prefix_blocks(request) * size)
        if self.rules.prefix_caching and request.index in self.freed_at:
            older, blocks, tokens = self.freed_at[request.index]
            evicted = max(0, self.taken_ever - older)
            found = max(found, min(max(0, blocks - evicted) * size, tokens // size * size))
        return found

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.rules.block_tokens)

    def take(self, count: int, hits: int = 0) -> None:
        assert count <= len(self.queue)
        del self.queue[: count - hits]
        self.taken_ever += count - hits

    @property
    def free(self) -> int:
        return len(self.queue)

    def enter(self, request: Request, found: int) -> None:
        group, shared = self.group[request.index]
        kept = 0
        if not self.holders.get(group, 0):
            kept = min(found, self.kept(request))
            self.queue = [block for block in self.queue if block[0] != group or block[1] >= kept]
            self.held[group] = 0
            pinned = 0
        else:
            pinned = min(shared, self.held[group])
        del self.queue[: max(0, found - kept - min(found, pinned))]
        self.queue = [ANONYMOUS if block[0] == group else block for block in self.queue]
        self.holders[group] = self.holders.get(group, 0) + 1
        self.held[group] = max(self.held[group], shared)
        self.coming[group] = max(0, self.coming.get(group, 0) - 1)

    def give_back(self, request: Request, blocks: int) -> None:
        if request.index not in self.group:
            self.queue += [ANONYMOUS] * blocks
            return
        group, shared = self.group[request.index]
        self.holders[group] -= 1
        self.queue += [ANONYMOUS] * (blocks - shared)
        if not self.holders[group]:
            self.queue += [(group, part) for part in reversed(range(self.held[group]))]

    def preempt(self) -> None:
        victim = self.running.pop()
        self.freed_at[victim.index] = (self.free + self.taken_ever, victim.blocks, victim.kv)
        self.give_back(victim, victim.blocks)
        victim.blocks = victim.kv = 0
        self.waiting.insert(0, victim)
        self.preemptions += 1

    # --- one step ---

    def step(self) -> None:
        preempted = self.grow()
        decoding = [request for request in self.running if request.decoding]
        budget = self.rules.max_tokens - len(decoding)
        chunks: list[tuple[Request, int]] = []
        for request in self.running:
            if not request.decoding:
                fresh = request.target - request.kv
                chunks.append((request, min(fresh, budget) if self.rules.chunked else fresh))
                budget -= chunks[-1][1]
        stopped = preempted or any(request.kv + chunk < request.target for request, chunk in chunks)
        admissions = 0
        while not stopped and self.waiting and len(self.running) < min(self.rules.max_seqs, self.rules.max_tokens):
            request = self.first()
            length = request.prompt + request.generated
            found = self.hit(request)
            fresh = length - found
            if not self.fits(request) or budget <= 0:
                break
            whole = length > self.rules.max_tokens and not chunks
            if not self.rules.chunked and fresh > budget and not whole:
                break
            self.admit(request, length, found)
            chunks.append((request, min(fresh, budget) if self.rules.chunked else fresh))
            budget -= chunks[-1][1]
            admissions += 1
            stopped = chunks[-1][1] < fresh
        if decoding or chunks:
            self.execute(decoding, chunks, admissions)

    def first(self) -> Request:
        return next((one for one in self.waiting if one.index in self.paid), self.waiting[0])

    def fits(self, request: Request) -> bool:
        reserve = self.rules.watermark_blocks if self.running else 0
        needed = self.blocks_for(request.prompt + request.generated) - self.pinned(request)
        return request.index in self.paid or needed <= self.free - reserve

    def admit(self, request: Request, length: int, found: int) -> None:
        self.waiting.remove(request)
        self.running.append(request)
        needed, hits = self.blocks_for(length), found // self.rules.block_tokens
        if request.index in self.paid:
            del self.paid[request.index]
            request.cached = 0
        else:
            self.found, self.asked = self.found + found, self.asked + length
            if request.index in self.group:
                self.enter(request, hits)
                self.take(needed - hits)
            else:
                del self.queue[:needed]
                self.taken_ever += needed - hits
        request.blocks, request.kv, request.target = needed, found, length
        if math.isnan(request.admitted):
            request.admitted = self.now

    def token(self, request: Request) -> None:
        request.generated += 1
        if request.generated == 1:
            request.first = self.now
        else:
            self.gaps.append(self.now - self.last_token[request.index])
        self.last_token[request.index] = self.now
        if request.generated == request.output:
            request.finish = self.now
            if not self.prefills:
                self.give_back(request, request.blocks)
            request.blocks = 0
            self.running.remove(request)
            self.gone.append(request)

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

    def execute(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> None:
        took = self.seconds(decoding, chunks, admissions)
        self.before, self.now = self.now, self.now + took
        for request in decoding:
            request.kv += 1
            self.token(request)
        for request, chunk in chunks:
            request.kv += chunk
            if request.kv == request.target:
                self.freed_at.pop(request.index, None)
                self.token(request)

    def seconds(self, decoding: list[Request], chunks: list[tuple[Request, int]], admissions: int) -> float:
        costs = self.costs
        window = costs.window_tokens
        fresh = sum(chunk for _, chunk in chunks)
        tokens = len(decoding) + fresh
        last = len(costs.tokens_s) - 1
        total = float(costs.tokens_s[min(tokens, last)]) + max(0, tokens - last) * costs.token_beyond_s
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

    def preempted_waits(self) -> bool:
        return any(one.generated > 0 for one in self.waiting)

    def has_room(self, blocks: int) -> bool:
        growing = sum(self.blocks_for(one.kv + 1) > one.blocks for one in self.running if one.decoding)
        taken = len(self.running) + len(self.reserved) + len(self.waiting) + len(self.inbox)
        reserve = self.rules.watermark_blocks if taken else 0
        most = min(self.rules.max_seqs, self.rules.max_tokens)
        return taken < most and blocks <= self.free - growing - reserve


class SteppedFleet:
    """Routing and hand-over around plain replicas."""

    def __init__(self, plan: RequestPlan, fleet: Fleet, rules: SchedulerRules, costs: StepCosts) -> None:
        self.plan, self.fleet, self.count = plan, fleet, plan.prompt_tokens.size
        self.answering = [Node(plan, rules, costs) for _ in range(fleet.schedulers)]
        self.prefilling = [Node(plan, rules, costs, prefills=True) for _ in range(fleet.prefill_schedulers)]
        self.nodes = self.answering + self.prefilling
        self.events: list[tuple[float, int, Any, int]] = []
        self.order = self.came = 0
        self.arrival = np.full(self.count, np.nan)
        self.handed, self.landed = self.arrival.copy(), self.arrival.copy()
        self.place: dict[int, tuple[Node, Request]] = {}
        self.entry: dict[int, tuple[Node, Request]] = {}
        self.link_free: dict[int, float] = {}
        self.turns = {"entry": 0, "decode": 0}
        self.luck = np.random.default_rng((fleet.seed, 2)).integers(1 << 62, size=self.count)
        for start in plan.start_s:
            self.later(float(start), self.arrives, 0)

    def later(self, when: float, what: Any, request: int) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what, request))

    def run(self) -> None:
        while self.answered() < self.count:
            node = min(self.nodes, key=Node.next_boundary)
            if self.events and self.events[0][0] <= node.next_boundary():
                when, _, what, request = heapq.heappop(self.events)
                what(when, request)
            else:
                self.assign(node, node.next_boundary())
                for gone in node.advance():
                    self.leaves(node, gone)
                if not node.busy():
                    self.assign(node, node.now)

    def answered(self) -> int:
        return sum(not math.isnan(one.finish) for _, one in self.place.values())

    def leaves(self, node: Node, request: Request) -> None:
        node.left.append(request.finish)
        if node.prefills:
            self.handed[request.index] = request.finish
            self.later(request.finish, self.prefilled, request.index)
        elif self.plan.closed:
            self.later(request.finish + self.plan.think_s, self.arrives, request.index)

    def load(self, node: Node, now: float) -> int:
        return node.sent - sum(when <= now for when in node.left)

    def choose(self, pool: list[Node], which: str, request: Request, now: float) -> Node:
        if len(pool) == 1:
            return pool[0]
        if self.fleet.routing == "random":
            luck = int(self.luck[request.index]) >> (0 if which == "entry" else 31)
            return pool[(luck & 0x7FFFFFFF) % len(pool)]
        if self.fleet.routing == "round-robin":
            self.turns[which] += 1
            return pool[(self.turns[which] - 1) % len(pool)]
        least = min(pool, key=lambda node: self.load(node, now))
        if self.fleet.routing == "prefix-aware" and which == "entry" and self.plan.groups is not None:
            return self.holder(pool, least, request, now)
        return least

    def holder(self, pool: list[Node], least: Node, request: Request, now: float) -> Node:
        assert self.plan.groups is not None
        group, shared = self.prefix(request.index)

        def holds(node: Node) -> int:
            node.group[request.index] = (group, shared)
            found = shared if node.coming.get(group, 0) else node.prefix_blocks(request)
            del node.group[request.index]
            return found

        best = min(pool, key=lambda node: (-holds(node), self.load(node, now)))
        load, fewest = self.load(best, now), self.load(least, now)
        over = load > fewest * OVERLOAD_FACTOR and load > fewest + OVERLOAD_REQUESTS
        if holds(best) and not over:
            return best
        self.turns["entry"] += 1
        turn = self.turns["entry"] % len(pool)
        return min(pool[turn:] + pool[:turn], key=lambda node: self.load(node, now))

    def prefix(self, request: int) -> tuple[int, int]:
        assert self.plan.groups is not None
        return int(self.plan.groups.group[request]), int(self.plan.groups.shared_blocks[request])

    def asked(self, request: int) -> Request:
        lengths = (self.plan.prompt_tokens, self.plan.output_tokens, self.plan.cached_tokens)
        return Request(request, *(int(column[request]) for column in lengths))

    def arrives(self, now: float, _: int) -> None:
        if self.came == self.count:
            return
        request = self.asked(self.came)
        self.arrival[self.came] = now
        self.came += 1
        node = self.choose(self.prefilling or self.answering, "entry", request, now)
        (self.entry if self.prefilling else self.place)[request.index] = (node, request)
        if self.prefilling:
            request.output = 1
        if self.plan.groups is not None and self.plan.groups.count:
            group, _ = node.group[request.index] = self.prefix(request.index)
            node.coming[group] = node.coming.get(group, 0) + 1
        node.put(now, request)
        node.sent += 1

    def prefilled(self, now: float, index: int) -> None:
        request = self.asked(index)
        node = self.choose(self.answering, "decode", request, now)
        node.sent += 1
        node.line.append(request)
        self.place[index] = (node, request)
        if not node.busy():
            self.assign(node, max(now, node.now))

    def assign(self, node: Node, now: float) -> None:
        """At a step boundary: blocks for whoever was prefilled by then."""
        while node.line and self.handed[node.line[0].index] <= now:
            blocks = node.blocks_for(node.line[0].prompt)
            if node.preempted_waits() or not node.has_room(blocks):
                return
            request = node.line.pop(0)
            node.take(blocks)
            node.paid[request.index] = blocks
            node.reserved.append(request)
            self.later(now, self.fetches, request.index)

    def fetches(self, now: float, index: int) -> None:
        request = self.place[index][1]
        link = id(self.entry[index][0])
        begins = max(self.link_free.get(link, 0.0), now + self.fleet.handover_s)
        self.link_free[link] = begins + self.fleet.token_move_s * request.prompt
        self.later(self.link_free[link], self.lands, index)

    def lands(self, now: float, index: int) -> None:
        self.landed[index] = now
        node, request = self.entry[index]
        node.give_back(request, node.blocks_for(request.prompt))
        if not node.running:
            node.now = node.before = max(node.now, now)
        node, request = self.place[index]
        node.reserved.remove(request)
        request.cached = request.prompt - 1
        node.put(now, request)
