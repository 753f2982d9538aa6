"""The cluster takes and releases, refuses to over-commit, and notices when it was corrupted."""

from __future__ import annotations

import pytest

from dovetail.model.allocation import Allocation, Difference, Part, allocation_of, classify
from dovetail.model.cluster import Cluster
from dovetail.model.errors import OverCommitted, UserError
from dovetail.model.node import Capabilities, Node
from dovetail.simulator.spec import parse_cluster

STATE = ("free", "masks", "cpu", "memory", "idle", "shared", "closed")


def state(cluster: Cluster) -> list[object]:
    values = (getattr(cluster, name) for name in STATE)
    return [value.copy() if isinstance(value, dict) else repr(value) for value in values]


def held(*parts: Part) -> Allocation:
    return allocation_of(parts)


@pytest.fixture
def cluster() -> Cluster:
    return parse_cluster("2x4,cpus=8,mem=1,gpumem=1")


HALF = Part(0, 0b0011, cpu=4000, memory=512)
SHARE = Part(0, 0b0001, cpu=1000, share=400, gpu_memory=300)


# ---- taking and releasing ----------------------------------------------------------------------


def test_what_is_taken_is_no_longer_free(cluster: Cluster) -> None:
    cluster.take(held(HALF, Part(1, 0b1000, cpu=1000)))
    assert list(cluster.free) == [2, 3]
    assert list(cluster.masks) == [0b1100, 0b0111]
    assert list(cluster.cpu) == [4000, 7000]
    assert list(cluster.memory) == [512, 1024]
    assert cluster.idle == 5
    cluster.validate()


@pytest.mark.parametrize(
    "allocation",
    [
        held(HALF),
        held(HALF, Part(1, 0b1111, 8000, 1024)),
        held(Part(0, 0, cpu=8000)),
        held(SHARE),
        held(SHARE, SHARE._replace(cpu=0)),
        held(SHARE, Part(0, 0b1110)),
        held(),
    ],
)
def test_release_undoes_take_exactly(cluster: Cluster, allocation: Allocation) -> None:
    before = state(cluster)
    cluster.take(allocation)
    cluster.validate()
    cluster.release(allocation)
    cluster.validate()
    assert state(cluster) == before


@pytest.mark.parametrize(
    "allocation",
    [
        held(Part(0, 0b0001), Part(0, 0b0001)),
        held(SHARE, SHARE, SHARE),
        held(Part(1, 0b1111), Part(0, 0b0110), Part(0, 0b0100)),
        held(HALF, Part(0, 0b1100, cpu=4001)),
        held(HALF, Part(0, 0b1100, memory=513)),
        held(Part(1, 0, cpu=9000)),
        held(SHARE, SHARE._replace(share=700)),
        held(SHARE, SHARE._replace(gpu_memory=800)),
        held(SHARE, Part(0, 0b0001)),
        held(Part(0, 0b0001), SHARE),
        held(Part(0, 0b1_0000)),
    ],
)
def test_too_much_is_refused_and_nothing_changes(cluster: Cluster, allocation: Allocation) -> None:
    before = state(cluster)
    with pytest.raises(OverCommitted, match=r"n[01] cannot give"):
        cluster.take(allocation)
    assert state(cluster) == before
    cluster.validate()


def test_cpu_and_memory_that_are_not_stated_are_not_limited() -> None:
    cluster = parse_cluster("1x4")
    cluster.take(held(Part(0, 0b0001, cpu=10**9, memory=10**9)))
    cluster.validate()
    assert cluster.room(0) == "3 of 4 GPUs"


def test_a_copy_and_its_original_are_independent(cluster: Cluster) -> None:
    cluster.take(held(SHARE))
    cluster.close(1, "draining")
    twin, before = cluster.copy(), state(cluster)
    assert state(twin) == before
    twin.take(held(Part(0, 0b1110, 2000, 100), SHARE))
    twin.open(1)
    assert state(cluster) == before
    changed = state(twin)
    cluster.release(held(SHARE))
    cluster.open(1)
    assert state(twin) == changed
    twin.validate()
    cluster.validate()


