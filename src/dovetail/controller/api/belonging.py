"""For which tenant somebody's jobs count, and whether they may borrow what others leave idle.

A tenant's table lists the accounts and groups whose jobs may be its own; where it lists none, it is
the group of its name. Admins may submit for every tenant. Where there are no tenants, groups that
have a quota take their place, and nobody needs to be in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dovetail.controller.api.refusing import Refused
from dovetail.controller.parts import Parts
from dovetail.core.registry import nearest
from dovetail.model.quota import GROUP, read_quotas
from dovetail.tenancy.contracts import Contract
from dovetail.tenancy.kinds import CELLS, SHARES, read_tenants
from dovetail.tenancy.paths import listed

EVERYBODY = "*"
LOW = -1.0
"""The priority of jobs that borrow."""
RESUMES = (
    "a job that borrows is stopped when an owner wants its GPUs back: if it can checkpoint and "
    "come back, say so with --resumable; else leave it to what your tenant owns"
)


class Asker(NamedTuple):
    """Who submits."""

    name: str
    groups: frozenset[str]
    admin: bool


@dataclass(frozen=True)
class Belonging:
    """The tenants there are, and the rules of their kind."""

    #: cells or shares; empty: there are no tenants
    kind: str
    contracts: tuple[Contract, ...]

    def tenant(self, asker: Asker, wanted: str, borrows: bool = False) -> str:
        """The tenant whose job it is; empty: nobody's."""
        if wanted:
            return self._checked(asker, wanted)
        mine = [each.name for each in self.contracts if _member(each, asker)]
        if mine:
            return mine[0]
        if not self.kind or (borrows and self.kind == CELLS):
            return ""
        usable = self._usable(asker)
        if len(usable) == 1:
            return usable[0]
        if usable:
            raise Refused(422, f"say for which tenant, with --tenant: {_either(usable)}")
        raise Refused(403, f"{asker.name} belongs to no tenant{self._else()}")

    def _checked(self, asker: Asker, wanted: str) -> str:
        names = {each.name: each for each in self.contracts}
        found = names.get(listed(wanted, names))
        if found is None:
            there = nearest(wanted, list(names)) if names else "; there are none here"
            raise Refused(422, f"no tenant is called {wanted!r}{there}")
        if not asker.admin and not _member(found, asker):
            usable = self._usable(asker)
            instead = f"; you may use {_either(usable)}" if usable else self._else()
            raise Refused(403, f"{asker.name} may not submit for {wanted}{instead}")
        return wanted

    def _usable(self, asker: Asker) -> list[str]:
        return [each.name for each in self.contracts if asker.admin or _member(each, asker)]

    def _else(self) -> str:
        """What somebody may do who is in no tenant."""
        return "; jobs that --borrow may run on what is idle" if self.kind == CELLS else ""

    def priority(self, borrow: bool, priority: float, resumable: bool) -> float:
        """The priority a job has, or why it may not borrow."""
        if borrow:
            self._check_borrow(priority)
            priority = min(priority, LOW)
        if self.kind == CELLS and priority < 0 and not resumable:
            raise Refused(422, RESUMES)
        return priority

    def _check_borrow(self, priority: float) -> None:
        if not self.kind:
            raise Refused(422, "there are no tenants here to borrow from; see --priority low")
        if self.kind == SHARES:
            raise Refused(422, "what is idle is borrowed by all who wait here: leave --borrow out")
        if priority > 0:
            raise Refused(422, "a job that borrows is behind all owners: leave the priority out")


def _member(contract: Contract, asker: Asker) -> bool:
    if not contract.users and not contract.groups:
        return contract.name in asker.groups
    named = asker.name in contract.users or EVERYBODY in contract.users
    return named or not asker.groups.isdisjoint(contract.groups)


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def belonging(parts: Parts) -> Belonging:
    """As the parts that decide have it."""
    tenants = read_tenants(parts.tenancy)
    if tenants is not None:
        return Belonging(tenants.kind, tenants.contracts)
    quotas = read_quotas(parts.quotas)
    names = quotas.limits if quotas is not None else ()
    groups = [name.removeprefix(GROUP) for name in names if name.startswith(GROUP)]
    return Belonging("", tuple(Contract(name, ()) for name in groups))
