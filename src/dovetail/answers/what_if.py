"""What would have been: the same jobs, replayed once as things were and once as asked.

Both are replays, so that they differ in what was asked and in nothing else. Where the jobs come
from, a controller's past or a trace, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dovetail.metrics.records import OUTCOMES, Run
from dovetail.metrics.review import SIZE_NAMES, size_name
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.node import Node
from dovetail.model.request import WHOLE
from dovetail.model.trace import Trace, TraceJob
from dovetail.model.what_if import BOUNDS, SAME, STEPS, Comparison, Outcome, Shift
from dovetail.simulator.experiment import Replay, replay
from dovetail.simulator.spec import ClusterSpec
from dovetail.tenancy.kinds import Tenants

POINTS = 240
"""Of what is drawn over time."""

MOST_SHIFTS = 20
MOST_PAIRS = 1000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One way things are or could be."""

    label: str
    settings: Replay
    cluster: Cluster
    #: of its GPUs, 1 being those the lengths of jobs were seen on
    speed: float = 1.0
    #: None: everybody shares everything
    tenants: Tenants | None = None


def compare(
    jobs: Sequence[TraceJob],
    before: Setting,
    after: Setting,
    origin: float = 0.0,
    notices: Sequence[str] = (),
) -> Comparison:
    """Replay jobs under two settings; `origin` is the wall time of second 0."""
    one, other = _Told(before, _run(before, jobs)), _Told(after, _run(after, jobs))
    # Only now: what is wrong with the question is told first.
    if not jobs:
        raise UserError("no job on record can be replayed; ask again when some have ended")
    begin = min(job.spec.submit for job in jobs)
    step = (max(one.last, other.last, begin + 1.0) - begin) / POINTS
    ordered = sorted(jobs, key=lambda job: job.spec.id)
    delays = other.jcts - one.jcts
    both = ~np.isnan(delays)
    said = list(notices)
    if unfinished := int((~both).sum()):
        said.append(f"{unfinished} jobs end in only one of the replays, or in none")
    counts = _counts(delays[both])
    half = len(BOUNDS)
    return Comparison(
        one.outcome(begin, step),
        other.outcome(begin, step),
        origin + begin,
        step,
        sum(counts[:half]),
        sum(counts[half + 1 :]),
        counts[half],
        _users(ordered, one, other),
        _sizes(ordered, one, other),
        _most(ordered, one, other),
        counts,
        _spread(delays),
        _pairs(one.jcts[both], other.jcts[both]),
        tuple(said),
    )


def _counts(delays: Floats) -> tuple[int, ...]:
    """Jobs by how much sooner or later they end."""
    size = np.searchsorted(BOUNDS, np.abs(delays), side="left")
    place = len(BOUNDS) + np.where(delays < 0, -size, size)
    return tuple(np.bincount(place, minlength=2 * len(BOUNDS) + 1).tolist())


