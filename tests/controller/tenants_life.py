"""A life among tenants: owners want back what was lent, and who owns what changes three times."""

from __future__ import annotations

from pathlib import Path
from random import Random

from crashing import COSTS, FragileExecutor, FragileStore, Fuse, World, check_runs
from sqlalchemy import select
from virtual import NEVER, Site, submission
from workbench import owners

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, read_parts
from dovetail.controller.replaying import first_difference, remembered
from dovetail.core.books import RECLAIMED
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob

FIRST = owners("cells", red="nodes = 1", blue="gpus = [2, 1]")
LATER = owners("cells", blue="nodes = 1\ngpus = 2")
BY_NUMBER = owners("shares", red="gpus = 4", blue="gpus = 4")


def parts(tenants: str | None) -> Parts:
    return Parts("fifo:skip=true", costs=COSTS, tenancy=tenants)


CHANGES: list[tuple[float, Parts]] = [
    (0.0, parts(FIRST.written())),
    # Red is gone for a while: what runs goes on, what waits waits.
    (18.0, parts(LATER.written())),
    (40.0, parts(BY_NUMBER.written())),
    (60.0, parts(FIRST.written())),
]


def workload(count: int = 22) -> list[TraceJob]:
    """Jobs of both tenants, half of them on what is lent; some fail once."""
    draw, jobs, at = Random(6), [], 0.0
    for number in range(1, count + 1):
        at += draw.choice((0.0, 2.0, 6.0))
        lent, length = draw.random() < 0.5, float(draw.randrange(4, 25))
        spec = JobSpec(
            number,
            f"j{number}",
            at,
            gang(draw.choice((1, 2, 3 if lent else 1))),
            tenant="blue" if at > 16.0 and not lent else draw.choice(("red", "blue")),
            estimate=length,
            resumable=True,
            priority=-1.0 if lent else 0.0,
            retries=2,
        )
        jobs.append(TraceJob(spec, length, (length / 2,) if number % 5 == 0 else ()))
    return jobs


def live(folder: Path, url: str | None, at: int) -> int:
    """One life, to the end of all jobs or of the fuse; returns how much was done in it."""
    site = Site(
        folder,
        "2x4",
        CHANGES[0][1],
        0.5,
        url=url,
        every=7,
        oracle=False,
        backoff=lambda failures: 3.0,
    )
    fuse = Fuse(at, World(site).leave)
    site.store = FragileStore(site.url, fuse)
    known = site.store.noted("parts")
    site.parts = read_parts(known) if known else site.parts
    controller = site.open(site.store, FragileExecutor(site.machine, fuse))
    jobs = workload()
    _drive(site, controller, [job for job in jobs if job.spec.id >= controller.roster.next_id])
    _check(site, controller, len(jobs))
    site.close()
    return fuse.count


def _drive(site: Site, controller: Controller, ahead: list[TraceJob]) -> None:
    controller.turn()
    for _ in range(100_000):
        changes = [at for at, _ in CHANGES if at > site.clock.now]
        coming = [job.spec.submit for job in ahead[:1]] + changes[:1]
        happens = min([*coming, site.machine.next_at()])
        now = min(happens, controller.next_at())
        if now == NEVER:
            return
        site.clock.now = max(site.clock.now, now)
        wanted = next(each for at, each in reversed(CHANGES) if at <= site.clock.now)
        if controller.parts != wanted:
            controller.reconfigure(wanted)
            controller.scheduler.validate()
        while ahead and ahead[0].spec.submit <= site.clock.now:
            job = ahead.pop(0)
            site.machine.tell(job)
            controller.post(Submit((submission(job.spec),)))
        controller.turn()
    raise AssertionError("the jobs never end")


def _check(site: Site, controller: Controller, count: int) -> None:
    controller.scheduler.validate()
    assert not controller.scheduler.jobs
    assert not controller.roster
    store = controller.journal.store
    rows = store.rows(select(schema.jobs))
    assert {row["id"]: row["state"] for row in rows} == dict.fromkeys(range(1, count + 1), "done")
    check_runs(site.machine, dict.fromkeys(range(1, count + 1), "done"))
    assert all(run["ended"] is not None for run in store.rows(select(schema.attempts)))
    plans = store.rows(select(schema.plans))
    assert any(RECLAIMED in plan["actions"] for plan in plans), "nobody had to go"
    assert first_difference(controller.journal, remembered(store)) is None
