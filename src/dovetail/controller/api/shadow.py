"""What the policy in the shadow would have done."""

from __future__ import annotations

from fastapi import APIRouter

from dovetail.controller.api.people import Anyone
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Served
from dovetail.controller.shadowing import labelled
from dovetail.model.shadow import ShadowReport

router = APIRouter(tags=["answers"])


@router.get("/shadow")
async def shadow(person: Anyone, service: Served) -> ShadowReport:
    """The differences between what decides here and the policy that only looks on."""
    if service.shadow is None:
        raise Refused(
            404, "no policy is in the shadow; start one with: dovetail up --shadow POLICY"
        )
    return labelled(service.shadow.report(), service.controller.roster)
