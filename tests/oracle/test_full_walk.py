"""The planners decide in every instant what a brute-force walk of all jobs decides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from workbench import World, scheduler, spec
from workloads import effort, plain_jobs

from dovetail.model.job import JobSpec
from dovetail.model.plan import Change

sys.path.append(str(Path(__file__).parent))
from full_walk import KEYS, Moment, full_walk, queues

CLUSTERS = ("1x8", "2x4", "4x2", "8x1")

PREEMPTIVE = ("srtf", "srsf", "fifo", "priority", "smallest-first")
WAITING_ONLY = ("fifo", "sjf", "ljf", "priority", "smallest-first", "srtf", "srsf")

SWAP = [spec(0, 4, 0, length=9), spec(1, 4, 0, length=9), spec(2, 8, 3, length=2)]
CHAIN = [
    spec(n, size, at, length=length)
    for n, (size, at, length) in enumerate(
        [(3, 0, 6), (3, 0, 6), (2, 0, 6), (8, 1, 2), (1, 1, 6), (2, 2, 1), (4, 2, 3)]
    )
]


def decisions(cluster: str, policy: str, placement: str, jobs: list[JobSpec]) -> list[Moment]:
    """Who was started and stopped, instant by instant, by the real thing."""
    decider = scheduler(cluster, policy, placement)
    moments = []
    for instant in World(decider, jobs).instants():
        decider.validate()
        assert not [a for a in instant.plan.actions if isinstance(a, Change)]
        if instant.started or instant.stopped:
            found = Moment(instant.now, frozenset(instant.started), frozenset(instant.stopped))
            moments.append(found)
    return moments


def text(name: str, **flags: bool) -> str:
    given = ",".join(f"{key}=true" for key, value in flags.items() if value)
    return f"{name}:{given}" if given else name


@pytest.mark.parametrize("placement", ["count", "best-fit"])
@pytest.mark.parametrize("name", PREEMPTIVE)
@effort(60)
@given(cluster=st.sampled_from(CLUSTERS), jobs=plain_jobs())
@example(cluster="2x4", jobs=SWAP)
@example(cluster="1x8", jobs=CHAIN)
def test_preemptive_orders_equal_the_full_walk(
    name: str, placement: str, cluster: str, jobs: list[JobSpec]
) -> None:
    found = decisions(cluster, text(name, preempt=True), placement, jobs)
    assert found == full_walk(jobs, 8, KEYS[name], preempt=True, skip=True)


@pytest.mark.parametrize("skip", [True, False], ids=["skip", "strict"])
@pytest.mark.parametrize("name", WAITING_ONLY)
@effort(40)
@given(
    cluster=st.sampled_from(CLUSTERS),
    placement=st.sampled_from(["count", "best-fit", "worst-fit", "topology", "random"]),
    jobs=plain_jobs(),
)
def test_orders_of_waiting_jobs_equal_the_full_walk(
    name: str, skip: bool, cluster: str, placement: str, jobs: list[JobSpec]
) -> None:
    given_ = ",".join(["preempt=false", f"skip={'true' if skip else 'false'}"])
    found = decisions(cluster, f"{name}:{given_}", placement, jobs)
    assert found == full_walk(jobs, 8, KEYS[name], preempt=False, skip=skip)


@effort(25)
@given(jobs=plain_jobs(gpus=3, most=30))
@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_a_crowd_of_small_jobs_is_walked_exactly_too(name: str, jobs: list[JobSpec]) -> None:
    found = decisions("1x4", name, "count", jobs)
    assert found == full_walk(jobs, 4, KEYS[name], preempt=True, skip=True)


@pytest.mark.parametrize("limits", [(4.0,), (2.0, 8.0), (1.0, 3.0, 16.0)])
@pytest.mark.parametrize("placement", ["count", "best-fit"])
@effort(60)
@given(cluster=st.sampled_from(CLUSTERS), jobs=plain_jobs(sizes=(1, 1, 2, 4, 8)))
def test_discretised_queues_equal_the_full_walk_at_every_threshold(
    placement: str, limits: tuple[float, ...], cluster: str, jobs: list[JobSpec]
) -> None:
    thresholds = "/".join(f"{limit:g}" for limit in limits)
    found = decisions(cluster, f"las:thresholds={thresholds}", placement, jobs)
    expected = full_walk(jobs, 8, queues(limits), preempt=True, skip=True, thresholds=limits)
    assert found == expected
