"""What is found on this machine, and which cores back which share."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as some

from dovetail.executors.local import detect, gpus
from dovetail.executors.local.cores import Cores
from dovetail.executors.local.folders import Folder
from dovetail.executors.local.gpus import Gpu, short_name
from dovetail.executors.local.machine import Machine
from dovetail.executors.local.surroundings import surroundings
from dovetail.executors.protocol import Attempt, Launch
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.node import Node


def test_the_cores_and_the_memory_of_this_machine_are_found() -> None:
    machine = detect()
    assert machine.cores == tuple(sorted(os.sched_getaffinity(0)))
    assert 0 < (machine.node.cpu or 0) <= len(machine.cores) * 1000
    assert 0 < (machine.node.memory or 0) <= psutil.virtual_memory().total // 2**20
    assert machine.node.gpus == len(machine.gpus) == len(gpus.gpus())


def test_memory_can_be_kept_for_the_system() -> None:
    whole, kept = detect().node.memory or 0, detect(reserved=0.1)
    assert kept.node.memory == whole - int(whole * 0.1)


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


def with_gpus(*numbers: int) -> Machine:
    devices = tuple(Gpu(number, "h100", 81559, f"GPU-{number}") for number in numbers)
    return Machine(Node("n", len(devices), type="h100"), (0,), devices)


def test_real_gpus_are_told_by_the_numbers_of_the_driver(tmp_path: Path) -> None:
    machine = with_gpus(2, 5)
    assert machine.numbers(0b11) == [2, 5]
    assert not machine.capabilities.suspend_frees_gpu
    held = allocation_of((Part(0, 0b10),))
    launch = Launch(Attempt(1, 1), "x", ("true",), held, tmp_path)
    seen = surroundings(launch, machine, Folder(tmp_path), "")
    assert seen["CUDA_VISIBLE_DEVICES"] == "5"
    assert seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "DOVETAIL_VIRTUAL_GPUS" not in seen


def test_gpus_that_do_not_answer_count_as_used_unless_we_hold_them() -> None:
    assert with_gpus(97, 98).used_by_others([]) == 0b11
    assert with_gpus(97, 98).used_by_others([], held=0b10) == 0b01
    assert detect(virtual=2).used_by_others([]) == 0


@pytest.mark.skipif(not gpus.gpus(), reason="there is no NVIDIA GPU")
def test_a_gpu_is_found_with_its_memory_and_can_be_left_out() -> None:
    machine = detect()
    assert machine.node.type != "cpu" and machine.node.gpu_memory > 1000
    assert gpus.gpus("") == []
    assert gpus.gpus(machine.gpus[0].identifier) == [machine.gpus[0]]


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
