"""The verbs that explain: what decides here, and what is believed about a job's speed."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter

from dovetail.controller.api.jobs import Reference
from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served, Service, parts_of
from dovetail.controller.explaining import curve, poorest, rules
from dovetail.controller.finding import resolve
from dovetail.model.explained import Curve, Rules
from dovetail.model.profile import Profile
from dovetail.profiles import catalogue

router = APIRouter(tags=["screens"])


@router.get("/policy")
async def policy(person: Anyone, service: Served) -> Rules:
    """What decides, its parameters, and what else could."""
    return rules(parts_of(service))


@router.get("/jobs/{reference}/profile")
async def profile(reference: Reference, person: Anyone, service: Served) -> Curve | None:
    """How the job's speed depends on its cores; null where no profile of its model is known."""
    found = resolve(service.controller, reference)
    live = service.controller.roster.get(found[0]) if len(found) == 1 else None
    known = catalogue(parts_of(service).profiles)
    if live is None or live.submission.model not in known:
        return None
    return _drawn(service, known[live.submission.model], live.id)


def _drawn(service: Service, known: Profile, number: int) -> Curve:
    scheduler = service.controller.scheduler
    job = scheduler.jobs.get(number)
    held = job.allocation if job is not None else None
    share = poorest(held, scheduler.cluster.nodes) if held is not None else None
    if share is None:
        return curve(known, scheduler.cluster.nodes[0].type, known.reference[1])
    drawn = curve(known, share.kind, share.memory)
    return replace(drawn, granted=share.cores, speed=known.rate(*share))
