"""Jobs that have ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from dovetail.controller import reading
from dovetail.controller.api.jobs import shown
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served
from dovetail.controller.finding import Filter
from dovetail.model.live import Description

router = APIRouter(prefix="/history", tags=["jobs"])


@router.get("")
async def history(
    person: Anyone,
    service: Served,
    owner: str | None = None,
    state: str | None = None,
    name: str | None = None,
    since: Annotated[float, Query(ge=0, lt=2**40)] = 0.0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> list[Description]:
    """The latest first."""
    where = Filter(owner, state, name, since or None)
    found = reading.history(service.controller, limit, where)
    return [shown(job, person) for job in found]
