"""One replica of a scenario, ready to simulate: step costs, scheduler rules, KV pool and its share of the load."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from calc.cache.pool import plan_for, sequences_of
from calc.calibrate.calibration import UNCALIBRATED
from calc.calibrate.transfer import Applied, applied
from calc.deployment import Deployment
from calc.engine import Settings, resolve
from calc.errors import ImpossibleDeployment
from calc.memory import MemoryReport, estimate_memory
from calc.messages import Message, msg
from calc.scenario import Scenario
from calc.simulator.arrivals import plan_requests
from calc.simulator.draws import Drawn, draw
from calc.simulator.fleet import MAX_PLACES, Fleet, simulate_fleet
from calc.simulator.groups import share_prefixes
from calc.simulator.options import Options, demand_with, options_of, with_options
from calc.simulator.quotas import within_quotas
from calc.simulator.simulate import RequestPlan, SchedulerRules, SimulationResult, StepCosts, simulate
from calc.simulator.stability import Balance, Demand, Limits, balance_of, stability_limits, static_limits
from calc.simulator.together import fleet_of, split_limits, split_notes, with_groups
from calc.step.efficiency import Efficiency
from calc.step.holds import hold_steps
from calc.step.roofline import StepModel, step_model
from calc.workload import Closed, Fixed, IntArray, Recorded, Workload

MAX_SIMULATED = 200_000
"""Most requests simulated for one load point: about a second of computing. More are cut, with a note."""
DEMAND_SAMPLE = 4096
"""Lengths drawn to know the means of a load."""
BESIDE_A_PROMPT = 256
"""Running requests a step has room for beside the longest prompt that cannot be chunked."""
FILL_SERVICE_TIMES = 1.5
"""How long an open loop fills before it is measured, in service times."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """What one replica (one DP rank) is and how much of the load it gets."""

    model: StepModel
    costs: StepCosts
    rules: SchedulerRules
    settings: Settings
    workload: Workload
    split: int
    """Independent schedulers the load is divided over: replicas × DP ranks."""
    demand: Demand
    limits: Limits
    notes: tuple[Message, ...] = ()
    calibration: str = UNCALIBRATED
    """Name of the measurements its costs rest on."""
    first_token_steps: float = 0.0
    """Mean steps by which the first token comes later than simulated."""
    options: Options = field(default_factory=Options)
    """Classes, tiers, speculation, batching."""
    fleet: Fleet | None = None
    """Schedulers to be simulated together; ``None`` = one stands for all."""

    @cached_property
    def balance(self) -> Balance:
        """How its steps and its rate grow with the requests that run."""
        return balance_of(self.model, self.demand, self.limits)

    @property
    def pool_tokens(self) -> int:
        """KV pool of one scheduler in tokens, when its requests are as long as this load's."""
        return round(_usable_tokens(self.rules, self.demand.held))


def prepare(
    scenario: Scenario, memory: MemoryReport | None, seed: int, efficiency: Efficiency | None = None
) -> Replica:
    """Everything that does not change with the load."""
    deployment, workload = scenario.deployment, scenario.workload
    report = memory or estimate_memory(deployment)
    settings = resolve(deployment)
    measured = applied(scenario.calibration, deployment) if efficiency is None else Applied()
    model = step_model(deployment, efficiency=efficiency or measured.efficiency, http=workload.http)
    longest = settings.max_model_len_tokens
    drawn = draw(workload, DEMAND_SAMPLE, longest, seed, reuse=settings.prefix_caching)
    demand = Demand.of(drawn.prompt, drawn.output, drawn.cached)
    model = model.with_prompts(demand.prompt)
    held_steps, hold_notes = hold_steps(deployment)
    rules = _rules(deployment, settings, report, demand.held, int(drawn.prompt.max()))
    options = options_of(
        deployment,
        workload,
        kv_bytes_per_token=model.kv_bytes_per_token,
        block_tokens=rules.block_tokens,
        longest_output=int(drawn.output.max()),
        prefix_caching=settings.prefix_caching,
    )
    fleet = fleet_of(deployment, model)
    rules = with_options(rules, options)
    notes = split_notes(fleet, rules, workload)
    if fleet is not None and fleet.prefill_schedulers:
        rules = replace(rules, reserved_tokens=None)
    demand, limits = _balance(model, rules, drawn, workload, options, fleet, seed)
    return Replica(
        model=model,
        costs=model.costs(),
        rules=rules,
        settings=settings,
        workload=workload,
        split=deployment.replicas * deployment.dp,
        demand=demand,
        limits=limits,
        notes=(
            *(*model.notes, *measured.notes, *hold_notes),
            *_notes(workload, settings, rules.max_tokens),
            *(*options.notes, *notes),
        ),
        calibration=measured.name,
        first_token_steps=measured.first_token_steps + held_steps,
        options=options,
        fleet=fleet,
    )


