"""The books as plain values and back: a fork in mid-run continues identically.

Cluster and views are not stored: they are rebuilt from what jobs and others hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.core import codec, holding
from dovetail.core.books import Books
from dovetail.core.protocols import Held
from dovetail.model.allocation import NOTHING, Allocation
from dovetail.model.job import Job, Status
from dovetail.model.plan import Resume, Start


def image(books: Books) -> dict[str, Any]:
    """Like `snapshot`, for forks in this process: jobs are copied and not spelled out."""
    return {**_around(books), "jobs": [job.twin() for job in books.jobs.values()]}


def images_of(books: Books, domains: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Each of these domains as if it was all there is: what it sees is the cluster."""
    at_home: dict[int, list[Job]] = {domain: [] for domain in domains}
    for job in books.jobs.values():
        if job.home in at_home and not job.stray:
            at_home[job.home].append(_alone(job))
    counted = _counted(books)
    return {domain: counted | _image_of(books, domain, at_home[domain]) for domain in at_home}


def _image_of(books: Books, domain: int, jobs: list[Job]) -> dict[str, Any]:
    """What is not the same for all; who leaves devices that its jobs await is then over."""
    known = {job.id for job in jobs}
    awaited = {other for job in jobs for other in job.awaits} - known
    jobs += [_alone(books.jobs[other]) for other in sorted(awaited)]
    known |= awaited
    # Where others leave devices in fact is not to be seen from here.
    releasing = [[job, codec.to_plain(NOTHING)] for job in books.releasing if job in known]
    return {
        "jobs": jobs,
        "wakes": [books.wakes[domain]],
        "holdings": {},
        "releasing": releasing,
        "reserved": [[job, kind.__name__] for job, kind in books.reserved.items() if job in known],
        "leaving": sorted(books.leaving & known | awaited),
        "closed": [],
        "planners": [books.planners[domain].snapshot()],
        "tenancy": None,
    }


def _alone(job: Job) -> Job:
    """A job where its view is all there is; of another domain it holds nothing there."""
    twin = job.twin()
    twin.home, twin.allocation = 0, job.virtual
    if job.residual is not None:
        twin.residual = (job.residual[1], job.residual[1])
    return twin


def snapshot(books: Books) -> dict[str, Any]:
    """Everything needed to continue identically."""
    return {**_around(books), "jobs": [codec.job_to_plain(job) for job in books.jobs.values()]}


def _around(books: Books) -> dict[str, Any]:
    """Everything but the jobs."""
    return {
        **_counted(books),
        "wakes": list(books.wakes),
        "holdings": {owner: codec.to_plain(held) for owner, held in books.holdings.items()},
        "contested": {owner: codec.to_plain(held) for owner, held in books.contested.items()},
        "releasing": [[job, codec.to_plain(held)] for job, held in books.releasing.items()],
        "reserved": [[job, kind.__name__] for job, kind in books.reserved.items()],
        "leaving": sorted(books.leaving),
        "closed": [[node, reason] for node, reason in books.cluster.closed.items()],
        "planners": [planner.snapshot() for planner in books.planners],
        "tenancy": books.tenancy.snapshot(),
    }


def _counted(books: Books) -> dict[str, Any]:
    """What is counted and learned, whoever the jobs belong to."""
    return {
        "now": books.now,
        "served": list(books.served),
        "preemptions": books.preemptions,
        "moves": books.moves,
        "predictor": books.predictor.snapshot(),
    }


