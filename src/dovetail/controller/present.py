"""The present as futures begin with it: all of it, or one tenant's part where that is enough.

A tenant that is apart gets the same whatever others do: its queue and what it sees of the cluster
are a scheduler of their own. With many tenants a fork of it costs a hundredth of a fork of
everything. Who has lost machines, or has jobs that run on what is lent and may come home, is looked
at with everybody. What is asked about the future is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from dovetail.answers.foresight import Present
from dovetail.controller.loop import Controller
from dovetail.controller.machines import Remembered
from dovetail.controller.parts import Parts, composer
from dovetail.core.protocols import Tenancy
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec


def whole(controller: Controller) -> Present:
    """All there is."""
    return Present(controller.scheduler.image(), controller.make, controller.wake_at)


def divided(controller: Controller, jobs: Iterable[int]) -> list[tuple[Present, list[int]]]:
    """These jobs by what it depends on what becomes of them; as little of it as will do."""
    homes: dict[int, list[int]] = {}
    for number in jobs:
        homes.setdefault(controller.scheduler.jobs[number].home, []).append(number)
    parts = alone(controller.scheduler, controller.parts, homes)
    found = [(present, homes.pop(home)) for home, present in parts.items()]
    rest = [number for listed in homes.values() for number in listed]
    return [*found, (whole(controller), rest)] if rest else found


def alone(scheduler: Scheduler, parts: Parts | None, domains: Iterable[int]) -> dict[int, Present]:
    """Those of the domains by themselves of which what becomes of their jobs needs no others."""
    tenancy = scheduler.tenancy
    if parts is None or tenancy.whole or scheduler.holdings or scheduler.contested:
        return {}
    away = _away(scheduler)
    apart = [
        each
        for each in domains
        if each not in away and tenancy.apart(each) and not tenancy.view(each).closed
    ]
    return {
        domain: Present(
            image,
            composer(replace(parts, tenancy=None), _machines(tenancy.view(domain))),
            scheduler.wakes[domain],
            partial(_at_home, tenancy, domain),
        )
        for domain, image in scheduler.images_of(apart).items()
    }


def _away(scheduler: Scheduler) -> set[int | str]:
    """Domains of jobs that run in another one, from which they may come back."""
    running = (job for job in scheduler.jobs.values() if job.allocation is not None)
    homes = ((scheduler.tenancy.domain(job.spec), job.home) for job in running)
    return {own for own, home in homes if own != home}


def _machines(view: Cluster) -> Remembered:
    return Remembered(tuple(view.nodes), {pool.type: pool.capabilities for pool in view.pools})


def _at_home(tenancy: Tenancy, domain: int, spec: JobSpec) -> bool:
    return tenancy.domain(spec) == domain
