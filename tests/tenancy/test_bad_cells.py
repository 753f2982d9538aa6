"""Bad hardware inside what a tenant gets: seen by it, avoided, and never in its way."""

from __future__ import annotations

from workbench import owners, scheduler, spec

from dovetail.model.event import NodeDraining, NodeUp, Submitted
from dovetail.tenancy.cells.cell import Physical, Virtual
from dovetail.tenancy.cells.commands import Ask, Break, Go, Leave, Preempt, Repair, Sit, Wait
from dovetail.tenancy.cells.groups import Gang
from dovetail.tenancy.cells.layout import CellType, Layout, Owned, PhysicalSpec, TenantSpec
from dovetail.tenancy.cells.mapping import hardware_for
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


def test_who_runs_as_if_lent_is_at_home_again_when_its_cell_is_bound_as_before() -> None:
    cells = racks(TenantSpec("a", (Owned(("rack",), 1),)), count=2)
    cells.apply(Break("n00"))
    cells.apply(Break("n10"))
    (node,) = sit(cells, Gang("g", "a", 0, {2: 1}))
    other = "n10" if node.startswith("n0") else "n00"
    at_home = [(True, 0), (True, 0)]
    assert [(own.twin is leaf, leaf.priority) for leaf, own in of(cells, "g")] == at_home
    cells.apply(Repair(other))
    cells.validate()
    # The tenant's rack is now another one, and may be bound there.
    assert [(own.twin is leaf, leaf.priority) for leaf, own in of(cells, "g")] == [(False, -1)] * 2
    cells.apply(Break(other))
    cells.validate()
    assert [(own.twin is leaf, leaf.priority) for leaf, own in of(cells, "g")] == at_home
    cells.apply(Leave("g-0", "g"))
    cells.validate()


def of(cells: Cells, gang: str) -> list[tuple[Physical, Virtual]]:
    """The devices of a gang, each with its tenant's."""
    return [(leaf, own) for leaf, own in cells.groups[gang].leaves() if own is not None]


def test_who_cannot_have_back_what_it_had_runs_on_as_if_lent() -> None:
    own = (Owned(("rack",), 1),)
    cells = racks(TenantSpec("a", own), TenantSpec("b", own), count=2)
    here = sit(cells, Gang("g", "a", 0, {2: 3}, lazy=True))[0][:2]
    demotion = cells.holding.demote(cells.groups["g"], "somebody")
    there = "n1" if here == "n0" else "n0"
    for number in range(3):
        cells.apply(Break(f"{there}{number}"))
    # The other rack is bad, so that this one is given to another tenant meanwhile.
    assert isinstance(cells.apply(Ask("other-0", Gang("other", "b", 0, {2: 1}), 2)), Preempt)
    cells.holding.promote(demotion)
    cells.validate()
    assert cells.groups["g"].virtual is None
    assert cells.groups["g"].lazily_preempted_by == "somebody"


PAIRS = {
    "pair": CellType("pair", "gpu", 2),
    "node": CellType("node", "pair", 2, node=True),
    "rack": CellType("rack", "node", 2),
    "row": CellType("row", "rack", 2),
}
PAIR, NODE, RACK = ("row", "rack", "node", "pair"), ("row", "rack", "node"), ("row", "rack")


def rows(count: int, *tenants: TenantSpec) -> Cells:
    """Rows of two racks of two nodes of two pairs: n000, n001, n010, n011, n100…"""

    def rack(name: str) -> PhysicalSpec:
        return PhysicalSpec(children=tuple(PhysicalSpec(address=f"{name}{n}") for n in range(2)))

    physical = tuple(
        PhysicalSpec("row", children=tuple(rack(f"n{row}{r}") for r in range(2)))
        for row in range(count)
    )
    return Cells(Layout(PAIRS, physical, tenants))


def bad_pair() -> tuple[Cells, str]:
    """All is owned, and a node of which one pair is in use is bad."""
    cells = rows(1, TenantSpec("a", (Owned(NODE, 3),)), TenantSpec("b", (Owned(PAIR, 2),)))
    (home,) = sit(cells, Gang("first", "b", 0, {2: 1}))
    cells.apply(Break(home))
    return cells, home


def test_nobody_leaves_for_who_would_have_a_part_of_what_others_are_owed_whole() -> None:
    cells, home = bad_pair()
    sit(cells, Gang("lent", "a", -1, {4: 3}))
    # A rack could be spared for a node, but each of its nodes is owed as well.
    second = Gang("second", "b", 0, {2: 1})
    assert isinstance(cells.apply(Ask("second-0", second, 2)), Wait)
    cells.apply(Repair(home))
    cells.validate()
    assert sit(cells, second) == [home]


def test_who_is_given_a_part_of_what_others_are_owed_whole_runs_as_if_lent_it() -> None:
    cells, home = bad_pair()
    (other,) = sit(cells, Gang("second", "b", 0, {2: 1}))
    assert other != home and cells.groups["second"].virtual is None
    owner = Gang("all", "a", 0, {4: 3})
    assert cells.apply(Ask("all-0", owner, 4)) == Preempt(("second-0",))
    cells.apply(Leave("second-0", "second"))
    assert len({*sit(cells, owner), home}) == 4
    cells.apply(Repair(home))
    assert sit(cells, Gang("second", "b", 0, {2: 1})) == [home]


