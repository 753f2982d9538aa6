"""Tenants as people see them: what each owns, who is on it, what is lent, and when it is back.

The tenancy says whose GPUs are whose; names, users and times come from the jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
    patches = tuple(_returning(scheduler, patch) for patch in found.patches)
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
    )


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


def _returning(scheduler: Scheduler, patch: Patch) -> Patch:
    """Where the owner's job still waits for somebody to let go, they are on their way back."""
    if patch.use is Use.USED and any(scheduler.jobs[job].awaits for job in patch.jobs):
        return replace(patch, use=Use.RETURNING)
    return patch


def _loans(controller: Controller, patch: Patch) -> Iterator[Loan]:
    scheduler = controller.scheduler
    if patch.use is Use.LENT:
        for number in patch.jobs:
            yield from _lent(controller, scheduler.jobs[number], patch)
    elif patch.use is Use.RETURNING:
        for number in patch.jobs:
            for other in sorted(scheduler.jobs[number].awaits):
                for loan in _lent(controller, scheduler.jobs[other], patch):
                    yield replace(
                        loan, back_in=back_in(controller, scheduler.jobs[other]), wanted_by=number
                    )


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
    return max(0.0, job.since + live.submission.grace - controller.time.now())
