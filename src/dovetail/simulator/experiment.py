"""From settings as a person types them to a finished run; and grids of those in processes."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from typing import Any

from dovetail.allocators import ALLOCATORS
from dovetail.core.claims import Curves
from dovetail.core.ordering import Ordering
from dovetail.core.protocols import JointAllocator
from dovetail.core.scheduler import Scheduler
from dovetail.metrics.baseline import excess
from dovetail.metrics.records import Amounts, Run, Series
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.node import Capabilities
from dovetail.model.quota import read_quotas
from dovetail.model.trace import Trace, TraceJob
from dovetail.placements import PLACEMENTS
from dovetail.planners import planner_for
from dovetail.predictors import PREDICTORS
from dovetail.predictors.oracle import Oracle
from dovetail.profiles import catalogue
from dovetail.recipes import policy
from dovetail.simulator.faults import Faults, read_faults
from dovetail.simulator.loop import Simulation
from dovetail.simulator.spec import ClusterSpec, read_spec
from dovetail.simulator.tenancies import private_twin, tenancy_for
from dovetail.simulator.world import World
from dovetail.speed.locality import Locality
from dovetail.speed.sensitivity import Sensitivity
from dovetail.traces.loader import load

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Replay:
    """Everything that decides a run, as text and numbers: it can be sent to another process."""

    trace: str
    cluster: str
    policy: str = "fifo"
    #: None: what the policy's recipe suggests
    placement: str | None = None
    allocator: str | None = None
    predictor: str | None = None
    #: a file of sensitivity profiles, over the published ones
    profiles: str | None = None
    #: seconds the first start of each job takes longer because its sensitivity is measured
    profiling_cost: float = 0.0
    format: str | None = None
    #: `column=file`
    partition_by: str | None = None
    #: who owns what: `cells:FILE`, `private:FILE`, `shares:FILE`; see `simulator.tenancies`
    tenancy: str | None = None
    #: seconds; None: as the cluster file or the defaults say
    restart_cost: float | None = None
    stop_cost: float | None = None
    move_cost: float | None = None
    span_penalty: float = 0.0
    start: str | None = None
    stop: str | None = None
    #: `A:B`
    measure: str | None = None
    seed: int = 0
    skip_bad: bool = False
    series: bool = False
    #: what goes wrong: see `simulator.faults`
    faults: str | None = None
    #: what users and groups may hold at one time: see `model.quota`
    quotas: str | None = None


def replay(
    settings: Replay,
    progress: Progress | None = None,
    *,
    trace: Trace | None = None,
    spec: ClusterSpec | None = None,
) -> Run:
    """Run one simulation from settings to result; trace and cluster may have been read already."""
    wall, cpu = time.perf_counter(), time.process_time()
    spec = spec or read_spec(settings.cluster)
    cluster = spec.cluster
    policy(settings.policy)
    measure = _window(settings.measure)
    trace = trace or load(
        settings.trace,
        format=settings.format,
        start=settings.start,
        stop=settings.stop,
        skip_bad=settings.skip_bad,
        cluster_gpus=cluster.gpus,
    )
    simulation, described = _compose(settings, spec, trace)
    report = None if progress is None else lambda done: progress(done, trace.count)
    simulation.run(report)
    run = Run(
        records=simulation.records,
        capacity=_capacity(cluster),
        used=Amounts(*simulation.scheduler.served),
        settings={"policy": settings.policy, **described},
        end=simulation.now,
        preemptions=simulation.scheduler.preemptions,
        moves=simulation.scheduler.moves,
        events=simulation.events,
        measure=measure,
        series=simulation.series,
        notices=list(trace.notices),
        policy_report=_policy_report(simulation.scheduler),
    )
    run.wall_seconds = time.perf_counter() - wall
    run.cpu_seconds = time.process_time() - cpu
    run.peak_memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    twin = private_twin(settings)
    if twin is not None:
        run.private = excess(run, replay(replace(settings, tenancy=twin), spec=spec))
    return run


def _compose(
    settings: Replay, spec: ClusterSpec, trace: Trace
) -> tuple[Simulation, dict[str, Any]]:
    """Put the parts together and say what they are."""
    chosen, costs = policy(settings.policy), _costs(settings, spec)
    cluster = _acknowledging(spec.cluster) if costs.stop else spec.cluster
    tenancy, cluster = tenancy_for(settings, cluster, spec.tenants)
    _check_progress(chosen.ordering(), costs)
    placement_text = settings.placement or chosen.placement
    predictor_text = settings.predictor or chosen.predictor
    placement = PLACEMENTS.create(_seeded(placement_text, "random", settings.seed))
    predictor = PREDICTORS.create(_seeded(predictor_text, "noisy", settings.seed))
    allocator_text = settings.allocator or chosen.allocator
    allocator = ALLOCATORS.create(allocator_text)
    plain = Locality(_checked("--span-penalty", settings.span_penalty), spec.type_factors)
    profiles = catalogue(settings.profiles)
    # Where CPU and memory are not stated, nothing can depend on them.
    stated = cluster.limits_cpu and cluster.limits_memory
    nothing = any(node.gpus and not (node.cpu and node.memory) for node in cluster.nodes)
    if nothing and (allocator.by_model or isinstance(allocator, JointAllocator)):
        raise UserError(
            f"allocator {allocator_text} shares out CPU and memory: say how much a node has, "
            "as in 16x8,cpus=24,mem=500"
        )
    speed = Sensitivity(profiles, plain) if stated else plain
    faults = read_faults(settings.faults, cluster, settings.seed)
    world = World(cluster, speed, costs, _latency(cluster), faults.breaks, faults.as_recorded)
    if isinstance(predictor, Oracle):
        predictor.told = world.truth
    quotas = read_quotas(settings.quotas)

    def make_planner(view: Cluster) -> Any:
        curves = Curves(view, profiles, plain.span_penalty)
        fallback = ALLOCATORS.create("proportional")
        return planner_for(
            view, chosen.ordering(), placement, allocator, costs, curves, fallback, quotas
        )

    scheduler = Scheduler(cluster, tenancy, make_planner, predictor, speed, costs)
    jobs = _jobs(trace, faults)
    series = Series() if settings.series else None
    simulation = Simulation(scheduler, world, jobs, faults.nodes, series)
    described = {
        "trace": settings.trace,
        "format": trace.format,
        "origin": trace.origin.isoformat() if trace.origin else None,
        "cluster": settings.cluster,
        "placement": placement_text,
        "allocator": allocator_text,
        "predictor": predictor_text,
        "costs": {**asdict(costs), "span_penalty": settings.span_penalty},
        "partition_by": settings.partition_by,
        "tenancy": settings.tenancy,
        "faults": settings.faults,
        "quotas": None if quotas is None else str(quotas),
        "seed": settings.seed,
    }
    return simulation, described


def _check_progress(ordering: Ordering, costs: Costs) -> None:
    """Jobs that are displaced every round before they have restarted would never end."""
    restart = max([costs.restart, *costs.by_model.values()])
    if ordering.preempt and ordering.pause is not None and ordering.pause <= restart:
        raise UserError(
            f"a round of {ordering.pause:g} s is over before a restart of {restart:g} s is: "
            "give a longer round or a cheaper restart"
        )


def _jobs(trace: Trace, faults: Faults) -> Iterator[TraceJob]:
    """The trace's jobs, with as many retries as were asked for."""
    jobs = iter(trace.jobs)
    if faults.retries is not None:
        retries = faults.retries
        jobs = (job._replace(spec=job.spec._replace(retries=retries)) for job in jobs)
    return jobs


