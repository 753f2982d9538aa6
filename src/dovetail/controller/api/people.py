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

from fastapi import Depends, HTTPException, Request, status

from dovetail.controller.tokens import Tokens
from dovetail.model.errors import UserError

SCHEME = "Bearer "


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

    def local(self, uid: int) -> Person:
        """The person at the other end of the socket."""
        name = user_name(uid)
        if uid in (0, self.uid) or name in self.admins:
            return Person(name, Role.ADMIN)
        if self.uid != 0:
            # Their jobs would run as somebody else.
            owner = user_name(self.uid)
            raise _refused(
                f"this controller belongs to {owner} and runs jobs as {owner}; ask for a token",
                status.HTTP_403_FORBIDDEN,
            )
        return Person(name, Role.USER)

    def bearer(self, header: str) -> Person:
        """The person who brings a token."""
        if not header.startswith(SCHEME):
            raise _refused("a token is needed: set DOVETAIL_TOKEN")
        found = self.tokens.holder(header.removeprefix(SCHEME).strip(), self.wall())
        if isinstance(found, str):
            raise _refused(found)
        return Person(found.owner, Role(found.role))


def _refused(sentence: str, code: int = status.HTTP_401_UNAUTHORIZED) -> HTTPException:
    headers = {"WWW-Authenticate": "Bearer"} if code == status.HTTP_401_UNAUTHORIZED else None
    return HTTPException(code, sentence, headers)


def somebody(request: Request) -> Person:
    """Whoever asks; a token counts for more than the socket's other end."""
    keeper: Doorkeeper = request.app.state.keeper
    header = request.headers.get("authorization")
    uid: int | None = getattr(request.state, "peer", None)
    if header is None and uid is not None:
        return keeper.local(uid)
    return keeper.bearer(header or "")


def somebody_active(request: Request) -> Person:
    """Somebody who may change something."""
    person = somebody(request)
    if person.role is Role.READER:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "a reader may only look")
    return person


def somebody_in_charge(request: Request) -> Person:
    """An admin."""
    person = somebody(request)
    if person.role is not Role.ADMIN:
        raise HTTPException(status.HTTP_403_FORBIDDEN, "only an admin may do this")
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
        if name.isdecimal():
            return int(name), int(name)
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
