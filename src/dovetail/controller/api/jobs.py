"""The verbs about jobs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, status
from pydantic import BaseModel, ConfigDict, Field

from dovetail.controller import hiding, reading
from dovetail.controller.api.people import Active, Anyone, Person, account, groups_of
from dovetail.controller.api.service import Served, Service
from dovetail.controller.api.tasks import Task, is_array, submissions
from dovetail.controller.commands import Accepted, Cancel, Hold, Release, Requeue, Submit
from dovetail.controller.finding import Filter, resolve
from dovetail.controller.forecast import forecast
from dovetail.controller.logs import piece
from dovetail.controller.submission import Submission
from dovetail.model.live import Description, Detail, Forecast, Page, Piece, Receipt, Told

MOST_TASKS = 10_000
LONGEST_WAIT = 60.0

router = APIRouter(prefix="/jobs", tags=["jobs"])

Reference = Annotated[str, Field(max_length=40)]
"""A job (`12`), a member of an array (`12.3`), or an array."""


class Order(BaseModel):
    """Tasks to be run."""

    model_config = ConfigDict(extra="forbid")

    tasks: Annotated[list[Task], Field(min_length=1, max_length=MOST_TASKS)]


class Receipts(BaseModel):
    """One for each task, in order."""

    tasks: list[Receipt]


# ---- submitting -----------------------------------------------------------------------------


@router.post("", status_code=status.HTTP_201_CREATED)
async def submit(order: Order, person: Active, service: Served) -> Receipts:
    """Run these; answered once they are on disk."""
    made = [_submissions(task, person, service) for task in order.tasks]
    _check_room(sum(map(len, made)), person, service)
    tasks = zip(order.tasks, made, strict=True)
    asked = [service.controller.ask(Submit(tuple(each), is_array(task))) for task, each in tasks]
    accepted = await asyncio.gather(*asked)
    return Receipts(tasks=[_receipt(service, one) for one in accepted])


@router.post("/forecast")
async def preview(task: Task, person: Active, service: Served) -> Forecast:
    """Where and when it would run, without submitting it."""
    made = _submissions(task, person, service)
    return forecast(service.controller, made)


def _submissions(task: Task, person: Person, service: Service) -> list[Submission]:
    run_as = account(person.name) if service.as_owner and person.name != "root" else None
    mine = groups_of(person.name) if service.groups else frozenset()
    tenant = next((group for group in service.groups if group in mine), "")
    return [replace(each, tenant=tenant) for each in submissions(task, person.name, run_as)]


def _check_room(coming: int, person: Person, service: Service) -> None:
    roster, limits = service.controller.roster, service.limits
    mine = reading.counted(service.controller, Filter(person.name))
    if len(roster) + coming > limits.queue or mine + coming > limits.queue_per_user:
        raise HTTPException(
            status.HTTP_429_TOO_MANY_REQUESTS,
            f"the queue is full: {mine:,} of your jobs have not ended, "
            f"{limits.queue_per_user:,} are possible, and {limits.queue:,} of all users",
        )


def _receipt(service: Service, accepted: Accepted) -> Receipt:
    # All jobs of a task ask for the same: if one can never run, none can.
    first = reading.describe(service.controller, accepted.jobs[0])
    return Receipt(accepted.jobs, accepted.array, first.state, first.reason)


# ---- looking --------------------------------------------------------------------------------


@router.get("")
async def queue(
    person: Anyone,
    service: Served,
    owner: str | None = None,
    state: str | None = None,
    reasons: bool = False,
    name: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    after: Annotated[int, Query(ge=0, lt=2**62)] = 0,
) -> Page:
    """Jobs that have not ended, in order of submission; reasons cost time.

    A page begins after the last job of the one before.
    """
    where = Filter(owner, state, name)
    found = reading.listed(
        service.controller, reasons=reasons, where=where, after=after, limit=limit
    )
    total = reading.counted(service.controller, where)
    return Page(tuple(shown(job, person) for job in found), total)


@router.get("/{reference}")
async def show(
    reference: Reference,
    person: Anyone,
    service: Served,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0,
) -> Detail:
    """One job; with `wait`, not before it has ended or so many seconds have passed."""
    number = _one(reference, service)
    until = service.controller.time.now() + wait
    while wait and number in service.controller.roster and not service.ending:
        left = until - service.controller.time.now()
        if left <= 0:
            break
        await service.bell.wait(left)
    return _detail(service, number, person)


@router.get("/{reference}/members")
async def members(reference: Reference, person: Anyone, service: Served) -> list[Description]:
    """The jobs of an array."""
    found = resolve(service.controller, reference)
    return [shown(reading.describe(service.controller, job), person) for job in found]


@router.get("/{reference}/log")
async def log(
    reference: Reference,
    person: Active,
    service: Served,
    attempt: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    cursor: Annotated[str, Query(max_length=60)] = "",
    tail: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Piece:
    """What it wrote after the cursor, or its last lines. Attempt 0 is the latest."""
    number = _one(reference, service)
    _own(service, number, person)
    return piece(service.controller, number, attempt, cursor, tail)


# ---- touching -------------------------------------------------------------------------------


@router.post("/{reference}/{verb}")
async def touch(
    reference: Reference,
    verb: Literal["cancel", "hold", "release", "requeue"],
    person: Active,
    service: Served,
) -> Told:
    """Do something to a job or to all live members of an array."""
    found = resolve(service.controller, reference)
    for number in found:
        _own(service, number, person)
    live = tuple(number for number in found if number in service.controller.roster)
    if verb == "requeue":
        new = await service.controller.ask(Requeue(tuple(found)))
        return Told(tuple(found), tuple(new))
    if not live:
        what = f"job {reference} has" if len(found) == 1 else f"all jobs of {reference} have"
        raise HTTPException(status.HTTP_409_CONFLICT, f"{what} ended already")
    await service.controller.ask(TOUCH[verb](live))
    return Told(live)


TOUCH: dict[str, type[Cancel] | type[Hold] | type[Release]] = {
    "cancel": Cancel,
    "hold": Hold,
    "release": Release,
}


def _one(reference: str, service: Service) -> int:
    found = resolve(service.controller, reference)
    if len(found) != 1:
        raise HTTPException(
            status.HTTP_409_CONFLICT,
            f"{reference} is an array of {len(found)} jobs; name one of them: {reference}.0",
        )
    return found[0]


def _own(service: Service, number: int, person: Person) -> None:
    owner = reading.describe(service.controller, number).owner
    if not person.owns(owner):
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, f"job {number} belongs to {owner}, and you are {person.name}"
        )


def shown(job: Description, person: Person) -> Description:
    """Others see that a job is there, not what it does."""
    if person.owns(job.owner):
        return replace(job, command=hiding.redacted(job.command))
    return replace(job, command=(), reason="" if job.ended else job.reason)


def _detail(service: Service, number: int, person: Person) -> Detail:
    job = shown(reading.describe(service.controller, number), person)
    if not person.owns(job.owner):
        return Detail(job)
    asked = reading.submission_of(service.controller, number)
    runs = reading.runs(service.controller, number)
    environment = tuple(sorted(asked["environment"].items()))
    return Detail(job, runs, asked["directory"], environment, tuple(asked["hidden"]))
