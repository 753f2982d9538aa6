"""The verbs about tokens: people look after their own, admins after all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dovetail.controller.api.cluster import Done
from dovetail.controller.api.people import Active, Person, Role
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Served
from dovetail.controller.api.tasks import Duration, Name
from dovetail.model import amounts
from dovetail.model.live import Token

router = APIRouter(prefix="/tokens", tags=["tokens"])


class Wish(BaseModel):
    """The token somebody wants."""

    model_config = ConfigDict(extra="forbid")

    owner: Name = Field("", description="Empty: yourself.")
    role: Role = Role.USER
    lasts: Duration = 30 * 86400.0
    note: Name = ""


@dataclass(frozen=True)
class Made:
    """A new token: its text is shown this once."""

    token: str


@router.post("", status_code=201)
async def make(wish: Wish, person: Active, service: Served) -> Made:
    """Make a token."""
    owner = wish.owner or person.name
    if person.role is not Role.ADMIN:
        if owner != person.name or wish.role is Role.ADMIN:
            raise Refused(403, "only an admin makes tokens for others, or for admins")
        if person.by_token:
            raise Refused(403, "a token makes no tokens: ask on the machine itself, or an admin")
    lasts = amounts.duration(wish.lasts)
    return Made(service.tokens.make(owner, wish.role, service.wall(), lasts, wish.note))


@router.get("")
async def listed(person: Active, service: Served) -> list[Token]:
    """Your tokens; all of them for an admin."""
    return service.tokens.listed(None if person.role is Role.ADMIN else person.name)


@router.delete("/{number}")
async def revoke(
    number: Annotated[str, Field(max_length=16)], person: Active, service: Served
) -> Done:
    """Let a token open nothing any more."""
    _mine(service.tokens.get(number), person)
    service.tokens.revoke(number)
    return Done()


def _mine(token: Token, person: Person) -> None:
    if not person.owns(token.owner):
        raise Refused(403, "this token belongs to somebody else")
