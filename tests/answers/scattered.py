"""Random worlds to ask about: any policy, owners, quotas, GPU types, nodes that drain, past runs.

What an idea says in words is also turned into a job here, as somebody would who tries it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from dovetail.answers.counterfactual import AT_ITS_PLACE, Trials
from dovetail.answers.foresight import Present
from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import (
    Event,
    Finished,
    Held,
    NodeDraining,
    NodeUp,
    Started,
    Stopped,
    Submitted,
    Wake,
)
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import Alternative, Group, Replica, Request, gang
from dovetail.recipes import policy
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

NODE = "x4,cpus=16,mem=64"
CLUSTERS = [f"1{NODE}", f"2{NODE}", f"1{NODE},type=a+1{NODE},type=b"]
NAMES = """fifo fifo:skip=true fair-share:by=user fair-share:by=user,skip=false las srtf
sjf:skip=true shared synergy synergy:order=fifo synergy:order=fifo,skip=true fifo:backfill=easy
fifo:backfill=conservative priority:skip=true,displace=lower fifo:skip=true,patience=200"""
POLICIES = NAMES.split()
PRIORITIES = {
    "normal priority": 0.0,
    "high priority": 1.0,
    "--borrow, on what others leave idle": -1.0,
}

Make = Callable[[], Scheduler]


@dataclass
class Scattered:
    """A world in the middle of its life, and what it takes to try ideas there."""

    scheduler: Scheduler
    make: Make
    trials: Trials

    @property
    def waiting(self) -> list[Job]:
        """Jobs that ideas can be had for."""
        jobs = self.scheduler.jobs.values()
        return [job for job in jobs if job.status is Status.WAITING]


def scattered(seed: int) -> Scattered:
    """A world of its own for every seed."""
    draw = Random(seed)
    cluster, chosen = draw.choice(CLUSTERS), draw.choice(POLICIES)
    kind = "" if "type" in cluster else draw.choice(["", "", "cells", "shares"])
    owners = tuple(Contract(name, (Holding(gpus=(2,)),)) for name in "ab")
    parts = Parts(
        chosen,
        draw.choice([None, "consolidated"]),
        predictor="declared",
        quotas=None if kind else draw.choice([None, None, "ann=2", "*=3"]),
        tenancy=Tenants(kind, owners).written() if kind else None,
    )
    latency = draw.choice([None, 5.0])
    executor = FakeExecutor(
        Machine(parse_cluster(cluster), Locality(), Costs(), lambda: 0.0, latency)
    )
    make = composer(parts, executor)
    scheduler, now = make(), 0.0
    for number in range(1, draw.randint(6, 16)):
        now += draw.choice([0.0, 1.0, 10.0, 100.0, 700.0])
        scheduler.step(now, _happens(draw, scheduler, number, now, kind))
        if draw.random() < 0.6:
            scheduler.step(now, _confirmed(scheduler))
    ordering = policy(chosen).ordering()
    trials = Trials(
        Present(scheduler.image(), make),
        now + 1.0,
        lambda job: job.expected,
        types=tuple(pool.type for pool in scheduler.cluster.pools),
        packed=not scheduler.cluster.idle,
        budget=2.0,
        lends=scheduler.tenancy.lends,
        reserves=ordering.backfill != "none" or ordering.patience is not None,
        unlimited=composer(replace(parts, quotas=None), executor) if parts.quotas else None,
    )
    return Scattered(scheduler, make, trials)


def _happens(draw: Random, scheduler: Scheduler, number: int, now: float, kind: str) -> list[Event]:
    chance, running = draw.random(), [job for job in scheduler.jobs.values() if job.allocation]
    if chance < 0.7 or not running:
        return [Submitted(_spec(draw, scheduler, number, now, kind))]
    if chance < 0.8:
        return [Finished(draw.choice(running).id)]
    if chance < 0.9:
        node = draw.randrange(len(scheduler.cluster.nodes))
        return [NodeUp(node) if node in scheduler.cluster.closed else NodeDraining(node)]
    if "others" not in scheduler.holdings:
        return [Held("others", allocation_of((Part(0, 0, 4000, 4096),)))]
    return [Wake()]


def _spec(draw: Random, scheduler: Scheduler, number: int, now: float, kind: str) -> JobSpec:
    gpus = draw.choice([0, 1, 1, 1, 2, 2, 3, 4, scheduler.cluster.gpus])
    cpu = draw.choice([None, None, 1000, 4000, 12_000, 16_000])
    memory = draw.choice([None, None, 4096, 16_384, 49_152])
    types = (draw.choice("ab"),) if len(scheduler.cluster.pools) > 1 and draw.random() < 0.5 else ()
    share = draw.choice([1000, 1000, 300, 700]) if gpus == 1 else 1000
    request = gang(gpus, cpu or 2000 if not gpus else cpu, memory, types, share)
    if gpus > 2 and draw.random() < 0.2:
        request = Request((Alternative((Group(gpus, Replica(), 2),), types),))
    return JobSpec(
        number,
        f"j{number}",
        now,
        request,
        tenant=draw.choice("ab") if kind else "",
        user=draw.choice(["ann", "bob"]),
        model=draw.choice(["", "res18", "shufflenet"]),
        priority=float(draw.choice([0, 0, 1, -1])),
        estimate=float(draw.choice([50, 300, 1000, 5000])),
        resumable=draw.random() < 0.7,
    )


def _confirmed(scheduler: Scheduler) -> list[Event]:
    """What an engine says of starts and stops in flight."""
    said: list[Event] = []
    for job in scheduler.jobs.values():
        if job.status is Status.STARTING and job.allocation is not None and not job.awaits:
            said.append(Started(job.id, job.allocation))
        elif job.status is Status.STOPPING:
            said.append(Stopped(job.id))
    return said


def by_words(spec: JobSpec, change: str) -> JobSpec:
    """The job that somebody would submit who was told this."""
    change = change.removesuffix(AT_ITS_PLACE)
    if change in PRIORITIES:
        return spec._replace(priority=PRIORITIES[change])
    if found := re.match(r"an estimate of (\d+) (min|s) instead of ", change):
        return spec._replace(estimate=float(found[1]) * (60 if found[2] == "min" else 1))
    alternative = spec.request.alternatives[0]
    if found := re.match(r"GPUs of type (\w+) instead of ", change):
        return spec._replace(request=Request((replace(alternative, types=(found[1],)),)))
    (group,) = alternative.groups
    each = group.each
    gpus, types, share = group.gpus, alternative.types, each.share
    cpu = None if each.cpu is None else each.cpu * group.most
    memory = None if each.memory is None else each.memory * group.most
    if change == "--cpus auto":
        cpu = None
    elif change == "--memory auto":
        memory = None
    elif found := re.match(r"([\d.]+) of a GPU instead of ", change):
        share = round(float(found[1]) * 1000)
    elif found := re.match(r"(\d+) GPUs? instead of ", change):
        gpus, before = int(found[1]), gpus
        if change.endswith(", and as much less CPU and memory"):
            cpu, memory = cpu and cpu * gpus // before, memory and memory * gpus // before
    else:
        found = re.match(r"(?:(\d+) cores?)?(?: and )?(?:(\d+) GiB)? instead of ", change)
        assert found, change
        cpu = int(found[1]) * 1000 if found[1] else cpu
        memory = int(found[2]) * 1024 if found[2] else memory
    return spec._replace(request=gang(gpus, cpu, memory, types, share))
