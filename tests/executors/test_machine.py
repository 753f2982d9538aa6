"""What is found on this machine, and which cores back which share."""

from __future__ import annotations

import os

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as some

from dovetail.executors.local import detect, gpus
from dovetail.executors.local.cores import Cores
from dovetail.executors.local.gpus import Gpu, short_name
from dovetail.executors.local.machine import Machine
from dovetail.model.cluster import Cluster, Node
from dovetail.model.errors import UserError


def test_the_cores_and_the_memory_of_this_machine_are_found() -> None:
    machine = detect()
    assert machine.cores == tuple(sorted(os.sched_getaffinity(0)))
    assert 0 < (machine.node.cpu or 0) <= len(machine.cores) * 1000
    assert 0 < (machine.node.memory or 0) <= psutil.virtual_memory().total // 2**20
    assert machine.node.gpus == len(machine.gpus) == len(gpus.gpus())


def test_memory_can_be_kept_for_the_system() -> None:
    assert (detect().node.memory or 0) - (detect(reserved_memory=100).node.memory or 0) == 100


def test_virtual_gpus_are_made_up() -> None:
    machine = detect(virtual=3)
    assert (machine.node.gpus, machine.node.type, machine.gpus) == (3, "virtual", ())
    assert machine.numbers(0b101) == [0, 2]
    assert machine.capabilities.suspend_frees_gpu
    assert Cluster([machine.node]).gpus == 3


def test_no_machine_has_that_many_gpus() -> None:
    with pytest.raises(UserError, match="65 virtual GPUs"):
        detect(virtual=65)


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 3080 Ti", "rtx3080ti"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000ada"),
        ("Quadro RTX 8000", "rtx8000"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA", "gpu"),
    ],
)
def test_products_have_short_names(product: str, name: str) -> None:
    assert short_name(product) == name


def test_real_gpus_are_told_by_the_numbers_of_the_driver() -> None:
    devices = (Gpu(2, "h100", 81559, "GPU-a"), Gpu(5, "h100", 81559, "GPU-b"))
    machine = Machine(Node("n", 2, type="h100"), (0,), devices)
    assert machine.numbers(0b11) == [2, 5]
    assert machine.numbers(0b10) == [5]
    assert not machine.capabilities.suspend_frees_gpu


# ---- cores ----------------------------------------------------------------------------------


def test_whole_cores_are_whole_and_parts_share_one() -> None:
    cores = Cores([4, 5, 6, 7])
    assert cores.take("a", 2000) == (4, 5)
    assert cores.take("b", 500) == (6,)
    assert cores.take("c", 500) == (6,)
    assert cores.take("d", 1000) == (7,)


def test_a_share_that_fits_no_single_core_is_spread() -> None:
    cores = Cores([0, 1])
    assert cores.take("a", 600) == (0,)
    assert cores.take("b", 600) == (1,)
    assert cores.take("c", 600) == (0, 1)


def test_one_that_grows_or_shrinks_keeps_the_cores_it_can() -> None:
    cores = Cores(range(4))
    cores.take("a", 1000)
    assert cores.take("b", 1000) == (1,)
    cores.release("a")
    assert cores.take("b", 2000) == (0, 1)
    assert cores.take("b", 1000) == (0,)


def test_no_amount_is_no_limit() -> None:
    cores = Cores(range(4))
    assert cores.take("a", 0) == (0, 1, 2, 3)
    assert cores.take("b", 9000) == (0, 1, 2, 3)


@given(some.lists(some.tuples(some.integers(0, 4), some.integers(0, 4500)), max_size=20))
def test_all_get_enough_cores_and_all_comes_back(asked: list[tuple[int, int]]) -> None:
    cores = Cores(range(4))
    for holder, amount in asked:
        got = cores.take(str(holder), amount)
        assert len(got) * 1000 >= min(amount, 4000)
    for holder in range(5):
        cores.release(str(holder))
    assert cores.take("whole", 3001) == (0, 1, 2, 3)
    cores.release("whole")
    assert [cores.take(str(each), 1000) for each in range(4)] == [(0,), (1,), (2,), (3,)]
