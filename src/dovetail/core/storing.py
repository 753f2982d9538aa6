"""The books as plain values and back: a fork in mid-run continues identically.

Cluster and views are not stored: they are rebuilt from what jobs and others hold.
"""

from __future__ import annotations

from typing import Any

from dovetail.core import codec, holding
from dovetail.core.books import Books
from dovetail.core.protocols import Planner
from dovetail.model.allocation import Allocation
from dovetail.model.job import Job, Status
from dovetail.model.plan import Resume, Start


def image(books: Books) -> dict[str, Any]:
    """Like `snapshot`, for forks in this process: jobs are copied and not spelled out."""
    return {**_around(books), "jobs": [job.twin() for job in books.jobs.values()]}


def snapshot(books: Books) -> dict[str, Any]:
    """Everything needed to continue identically."""
    return {**_around(books), "jobs": [codec.job_to_plain(job) for job in books.jobs.values()]}


def _around(books: Books) -> dict[str, Any]:
    """Everything but the jobs."""
    return {
        "now": books.now,
        "wakes": list(books.wakes),
        "served": list(books.served),
        "preemptions": books.preemptions,
        "moves": books.moves,
        "holdings": {owner: codec.to_plain(held) for owner, held in books.holdings.items()},
        "contested": {owner: codec.to_plain(held) for owner, held in books.contested.items()},
        "releasing": [[job, codec.to_plain(held)] for job, held in books.releasing.items()],
        "reserved": [[job, kind.__name__] for job, kind in books.reserved.items()],
        "leaving": sorted(books.leaving),
        "closed": [[node, reason] for node, reason in books.cluster.closed.items()],
        "planners": [planner.snapshot() for planner in books.planners],
        "predictor": books.predictor.snapshot(),
        "tenancy": books.tenancy.snapshot(),
    }


def restore(books: Books, state: dict[str, Any], anew: bool = False) -> None:
    """Fill new books from a snapshot; `anew`: one of other parts, whose planners differ."""
    books.now = state["now"]
    books.wakes = list(state["wakes"])
    books.served = list(state["served"])
    books.preemptions, books.moves = state["preemptions"], state["moves"]
    books.jobs = {job.spec.id: job for job in map(_job, state["jobs"])}
    books.releasing = {job: codec.from_plain(Allocation, held) for job, held in state["releasing"]}
    books.leaving = set(state["leaving"])
    kinds: dict[str, type[Start] | type[Resume]] = {"Start": Start, "Resume": Resume}
    books.reserved = {job: kinds[name] for job, name in state["reserved"]}
    for job in books.jobs.values():
        _retake(books, job)
    for owner, held in state["holdings"].items():
        books.holdings[owner] = codec.from_plain(Allocation, held)
        holding.occupy(books.cluster, books.holdings[owner])
        books.tenancy.hold(books.holdings[owner])
    for owner, held in state.get("contested", {}).items():
        books.contested[owner] = codec.from_plain(Allocation, held)
    for node, reason in state["closed"]:
        books.cluster.close(node, reason)
        books.tenancy.close(node, reason)
    for domain, stored in enumerate(state["planners"]):
        jobs = [job for job in books.jobs.values() if job.home == domain]
        if anew:
            _introduce(books, books.planners[domain], jobs)
        else:
            books.planners[domain].restore(stored, jobs)
    books.tenancy.restore(state.get("tenancy"))
    if not anew:
        books.predictor.restore(state["predictor"])


def _job(stored: Job | dict[str, Any]) -> Job:
    """A job of our own: an image may be restored from again and again."""
    return stored.twin() if isinstance(stored, Job) else codec.job_from_plain(stored)


def _introduce(books: Books, planner: Planner, jobs: list[Job]) -> None:
    """Tell a planner about jobs that another one planned until now, in the order they came."""
    for job in sorted(jobs, key=lambda job: (job.spec.submit, job.id)):
        job.mark, job.impatient = None, False
        held, job.virtual = job.virtual, None
        if planner.submitted(job, books.now) is not None:
            # It would be refused today, but was promised to run: it waits, and says why.
            planner.waits(job, books.now)
        job.virtual = held
        if held is not None:
            planner.started(job, books.now)
        elif job.withheld or job.status is not Status.WAITING:
            planner.left(job, books.now, False)
    planner.capacity_changed()


def _retake(books: Books, job: Job) -> None:
    """Occupy again what a job holds, physically and in its domain's view."""
    for physical, virtual in ((job.allocation, job.virtual), job.residual or (None, None)):
        if physical is not None and virtual is not None:
            books.cluster.take(physical)
            books.tenancy.bind(job.home, virtual, job.id, physical)
    books.running += job.allocation is not None
