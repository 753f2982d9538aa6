"""What must hold of cells in every state, over random commands: the promises they are for.

- No device is in two groups, and no tenant's device stands for two: `validate`.
- Sharing safety: while all nodes are healthy, the free cells serve everything tenants are owed.
- A gang that fits among its tenant's own free cells never waits because of another tenant.
- Free cells are merged: no cell has all its children free.
"""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from workloads import EFFORT, effort

from dovetail.tenancy.cells.cell import FREE
from dovetail.tenancy.cells.commands import (
    Ask,
    Break,
    Go,
    Leave,
    Preempt,
    Repair,
    Sit,
    Wait,
    Withdraw,
)
from dovetail.tenancy.cells.groups import Gang
from dovetail.tenancy.cells.layout import CellType, Layout, Owned, PhysicalSpec, TenantSpec
from dovetail.tenancy.cells.packing import FULL
from dovetail.tenancy.cells.state import Cells

TYPES = {
    "pair": CellType("pair", "gpu", 2),
    "node": CellType("node", "pair", 2, node=True),
    "rack": CellType("rack", "node", 2),
}
RACKS = tuple(
    PhysicalSpec("rack", children=(PhysicalSpec(address=f"n{r}0"), PhysicalSpec(address=f"n{r}1")))
    for r in range(3)
)
NODES = [f"n{rack}{node}" for rack in range(3) for node in range(2)]
PINNED = (
    RACKS[0],
    RACKS[1],
    PhysicalSpec(
        "rack", children=(PhysicalSpec(address="n20", pinned="pin"), PhysicalSpec(address="n21"))
    ),
)
SHARES = (
    TenantSpec("a", (Owned(("rack",), 1),)),
    TenantSpec("b", (Owned(("rack", "node"), 1), Owned(("rack", "node", "pair"), 2))),
    TenantSpec("c", (Owned(("rack", "node"), 1), Owned(("rack", "node", "pair", "gpu"), 2)), ()),
)
LAYOUTS = [
    Layout(TYPES, RACKS, SHARES),
    Layout(
        TYPES,
        PINNED,
        (*SHARES[:2], TenantSpec("c", (Owned(("rack", "node", "gpu"), 2),), ("pin",))),
    ),
]
#: Nothing is left over, and three sizes are between a pair and a row: bad hardware has no spare.
TIGHT = Layout(
    {**TYPES, "row": CellType("row", "rack", 2)},
    tuple(
        PhysicalSpec(
            "row",
            children=tuple(
                PhysicalSpec(children=tuple(PhysicalSpec(address=f"n{rack}{n}") for n in range(2)))
                for rack in (2 * row, 2 * row + 1)
            ),
        )
        for row in range(2)
    ),
    (
        TenantSpec("a", (Owned(("row", "rack"), 1), Owned(("row", "rack", "node"), 1))),
        TenantSpec(
            "b", (Owned(("row", "rack", "node"), 2), Owned(("row", "rack", "node", "pair"), 2))
        ),
        TenantSpec("c", (Owned(("row", "rack"), 1),)),
    ),
)


GANGS = st.dictionaries(st.sampled_from([1, 2, 4]), st.integers(1, 2), min_size=1, max_size=2)
AMOUNT = effort(180, stateful_step_count=50)


