"""The verbs about tenants: who owns what, and who has it."""

from __future__ import annotations

from fastapi import APIRouter

from dovetail.controller.api.people import Anyone
from dovetail.controller.api.service import Served, parts_of
from dovetail.controller.tenants import tenants
from dovetail.model.tenants import Tenants
from dovetail.tenancy.kinds import read_tenants

router = APIRouter(prefix="/tenants", tags=["tenants"])


@router.get("")
async def show(person: Anyone, service: Served) -> Tenants:
    """What tenants own, who is on it, and what is lent to whom."""
    return tenants(service.controller, read_tenants(parts_of(service).tenancy))
