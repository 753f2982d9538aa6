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
from dovetail.model.tenants import Affected, Change, Overview, Shift, Use
from dovetail.tenancy.kinds import Tenants

BORROWS = "runs on as if lent its GPUs, until their owner wants them"
LOSES = f"{BORROWS}; it cannot resume, so it would lose its work"
AT_HOME = "runs on what its tenant owns"
NOBODYS = "runs on; nobody owns its GPUs any more"


def changed(controller: Controller, parts: Parts, wanted: Tenants | None, apply: bool) -> Change:
    """What it does to have these tenants; a `UserError` says what is wrong with them."""
    new = replace(parts, tenancy=wanted.written() if wanted is not None else None)
    trial = composer(new, controller.executor)()
    trial.take_over(controller.scheduler)
    old, then = controller.scheduler.tenancy.overview(), trial.tenancy.overview()
    affected = tuple(_affected(controller, trial, old, then))
    change = Change(
        old.kind,
        then.kind,
        tuple(_shifts(old, then)),
        affected,
        controller.scheduler.running,
        apply,
        controller.roster.labels(each.job for each in affected),
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


def _lent(found: Overview) -> set[int]:
    """Jobs that are on what others own."""
    return {job for patch in found.patches if patch.use is Use.LENT for job in patch.jobs}


def _affected(
    controller: Controller, trial: Scheduler, old: Overview, new: Overview
) -> Iterator[Affected]:
    """Jobs that are on loan and were not, or the other way round, or are at home nowhere."""
    before, after, home = _lent(old), _lent(new), AT_HOME if new.kind else NOBODYS
    for number, job in controller.scheduler.jobs.items():
        live = controller.roster.get(number)
        becomes = _becomes(job, trial.jobs[number], number in before, number in after, home)
        if becomes and live is not None:
            given = (live.name, live.owner, job.spec.tenant, str(job.status), becomes)
            yield Affected(number, *given, at_risk=becomes == LOSES)


def _becomes(job: Job, then: Job, before: bool, after: bool, home: str) -> str:
    """What a change comes to for a job; empty: nothing."""
    if then.stray:
        return f"waits: {then.stray}" if not job.stray else ""
    if after and not before:
        return BORROWS if job.spec.resumable else LOSES
    return home if before and not after and then.allocation is not None else ""