class CellsMachine(RuleBasedStateMachine):
    """Gangs come, sit, leave and change their minds; nodes break and are repaired."""

    #: how many commands all runs together gave
    steps: ClassVar[int] = 0
    layouts: ClassVar[list[Layout]] = LAYOUTS
    nodes: ClassVar[list[str]] = NODES

    def __init__(self) -> None:
        super().__init__()
        self.cells = Cells(self.layouts[0])
        self.number = 0
        #: gangs with the size of each member that has not asked yet
        self.coming: dict[str, tuple[Gang, list[int]]] = {}

    def apply(self, command: object) -> object:
        type(self).steps += 1
        return self.cells.apply(command)  # type: ignore[arg-type]

    @rule(
        tenant=st.sampled_from("abc"),
        priority=st.sampled_from([-1, -1, 0, 0, 1, 5]),
        sizes=GANGS,
        lazy=st.booleans(),
    )
    def a_gang_asks(self, tenant: str, priority: int, sizes: dict[int, int], lazy: bool) -> None:
        self.number += 1
        gang = Gang(f"g{self.number}", tenant, priority, sizes, lazy=lazy)
        members = [size for size, count in sorted(sizes.items()) for _ in range(count)]
        self.coming[gang.name] = (gang, members)
        answer = self.ask(gang.name)
        if self.healthy and priority >= 0 and isinstance(answer, Wait):
            assert answer.reason == f"{FULL}, among the cells of {tenant}", "it waits for others"

    @rule(choice=st.integers(0, 99))
    @precondition(lambda self: self.coming)
    def a_member_asks(self, choice: int) -> None:
        self.ask(list(self.coming)[choice % len(self.coming)])

    @rule(choice=st.integers(0, 99))
    @precondition(lambda self: self.cells.groups)
    def a_member_leaves(self, choice: int) -> None:
        name = list(self.cells.groups)[choice % len(self.cells.groups)]
        group = self.cells.groups[name]
        for member in group.members or [f"{name}-0"]:
            self.coming.pop(name, None)
            self.apply(Leave(member, name) if group.members else Withdraw(member, name))

    @rule(choice=st.integers(0, 99))
    def a_node_breaks(self, choice: int) -> None:
        self.apply(Break(self.nodes[choice % len(self.nodes)]))

    @rule(choice=st.integers(0, 5))
    @precondition(lambda self: self.cells.bad_nodes)
    def a_node_is_repaired(self, choice: int) -> None:
        bad = sorted(self.cells.bad_nodes)
        self.apply(Repair(bad[choice % len(bad)]))

    @rule(choice=st.integers(0, 3))
    @precondition(lambda self: self.healthy)
    def the_configuration_changes(self, choice: int) -> None:
        running = {member for group in self.cells.groups.values() for member in group.members}
        before, self.cells = self.cells, Cells(self.layouts[choice % len(self.layouts)])
        self.cells.take_over(before)
        kept = {member for group in self.cells.groups.values() for member in group.members}
        assert kept == running, "somebody was lost"

    def ask(self, name: str) -> object:
        gang, members = self.coming[name]
        member = f"{name}-{len(members)}"
        answer = self.apply(Ask(member, gang, members[0]))
        if isinstance(answer, Preempt):
            # Victims leave a little later: who asks again finds out.
            self.leave(answer.victims)
        if isinstance(answer, Go):
            self.apply(Sit(member, gang, members.pop(0), answer.row, answer.placed))
            if not members:
                del self.coming[name]
        elif name not in self.cells.groups:
            del self.coming[name]
        return answer

    def leave(self, members: tuple[str, ...]) -> None:
        for member in members:
            group = member.split("-")[0]
            self.coming.pop(group, None)
            self.apply(Leave(member, group))

    @property
    def healthy(self) -> bool:
        return not self.cells.bad_nodes

    @invariant()
    def everything_holds(self) -> None:
        self.cells.validate()

    @invariant()
    def tenants_hold_no_more_than_they_own(self) -> None:
        for estate in self.cells.forest.estates.values():
            for levels in estate.roots.values():
                for cells in levels:
                    bound = [cell for cell in cells if cell.twin is not None]
                    assert len({id(cell.twin) for cell in bound}) == len(bound)

    @invariant()
    def what_is_owed_can_be_had(self) -> None:
        if not self.healthy:
            return
        for stock in self.cells.stocks.values():
            owed = [
                sum(
                    cell.twin is None
                    for estate in self.cells.forest.estates.values()
                    for cell in estate.roots.get(stock.chain.name, [[]] * 9)[level]
                )
                for level in range(stock.chain.top + 1)
            ]
            available = 0
            for level in range(stock.chain.top, 0, -1):
                available += len(stock.free[level]) - owed[level]
                assert available >= 0, f"level {level} of {stock.chain.name} is short"
                available *= stock.chain.fanout[level]