def _costs(settings: Replay, spec: ClusterSpec) -> Costs:
    costs = Costs(**spec.costs)
    given = {
        "restart": settings.restart_cost,
        "stop": settings.stop_cost,
        "move": settings.move_cost,
    }
    stated: dict[str, Any] = {
        name: _checked(f"--{name}-cost", value)
        for name, value in given.items()
        if value is not None
    }
    stated["first_start"] = costs.first_start + _checked(
        "--profiling-cost", settings.profiling_cost
    )
    # A restart that was declared free makes resuming free too: zero is an explicit choice.
    if settings.restart_cost == 0:
        stated["resume"] = 0.0
    return replace(costs, **stated)


def _checked(name: str, value: float) -> float:
    if not 0 <= value < 1e12:
        raise UserError(f"{name} {value}: must be a number of at least 0")
    return value


def _acknowledging(cluster: Cluster) -> Cluster:
    """Stops that take time must be confirmed: the same cluster with pools that do so."""
    return Cluster(cluster.nodes, {p.type: Capabilities(start_latency=0.0) for p in cluster.pools})


def _latency(cluster: Cluster) -> float | None:
    """Start latency of the simulated executors; None: everything takes effect at once."""
    stated = [pool.capabilities.start_latency for pool in cluster.pools]
    return max((latency for latency in stated if latency is not None), default=None)


def _seeded(text: str, name: str, seed: int) -> str:
    """Give a random plug-in the run's seed, unless its own was typed."""
    return f"{name}:seed={seed}" if text == name and seed else text


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise UserError(f"--measure {text}: write it as FIRST:LAST, as in 4000:5000")
    return int(first), int(last)


def _capacity(cluster: Cluster) -> Amounts:
    cpu = sum(node.cpu or 0 for node in cluster.nodes)
    memory = sum(node.memory or 0 for node in cluster.nodes)
    return Amounts(cluster.gpus * 1000.0, float(cpu), float(memory))


def _policy_report(scheduler: Scheduler) -> dict[str, Any]:
    reports = [planner.report() for planner in scheduler.planners]
    if len(reports) == 1:
        return reports[0]
    named = zip(scheduler.tenancy.domains, reports, strict=True)
    return {name: report for name, report in named if report}


def grid(settings: list[Replay], processes: int = 1, progress: Progress | None = None) -> list[Run]:
    """Run many replays, in processes where that helps; results in the order of the settings."""
    if processes <= 1 or len(settings) == 1:
        runs = []
        for done, one in enumerate(settings, 1):
            runs.append(replay(one))
            if progress is not None:
                progress(done, len(settings))
        return runs
    with ProcessPoolExecutor(min(processes, len(settings))) as pool:
        futures = [pool.submit(replay, one) for one in settings]
        for done, _ in enumerate(as_completed(futures), 1):
            if progress is not None:
                progress(done, len(settings))
        return [future.result() for future in futures]
