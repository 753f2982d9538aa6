"""A thousand nodes and fifty tenants: starting and placing stay quick. CPU time, not wall time."""

from __future__ import annotations

from random import Random
from time import thread_time

import pytest

from dovetail.core.placing import on_fewest_nodes
from dovetail.core.protocols import Ask as Wish
from dovetail.model.allocation import allocation_of
from dovetail.model.cluster import Cluster, Node
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.tenancy.cells.clusters import VirtualClusters
from dovetail.tenancy.cells.commands import Ask, Go, Leave, Preempt, Sit, Withdraw
from dovetail.tenancy.cells.config import layout_for
from dovetail.tenancy.cells.groups import Gang
from dovetail.tenancy.contracts import Contract, Holding


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster([Node(f"n{index}", 8, cpu=32000, memory=262144) for index in range(1000)])


def made(cluster: Cluster) -> VirtualClusters:
    own = (Holding(nodes=18, gpus=(4, 4, 2, 2, 1, 1)),)
    contracts = [Contract(f"t{index}", own) for index in range(50)]
    return VirtualClusters(cluster, layout_for(cluster, contracts))


def p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def test_starting_takes_less_than_two_seconds(cluster: Cluster) -> None:
    began = thread_time()
    made(cluster)
    assert thread_time() - began < 2


def test_a_gang_is_placed_in_less_than_five_milliseconds(cluster: Cluster) -> None:
    cells, draw, times = made(cluster).cells, Random(1), list[float]()
    live: list[str] = []
    for number in range(2000):
        if live and draw.random() < 0.3:
            name = live.pop(draw.randrange(len(live)))
            cells.apply(Leave(f"{name}-0", name))
            continue
        name, size = f"g{number}", draw.choice([1, 1, 2, 4, 8])
        gang = Gang(name, f"t{draw.randrange(50)}", draw.choice([-1, 0, 0, 5]), {size: 1})
        began = thread_time()
        answer = cells.apply(Ask(f"{name}-0", gang, size))
        if isinstance(answer, Go):
            cells.apply(Sit(f"{name}-0", gang, size, answer.row, answer.placed))
            live.append(name)
        times.append(thread_time() - began)
        if isinstance(answer, Preempt):
            cells.apply(Withdraw(f"{name}-0", name))
    assert len(live) > 500
    assert p99(times) < 0.005


def test_a_job_is_bound_in_less_than_five_milliseconds(cluster: Cluster) -> None:
    tenancy, draw, times = made(cluster), Random(2), list[float]()
    live = {}
    for job in range(5000):
        if live and draw.random() < 0.4:
            gone = next(iter(live))
            tenancy.release(*live.pop(gone), gone)
            continue
        domain, gpus = draw.choice([draw.randrange(50), 50]), draw.choice([1, 1, 2, 4, 8, 16])
        view = tenancy.view(domain)
        parts = on_fewest_nodes(view, Wish(gpus, 1, 0, len(view.nodes)))
        if parts is None:
            continue
        allocation = allocation_of(parts)
        spec = JobSpec(job, f"j{job}", 0.0, gang(gpus))
        began = thread_time()
        bound = tenancy.bind(domain, allocation, spec)
        times.append(thread_time() - began)
        assert not isinstance(bound, str)
        live[job] = (domain, allocation)
        for victim in bound.victims:
            tenancy.release(*live.pop(victim), victim)
    tenancy.validate()
    assert len(times) > 2000
    assert p99(times) < 0.005