class TightMachine(CellsMachine):
    """The same where tenants own all there is."""

    steps: ClassVar[int] = 0
    layouts: ClassVar[list[Layout]] = [TIGHT]
    nodes: ClassVar[list[str]] = [f"n{rack}{node}" for rack in range(4) for node in range(2)]


class AsGoodAsPrivate(RuleBasedStateMachine):
    """Every tenant beside others, and alone on the same cells: nobody may wait for the others."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.shared = Cells(LAYOUTS[0])
        self.alone = {t.name: Cells(Layout(TYPES, RACKS, (t,))) for t in LAYOUTS[0].tenants}
        self.number = 0
        #: who runs, by name of the gang
        self.running: dict[str, tuple[Gang, list[str]]] = {}

    @rule(tenant=st.sampled_from("abc"), priority=st.sampled_from([-1, 0, 0, 1]), sizes=GANGS)
    def a_gang_comes(self, tenant: str, priority: int, sizes: dict[int, int]) -> None:
        self.number += 1
        gang = Gang(f"g{self.number}", tenant, priority, sizes, lazy=False)
        started = self.start(self.shared, gang)
        if priority >= 0:
            assert started == self.start(self.alone[tenant], gang), f"{gang} fares differently"
        if started:
            members = [f"{gang.name}-{n}" for n in range(sum(sizes.values()))]
            self.running[gang.name] = (gang, members)

    @rule(choice=st.integers(0, 99))
    @precondition(lambda self: self.running)
    def a_gang_ends(self, choice: int) -> None:
        self.end(list(self.running)[choice % len(self.running)])

    def start(self, cells: Cells, gang: Gang) -> bool:
        """Put the whole gang there, whoever must go for it; False: it waits."""
        count = 0
        for size, number in sorted(gang.sizes.items()):
            for _ in range(number):
                type(self).steps += 1
                member = f"{gang.name}-{count}"
                answer = cells.apply(Ask(member, gang, size))
                if isinstance(answer, Preempt):
                    for name in {victim.split("-")[0] for victim in answer.victims}:
                        self.end(name)
                    answer = cells.apply(Ask(member, gang, size))
                if isinstance(answer, Wait):
                    return False
                assert isinstance(answer, Go)
                cells.apply(Sit(member, gang, size, answer.row, answer.placed))
                count += 1
        return True

    def end(self, name: str) -> None:
        gang, members = self.running.pop(name)
        for member in members:
            type(self).steps += 1
            self.shared.apply(Leave(member, name))
            if gang.priority >= 0:
                self.alone[gang.tenant].apply(Leave(member, name))

    @invariant()
    def everything_holds(self) -> None:
        self.shared.validate()


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [CellsMachine, TightMachine, AsGoodAsPrivate])
def test_over_random_commands(machine: type[CellsMachine] | type[AsGoodAsPrivate]) -> None:
    machine.steps = 0
    run_state_machine_as_test(machine, settings=AMOUNT)  # type: ignore[arg-type]
    # More than ten thousand with all.
    assert machine.steps >= 5_000 * EFFORT, machine.steps


def test_an_idle_cluster_is_whole_again() -> None:
    cells = Cells(LAYOUTS[0])
    gang = Gang("g", "a", 0, {1: 1})
    answer = cells.apply(Ask("m", gang, 1))
    assert isinstance(answer, Go)
    cells.apply(Sit("m", gang, 1, answer.row, answer.placed))
    assert [len(free) for free in cells.stocks["rack"].free] == [0, 0, 0, 0, 2]
    cells.apply(Leave("m", "g"))
    assert [len(free) for free in cells.stocks["rack"].free] == [0, 0, 0, 0, 3]
    assert all(cell.priority == FREE for cell in cells.stocks["rack"].full[1])
