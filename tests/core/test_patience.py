"""Patience: wide jobs starve without it and start soon with it, and it changes nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Instant, World, scheduler, spec
from workloads import CLUSTERS, VARIANTS, any_jobs, effort, plain_jobs

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Finished, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Start
from dovetail.orderings import BUILTIN

HOUR = 3600.0
WIDE = 0


def stream() -> list[JobSpec]:
    """Ten hours of small jobs, a little more than eight GPUs can do, and one that wants all."""
    small = [spec(number, 1, 100.0 * number, length=1000) for number in range(1, 361)]
    return [spec(WIDE, 8, 1050.0, length=500), *small]


def start_of(number: int, policy: str, cluster: str = "1x8") -> float:
    instants = World(scheduler(cluster, policy), stream()).instants()
    return next(instant.now for instant in instants if number in instant.started)


@pytest.mark.parametrize("policy", ["fifo:skip=true", "smallest-first:skip=true", "tetris:srtf=9"])
def test_a_wide_job_starves_behind_a_stream_of_small_ones(policy: str) -> None:
    assert start_of(WIDE, policy) > 10 * HOUR


@pytest.mark.parametrize("cluster", ["1x8", "2x4", "1x8,cpus=8,mem=8"])
@pytest.mark.parametrize("name", ["fifo:skip=true", "smallest-first:skip=true", "tetris:srtf=9"])
def test_with_patience_it_starts_when_the_jobs_of_then_have_ended(name: str, cluster: str) -> None:
    # Nobody who would still run after the last of them ends may start.
    started = start_of(WIDE, f"{name},patience=3600", cluster)
    assert 1050 + HOUR < started <= 1050 + HOUR + 1000


def test_with_preemption_it_starts_at_once() -> None:
    assert start_of(WIDE, "smallest-first:preempt=true,patience=3600") == 1050 + HOUR


def test_small_jobs_run_while_the_wide_one_is_still_patient() -> None:
    calm, hasty = "fifo:skip=true", "fifo:skip=true,patience=3600"
    assert start_of(20, calm) == start_of(20, hasty) < 1050 + HOUR


# ---- when it is over ---------------------------------------------------------------------------


def test_the_next_plan_is_due_when_somebody_loses_patience() -> None:
    decider = scheduler("1x4", "fifo:skip=true,patience=50")
    assert decider.step(0.0, [Submitted(spec(0, 3, length=900))]).wake_at is None
    assert decider.step(10.0, [Submitted(spec(1, 2, 10.0))]).wake_at == 60.0
    assert decider.step(20.0, [Submitted(spec(2, 2, 20.0))]).wake_at == 60.0
    assert decider.step(60.0, []).wake_at == 70.0
    assert decider.step(70.0, []).wake_at is None
    assert [decider.jobs[number].impatient for number in range(3)] == [False, True, True]


def test_a_new_wait_needs_new_patience() -> None:
    decider = scheduler("1x4", "srtf:patience=50")
    decider.step(0.0, [Submitted(spec(0, 4, length=900))])
    plan = decider.step(40.0, [Submitted(spec(1, 4, 40.0, length=30))])
    assert plan.wake_at == 90.0
    decider.step(70.0, [Finished(1)])
    plan = decider.step(80.0, [Submitted(spec(2, 4, 80.0, length=30))])
    assert plan.wake_at == 130.0
    assert not decider.jobs[0].impatient


def waiting_for_the_wide_one(policy: str) -> Scheduler:
    """Job 0 holds three of four GPUs, 1 wants all, 2 came later and fits."""
    decider = scheduler("1x4", policy)
    decider.step(0.0, [Submitted(spec(0, 3, length=100))])
    decider.step(1.0, [Submitted(spec(1, 4, 1.0))])
    decider.step(60.0, [])
    decider.step(61.0, [Submitted(spec(2, 1, 61.0, length=80))])
    return decider


@pytest.mark.parametrize(
    "policy",
    ["fifo:skip=true,patience=50", "tetris:patience=50", "dominant-share:patience=50"],
)
def test_whoever_is_held_back_is_told_for_whom(policy: str) -> None:
    reason = waiting_for_the_wide_one(policy).explain(2)
    assert reason.cause == "patience"
    assert reason.text == "it fits, but j1 has lost its patience and would be delayed"
    assert reason.blockers == (1,)
    assert reason.unblock == "the start of j1, or a longer patience"


def test_before_that_nobody_is_held_back() -> None:
    assert waiting_for_the_wide_one("fifo:skip=true,patience=70").explain(2).cause == "running"


# ---- properties --------------------------------------------------------------------------------


def endless(policy: str) -> str:
    return f"{policy}{',' if ':' in policy else ':'}patience=1e9"


@pytest.mark.parametrize("policy", [*BUILTIN, *(v for v in VARIANTS if "patience" not in v)])
@effort(15)
@given(cluster=st.sampled_from(CLUSTERS), jobs=any_jobs(flexible=True))
def test_while_all_are_patient_nothing_is_different(
    policy: str, cluster: str, jobs: list[JobSpec]
) -> None:
    def decided(text: str) -> list[tuple[float, object]]:
        instants = World(scheduler(cluster, text), jobs).instants()
        return [(each.now, each.plan.actions) for each in instants if each.plan.actions]

    assert decided(policy) == decided(endless(policy))


def promised(world: World, number: int, gpus: int) -> float:
    """When enough of the devices in use will be free, if nobody else takes them."""
    free = gpus - sum(life.held.gpus for life in world.lives.values() if life.held)
    ends = sorted(
        (life.since + life.left, life.held.gpus) for life in world.lives.values() if life.held
    )
    for end, held in ends:
        free += held
        if free >= world.lives[number].spec.request.gpus:
            return end
    raise AssertionError("it never fits")


@pytest.mark.parametrize("name", ["fifo", "sjf", "ljf", "smallest-first", "priority"])
@effort(60)
@given(jobs=plain_jobs(most=30))
def test_the_first_to_lose_patience_starts_no_later_than_if_nobody_else_came(
    name: str, jobs: list[JobSpec]
) -> None:
    world = World(scheduler("1x8", f"{name}:skip=true,patience=2"), jobs)
    bounds: dict[int, float] = {}

    def look(instant: Instant) -> None:
        for action in instant.plan.actions:
            assert isinstance(action, Start)
            assert instant.now <= bounds.get(action.job, float("inf"))
        waiting = [job for job in world.scheduler.jobs.values() if job.virtual is None]
        impatient = sorted((job.spec.submit, job.spec.id) for job in waiting if job.impatient)
        for _, number in impatient[:1]:
            bounds.setdefault(number, promised(world, number, 8))

    for instant in world.instants():
        look(instant)


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", ["srtf:patience=3", "las:round=2,patience=3"])
@effort(30)
@given(jobs=plain_jobs(most=20))
def test_the_impatient_are_displaced_by_earlier_impatient_ones_alone(
    policy: str, placement: str, jobs: list[JobSpec]
) -> None:
    world = World(scheduler("2x4", policy, placement), jobs)
    inside = world.scheduler.jobs
    for instant in world.instants():
        winners = {number for number in instant.started if inside[number].impatient}
        for number in instant.stopped:
            if inside[number].impatient:
                assert any(rank(world, winner) < rank(world, number) for winner in winners)


def rank(world: World, number: int) -> tuple[float, int]:
    return world.lives[number].spec.submit, number
