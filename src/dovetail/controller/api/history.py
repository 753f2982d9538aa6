"""Jobs that have ended."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from dovetail.controller import reading
from dovetail.controller.api.jobs import Limit, shown
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served
from dovetail.controller.finding import Filter
from dovetail.model.live import Description

Since = Annotated[float, Query(ge=0, lt=2**40, allow_inf_nan=False, description="Wall time.")]

router = APIRouter(prefix="/history", tags=["jobs"])


@router.get("")
async def history(
    person: Anyone,
    service: Served,
    owner: str | None = None,
    state: str | None = None,
    name: str | None = None,
    since: Since = 0.0,
    limit: Limit = 100,
    before: Annotated[int, Query(ge=0, lt=2**62)] = 0,
) -> list[Description]:
    """The latest first; a page begins before the last job of the one before."""
    where = Filter(owner, state, name, since or None)
    last = reading.describe(service.controller, before) if before else None
    place = None if last is None or last.ended is None else (last.ended, last.id)
    found = reading.history(service.controller, limit, where, place)
    return [shown(job, person) for job in found]
