"""Who asks, and what they may: admins do everything, users what concerns their own jobs, readers
look.

On the UNIX socket the system tells who is at the other end, and no token is needed. Everybody else
brings one. Knows nothing of what is asked for.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from dovetail.controller.api.refusing import Refused
from dovetail.controller.tokens import Tokens
from dovetail.model.errors import UserError

SCHEME = "bearer"


class Role(StrEnum):
    """What somebody may do."""

    ADMIN = "admin"
    USER = "user"
    READER = "reader"


@dataclass(frozen=True)
class Person:
    """Somebody who asks."""

    name: str
    role: Role
    #: who came with a token makes no other, or one that expires would live on in it
    by_token: bool = False

    def owns(self, owner: str) -> bool:
        """May they touch what belongs to this owner?"""
        return self.role is Role.ADMIN or (self.role is Role.USER and self.name == owner)


@dataclass(frozen=True)
class Doorkeeper:
    """Tells who people are."""

    tokens: Tokens
    wall: Callable[[], float]
    #: users beside root and the controller's own who are admins
    admins: frozenset[str] = frozenset()
    #: the user the controller runs as
    uid: int = field(default_factory=os.geteuid)

    def recognise(self, uid: int | None, header: str | None) -> Person:
        """Whoever asks; a token counts for more than the socket's other end."""
        if header is None and uid is not None:
            return self._local(uid)
        return self._bearer(header or "")

    def _local(self, uid: int) -> Person:
        """The person at the other end of the socket."""
        name = user_name(uid)
        if uid in (0, self.uid) or name in self.admins:
            return Person(name, Role.ADMIN)
        if self.uid != 0:
            # Their jobs would run as somebody else.
            owner = user_name(self.uid)
            raise Refused(
                403,
                f"this controller belongs to {owner} and runs jobs as {owner}; ask for a token",
            )
        return Person(name, Role.USER)

    def _bearer(self, header: str) -> Person:
        """The person who brings a token."""
        scheme, _, text = header.partition(" ")
        if scheme.lower() != SCHEME:
            raise Refused(401, "a token is needed: set DOVETAIL_TOKEN")
        found = self.tokens.holder(text.strip(), self.wall())
        if isinstance(found, str):
            raise Refused(401, found)
        return Person(found.owner, Role(found.role), by_token=True)


def somebody(request: Request) -> Person:
    """Whoever was let in."""
    person: Person = request.state.person
    return person


def somebody_active(request: Request) -> Person:
    """Somebody who may change something."""
    person = somebody(request)
    if person.role is Role.READER:
        raise Refused(403, "a reader may only look")
    return person


def somebody_in_charge(request: Request) -> Person:
    """An admin."""
    person = somebody(request)
    if person.role is not Role.ADMIN:
        raise Refused(403, "only an admin may do this")
    return person


Anyone = Annotated[Person, Depends(somebody)]
Active = Annotated[Person, Depends(somebody_active)]
Admin = Annotated[Person, Depends(somebody_in_charge)]


def user_name(uid: int) -> str:
    """The login name of a user, or their number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def account(name: str) -> tuple[int, int]:
    """User and group numbers of a local account."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UserError(f"no account named {name!r} on this machine to run jobs as") from None
    return found.pw_uid, found.pw_gid


def groups_of(name: str) -> frozenset[str]:
    """The groups of a local account; none where there is no such account."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return frozenset()
    names = set()
    for gid in os.getgrouplist(name, user.pw_gid):
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except KeyError:
            continue
    return frozenset(names)
