"""The verbs about tenants: who owns what, who has it, and who is to own it from now on."""

from __future__ import annotations

import logging
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dovetail.controller.api.people import Admin, Anyone
from dovetail.controller.api.service import Served, parts_of
from dovetail.controller.changing import changed
from dovetail.controller.parts import Parts
from dovetail.controller.tenants import tenants
from dovetail.model.tenants import Change, Contracts, Tenants
from dovetail.tenancy import kinds
from dovetail.tenancy.contracts import contracts_in, written

LONGEST = 1_000_000
"""Characters of a file of tenants."""

log = logging.getLogger(__name__)
router = APIRouter(prefix="/tenants", tags=["tenants"])


class Owners(BaseModel):
    """Who is to own what."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["", "cells", "shares", "none"] = Field(
        "", description="Empty: the present kind, or cells. None: everybody shares everything."
    )
    text: Annotated[str, Field(max_length=LONGEST)] = Field("", description="[[tenants]] tables.")
    name: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        "tenants.toml", description="Of the file, for errors; .csv: NAME,NODES lines."
    )

    def read(self, parts: Parts) -> kinds.Tenants | None:
        """The tenants; None: there are none."""
        if self.kind == "none":
            return None
        present = kinds.read_tenants(parts.tenancy)
        kind = self.kind or (present.kind if present is not None else kinds.CELLS)
        return kinds.Tenants(kind, contracts_in(self.text, self.name))


class Wanted(Owners):
    """Who is to own what from now on."""

    dry_run: bool = Field(False, description="Only say what it would do.")


@router.get("")
async def show(person: Anyone, service: Served) -> Tenants:
    """What tenants own, who is on it, and what is lent to whom."""
    return tenants(service.controller, kinds.read_tenants(parts_of(service).tenancy))


@router.get("/contracts")
async def contracts(person: Anyone, service: Served) -> Contracts:
    """Who owns what, as a file that can be changed and applied."""
    found = kinds.read_tenants(parts_of(service).tenancy)
    return Contracts("", "") if found is None else Contracts(found.kind, written(found.contracts))


@router.post("/contracts")
async def apply(wanted: Wanted, person: Admin, service: Served) -> Change:
    """Let others own what while jobs run, or say what that would do; none is stopped for it."""
    parts = parts_of(service)
    change = changed(service.controller, parts, wanted.read(parts), apply=not wanted.dry_run)
    if change.applied:
        log.info("%s changed who owns what: %s", person.name, change.after or "no tenants")
        service.bell.ring()
    return change
