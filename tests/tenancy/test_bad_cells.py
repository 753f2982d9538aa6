"""Bad hardware inside what a tenant gets: seen by it, avoided, and never in its way."""

from __future__ import annotations

from dovetail.tenancy.cells.commands import Ask, Break, Go, Leave, Preempt, Repair, Sit
from dovetail.tenancy.cells.groups import Gang
from dovetail.tenancy.cells.layout import CellType, Layout, Owned, PhysicalSpec, TenantSpec
from dovetail.tenancy.cells.state import Cells

TYPES = {"node": CellType("node", "gpu", 2, node=True), "rack": CellType("rack", "node", 3)}


def racks(*tenants: TenantSpec, count: int = 1) -> Cells:
    """Racks of three nodes with two GPUs: n00, n01, n02, n10…"""
    physical = tuple(
        PhysicalSpec("rack", children=tuple(PhysicalSpec(address=f"n{r}{n}") for n in range(3)))
        for r in range(count)
    )
    return Cells(Layout(TYPES, physical, tenants))


def sit(cells: Cells, gang: Gang) -> list[str]:
    """Everybody of a gang of one size sits; the nodes they sit on."""
    ((size, number),) = gang.sizes.items()
    nodes = []
    for index in range(number):
        answer = cells.apply(Ask(f"{gang.name}-{index}", gang, size))
        assert isinstance(answer, Go), answer
        cells.apply(Sit(f"{gang.name}-{index}", gang, size, answer.row, answer.placed))
        cells.validate()
        nodes.append(answer.row.node)
    return nodes


def test_a_gang_that_waits_for_lent_devices_is_not_put_where_the_bad_node_is_shown() -> None:
    own = (Owned(("rack",), 1),)
    cells = racks(TenantSpec("a", own), TenantSpec("b", own), count=2)
    cells.apply(Break("n01"))
    lent = Gang("lent", "a", -1, {2: 5})
    assert sit(cells, lent) == ["n00", "n02", "n10", "n11", "n12"]
    owner = Gang("owner", "a", 0, {2: 2})
    # The rack with fewer lent devices is the one in part bad.
    answer = cells.apply(Ask("owner-0", owner, 2))
    cells.validate()
    assert isinstance(answer, Preempt)
    for member in answer.victims:
        cells.apply(Leave(member, "lent"))
    assert sit(cells, owner) == ["n00", "n02"]
    cells.apply(Repair("n01"))
    cells.validate()


def test_who_takes_a_rack_in_part_bad_gets_the_healthy_nodes_of_it() -> None:
    cells = racks(TenantSpec("a", (Owned(("rack",), 1),)))
    cells.apply(Break("n00"))
    assert sit(cells, Gang("g", "a", 0, {2: 2})) == ["n01", "n02"]


def test_nodes_that_were_bad_come_back_in_the_order_they_had() -> None:
    cells = racks(TenantSpec("a", (Owned(("rack",), 1),)), count=2)
    order = ("n00", "n01", "n02", "n10", "n11", "n12")
    for node in order[:3]:
        cells.apply(Break(node))
    assert sit(cells, Gang("x", "a", -1, {2: 1})) == ["n10"]
    cells.apply(Leave("x-0", "x"))
    for node in order[:3]:
        cells.apply(Repair(node))
    # Those that could be used came first meanwhile; among those that could not, nothing changed.
    assert sit(cells, Gang("y", "a", -1, {2: 6})) == [*order[3:], *order[:3]]
