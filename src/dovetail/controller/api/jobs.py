"""The verbs about jobs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from dovetail.controller import hiding, reading
from dovetail.controller.api.belonging import Asker, belonging
from dovetail.controller.api.people import Active, Anyone, Person, Role, account, groups_of
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Served, Service, parts_of
from dovetail.controller.api.tasks import Task, is_array, submissions
from dovetail.controller.commands import (
    Accepted,
    Cancel,
    Hold,
    Release,
    Requeue,
    Submit,
    SubmitAll,
)
from dovetail.controller.finding import Filter, resolve
from dovetail.controller.forecast import Forecasting
from dovetail.controller.logs import piece
from dovetail.controller.submission import Submission
from dovetail.controller.timeline import timeline
from dovetail.model import amounts
from dovetail.model.live import Description, Detail, Forecast, Page, Piece, Receipt, Stretch, Told

MOST_TASKS = 10_000
MOST_SHOWN = 500
"""Jobs in one answer: while it is made, nothing else is done."""
MOST_WAITS = 100_000
"""Jobs waited for, over all jobs of a task."""
LONGEST_WAIT = 60.0
LONGEST_LOOK = 0.05
"""Seconds spent on reasons before others have their turn."""

router = APIRouter(prefix="/jobs", tags=["jobs"])

Reference = Annotated[str, Field(max_length=40)]
"""A job (`12`), a member of an array (`12.3`), or an array."""
Limit = Annotated[int, Query(ge=1, le=MOST_SHOWN)]
After = Annotated[int, Query(ge=0, lt=2**62, description="The last job of the page before.")]


class Order(BaseModel):
    """Tasks to be run."""

    model_config = ConfigDict(extra="forbid")

    tasks: Annotated[list[Task], Field(min_length=1, max_length=MOST_TASKS)]


class Receipts(BaseModel):
    """One for each task, in order."""

    tasks: list[Receipt]


# ---- submitting -----------------------------------------------------------------------------


@router.post("", status_code=201)
async def submit(order: Order, person: Active, service: Served) -> Receipts:
    """Run all of these or none; answered once they are on disk."""
    orders = [
        Submit(tuple(_submissions(task, person, service)), is_array(task)) for task in order.tasks
    ]
    _check_room(sum(len(each.submissions) for each in orders), person, service)
    accepted = await service.controller.ask(SubmitAll(tuple(orders)))
    return Receipts(tasks=[_receipt(service, one) for one in accepted])


@router.post("/forecast")
async def preview(task: Task, person: Active, service: Served) -> Forecast:
    """Where and when it would run, without submitting it."""
    asked = _submissions(task, person, service)
    async with service.looking_ahead:
        question = Forecasting(service.controller, asked)
        return await asyncio.to_thread(question.answer)


def _submissions(task: Task, person: Person, service: Service) -> list[Submission]:
    run_as = account(person.name) if service.as_owner and person.name != "root" else None
    tenant, priority = _standing(task, person, service)
    after = [job for named in task.after for job in resolve(service.controller, str(named))]
    made = submissions(task, person.name, run_as)
    if len(after) * len(made) > MOST_WAITS:
        raise Refused(422, f"{len(made):,} jobs that wait for {len(after):,} others are too many")
    return [replace(each, tenant=tenant, priority=priority, after=tuple(after)) for each in made]


def _standing(task: Task, person: Person, service: Service) -> tuple[str, float]:
    """For which tenant a task counts, and with which priority."""
    there = belonging(parts_of(service))
    priority = there.priority(task.borrow, amounts.priority(task.priority), task.resumable)
    mine = groups_of(person.name) if there.contracts else frozenset()
    asker = Asker(person.name, mine, person.role is Role.ADMIN)
    return there.tenant(asker, task.tenant, priority < 0), priority


def _check_room(coming: int, person: Person, service: Service) -> None:
    roster, limits = service.controller.roster, service.limits
    mine = roster.owned[person.name]
    if len(roster) + coming > limits.queue or mine + coming > limits.queue_per_user:
        raise Refused(
            429,
            f"the queue is full: {mine:,} of your jobs have not ended, "
            f"{limits.queue_per_user:,} are possible, and {limits.queue:,} of all users",
        )


def _receipt(service: Service, accepted: Accepted) -> Receipt:
    # All jobs of a task ask for the same: if one can never run, none can.
    first = accepted.jobs[0]
    if live := service.controller.roster.get(first):
        return Receipt(accepted.jobs, accepted.array, live.state, "")
    over = reading.describe(service.controller, first)
    return Receipt(accepted.jobs, accepted.array, over.state, over.reason)


# ---- looking --------------------------------------------------------------------------------


@router.get("")
async def queue(
    person: Anyone,
    service: Served,
    owner: str | None = None,
    state: str | None = None,
    reasons: bool = False,
    name: str | None = None,
    limit: Limit = MOST_SHOWN,
    after: After = 0,
) -> Page:
    """Jobs that have not ended, in order of submission; reasons cost time."""
    where, found = Filter(owner, state, name), list[Description]()
    while len(found) < limit:
        some = reading.listed(
            service.controller,
            reasons=reasons,
            where=where,
            after=found[-1].id if found else after,
            limit=limit - len(found),
            patience=LONGEST_LOOK,
        )
        found += some
        if not some:
            break
        # Others have their turn before the next look.
        await asyncio.sleep(0)
    total = reading.counted(service.controller, where)
    return Page(tuple(shown(job, person) for job in found), total)


@router.get("/{reference}")
async def show(
    reference: Reference,
    person: Anyone,
    service: Served,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, allow_inf_nan=False)] = 0.0,
) -> Detail:
    """One job; with `wait`, not before it has ended or so many seconds have passed."""
    number = single(reference, service)
    until = service.controller.time.now() + wait
    while wait and number in service.controller.roster and not service.ending:
        left = until - service.controller.time.now()
        if left <= 0:
            break
        await service.bell.wait(left)
    return _detail(service, number, person)


@router.get("/{reference}/members")
async def members(
    reference: Reference,
    person: Anyone,
    service: Served,
    limit: Limit = MOST_SHOWN,
    after: After = 0,
) -> list[Description]:
    """The jobs of an array, in order; of a job, itself."""
    found = [job for job in resolve(service.controller, reference) if job > after][:limit]
    return [shown(job, person) for job in reading.described(service.controller, found)]


@router.get("/{reference}/timeline")
async def times(reference: Reference, person: Anyone, service: Served) -> tuple[Stretch, ...]:
    """Its states and what it held, from submission on; a resize is a stretch of its own."""
    return timeline(service.controller, single(reference, service))


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
    number = single(reference, service)
    _check_owner(service, number, person)
    return piece(service.controller, number, attempt, cursor, tail)


# ---- touching -------------------------------------------------------------------------------


@router.post("/{reference}/requeue")
async def requeue(reference: Reference, person: Active, service: Served) -> Told:
    """Run a job again, or those of an array that do not wait already."""
    found, roster = _theirs(reference, person, service), service.controller.roster
    if len(found) > 1:
        found = [job for job in found if job not in roster or roster[job].run is not None]
    if not found:
        raise Refused(409, f"all jobs of {reference} wait already")
    coming = sum(job not in roster for job in found)
    _check_room(coming, person, service)
    new = await service.controller.ask(Requeue(tuple(found)))
    return Told(tuple(found), tuple(new), roster.labels([*found, *new]))


@router.post("/{reference}/{verb}")
async def touch(
    reference: Reference,
    verb: Literal["cancel", "hold", "release"],
    person: Active,
    service: Served,
) -> Told:
    """Do something to a job or to all live members of an array."""
    found = _theirs(reference, person, service)
    live = tuple(number for number in found if number in service.controller.roster)
    if not live:
        what = f"job {reference} has" if len(found) == 1 else f"all jobs of {reference} have"
        raise Refused(409, f"{what} ended already")
    labels = service.controller.roster.labels(live)
    await service.controller.ask(TOUCH[verb](live))
    return Told(live, labels=labels)


TOUCH: dict[str, type[Cancel] | type[Hold] | type[Release]] = {
    "cancel": Cancel,
    "hold": Hold,
    "release": Release,
}


def _theirs(reference: str, person: Person, service: Service) -> list[int]:
    """The jobs somebody means and may touch; an array has one owner."""
    found = resolve(service.controller, reference)
    _check_owner(service, found[0], person)
    return found


def single(reference: str, service: Service) -> int:
    """The one job a reference means."""
    found = resolve(service.controller, reference)
    if len(found) != 1:
        raise Refused(
            409, f"{reference} is an array of {len(found)} jobs; name one of them: {reference}.0"
        )
    return found[0]


def _check_owner(service: Service, number: int, person: Person) -> None:
    owner = reading.owner_of(service.controller, number)
    if not person.owns(owner):
        named = service.controller.roster.called(number)
        raise Refused(403, f"job {named} belongs to {owner}, and you are {person.name}")


def shown(job: Description, person: Person) -> Description:
    """Others see that a job is there and why it waits, not what it does or how it failed."""
    if person.owns(job.owner):
        command = hiding.redacted(job.command)
        return job if command == job.command else replace(job, command=command)
    private = job.ended is not None or job.failures > 0
    return replace(job, command=(), reason="" if private else job.reason)


def _detail(service: Service, number: int, person: Person) -> Detail:
    job = shown(reading.describe(service.controller, number), person)
    labels = service.controller.roster.labels((*job.blockers, *job.after))
    if not person.owns(job.owner):
        return Detail(job, labels=labels)
    asked = reading.submission_of(service.controller, number)
    runs = reading.runs(service.controller, number)
    environment = tuple(sorted(asked["environment"].items()))
    return Detail(job, runs, asked["directory"], environment, tuple(asked["hidden"]), labels)