def reloaded(replica: Replica, workload: Workload, seed: int) -> Replica:
    """The same replica under a load of the same lengths, of which another share is found in the prefix cache."""
    reuse, longest = replica.settings.prefix_caching, replica.settings.max_model_len_tokens
    drawn = draw(workload, DEMAND_SAMPLE, longest, seed, reuse=reuse)
    demand, limits = _balance(replica.model, replica.rules, drawn, workload, replica.options, replica.fleet, seed)
    return replace(replica, workload=workload, demand=demand, limits=limits)


def _balance(
    model: StepModel,
    rules: SchedulerRules,
    drawn: Drawn,
    workload: Workload,
    options: Options,
    fleet: Fleet | None,
    seed: int,
) -> tuple[Demand, Limits]:
    """Mean demand on a scheduler that answers, and the highest stable rate."""
    whole = Demand.of(drawn.prompt, drawn.output, drawn.cached)
    pool_tokens = _usable_tokens(rules, whole.held)
    found = with_groups(drawn, whole, workload, fleet, pool_tokens)
    share = (whole.prompt - found.fresh) / max(whole.prompt - whole.fresh, 1.0)
    if fleet is not None and fleet.prefill_schedulers:
        demand = Demand.of(drawn.prompt, drawn.output, drawn.prompt - 1)
        demand = replace(demand, verified=float(rules.verified_tokens), gained=_gained(options))
        limits = _limits(model, rules, demand, drawn)
        return demand, split_limits(model, fleet, drawn, share, (demand, limits), pool_tokens)
    demand = demand_with(found, replace(drawn, cached=_scaled(drawn.cached, share)), workload, options, seed)
    return demand, _limits(model, rules, demand, drawn)


def _scaled(tokens: IntArray, share: float) -> IntArray:
    return tokens if share == 1 else (tokens * share).astype(np.int64)


def _gained(options: Options) -> float:
    return 1 + options.speculation.accepted_tokens if options.speculation else 1.0


def _limits(model: StepModel, rules: SchedulerRules, demand: Demand, drawn: Drawn) -> Limits:
    if rules.reserved_tokens is not None:
        return static_limits(model, rules, demand, drawn.output)
    usable = _usable_tokens(rules, demand.held)
    if rules.reserves_output:
        usable *= demand.held / (demand.prompt + demand.output)
    return within_quotas(model, rules, demand, drawn, stability_limits(model, demand, usable))


def _usable_tokens(rules: SchedulerRules, held_tokens: float) -> float:
    """Tokens the pool holds in requests of ``held_tokens``, beside what each request takes whatever its length."""
    blocks = rules.total_blocks - rules.watermark_blocks
    if not rules.fixed_blocks:
        return blocks * rules.block_tokens
    return blocks / (math.ceil(held_tokens / rules.block_tokens) + rules.fixed_blocks) * held_tokens


def _rules(
    deployment: Deployment, settings: Settings, memory: MemoryReport, held_tokens: float, longest_prompt: int
) -> SchedulerRules:
    """The scheduler counts blocks of tokens; where windowed layers need fewer, the pool is as large as it is for a
    request of ``held_tokens``."""
    if not memory.fits or memory.num_blocks <= 0:
        raise ImpossibleDeployment(
            msg(
                "{model} does not fit on {gpu}: it is {over:gib} over the budget of a GPU; use more GPUs, narrower "
                "weights or a shorter maximum length.",
                model=deployment.model.name,
                gpu=deployment.gpu.name,
                over=memory.over_bytes,
            )
        )
    running = replace(settings, in_flight_tokens=0)
    sequences = sequences_of(deployment, running, memory.num_blocks, math.ceil(held_tokens)) / deployment.dp
    block_tokens, fixed = _request_blocks(deployment, settings)
    blocks = math.floor(sequences * (math.ceil(held_tokens / block_tokens) + fixed))
    longest_blocks = math.ceil(settings.max_model_len_tokens / block_tokens) + fixed
    return SchedulerRules(
        max_tokens=_budget(deployment, settings, longest_prompt),
        max_seqs=settings.max_num_seqs,
        total_blocks=max(blocks, longest_blocks),
        block_tokens=block_tokens,
        fixed_blocks=fixed,
        chunked=settings.chunked_prefill,
        prefix_caching=settings.prefix_caching,
        queued_step=settings.async_scheduling,
        prefill_alone=deployment.engine.prefill_alone,
        reserves_output=deployment.engine.reserves_output,
    )


def _budget(deployment: Deployment, settings: Settings, longest_prompt: int) -> int:
    """Token budget of a step. Where prompts are not chunked and no budget is given, it is one that lets the longest
    prompt in beside running requests: else it would wait until nearly all of them have left."""
    given = settings.max_num_batched_tokens
    if settings.chunked_prefill or deployment.max_num_batched_tokens is not None:
        return given
    return max(given, longest_prompt + BESIDE_A_PROMPT)


