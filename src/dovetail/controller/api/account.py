"""The verbs about tokens: people look after their own, admins after all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, HTTPException, status
from pydantic import BaseModel, ConfigDict, Field

from dovetail.controller.api.cluster import Done
from dovetail.controller.api.people import Active, Person, Role
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


@router.post("", status_code=status.HTTP_201_CREATED)
async def make(wish: Wish, person: Active, service: Served) -> Made:
    """Make a token."""
    owner = wish.owner or person.name
    lesser = wish.role is Role.READER or (wish.role is Role.USER and owner == person.name)
    if person.role is not Role.ADMIN and not (lesser and owner == person.name):
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, "only an admin makes tokens for others, or for admins"
        )
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
        raise HTTPException(status.HTTP_403_FORBIDDEN, "this token belongs to somebody else")