def restore(books: Books, state: dict[str, Any], anew: bool = False) -> None:
    """Fill new books from a snapshot; `anew`: one of other parts, whose planners differ."""
    books.now = state["now"]
    books.served = list(state["served"])
    books.preemptions, books.moves = state["preemptions"], state["moves"]
    books.jobs = {job.spec.id: job for job in map(_job, state["jobs"])}
    books.releasing = {job: codec.from_plain(Allocation, held) for job, held in state["releasing"]}
    books.leaving = set(state["leaving"])
    kinds: dict[str, type[Start] | type[Resume]] = {"Start": Start, "Resume": Resume}
    books.reserved = {job: kinds[name] for job, name in state["reserved"] if job in books.jobs}
    if anew:
        _adopt(books)
    else:
        _retake(books, state["tenancy"])
    for owner, held in state["holdings"].items():
        books.holdings[owner] = codec.from_plain(Allocation, held)
        holding.occupy(books.cluster, books.holdings[owner])
        books.tenancy.hold(books.holdings[owner])
    for owner, held in state.get("contested", {}).items():
        books.contested[owner] = codec.from_plain(Allocation, held)
    for node, reason in state["closed"]:
        books.cluster.close(node, reason)
        books.tenancy.close(node, reason)
    if anew:
        for job in sorted(books.jobs.values(), key=lambda job: (job.spec.submit, job.id)):
            _introduce(books, job)
        for planner in books.planners:
            planner.capacity_changed()
        # All of them have something to look at, whenever they are asked.
        books.wakes = [books.now] * len(books.planners)
    else:
        books.wakes = list(state["wakes"])
        at_home: list[list[Job]] = [[] for _ in books.planners]
        for job in books.jobs.values():
            if not job.stray:
                at_home[job.home].append(job)
        for planner, stored, jobs in zip(books.planners, state["planners"], at_home, strict=True):
            planner.restore(stored, jobs)
        books.predictor.restore(state["predictor"])
    books.tenancy.touched.clear()


def _job(stored: Job | dict[str, Any]) -> Job:
    """A job of our own: an image may be restored from again and again."""
    return stored.twin() if isinstance(stored, Job) else codec.job_from_plain(stored)


def _introduce(books: Books, job: Job) -> None:
    """Tell a planner about a job that another one planned until now."""
    job.mark, job.impatient = None, False
    if job.stray:
        return
    planner = books.planners[job.home]
    held, job.virtual = job.virtual, None
    if planner.submitted(job, books.now) is not None:
        # It would be refused today, but was promised to run: it waits, and says why.
        planner.waits(job, books.now)
    job.virtual = held
    if held is not None:
        planner.started(job, books.now)
    elif job.withheld or job.status is not Status.WAITING:
        planner.left(job, books.now, False)


def _held(job: Job) -> tuple[Allocation, Allocation] | None:
    """What a job holds or keeps, in the terms of its view and in fact."""
    if job.allocation is not None and job.virtual is not None:
        return job.virtual, job.allocation
    return (job.residual[1], job.residual[0]) if job.residual is not None else None


def _retake(books: Books, tenancy: Any) -> None:
    """Occupy again what jobs hold, physically and in the views of their domains."""
    found = []
    for job in books.jobs.values():
        held = _held(job)
        if held is not None:
            books.cluster.take(held[1])
            found.append(Held(job.spec, job.home, *held))
            books.running += job.allocation is not None
    books.tenancy.restore(tenancy, found)


def _adopt(books: Books) -> None:
    """Find a home for every job in another tenancy; who holds something goes on holding it."""
    holders = [(job, held[1]) for job in books.jobs.values() if (held := _held(job)) is not None]
    for _, physical in holders:
        books.cluster.take(physical)
    seats = books.tenancy.adopt([(job.spec, physical) for job, physical in holders])
    for (job, physical), seat in zip(holders, seats, strict=True):
        job.home = seat.domain
        if job.allocation is not None:
            job.virtual = seat.virtual
            books.running += 1
        else:
            job.residual = (physical, seat.virtual)
    known = {job.id for job, _ in holders}
    for job in books.jobs.values():
        if job.id not in known:
            _find_home(books, job)


def _find_home(books: Books, job: Job) -> None:
    """Where a job belongs that holds nothing; nowhere, if its tenant is gone."""
    home = books.tenancy.domain(job.spec)
    job.home, job.stray = (0, home) if isinstance(home, str) else (home, "")
    if job.status is not Status.WAITING:
        job.stray = ""