def _pairs(before: Floats, after: Floats) -> tuple[tuple[float, float], ...]:
    """Every so-manieth job, so that no kind of them is favoured."""
    every = max(1, -(-len(before) // MOST_PAIRS))
    rounded = (each[::every].round(1).tolist() for each in (before, after))
    return tuple(zip(*rounded, strict=True))


def setting(
    settings: Replay, cluster: Cluster, speed: float = 1.0, tenants: Tenants | None = None
) -> Setting:
    """A setting and its name in a few words."""
    words = f"{settings.policy} on {cluster.gpus} GPUs"
    words += f" {speed:g} times as fast" if speed != 1.0 else ""
    words += f", quotas {settings.quotas}" if settings.quotas else ""
    words += f", {tenants}" if tenants is not None else ""
    return Setting(words, replace(settings, series=True), cluster, speed, tenants)


def resized(cluster: Cluster, gpus: int) -> Cluster:
    """The same machines with so many GPUs in all: more or fewer of the last kind of node.

    A single node grows or shrinks, with its CPU and memory.
    """
    nodes = list(cluster.nodes)
    if len(nodes) == 1:
        return Cluster([_stretched(nodes[0], gpus)])
    kind, total = nodes[-1], sum(node.gpus for node in nodes)
    while nodes and total - nodes[-1].gpus >= gpus:
        total -= nodes.pop().gpus
    while total + kind.gpus <= gpus and kind.gpus:
        nodes.append(replace(kind, name=f"{kind.name}+{len(nodes)}"))
        total += kind.gpus
    if total != gpus:
        raise UserError(f"{gpus} GPUs are no whole number of nodes of {kind.gpus}")
    return Cluster(nodes)


def _stretched(node: Node, gpus: int) -> Node:
    if not node.gpus:
        raise UserError("a machine without GPUs cannot be imagined with more of them")
    cpu = None if node.cpu is None else node.cpu * gpus // node.gpus
    memory = None if node.memory is None else node.memory * gpus // node.gpus
    return replace(node, gpus=gpus, cpu=cpu, memory=memory)


def _run(setting: Setting, jobs: Sequence[TraceJob]) -> Run:
    if setting.speed != 1.0:
        jobs = [job._replace(work=job.work / setting.speed) for job in jobs]
    trace = Trace("history", "history", iter(jobs), len(jobs))
    spec = ClusterSpec(setting.cluster, tenants=setting.tenants)
    return replay(setting.settings, trace=trace, spec=spec)


class _Told:
    """One replay, with its jobs in order of their numbers."""

    def __init__(self, setting: Setting, run: Run) -> None:
        self.setting, self.run = setting, run
        records = run.records
        order = np.argsort(np.asarray(records.id))
        ended = np.frombuffer(bytes(records.outcome), np.uint8)[order]
        finished = ended == OUTCOMES.index("finished")
        submit, end = np.asarray(records.submit)[order], np.asarray(records.end)[order]
        held = np.asarray(records.run_time)[order]
        self.jcts: Floats = np.where(finished, end - submit, np.nan)
        self.waits: Floats = np.where(finished, end - submit - held, np.nan)
        self.last = float(np.nanmax(end)) if len(end) else 0.0
        self.first = float(submit.min()) if len(submit) else 0.0

    def outcome(self, begin: float, step: float) -> Outcome:
        """What people see of it."""
        run, gpus = self.run, self.setting.cluster.gpus
        span = max(self.last - self.first, 1e-9)
        times: Floats = begin + step * np.arange(POINTS, dtype=np.float64)
        return Outcome(
            self.setting.label,
            gpus,
            int((~np.isnan(self.jcts)).sum()),
            _mean(self.waits),
            _mean(self.jcts),
            run.used.milli_gpus / 1000 / (gpus * span) if gpus else 0.0,
            run.preemptions,
            span,
            _spread(self.waits),
            _spread(self.jcts),
            _sampled(run, times, "milli_gpus", 1000.0),
            _sampled(run, times, "waiting", 1.0),
        )


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _spread(values: Floats) -> tuple[float, ...]:
    known = values[~np.isnan(values)]
    if not len(known):
        return ()
    return tuple(float(each) for each in np.quantile(known, np.linspace(0, 1, STEPS)))


def _sampled(run: Run, times: Floats, column: str, unit: float) -> tuple[float, ...]:
    """The state at each moment: what the last decision before it left."""
    assert run.series is not None
    at = np.searchsorted(np.asarray(run.series.time), times, side="right") - 1
    values = np.asarray(getattr(run.series, column))
    return tuple(float(values[place]) / unit if place >= 0 else 0.0 for place in at)


def _groups(
    jobs: Sequence[TraceJob], one: _Told, other: _Told, name: Callable[[TraceJob], str]
) -> dict[str, list[int]]:
    """The places of jobs that end in both replays, by name."""
    places: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        if not np.isnan(one.jcts[place] + other.jcts[place]):
            places.setdefault(name(job), []).append(place)
    return places


def _users(jobs: Sequence[TraceJob], one: _Told, other: _Told) -> tuple[Shift, ...]:
    """By user, the largest gain in GPU-weighted time first."""
    places = _groups(jobs, one, other, lambda job: job.spec.user or job.spec.tenant or "?")

    def gain(name: str) -> float:
        each = one.jcts[places[name]] - other.jcts[places[name]]
        weights = [jobs[place].spec.request.milli_gpus for place in places[name]]
        return float(np.dot(each, weights))

    ranked = sorted(places, key=lambda name: (-gain(name), name))
    return tuple(_shift(name, places[name], one, other) for name in ranked)


def _sizes(jobs: Sequence[TraceJob], one: _Told, other: _Told) -> tuple[Shift, ...]:
    """By GPUs asked for, the smallest first."""
    places = _groups(jobs, one, other, lambda job: size_name(job.spec.request.milli_gpus / WHOLE))
    return tuple(_shift(name, places[name], one, other) for name in SIZE_NAMES if name in places)


def _most(jobs: Sequence[TraceJob], one: _Told, other: _Told) -> tuple[Shift, ...]:
    """The jobs that change most, those that gain first."""
    gains = np.nan_to_num(one.jcts - other.jcts)
    ranked = [int(place) for place in np.argsort(-gains, kind="stable")]
    half = MOST_SHIFTS // 2
    chosen = [place for place in ranked[:half] if gains[place] > SAME]
    chosen += [place for place in ranked[-half:] if gains[place] < -SAME]
    return tuple(_shift(jobs[place].spec.name, [place], one, other) for place in chosen)


def _shift(name: str, places: list[int], one: _Told, other: _Told) -> Shift:
    figures = (one.jcts, other.jcts, one.waits, other.waits)
    return Shift(name, len(places), *(float(values[places].mean()) for values in figures))
