"""Gangs: what one asks for, where it sits, and how far it is in its life.

A gang has members of one or more sizes and is placed as a whole when the first of them asks. Only
data; the moves from state to state are made by `state.Cells`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from dovetail.tenancy.cells.cell import Physical, Virtual

Places = dict[int, list[list[Physical | None]]]
VirtualPlaces = dict[int, list[list[Virtual | None]]]
"""By size: for each member its devices; None: the configuration has no such device any more."""


class GroupState(StrEnum):
    """How far a gang is."""

    ALLOCATED = "Allocated"
    #: its devices are reserved; others must leave first
    PREEMPTING = "Preempting"
    BEING_PREEMPTED = "BeingPreempted"


@dataclass(frozen=True)
class Gang:
    """What a gang asks for. `sizes`: how many members of each number of devices."""

    name: str
    tenant: str
    #: -1: on what others leave idle; from 0 on: on what the tenant owns
    priority: int
    sizes: Mapping[int, int]
    #: type of device; empty: any
    leaf: str = ""
    pinned: str = ""
    #: may others who need its cells push it among the opportunistic ones, where it runs on?
    lazy: bool = False
    #: may it also go where the caller did not suggest?
    anywhere: bool = True


class Row(NamedTuple):
    """Where one member sits, and for each device the contract's cell type it belongs to."""

    node: str
    devices: tuple[int, ...]
    #: empty names: lent
    types: tuple[str, ...]


NOWHERE = Row("", (), ())
Rows = dict[int, tuple[Row, ...]]


@dataclass(slots=True, eq=False)
class Group:
    """A gang that holds or reserves devices."""

    gang: Gang
    state: GroupState
    places: Places
    #: None: it uses what is lent to it
    virtual: VirtualPlaces | None
    #: by size: who sits in each place
    seats: dict[int, list[str | None]] = field(init=False)
    #: where everybody was put when it was allocated
    rows: Rows = field(default_factory=dict)
    chain: str = ""
    #: members that asked while it preempts
    asking: set[str] = field(default_factory=set)
    #: who pushed it among the opportunistic ones
    lazily_preempted_by: str | None = None

    def __post_init__(self) -> None:
        self.seats = {size: [None] * number for size, number in self.gang.sizes.items()}

    def leaves(self) -> Iterator[tuple[Physical, Virtual | None]]:
        """Its devices, each with the tenant's."""
        for size, members in self.places.items():
            for index, member in enumerate(members):
                for number, leaf in enumerate(member):
                    if leaf is not None:
                        yield leaf, self._virtual(size, index, number)

    def own(self, leaf: Physical) -> Virtual | None:
        """The tenant's device that this one stands for."""
        return next((mine for other, mine in self.leaves() if other is leaf), None)

    def _virtual(self, size: int, index: int, number: int) -> Virtual | None:
        return None if self.virtual is None else self.virtual[size][index][number]

    @property
    def device(self) -> Physical:
        """Of a gang with one device: that one."""
        leaf = self.places[1][0][0]
        assert leaf is not None
        return leaf

    @property
    def mine(self) -> Virtual | None:
        """Of a gang with one device: the tenant's device that it stands for."""
        return None if self.virtual is None else self.virtual[1][0][0]

    @property
    def members(self) -> list[str]:
        """Who is there."""
        return [name for seats in self.seats.values() for name in seats if name is not None]


def row_of(leaves: list[Physical | None], virtual: list[Virtual | None] | None) -> Row | None:
    """Where a member sits, or None: the configuration has lost a device of it."""
    found = [leaf for leaf in leaves if leaf is not None]
    if len(found) < len(leaves):
        return None
    types = [
        "" if mine is None else mine.chain.types[mine.root.level]
        for mine in virtual or [None] * len(found)
    ]
    return Row(found[0].nodes[0], tuple(leaf.devices[0] for leaf in found), tuple(types))


def _leaves_in(places: Places) -> Iterator[Physical]:
    members = (member for members in places.values() for member in members)
    return (leaf for member in members for leaf in member if leaf is not None)


def users(places: Places) -> list[Group]:
    """Gangs that run on these devices."""
    found = {leaf.user.gang.name: leaf.user for leaf in _leaves_in(places) if leaf.user}
    return list(found.values())


def claimants(places: Places) -> list[Group]:
    """Gangs that have these devices reserved."""
    found = {leaf.claimant.gang.name: leaf.claimant for leaf in _leaves_in(places) if leaf.claimant}
    return list(found.values())
