"""What became of a stretch of time, for the weekly meeting."""

from __future__ import annotations

from fastapi import APIRouter

from dovetail.controller.api.history import Since
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served, parts_of
from dovetail.controller.reviewing import reviewed
from dovetail.model.review import Review

router = APIRouter(tags=["answers"])


@router.get("/review")
async def review(person: Anyone, service: Served, since: Since = 0.0) -> Review:
    """Use, waits and wasted GPU-hours since a moment of wall time."""
    async with service.looking_ahead:
        return await reviewed(service.controller, parts_of(service), since)
