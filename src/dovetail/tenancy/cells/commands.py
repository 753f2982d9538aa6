"""What can be asked of the cells, and what they answer. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dovetail.tenancy.cells.groups import Gang, Row, Rows

Place = tuple[str, int]
"""The machine of a device, and its index there."""


class Placed(NamedTuple):
    """Where a whole gang goes: rows by size, and the chain they are in."""

    chain: str
    rows: Rows


@dataclass(frozen=True)
class Ask:
    """A member of a gang wants a place. The first one to ask decides for the whole gang."""

    member: str
    gang: Gang
    size: int
    #: names of nodes to use; None: all
    candidates: frozenset[str] | None = None
    #: may devices be reserved that others must leave first?
    preempt: bool = True


@dataclass(frozen=True)
class Sit:
    """A member sits where its gang was placed; the first one takes the gang's devices."""

    member: str
    gang: Gang
    size: int
    row: Row
    placed: Placed


@dataclass(frozen=True)
class Leave:
    """A member is gone. With the last one, its gang is."""

    member: str
    group: str


@dataclass(frozen=True)
class Withdraw:
    """A member that asked no longer wants to. With the last one, reserved devices go back."""

    member: str
    group: str


@dataclass(frozen=True)
class Break:
    """A node is bad."""

    node: str


@dataclass(frozen=True)
class Repair:
    """A node is healthy again."""

    node: str


@dataclass(frozen=True)
class Occupy:
    """A tenant uses some of its devices there; they were chosen before, so nothing is searched."""

    tenant: str
    #: the address of each of the tenant's devices, the node it is on and its index there
    devices: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Lend:
    """Somebody uses idle devices until their owners want them."""

    devices: tuple[Place, ...]


@dataclass(frozen=True)
class Vacate:
    """Nobody uses these devices any more."""

    devices: tuple[Place, ...]


Command = Ask | Sit | Leave | Withdraw | Break | Repair | Occupy | Lend | Vacate


class Go(NamedTuple):
    """There is a place, and it is free."""

    row: Row
    placed: Placed


class Preempt(NamedTuple):
    """There is a place, once these members have left it."""

    victims: tuple[str, ...]


class Wait(NamedTuple):
    """There is no place now."""

    reason: str


class Done(NamedTuple):
    """It was noted."""

    #: can everybody still have what is owed to them?
    safe: bool = True


Answer = Go | Preempt | Wait | Done
