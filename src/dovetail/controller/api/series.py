"""What was measured: the cluster over the last day, and single jobs while they run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import JSONResponse

from dovetail.controller.api.feed import Feed
from dovetail.controller.api.jobs import Reference
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served, Service
from dovetail.controller.finding import resolve
from dovetail.controller.measuring import Sampler
from dovetail.model.series import Point, Sample

MOST_TOLD = 3000
"""Jobs whose measurements are sent to everybody who listens."""

router = APIRouter(tags=["screens"])


def attach(app: FastAPI, service: Service, feed: Feed) -> None:
    """Measure as long as the service is served, and tell the feed."""

    def told(sample: Sample, points: dict[int, Point]) -> None:
        if feed.listeners:
            total = len(service.controller.roster)
            feed.tell("sample", {**asdict(sample), "total": total, "jobs": _rows(points)})
            service.bell.ring()

    sampler = app.state.sampler = Sampler(service.controller, told)
    service.watchers.append(sampler)
    service.beside.append(sampler.run)


def _rows(points: dict[int, Point]) -> dict[int, list[float | None]]:
    """CPU, memory and GPU use, steps done and to do; none where they would be too many."""
    if len(points) > MOST_TOLD:
        return {}
    return {
        number: [point.cpu_used, point.memory_used, point.gpu, point.steps, point.total]
        for number, point in points.items()
    }


def _sampler(request: Request) -> Sampler:
    sampler: Sampler = request.app.state.sampler
    return sampler


Sampling = Annotated[Sampler, Depends(_sampler)]


@router.get("/series")
async def series(
    person: Anyone,
    sampler: Sampling,
    since: Annotated[float, Query(ge=0, lt=2**40)] = 0.0,
    most: Annotated[int, Query(ge=2, le=10_000)] = 1000,
) -> list[Sample]:
    """Use and waits since a moment of wall time, oldest first; at most so many of them, evenly."""
    found = [sample for sample in sampler.samples if sample.at >= since]
    every = -(-len(found) // most)
    # The latest is always among them.
    return found[(len(found) - 1) % every :: every] if found else []


@router.get("/measured", response_class=JSONResponse)
async def measured(person: Anyone, sampler: Sampling) -> JSONResponse:
    """By running job: CPU, memory and GPU use, steps done and to do, when last looked at."""
    return JSONResponse(_rows(sampler.latest), headers={"Cache-Control": "no-store"})


@router.get("/jobs/{reference}/usage")
async def usage(
    reference: Reference, person: Anyone, service: Served, sampler: Sampling
) -> list[Point]:
    """What a running job took and how fast it went, oldest first."""
    found = resolve(service.controller, reference)
    return list(sampler.points(found[0])) if len(found) == 1 else []