def _request_blocks(deployment: Deployment, settings: Settings) -> tuple[int, int]:
    """Tokens of a block, and blocks of a request whatever its length; a model of states alone has one long block."""
    groups = plan_for(deployment, settings).groups
    fixed = sum(group.copies for group in groups)
    growing = sum(not group.copies for group in groups)
    if not growing:
        return settings.max_model_len_tokens, fixed - 1
    return settings.block_size_tokens, math.ceil(fixed / growing)


def _notes(workload: Workload, settings: Settings, budget_tokens: int) -> tuple[Message, ...]:
    notes = []
    if workload.prefix_hit_share and not settings.prefix_caching:
        notes.append(msg("Prefix caching is off: the prefix hit share of the load is not used."))
    if budget_tokens > settings.max_num_batched_tokens:
        notes.append(
            msg(
                "Prompts are not chunked, and the version's budget of {given:count} tokens a step lets the longest one "
                "in only when hardly anything runs: {assumed:count} are assumed; give the budget you use.",
                given=settings.max_num_batched_tokens,
                assumed=budget_tokens,
            )
        )
    return tuple(notes)


def run_replica(replica: Replica, workload: Workload, requests: int, seed: int) -> SimulationResult:
    """Simulates this replica's share of ``workload``: a finite benchmark whole, a steady load without its ramp."""
    finite = workload.num_requests is not None
    together = replica.split if replica.fleet is not None else 1
    wanted = math.ceil((workload.num_requests or requests) * together / (replica.split if finite else together))
    batch = _batch(replica, workload)
    spent_s = replica.balance.service_s(batch)
    lead, tail = (0, 0) if finite else (together * part for part in _ramp(replica, workload, spent_s))
    measured = max(1, min(wanted, MAX_SIMULATED, MAX_PLACES // together - lead - tail))
    plan = plan_requests(
        workload,
        requests=measured,
        lead=lead,
        tail=tail,
        split=replica.split / together,
        longest_tokens=replica.settings.max_model_len_tokens,
        service_s=0.0 if finite and _varies(workload) else spent_s,
        think_s=replica.model.http_s,
        seed=seed,
        reuse=replica.settings.prefix_caching,
        tiers=replica.options.tiers,
        speculation=replica.options.speculation,
    )
    result = run_plan(replica, plan, workload, seed)
    if np.isnan(result.finished_s[result.measured]).all() and result.gave_up_s is None:
        raise ImpossibleDeployment(
            msg(
                "No measured request was done when the simulation stopped after {rounds:count} scheduling rounds: "
                "lower the load, shorten the requests or raise the token budget.",
                rounds=result.events,
            )
        )
    return result


def run_plan(replica: Replica, plan: RequestPlan, workload: Workload, seed: int) -> SimulationResult:
    """A plan of ``workload`` on one scheduler, or on all together where the replica is a fleet."""
    fleet, rules = replica.fleet, replica.rules
    groups, logged = workload.prefix_groups, isinstance(workload.arrivals, Recorded)
    if fleet is None:
        plan = share_prefixes(plan, rules, groups, seed, schedulers=1, sticky=False, recorded=logged)
        return simulate(plan, rules, replica.costs)
    split = fleet.prefill_schedulers > 0
    entered = fleet.prefill_schedulers or fleet.schedulers
    sticky = fleet.routing == "prefix-aware" and entered > 1
    plan = share_prefixes(plan, rules, groups, seed, schedulers=entered, sticky=sticky, recorded=logged)
    if split:
        plan = replace(plan, patience_s=None, retries=0)
    prefill_rules = replace(rules, verified_tokens=1, reserves_output=False)
    return simulate_fleet(plan, replace(fleet, seed=seed), rules, replica.costs, prefill_rules=prefill_rules)


def _varies(workload: Workload) -> bool:
    """Whether lengths differ: then a benchmark's users may start at once, as tools start them; equal ones would lock
    step for good, which real engines' jitter prevents."""
    return not (isinstance(workload.prompt_tokens, Fixed) and isinstance(workload.output_tokens, Fixed))


def _batch(replica: Replica, workload: Workload) -> float:
    if isinstance(workload.arrivals, Closed):
        return min(max(1.0, workload.arrivals.concurrency / replica.split), replica.limits.max_batch)
    rate = workload.arrivals.rate_per_s / replica.split
    return replica.balance.batch_at(rate)


def _ramp(replica: Replica, workload: Workload, spent_s: float) -> tuple[int, int]:
    """Requests before and after the measured ones."""
    if isinstance(workload.arrivals, Closed):
        users = math.ceil(workload.arrivals.concurrency / replica.split)
        return users, users
    rate = min(workload.arrivals.rate_per_s / replica.split, replica.limits.max_rate_per_s)
    in_service = rate * spent_s
    lead = min(math.ceil(FILL_SERVICE_TIMES * in_service), MAX_SIMULATED)
    return lead, min(math.ceil(in_service), MAX_SIMULATED)
