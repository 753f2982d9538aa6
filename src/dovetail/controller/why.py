"""`why`: the binding cause, who is in front, what would help; and why a job got what it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import select

from dovetail.answers.counterfactual import Trials
from dovetail.controller import reading, records, schema
from dovetail.controller.explaining import poorest
from dovetail.controller.forecast import believed
from dovetail.controller.loans import loan
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.present import alone, whole
from dovetail.core.books import RECLAIMED
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job, Status
from dovetail.model.live import Description, called, said_cores
from dovetail.model.plan import Resume, Start, Stop
from dovetail.model.request import WHOLE
from dovetail.model.why import Blame, Why
from dovetail.profiles import catalogue
from dovetail.recipes import policy

LOOKED_BACK = 20_000
"""Decisions searched for the last stop of a job."""

DISPLACED = "displaced by "
"""How the cause of a stop begins that made room for somebody."""
SLIGHT = 1e-6
"""The least that anybody in the way is to blame for."""


def why(controller: Controller, number: int, parts: Parts) -> tuple[Why, Trials | None]:
    """All that can be said at once, and what it takes to look for what would help.

    The second is None where nothing would: the job runs, is over, or waits for its owner.
    """
    seen = reading.describe(controller, number)
    job = controller.scheduler.jobs.get(number)
    reason = controller.scheduler.explain(number) if job is not None else None
    waits = job is not None and job.status is Status.WAITING and not job.withheld
    answer = Why(
        number,
        seen.label,
        seen.name,
        seen.state,
        reason.cause if reason is not None and (waits or seen.blockers) else seen.state,
        seen.reason or f"it is {seen.state}",
        seen.unblock,
        _blame(controller, seen.blockers, reason.cause if reason is not None else ""),
        stopped=_stopped(controller, seen) if seen.attempts else "",
        loan=loan(controller, number),
        grant=_grant(controller, job, parts) if job is not None else "",
    )
    if not waits:
        return answer, None
    ordering = policy(parts.policy).ordering()
    home, cluster = controller.scheduler.jobs[number].home, controller.scheduler.cluster
    trials = Trials(
        whole(controller),
        controller.time.now(),
        believed(controller, {}),
        alone(controller.scheduler, controller.parts, [home]).get(home),
        tuple(pool.type for pool in cluster.pools),
        packed=not cluster.idle,
        lends=controller.scheduler.tenancy.lends,
        reserves=ordering.backfill != "none" or ordering.patience is not None,
        unlimited=_without_quotas(controller, parts),
    )
    return answer, trials


def _without_quotas(controller: Controller, parts: Parts) -> Callable[[], Scheduler] | None:
    if parts.quotas is None:
        return None
    return composer(replace(parts, quotas=None), controller.executor)


def _blame(controller: Controller, blockers: tuple[int, ...], cause: str) -> tuple[Blame, ...]:
    """Shares by what those in front hold or want of what is missing."""
    known = controller.scheduler.jobs
    jobs = [known[each] for each in blockers if each in known]
    labels = controller.roster.labels(blockers)
    weights = [_weight(job, cause, controller.scheduler.cluster) for job in jobs]
    total = sum(weights)
    return tuple(
        Blame(
            job.id,
            job.spec.name,
            job.spec.user,
            str(job.status),
            _gpus(job),
            weight / total,
            called(labels, job.id),
        )
        for job, weight in zip(jobs, weights, strict=True)
    )


def _gpus(job: Job) -> float:
    """What it holds, or else wants."""
    held = job.allocation
    return (job.spec.request.milli_gpus if held is None else held.milli_gpus) / WHOLE


def _weight(job: Job, cause: str, cluster: Cluster) -> float:
    """How much of what is missing a job has or wants: GPUs, or its largest share of the rest."""
    if cause != "cpu or memory":
        return _gpus(job) or 1.0
    groups = job.spec.request.alternatives[0].groups
    amounts = [
        sum(group.most * (group.each.cpu or 0) for group in groups),
        sum(group.most * (group.each.memory or 0) for group in groups),
    ]
    if job.allocation is not None:
        amounts = [job.allocation.cpu, job.allocation.memory]
    cpu = sum(node.cpu or 0 for node in cluster.nodes)
    memory = sum(node.memory or 0 for node in cluster.nodes)
    shares = [amounts[0] / max(cpu, 1), amounts[1] / max(memory, 1)]
    # Who states nothing wants its share by GPUs.
    return max(*shares, 0.0 if any(amounts) else _gpus(job) / max(cluster.gpus, 1), SLIGHT)


def _stopped(controller: Controller, seen: Description) -> str:
    """For whom and why it was last stopped, as the journal has it."""
    plans, last, number = schema.plans, controller.journal.sequence, seen.id
    wanted = (
        select(plans.c.actions)
        .where(plans.c.sequence > last - LOOKED_BACK)
        .where(plans.c.actions.contains(f'["Stop",{{"job":{number},'))
        .order_by(plans.c.sequence.desc())
        .limit(1)
    )
    rows = controller.journal.store.rows(wanted)
    if not rows:
        return ""
    actions = records.read(rows[0]["actions"])
    cause = next(each.cause for each in actions if isinstance(each, Stop) and each.job == number)
    started = [each for each in actions if isinstance(each, Start | Resume)]
    # Whoever waits for it by name is why; else it may have been any of them.
    favoured = [each.job for each in started if number in each.awaits] or [
        each.job for each in started
    ]
    if cause == RECLAIMED:
        cause = _reclaimed(controller, favoured)
    elif favoured and cause.startswith(DISPLACED):
        cause = f"{cause.removeprefix(DISPLACED)}, {_before(controller, favoured, seen.priority)}"
    named = f"job{'s' * (len(favoured) > 1)} {controller.roster.called(*favoured[:5])}"
    room = f" to make room for {named}" if favoured else ""
    lost = "" if seen.resumable else "; it cannot resume, so that work is lost"
    return f"it was stopped{room}{f' ({cause})' if cause else ''}{lost}"


def _before(controller: Controller, favoured: list[int], priority: float) -> str:
    """What others had over a job of this priority."""
    winners = reading.described(controller, favoured)
    higher = winners and all(each.priority > priority for each in winners)
    return "of higher priority" if higher else "first in the order of the policy"


def _reclaimed(controller: Controller, favoured: list[int]) -> str:
    """Whose the devices are that it had on loan."""
    owners = dict.fromkeys(job.tenant for job in reading.described(controller, favoured))
    return f"{RECLAIMED} {' and '.join(filter(None, owners))}".rstrip()


def _grant(controller: Controller, job: Job, parts: Parts) -> str:
    """Where its CPU and memory come from."""
    if job.allocation is None or not job.allocation.cpu:
        return ""
    held = f"{said_cores(job.allocation.cpu)} and {job.allocation.memory / 1024:.3g} GiB"
    groups = job.spec.request.alternatives[0].groups
    if all(group.each.cpu is not None for group in groups):
        return f"it has {held} because that is what it asked for"
    allocator = parts.allocator or policy(parts.policy).allocator
    known = catalogue(parts.profiles).get(job.spec.model) if job.spec.model else None
    if known is None:
        share = f"its share by GPUs ({job.allocation.gpus} of {controller.scheduler.cluster.gpus})"
        no_profile = ", as no profile of its model is known" if allocator != "proportional" else ""
        return f"it has {held}: {share}{no_profile}"
    there = poorest(job.allocation, controller.scheduler.cluster.nodes)
    if there is None:
        return f"it has {held}"
    reached = known.rate(*there) / known.on(there.kind).best
    return f"it has {held}: {reached:.0%} of its best speed, says the profile {job.spec.model}"
