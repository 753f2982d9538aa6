"""The three questions: why, when, what if. Answers that take work are made in another thread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dovetail.controller import reading
from dovetail.controller.api.jobs import Reference, shown, single
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Served, Service, parts_of
from dovetail.controller.api.tasks import Name
from dovetail.controller.api.tenants import Owners
from dovetail.controller.past import past
from dovetail.controller.why import why as reasons
from dovetail.model.live import Estimate
from dovetail.model.what_if import Comparison, Question
from dovetail.model.why import Why

router = APIRouter(tags=["answers"])


def _by_name(policy: str) -> str:
    """A file would be run in the controller, as the controller's user."""
    if "/" in policy or ".py" in policy:
        raise ValueError("only policies with a name can be asked about, none from a file")
    return policy


class Asked(BaseModel):
    """What is to be different; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    policy: Annotated[str, Field(max_length=300), AfterValidator(_by_name)] = ""
    gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    quotas: Annotated[
        dict[Name, Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]],
        Field(max_length=1000),
    ] = Field(default_factory=dict)
    speed: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    tenants: Owners | None = None
    since: Annotated[float, Field(ge=0, lt=2**40, allow_inf_nan=False)] = 0.0


@router.get("/jobs/{reference}/why")
async def why(reference: Reference, person: Anyone, service: Served, instead: bool = True) -> Why:
    """Why a job is as it is, and, with `instead`, what would help."""
    number = single(reference, service)
    answer, trials = reasons(service.controller, number, parts_of(service))
    if not shown(reading.describe(service.controller, number), person).reason:
        # How a job of somebody else failed is not told.
        answer = replace(answer, text="")
    if trials is None or not instead:
        return answer
    async with service.looking_ahead:
        found = await asyncio.to_thread(trials.instead, number)
    stopped = (job for each in found for job in each.stops)
    labels = service.controller.roster.labels(stopped)
    return replace(answer, instead=found, labels=labels)


@router.get("/jobs/{reference}/when")
async def when(reference: Reference, person: Anyone, service: Served) -> Estimate:
    """When it starts and ends, as ranges with a probability."""
    number, controller = single(reference, service), service.controller
    found = await service.estimating.estimate([number])
    if number not in found:
        if number not in controller.roster:
            raise Refused(409, f"job {reference} has ended; dovetail show {reference} says when")
        said = "is held or waits for other jobs: when it starts is not known"
        raise Refused(409, f"job {reference} {said}")
    return found[number]


@router.post("/what-if")
async def what_if(asked: Asked, person: Anyone, service: Served) -> Comparison:
    """This controller's own past, replayed as it was and as asked."""
    question = Question(
        asked.policy, asked.gpus, asked.quotas, asked.speed, _owners(asked, service), asked.since
    )
    async with service.looking_ahead:
        found = await past(service.controller, parts_of(service), asked.since)
        return await asyncio.to_thread(found.answer, question)


def _owners(asked: Asked, service: Service) -> str | None:
    if asked.tenants is None:
        return None
    found = asked.tenants.read(parts_of(service))
    return "" if found is None else found.written()