def test_a_gang_that_is_given_parts_of_a_larger_cell_leaves_the_rest_of_it_whole() -> None:
    cells = rows(
        2,
        TenantSpec("a", (Owned(RACK, 1),)),
        TenantSpec("b", (Owned(PAIR, 1), Owned(NODE, 1))),
        TenantSpec("c", (Owned(RACK, 1), Owned(NODE, 1))),
    )
    theirs = sit(cells, Gang("c", "c", 0, {4: 3}))
    row = "n1" if theirs[0].startswith("n0") else "n0"
    lent = {
        gang.name: sit(cells, gang)[0]
        for gang in (Gang(f"x{n}", "c", -1, {4: 1}) for n in range(5))
    }
    (spare,) = (node for node in lent.values() if not node.startswith(row))
    # One node of each rack has fewer lent devices: those are taken first.
    for name, node in lent.items():
        if node in (spare, f"{row}01", f"{row}10"):
            cells.apply(Leave(f"{name}-0", name))
    cells.apply(Break(spare))
    assert {*sit(cells, Gang("y", "c", -1, {3: 2}))} == {f"{row}01", f"{row}10"}
    both = Gang("both", "b", 0, {2: 3})
    answer = cells.apply(Ask("both-0", both, 2))
    cells.validate()
    assert isinstance(answer, Preempt)
    cells.apply(Repair(spare))
    cells.validate()


def test_every_larger_cell_is_looked_at_while_one_can_be_spared() -> None:
    cells = rows(2, TenantSpec("a", (Owned(RACK, 2),)), TenantSpec("b", (Owned(NODE, 2),)))
    used = sit(cells, Gang("a", "a", 0, {4: 2}))[0][:3]
    here, there = ("n0", "n1") if used.startswith("n0") else ("n1", "n0")
    idle = f"{here}{1 - int(used[2])}"
    for bad in (f"{idle}0", f"{idle}1", f"{there}01"):
        cells.apply(Break(bad))
    # After the first node a rack can be spared: not that of which both nodes are bad.
    own = cells.forest.estates["b"].full["row"][1]
    found = hardware_for(cells.stocks, own)
    assert found is not None
    assert {leaf.nodes[0] for leaf in found.values()} == {f"{there}00", f"{there}10"}


def test_who_takes_over_from_a_gang_that_waits_has_its_cell_before_it_is_doomed() -> None:
    cells = racks(TenantSpec("a", (Owned(("rack",), 1),)), TenantSpec("b", ()), count=2)
    assert len(sit(cells, Gang("lent", "b", -1, {2: 6}))) == 6
    assert isinstance(cells.apply(Ask("low-0", Gang("low", "a", 0, {1: 1}), 1)), Preempt)
    waits = next(leaf.nodes[0] for leaf, _ in cells.groups["low"].leaves())
    here, there = ("n0", "n1") if waits.startswith("n0") else ("n1", "n0")
    cells.apply(Break(f"{there}2"))
    for bad in {f"{here}{n}" for n in range(3)} - {waits}:
        cells.apply(Break(bad))
    answer = cells.apply(Ask("high-0", Gang("high", "a", 5, {2: 1}), 2))
    cells.validate()
    assert isinstance(answer, Preempt)
    assert {leaf.nodes[0] for leaf, _ in cells.groups["high"].leaves()} == {waits}


def test_an_owner_that_is_elsewhere_than_its_cells_are_bound_is_shown_there() -> None:
    made = scheduler("6x1,rack=2", "fifo:skip=true", tenants=owners("cells", green="racks = 2"))
    made.step(0.0, [NodeDraining(2), NodeDraining(5)])
    made.step(1.0, [Submitted(spec(0, 1, tenant="green", length=9.0))])
    made.step(2.0, [Submitted(spec(1, 2, priority=-1.0, length=9.0, resumable=True))])
    made.step(3.0, [NodeUp(5), NodeUp(2)])
    found = made.tenancy.overview()
    shown = [patch for patch in found.patches if patch.tenant == "green"]
    assert sum(len(patch.devices) for patch in shown) == found.estates[0].gpus == 4


def test_owners_whose_cells_are_bound_elsewhere_by_now_are_left_alone() -> None:
    """Half of a job is where a doomed rack was, which was spared when the job took the other."""
    made = scheduler("8x1,rack=2", "fifo:skip=true", tenants=owners("cells", green="racks = 3"))
    made.step(0.0, [NodeDraining(1), NodeDraining(6)])
    made.step(1.0, [Submitted(spec(0, 2, priority=-1.0, length=9.0, resumable=True))])
    owned = [spec(n, 2, tenant="green", length=9.0, resumable=False) for n in (1, 2)]
    made.step(2.0, [Submitted(owned[0])])
    fork = scheduler("8x1,rack=2", "fifo:skip=true", tenants=owners("cells", green="racks = 3"))
    fork.restore(made.snapshot())
    plan = made.step(3.0, [Submitted(owned[1])])
    assert fork.step(3.0, [Submitted(owned[1])]) == plan
    made.validate()
    assert all(made.jobs[job.id].allocation is not None for job in owned)
    assert 1 not in {each.job for each in plan.actions}