def test_emptied_has_the_nodes_and_nothing_on_them(cluster: Cluster) -> None:
    new = state(cluster)
    cluster.take(held(HALF))
    cluster.close(1, "down")
    assert state(cluster.emptied()) == new


# ---- nodes that take nothing new ---------------------------------------------------------------


def test_a_closed_node_shows_nothing_free_and_keeps_its_books(cluster: Cluster) -> None:
    cluster.take(held(HALF))
    cluster.close(0, "draining")
    assert list(cluster.free) == [0, 4]
    assert cluster.idle == 4
    assert cluster.room(0) == "0 of 4 GPUs, 4 cores, 512 MiB (draining)"
    cluster.validate()
    cluster.release(held(HALF))
    assert list(cluster.free) == [0, 4]
    cluster.validate()
    cluster.open(0)
    assert list(cluster.free) == [4, 4]
    cluster.validate()


@pytest.mark.parametrize(
    "part",
    [
        HALF,
        Part(0, 0b0001),
        Part(0, 0, cpu=100),
        SHARE,
    ],
)
def test_a_closed_node_takes_nothing_new(cluster: Cluster, part: Part) -> None:
    cluster.close(0, "down")
    before = state(cluster)
    with pytest.raises(OverCommitted, match="down"):
        cluster.take(held(part))
    assert state(cluster) == before


def test_closing_twice_and_opening_twice_is_harmless(cluster: Cluster) -> None:
    new = state(cluster)
    cluster.close(0, "draining")
    cluster.close(0, "down")
    cluster.validate()
    assert cluster.closed == {0: "down"}
    cluster.open(0)
    cluster.open(0)
    cluster.validate()
    assert state(cluster) == new


# ---- shares of devices -------------------------------------------------------------------------


def test_a_shared_device_is_not_wholly_free_and_gives_what_is_left(cluster: Cluster) -> None:
    cluster.take(held(SHARE))
    assert cluster.free[0] == 3
    assert cluster.share_of(0, 0) == (600, 724)
    assert cluster.share_of(0, 1) == (1000, 1024)
    cluster.take(held(SHARE._replace(share=600, gpu_memory=724)))
    assert cluster.share_of(0, 0) == (0, 0)
    cluster.validate()


def test_a_device_is_whole_again_when_its_last_share_is_gone(cluster: Cluster) -> None:
    other = SHARE._replace(share=100)
    cluster.take(held(SHARE))
    cluster.take(held(other))
    cluster.release(held(SHARE))
    assert cluster.free[0] == 3
    assert cluster.share_of(0, 0) == (900, 724)
    cluster.release(held(other))
    assert cluster.free[0] == 4
    assert not cluster.shared


# ---- searching ---------------------------------------------------------------------------------


def test_first_is_the_first_node_with_enough(cluster: Cluster) -> None:
    cluster.take(held(Part(0, 0b0111)))
    assert cluster.first(1, 0, 2) == 0
    assert cluster.first(2, 0, 2) == 1
    assert cluster.first(2, 0, 1) == -1
    assert cluster.first(5, 0, 2) == -1


def test_sufficient_goes_from_tight_to_empty() -> None:
    cluster = parse_cluster("4x4")
    cluster.take(held(Part(0, 0b0001), Part(2, 0b0011), Part(3, 0b0011)))
    assert list(cluster.sufficient(2, 0, 4)) == [2, 3, 0, 1]
    assert list(cluster.sufficient(3, 0, 4)) == [0, 1]
    assert cluster.idle_in(0, 4) == 11
    assert cluster.idle_in(1, 3) == 6


def test_devices_are_the_lowest_free_ones(cluster: Cluster) -> None:
    cluster.take(held(Part(0, 0b0010)))
    assert cluster.devices(0, 2) == 0b0101
    assert cluster.devices(0, 0) == 0


