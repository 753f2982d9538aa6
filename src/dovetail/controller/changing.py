"""Other contracts for tenants while jobs run: what they would do, and doing it.

What would happen is found out by doing it with a scheduler of its own, so both say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.model.job import Job
from dovetail.model.tenants import Affected, Change, Overview, Shift
from dovetail.tenancy.contracts import LENT
from dovetail.tenancy.kinds import Tenants

BORROWS = "runs on as if lent its GPUs, until their owner wants them"
LOSES = f"{BORROWS}; it cannot resume, so it would lose its work"
AT_HOME = "runs on what its tenant owns"


def changed(controller: Controller, parts: Parts, wanted: Tenants | None, apply: bool) -> Change:
    """What it does to have these tenants; a `UserError` says what is wrong with them."""
    new = replace(parts, tenancy=wanted.written() if wanted is not None else None)
    trial = composer(new, controller.executor)()
    trial.take_over(controller.scheduler)
    old, then = controller.scheduler.tenancy.overview(), trial.tenancy.overview()
    change = Change(
        old.kind,
        then.kind,
        tuple(_shifts(old, then)),
        tuple(_affected(controller, trial)),
        controller.scheduler.running,
        apply,
    )
    if apply:
        controller.reconfigure(new)
    return change


def _shifts(old: Overview, new: Overview) -> Iterator[Shift]:
    """Tenants that come, go, or own something else."""
    before = {each.name: each for each in old.estates}
    after = {each.name: each for each in new.estates}
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        cells = Counter({cell.type: cell.owned for cell in now.cells} if now else {})
        cells.subtract({cell.type: cell.owned for cell in was.cells} if was else {})
        moved = tuple(f"{number:+d} {kind}" for kind, number in cells.items() if number)
        gpus = (was.gpus if was else 0.0, now.gpus if now else 0.0)
        if moved or gpus[0] != gpus[1]:
            yield Shift(name, *gpus, moved)


def _affected(controller: Controller, trial: Scheduler) -> Iterator[Affected]:
    """Jobs that are at home elsewhere, or nowhere."""
    present = controller.scheduler
    for number, job in present.jobs.items():
        becomes = _becomes(_home(present, job), trial.jobs[number], trial)
        live = controller.roster.get(number)
        if becomes and live is not None:
            state = str(job.status)
            yield Affected(number, live.name, live.owner, job.spec.tenant, state, becomes)


def _becomes(before: str, job: Job, trial: Scheduler) -> str:
    """What a change comes to for a job; empty: nothing."""
    if job.stray:
        return f"waits: {job.stray}" if before else ""
    now = _home(trial, job)
    if now == before or job.allocation is None:
        return ""
    if now == LENT:
        return BORROWS if job.spec.resumable else LOSES
    return AT_HOME if before == LENT else ""


def _home(scheduler: Scheduler, job: Job) -> str:
    """The domain it is in; empty: none."""
    return "" if job.stray else scheduler.tenancy.domains[job.home] or "everybody"
