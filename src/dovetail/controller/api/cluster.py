"""The verbs about machines, and about the controller itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from dovetail import __version__
from dovetail.controller import reading
from dovetail.controller.api.history import Since
from dovetail.controller.api.people import Admin, Anyone
from dovetail.controller.api.service import Served, parts_of
from dovetail.controller.commands import Drain, Undrain
from dovetail.controller.usage import usage_by_user
from dovetail.model.live import About, Machine, Usage
from dovetail.model.node import VIRTUAL
from dovetail.tenancy.kinds import read_tenants

LONGEST = 45.0
"""Seconds jobs have to end before the controller does."""

router = APIRouter(tags=["cluster"])


@dataclass(frozen=True)
class Done:
    """It was done."""

    done: bool = True


@dataclass(frozen=True)
class Ended:
    """The controller ends, and so many jobs were given up."""

    stopped: int


@router.get("/about")
async def about(person: Anyone, service: Served) -> About:
    """What answers here, and who you are to it."""
    controller = service.controller
    engine = controller.executor
    owned = read_tenants(parts_of(service).tenancy)
    return About(
        __version__,
        service.policy,
        engine.describe(),
        any(node.type == VIRTUAL for node in engine.nodes),
        len(controller.roster),
        controller.scheduler.running,
        person.name,
        str(person.role),
        service.shadow.policy if service.shadow is not None else "",
        owned.kind if owned is not None else "",
    )


@router.get("/nodes")
async def nodes(person: Anyone, service: Served) -> list[Machine]:
    """All machines and who is on them."""
    return reading.machines(service.controller)


@router.post("/nodes/{name}/{verb}")
async def touch(
    name: Annotated[str, Field(max_length=200)],
    verb: Literal["drain", "undrain"],
    person: Admin,
    service: Served,
) -> Done:
    """Let nothing new start on a machine, or take work there again."""
    await service.controller.ask(Drain(name) if verb == "drain" else Undrain(name))
    return Done()


@router.get("/usage")
async def usage(
    person: Anyone,
    service: Served,
    since: Since = 0.0,
) -> list[Usage]:
    """GPU time, CPU time and jobs by user since a moment of wall time."""
    return await usage_by_user(service.controller, since)


@router.post("/end")
async def end(person: Admin, service: Served, stop_jobs: bool = False) -> Ended:
    """End the controller; jobs go on running, or those that run are given up first."""
    stopped = await service.stop_jobs(LONGEST) if stop_jobs else 0
    service.end()
    return Ended(stopped)
