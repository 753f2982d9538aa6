"""Where jobs go: each placement against its definition, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workloads import effort

from dovetail.core.protocols import Ask
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.placements import BUILTIN, PLACEMENTS
from dovetail.simulator.spec import parse_cluster


def cluster(free: str, nodes: str | None = None, closed: tuple[int, ...] = ()) -> Cluster:
    """A cluster with so many free GPUs on each node: `2 4 0`; nodes have four unless told."""
    levels = [int(level) for level in free.split()]
    made = parse_cluster(nodes or f"{len(levels)}x4")
    for node, level in enumerate(levels):
        used = made.nodes[node].gpus - level
        made.take(allocation_of((Part(node, (1 << used) - 1),)))
    for node in closed:
        made.close(node, "down")
    return made


def ask(units: int, gpus: int = 1, **more: int) -> Ask:
    return Ask(units, gpus, more.pop("start", 0), more.pop("stop", 10**6), **more)


def placed(name: str, machines: Cluster, wanted: Ask) -> str | None:
    """`2@n0 1@n3`, in the order of parts, or None."""
    limit = len(machines.nodes)
    wanted = replace(wanted, stop=min(wanted.stop, limit))
    parts = PLACEMENTS.create(name).place(machines, wanted)
    if parts is None:
        return None
    machines.copy().take(allocation_of(parts))
    return " ".join(f"{p.devices.bit_count()}@{machines.nodes[p.node].name}" for p in parts)


# ---- one by one --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "free", "units", "expected"),
    [
        ("count", "1 4 2", 1, "1@n0"),
        ("count", "1 4 2", 2, "1@n0 1@n1"),
        ("count", "1 0 2", 3, "1@n0 2@n2"),
        ("count", "1 0 2", 4, None),
        ("first-fit", "1 4 2", 2, "2@n1"),
        ("first-fit", "1 2 2", 3, "1@n0 2@n1"),
        ("best-fit", "4 3 2", 2, "2@n2"),
        ("best-fit", "4 2 2", 2, "2@n1"),
        ("best-fit", "4 3 2", 5, "4@n0 1@n2"),
        ("best-fit", "3 3 1", 4, "3@n0 1@n2"),
        ("best-fit", "1 1 1", 4, None),
        ("worst-fit", "2 4 3", 2, "2@n1"),
        ("worst-fit", "2 4 3", 6, "4@n1 2@n2"),
        ("worst-fit", "3 3 3", 1, "1@n0"),
        ("consolidated", "3 4 2", 2, "2@n0"),
        ("consolidated", "1 1 1", 2, None),
        ("consolidated", "4 4 2", 8, "4@n0 4@n1"),
        ("consolidated", "4 3 2", 6, "4@n0 2@n1"),
        ("consolidated", "2 3 4", 6, "4@n2 2@n0"),
        ("consolidated", "3 3 3", 6, None),
        ("consolidated", "4 1 1", 6, None),
        ("consolidated:fit=best", "3 4 2", 2, "2@n2"),
        ("consolidated:fit=best", "4 2 3", 6, "4@n0 2@n2"),
        ("consolidated:fit=best", "4 2 4", 6, "4@n0 2@n2"),
        ("consolidated:fit=best", "4 1 1", 6, None),
        ("topology", "4 3 2", 2, "2@n2"),
        ("topology", "2 2 2", 4, "2@n0 2@n1"),
    ],
)
def test_a_job_goes_where_the_rule_says(
    name: str, free: str, units: int, expected: str | None
) -> None:
    assert placed(name, cluster(free), ask(units)) == expected


@pytest.mark.parametrize(
    ("free", "units", "expected"),
    [
        ("2 2 4 4", 4, "4@n2"),
        ("2 2 3 3", 4, "2@n0 2@n1"),
        ("1 2 3 3", 4, "3@n2 1@n3"),
        ("2 2 4 4", 7, "4@n2 3@n3"),
        ("2 2 4 4", 9, "4@n2 4@n3 1@n0"),
        ("1 2 2 1", 4, "2@n1 1@n0 1@n2"),
    ],
)
def test_topology_prefers_one_node_then_the_tightest_rack_then_few_racks(
    free: str, units: int, expected: str
) -> None:
    assert placed("topology", cluster(free, "4x4,rack=2"), ask(units)) == expected


def test_topology_prefers_a_region_to_the_whole() -> None:
    from dovetail.model.node import Node

    nodes = [Node(f"n{i}", 2, place=("north" if i < 2 else "south", f"r{i}")) for i in range(5)]
    machines = Cluster(nodes)
    machines.take(allocation_of((Part(0, 1),)))
    assert placed("topology", machines, ask(3)) == "2@n1 1@n0"
    assert placed("topology", machines, ask(5)) == "2@n2 2@n3 1@n4"


def test_the_remainder_of_a_wide_job_follows_helios() -> None:
    """Best: the next most free node or nothing. First: any node with room."""
    machines = cluster("4 4 4 1", "4x4")
    assert placed("consolidated:fit=best", machines, ask(9)) == "4@n0 4@n1 1@n2"
    assert placed("consolidated", cluster("1 4 4 4"), ask(9)) == "4@n1 4@n2 1@n0"


@pytest.mark.parametrize("name", BUILTIN)
def test_closed_nodes_are_no_place(name: str) -> None:
    assert placed(name, cluster("4 4", closed=(0,)), ask(2)) == "2@n1"
    assert placed(name, cluster("4 0", closed=(0,)), ask(1)) is None


@pytest.mark.parametrize("name", BUILTIN)
def test_a_range_of_nodes_is_kept_to(name: str) -> None:
    assert placed(name, cluster("4 4 4"), ask(2, start=1, stop=2)) == "2@n1"
    assert placed(name, cluster("4 0 4"), ask(2, start=1, stop=2)) is None


@pytest.mark.parametrize("name", BUILTIN)
def test_units_are_whole_on_a_node(name: str) -> None:
    assert placed(name, cluster("3 3"), ask(2, 2)) in ("2@n0 2@n1", "2@n1 2@n0", None)
    assert placed(name, cluster("1 1 1"), ask(1, 2)) is None
    assert placed(name, cluster("0 4"), ask(2, 2)) == "4@n1"


@pytest.mark.parametrize("name", BUILTIN)
def test_cpu_and_memory_are_looked_at(name: str) -> None:
    machines = parse_cluster("2x4,cpus=4,mem=4")
    machines.take(allocation_of((Part(0, 0, cpu=3000),)))
    assert placed(name, machines, ask(1, cpu=2000)) == "1@n1"
    assert placed(name, machines, ask(1, cpu=5000)) is None
    machines.take(allocation_of((Part(1, 0, memory=4096),)))
    assert placed(name, machines, ask(1, memory=1)) == "1@n0"
    assert placed(name, machines, ask(1, cpu=2000, memory=1)) is None


def test_random_is_decided_by_its_seed() -> None:
    chosen = {
        seed: [placed(f"random:seed={seed}", cluster(f"4 4 4 {n}"), ask(1)) for n in range(4)]
        for seed in range(8)
    }
    assert len({tuple(places) for places in chosen.values()}) > 1
    assert chosen[3] == [placed("random:seed=3", cluster(f"4 4 4 {n}"), ask(1)) for n in range(4)]


def test_a_fit_nobody_knows_is_refused() -> None:
    with pytest.raises(UserError, match="say first or best"):
        PLACEMENTS.create("consolidated:fit=tight")
    with pytest.raises(UserError, match="did you mean 'best-fit'"):
        PLACEMENTS.create("bestfit")


# ---- all of them -------------------------------------------------------------------------------

SHAPES = ("4x4", "2x8", "1x8+2x4", "4x4,rack=2", "3x4,cpus=8,mem=8")


@st.composite
def states(draw: st.DrawFn) -> Cluster:
    """A cluster on which some devices are taken and some nodes are closed."""
    machines = parse_cluster(draw(st.sampled_from(SHAPES)))
    for node, bought in enumerate(machines.nodes):
        used = draw(st.integers(0, (1 << bought.gpus) - 1))
        cpu = draw(st.integers(0, bought.cpu or 0))
        machines.take(allocation_of((Part(node, used, cpu=cpu),)))
    for node in range(len(machines.nodes)):
        if draw(st.integers(0, 5)) == 0:
            machines.close(node, "down")
    return machines


@pytest.mark.parametrize("name", BUILTIN)
@effort(80)
@given(
    machines=states(),
    units=st.integers(1, 12),
    gpus=st.sampled_from([1, 1, 1, 2, 3]),
    cpu=st.sampled_from([0, 1000, 3000]),
)
def test_a_place_is_whole_free_and_found_without_touching_anything(
    name: str, machines: Cluster, units: int, gpus: int, cpu: int
) -> None:
    wanted = Ask(units, gpus, 0, len(machines.nodes), cpu if machines.limits_cpu else 0)
    before = (bytes(machines.free), list(machines.masks), list(machines.cpu))
    placement = PLACEMENTS.create(name)
    parts = placement.place(machines, wanted)
    assert (bytes(machines.free), list(machines.masks), list(machines.cpu)) == before
    assert placement.place(machines, wanted) == parts
    if parts is None:
        needed = units * gpus
        assert not (placement.relaxed and gpus == 1 and not wanted.cpu) or machines.idle < needed
        return
    nodes = [part.node for part in parts]
    assert len(set(nodes)) == len(nodes)
    assert not set(nodes) & set(machines.closed)
    counts = [part.devices.bit_count() for part in parts]
    assert sum(counts) == units * gpus
    assert not any(count % gpus for count in counts)
    assert all(
        part.cpu == wanted.cpu * count // gpus for part, count in zip(parts, counts, strict=True)
    )
    machines.take(allocation_of(parts))
    machines.validate()


@pytest.mark.parametrize("fit", ["first", "best"])
@effort(80)
@given(machines=states(), units=st.integers(1, 12))
def test_consolidated_uses_no_more_nodes_than_an_empty_cluster_would(
    fit: str, machines: Cluster, units: int
) -> None:
    wanted = Ask(units, 1, 0, len(machines.nodes))
    placement = PLACEMENTS.create(f"consolidated:fit={fit}")
    parts = placement.place(machines, wanted)
    if parts is not None and len({node.gpus for node in machines.nodes}) == 1:
        assert len(parts) == -(-units // machines.most)


@effort(80)
@given(machines=states(), units=st.integers(1, 8))
def test_best_fit_leaves_the_smallest_hole(machines: Cluster, units: int) -> None:
    parts = PLACEMENTS.create("best-fit").place(machines, Ask(units, 1, 0, len(machines.nodes)))
    sufficient = [free for free in machines.free if free >= units]
    if sufficient:
        assert parts is not None
        assert len(parts) == 1
        assert machines.free[parts[0].node] == min(sufficient)
