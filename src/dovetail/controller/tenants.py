"""Tenants as people see them: what each owns, who is on it, what is lent, and when it is back.

The tenancy says whose GPUs are whose; names, users and times come from the jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dovetail.controller.loop import Controller
from dovetail.core.scheduler import Scheduler
from dovetail.model.job import Job, Status
from dovetail.model.request import WHOLE
from dovetail.model.tenants import Estate, Loan, Overview, Patch, Tenant, Tenants, Use
from dovetail.tenancy import kinds
from dovetail.tenancy.contracts import Contract
from dovetail.tenancy.paths import listed


def tenants(controller: Controller, written: kinds.Tenants | None) -> Tenants:
    """Everything at once; `written` says who may use what."""
    scheduler = controller.scheduler
    found = scheduler.tenancy.overview()
    if not found.kind:
        return Tenants(gpus=scheduler.cluster.gpus)
    patches = tuple(_settled(scheduler, found.patches))
    loans = tuple(loan for patch in patches for loan in _loans(controller, patch))
    contracts = {each.name: each for each in written.contracts} if written else {}
    jobs = Jobs(scheduler, found, loans)
    return Tenants(
        found.kind,
        scheduler.cluster.gpus,
        found.unowned,
        tuple(jobs.tenant(estate, contracts.get(estate.name)) for estate in found.estates),
        loans,
        patches,
        controller.roster.labels(_named(loans, patches)),
    )


def _named(loans: Iterable[Loan], patches: Iterable[Patch]) -> Iterator[int]:
    """The jobs that somebody reads about."""
    for patch in patches:
        yield from patch.jobs
    for loan in loans:
        yield loan.job
        if loan.wanted_by is not None:
            yield loan.wanted_by


class Jobs:
    """How the jobs of each tenant fare."""

    def __init__(self, scheduler: Scheduler, found: Overview, loans: tuple[Loan, ...]) -> None:
        names = {estate.name for estate in found.estates}
        self.running: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()
        for job in scheduler.jobs.values():
            count = self.waiting if job.allocation is None else self.running
            count[listed(job.spec.tenant, names)] += 1
        self.borrowed: Counter[str] = Counter()
        self.borrowing: Counter[str] = Counter()
        for loan in loans:
            self.borrowed[listed(loan.borrower, names)] += round(loan.gpus * WHOLE)
        borrowers = {loan.job: loan for loan in loans if loan.back_in is None}
        for loan in borrowers.values():
            self.borrowing[listed(loan.borrower, names)] += 1

    def tenant(self, estate: Estate, contract: Contract | None) -> Tenant:
        """One of them."""
        name = estate.name
        return Tenant(
            **vars(estate),
            borrowed=self.borrowed[name] / WHOLE,
            running=self.running[name],
            waiting=self.waiting[name],
            borrowing=self.borrowing[name],
            users=contract.users if contract else (),
            groups=contract.groups if contract else (),
        )


def _settled(scheduler: Scheduler, patches: Iterable[Patch]) -> Iterator[Patch]:
    """Patches with what somebody has not let go of yet told apart."""
    leaving: dict[tuple[str, int], list[int]] = {}
    for number, held in scheduler.releasing.items():
        for part in held.parts:
            node = scheduler.cluster.nodes[part.node].name
            for device in range(part.devices.bit_length()):
                if part.devices >> device & 1:
                    leaving.setdefault((node, device), []).append(number)
    for patch in patches:
        if patch.use is Use.USED and any(scheduler.jobs[job].awaits for job in patch.jobs):
            yield replace(patch, use=Use.RETURNING)
        elif patch.use is Use.IDLE:
            yield from _apart(patch, leaving)
        else:
            yield patch


def _apart(patch: Patch, leaving: Mapping[tuple[str, int], list[int]]) -> Iterator[Patch]:
    """A patch on the books, by who is still there in fact."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for device in patch.devices:
        alike.setdefault(tuple(leaving.get((patch.node, device), ())), []).append(device)
    for jobs, devices in alike.items():
        use = Use.RETURNING if jobs else Use.IDLE
        yield replace(patch, devices=tuple(devices), jobs=jobs, use=use)


def lent_to(controller: Controller, number: int) -> Iterator[Loan]:
    """What one job that runs has of others."""
    job = controller.scheduler.jobs[number]
    for patch in controller.scheduler.tenancy.overview().patches:
        if patch.use is Use.LENT and number in patch.jobs:
            yield from _lent(controller, job, patch)


def _loans(controller: Controller, patch: Patch) -> Iterator[Loan]:
    jobs = controller.scheduler.jobs
    for number in patch.jobs if patch.use is Use.LENT else ():
        yield from _lent(controller, jobs[number], patch)
    for number in patch.jobs if patch.use is Use.RETURNING else ():
        others = [jobs[other] for other in sorted(jobs[number].awaits)] or [jobs[number]]
        wanted_by = number if jobs[number].awaits else None
        for other in others:
            if controller.scheduler.tenancy.domains[other.home] != patch.tenant:
                for loan in _lent(controller, other, patch):
                    back = back_in(controller, other)
                    yield replace(loan, back_in=back, wanted_by=wanted_by)


def _lent(controller: Controller, job: Job, patch: Patch) -> Iterator[Loan]:
    """What a job has of a patch."""
    scheduler = controller.scheduler
    live = controller.roster[job.id]
    for part in scheduler.parts(job):
        devices = tuple(each for each in patch.devices if part.devices >> each & 1)
        if devices and scheduler.cluster.nodes[part.node].name == patch.node:
            yield Loan(
                job.id,
                live.name,
                live.owner,
                job.spec.tenant,
                patch.tenant,
                patch.node,
                devices,
                len(devices) * part.share / WHOLE,
                live.started,
            )


def back_in(controller: Controller, job: Job) -> float | None:
    """Seconds until a job that was asked to stop is gone at the latest; None: it was not asked."""
    live = controller.roster.get(job.id)
    if live is None or job.status is not Status.STOPPING:
        return None
    # Who was asked by a controller that is gone is asked again, and has its time again.
    asked = max(job.since, controller.began)
    return max(0.0, asked + live.submission.grace - controller.time.now())
