"""Limits of running jobs: set, changed, and what happens to those who pass them."""

from __future__ import annotations

import os
import time

import pytest
from executor_contract import Paused, Running, small, until
from local_rig import PYTHON, LocalRig, groups

from dovetail.executors.local.cgroup_v1 import Legacy
from dovetail.executors.local.cgroup_v2 import Unified
from dovetail.executors.local.fences import Fences
from dovetail.executors.local.mechanism import Ability
from dovetail.executors.protocol import Attempt

FIRST = Attempt(1, 1)
CORES = sorted(os.sched_getaffinity(0))
several_cores = pytest.mark.skipif(len(CORES) < 2, reason="there is one core")
THREADED = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""
HOG = "import time\nheld = [b'x' * 4_000_000 for _ in range(150)]\ntime.sleep(600)"
SPIN = "import time\nprint('ready', flush=True)\nwhile True: pass"


def affinities(rig: LocalRig) -> set[tuple[int, ...]]:
    """Of every thread of every process."""
    threads = [int(name) for pid in rig.members() for name in os.listdir(f"/proc/{pid}/task")]
    return {tuple(sorted(os.sched_getaffinity(thread))) for thread in threads}


@several_cores
def test_a_job_is_on_its_cores_and_a_resize_moves_all_its_threads(fenced: LocalRig) -> None:
    fenced.running("sh", "-c", f"{PYTHON} -c '{THREADED}' & wait", allocation=small(cpu=1000))
    fenced.said("ready")
    (before,) = affinities(fenced)
    assert len(before) == 1
    fenced.executor.resize(FIRST, small(cpu=2000))
    assert len(affinities(fenced).pop()) == 2
    fenced.executor.resize(FIRST, small(cpu=700))
    (after,) = affinities(fenced)
    assert len(after) == 1
    assert fenced.executor.reports() == []


def test_two_jobs_are_on_different_cores(local: LocalRig) -> None:
    if len(CORES) < 2:
        pytest.skip("there is one core")
    for job in (1, 2):
        local.running("sleep", "600", attempt=Attempt(job, 1))
    used = [os.sched_getaffinity(pid) for job in (1, 2) for pid in local.members(Attempt(job, 1))]
    assert len(used) == 2 and not used[0] & used[1]


def test_a_part_of_a_core_is_a_quota_where_there_is_one(local: LocalRig) -> None:
    if not local.executor.fences.quota:
        pytest.skip("no quota can be set here")
    local.python(SPIN, allocation=small(cpu=200))
    local.said("ready")
    # In this order: what passes between a look at the clock and one at the job counts as time.
    begin, before = time.monotonic(), local.executor.usage(FIRST)
    time.sleep(1.0)
    after, end = local.executor.usage(FIRST), time.monotonic()
    assert before is not None and after is not None
    assert (after.cpu_seconds - before.cpu_seconds) / (end - begin) < 0.3


def test_usage_is_told(fenced: LocalRig) -> None:
    fenced.python(f"x = b'x' * 50_000_000\n{SPIN}")
    fenced.said("ready")
    fenced.true(lambda: (fenced.executor.usage(FIRST) or (0, 0))[0] > 0.05)
    usage = fenced.executor.usage(FIRST)
    assert usage is not None and 40_000_000 < usage.memory < 200_000_000


def test_a_job_that_wants_too_much_memory_is_ended_and_told_why(fenced: LocalRig) -> None:
    # A second process of the job, so that it is not the command itself that is ended.
    fenced.start("sh", "-c", f'sleep 600 & {PYTHON} -c "{HOG}"; sleep 600')
    ended = fenced.ended()
    assert ended.reason == "out of memory: it wanted more than the 256 MiB it was granted"
    assert ended.code != 0


def test_memory_in_use_is_not_taken_away(fenced: LocalRig) -> None:
    if "watched" in fenced.executor.describe():
        pytest.skip("nothing is taken where memory is only watched")
    fenced.python(f"x = b'x' * 100_000_000\n{SPIN}", allocation=small(memory=256))
    fenced.said("ready")
    fenced.executor.resize(FIRST, small(memory=50))
    assert fenced.executor.reports() == [Running(FIRST, small(memory=256))]


def test_other_devices_are_no_resize(local: LocalRig) -> None:
    local.running("sleep", "600")
    local.executor.resize(FIRST, small(devices=0b10))
    assert local.executor.reports() == [Running(FIRST, small())]


def test_all_processes_of_a_suspended_job_stand_still(fenced: LocalRig) -> None:
    fenced.running("sh", "-c", f'setsid {PYTHON} -c "{SPIN}" & {PYTHON} -c "{SPIN}"')
    fenced.true(lambda: fenced.log().count("ready") == 2)
    fenced.executor.suspend(FIRST)
    until(fenced, Paused)
    before = used(fenced)
    time.sleep(0.3)
    assert used(fenced) == before
    fenced.executor.resume(FIRST)
    until(fenced, Running)
    fenced.true(lambda: used(fenced) > before)


def used(rig: LocalRig) -> float:
    found = rig.executor.usage(FIRST)
    return 0.0 if found is None else found.cpu_seconds


class Pretended:
    """A mechanism that is only asked what it can do."""

    def __init__(self, name: str, *abilities: Ability) -> None:
        self.name, self.abilities = name, frozenset(abilities)


@pytest.mark.parametrize(
    ("mechanisms", "words"),
    [
        ([], "CPU: affinity; memory: watched every second"),
        (
            [Pretended("cgroup v1", *Ability)],
            "CPU: cgroup v1 cpuset and quota; memory: cgroup v1 limit",
        ),
        (
            [Pretended("cgroup v2", Ability.QUOTA, Ability.MEMORY)],
            "CPU: affinity and cgroup v2 quota; memory: cgroup v2 limit",
        ),
        (
            [Pretended("cgroup v2", Ability.MEMBERS), Pretended("cgroup v1", Ability.CORES)],
            "CPU: cgroup v1 cpuset; memory: watched every second",
        ),
    ],
)
def test_what_is_enforced_is_said(mechanisms: list[Pretended], words: str) -> None:
    assert Fences(mechanisms).describe() == words  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Legacy, Unified])
def test_looking_for_control_groups_leaves_none(kind: type[Legacy] | type[Unified]) -> None:
    name = f"dovetail-test-{os.getpid()}"
    kind(name)
    assert groups(name) == []