# ---- validate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda c: c.free.__setitem__(0, 3),
        lambda c: c.masks.__setitem__(0, 0b0111),
        lambda c: c.masks.__setitem__(0, 0b1_1111),
        lambda c: c.cpu.__setitem__(1, 8001),
        lambda c: c.memory.__setitem__(1, 1025),
        lambda c: c.shared.__setitem__((0, 0), (500, 0)),
        lambda c: setattr(c, "idle", 7),
        lambda c: c.closed.__setitem__(0, "unseen"),
        lambda c: (c.take(held(Part(0, 0b0001))), c.release(held(Part(0, 0b0010)))),
    ],
)
def test_validate_notices_corruption(cluster: Cluster, corrupt) -> None:
    cluster.validate()
    corrupt(cluster)
    with pytest.raises(AssertionError):
        cluster.validate()


# ---- how nodes are arranged --------------------------------------------------------------------


def test_nodes_of_one_type_form_one_pool_wherever_they_were_listed() -> None:
    cluster = parse_cluster("1x8,type=A+2x4,type=B+1x8,type=A")
    assert [(pool.type, pool.start, pool.stop) for pool in cluster.pools] == [
        ("A", 0, 2),
        ("B", 2, 4),
    ]
    assert [node.name for node in cluster.nodes] == ["n0", "n3", "n1", "n2"]
    assert cluster.gpus == 24


def test_racks_are_runs_of_nodes() -> None:
    cluster = parse_cluster("4x2,rack=2")
    assert cluster.levels == (((0, 2), (2, 4)),)
    nodes = [Node(f"n{i}", 2, place=("north", f"r{i // 2}")) for i in range(4)]
    nodes += [Node("n4", 2, place=("south", "r9"))]
    assert Cluster(nodes).levels == (((0, 2), (2, 4), (4, 5)), ((0, 4), (4, 5)))


def test_capabilities_belong_to_pools() -> None:
    slow = Capabilities(start_latency=5.0, move=False)
    nodes = [Node("a", 2, type="A"), Node("b", 2, type="B")]
    cluster = Cluster(nodes, {"B": slow})
    assert cluster.capabilities(0) == Capabilities()
    assert cluster.capabilities(1) == slow
    with pytest.raises(IndexError):
        cluster.capabilities(2)
    assert cluster.emptied().capabilities(1) == slow


def test_nodes_may_have_up_to_64_gpus() -> None:
    cluster = Cluster([Node("wide", 64)])
    whole = held(Part(0, (1 << 64) - 1))
    cluster.take(whole)
    assert cluster.idle == 0
    cluster.release(whole)
    cluster.validate()
    with pytest.raises(UserError, match="64"):
        Cluster([Node("wider", 65)])


def test_two_nodes_with_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="same name"):
        Cluster([Node("n", 1), Node("n", 1)])


@pytest.mark.parametrize("nodes", [[Node("a", 1, cpu=1), Node("b", 1)]])
def test_an_amount_is_stated_for_all_nodes_or_for_none(nodes: list[Node]) -> None:
    with pytest.raises(UserError, match="every part of the cluster or for none"):
        Cluster(nodes)


# ---- allocations -------------------------------------------------------------------------------


def test_an_allocation_adds_its_parts_up() -> None:
    whole = held(HALF, Part(1, 0b0001, 500, 24, share=250))
    assert (whole.gpus, whole.milli_gpus, whole.cpu, whole.memory) == (3, 2250, 4500, 536)


@pytest.mark.parametrize(
    ("new", "difference"),
    [
        (held(HALF), Difference.NONE),
        (held(HALF._replace(cpu=1)), Difference.IN_PLACE),
        (held(HALF._replace(share=500)), Difference.IN_PLACE),
        (held(HALF._replace(devices=0b0110)), Difference.MOVE),
        (held(HALF._replace(node=1)), Difference.MOVE),
        (held(Part(0, 1), Part(1, 1)), Difference.MOVE),
        (held(HALF._replace(devices=0b0111)), Difference.RESIZE),
        (held(HALF)._replace(mode=1), Difference.RESIZE),
    ],
)
def test_a_change_is_named_by_what_differs(new: Allocation, difference: Difference) -> None:
    assert classify(held(HALF), new) is difference
