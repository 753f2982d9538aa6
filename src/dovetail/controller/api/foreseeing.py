"""When jobs start and end, for all who wait: what was found is told to everybody for a while."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request

from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served, Service
from dovetail.controller.loop import Controller
from dovetail.model.live import Estimate

FRESH = 30.0
"""Seconds for which what was found holds."""
MOST = 500
"""Jobs looked at: those who wait behind them are too far off to tell."""

Numbers = r"^(\d{1,15}(,\d{1,15})*)?$"

router = APIRouter(tags=["answers"])


class Outlook:
    """What was last found for the queue."""

    def __init__(self, service: Service) -> None:
        self._service = service
        #: who comes while others are answered gets the same answer
        self._asked = asyncio.Lock()
        self._at = float("-inf")
        self._found: dict[int, Estimate] = {}

    async def queue(self) -> dict[int, Estimate]:
        """For all who wait, the first ones of them; at most so old."""
        controller = self._service.controller
        async with self._asked:
            now = controller.time.now()
            if now - self._at >= FRESH:
                waiting = _waiting(controller)
                self._found, self._at = await self._service.estimating.estimate(waiting), now
        return self._found


def _waiting(controller: Controller) -> list[int]:
    jobs = controller.scheduler.jobs
    found = (number for number in controller.roster if number in jobs)
    return [number for number in found if jobs[number].allocation is None][:MOST]


def attach(app: FastAPI, service: Service) -> None:
    """One outlook for everybody."""
    app.state.outlook = Outlook(service)


def _outlook(request: Request) -> Outlook:
    outlook: Outlook = request.app.state.outlook
    return outlook


@router.get("/when")
async def queue(
    person: Anyone,
    service: Served,
    outlook: Annotated[Outlook, Depends(_outlook)],
    jobs: Annotated[str, Query(max_length=200, pattern=Numbers)] = "",
) -> dict[int, Estimate]:
    """When those who wait start and end, up to half a minute old; or these jobs, as of now.

    What has ended, is held or waits for other jobs is left out.
    """
    if not jobs:
        return await outlook.queue()
    return await service.estimating.estimate([int(each) for each in jobs.split(",")])
