"""Displacing by priority and minimum runs: who yields, when, and at what loss."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from workbench import World, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.metrics.summary import summarise
from dovetail.model.costs import FREE, Costs
from dovetail.model.errors import UserError
from dovetail.model.event import Checkpointed, Finished, Started, Stopped, Submitted
from dovetail.model.plan import Change, Plan, Start, Stop
from dovetail.recipes import policy as policy_of
from dovetail.simulator.experiment import Replay, replay


def box(
    cluster: str, *sizes: int, policy: str = "fifo:displace=lower", **more: object
) -> Scheduler:
    """Job n asks for the n-th size and starts at second 10 * n, with priority 0."""
    decider = scheduler(cluster, policy, **more)  # type: ignore[arg-type]
    for number, gpus in enumerate(sizes):
        at = 10.0 * number
        decider.step(at, [Submitted(spec(number, gpus, at, length=1000, name=f"j{number}"))])
        assert decider.jobs[number].allocation is not None
    return decider


def urgent(decider: Scheduler, gpus: int, at: float = 100.0, priority: float = 1.0) -> Plan:
    plan = decider.step(at, [Submitted(spec(99, gpus, at, length=5, priority=priority))])
    decider.validate()
    return plan


def stopped(plan: Plan) -> list[int]:
    return sorted(action.job for action in plan.actions if isinstance(action, Stop))


def started(plan: Plan) -> list[int]:
    return [action.job for action in plan.actions if isinstance(action, Start)]


def test_the_job_with_the_least_work_since_it_began_yields() -> None:
    plan = urgent(box("1x4", 1, 1, 1, 1), 1)
    assert (stopped(plan), started(plan)) == ([3], [99])


def test_a_checkpoint_makes_a_job_cheap_to_displace() -> None:
    decider = box("1x4", 1, 1, 1, 1)
    decider.step(95.0, [Checkpointed(1)])
    assert stopped(urgent(decider, 1)) == [1]


def test_the_set_that_loses_least_is_taken_not_the_fewest_jobs() -> None:
    # Two young jobs of one GPU lose less than the old one of two.
    assert stopped(urgent(box("1x4", 2, 1, 1), 2)) == [1, 2]
    # Twelve seconds of four GPUs are less than two hundred of one.
    assert stopped(urgent(box("2x4", 1, 1, 1, 1, 4), 1, at=52.0)) == [3]
    assert stopped(urgent(box("1x5", 4, 1), 4)) == [0]


def test_the_price_of_a_restart_counts() -> None:
    # One second of two GPUs is less than eleven of one, but two GPUs idle for a restart are more.
    assert stopped(urgent(box("1x3", 1, 2, costs=FREE), 1, at=11.0)) == [1]
    assert stopped(urgent(box("1x3", 1, 2, costs=Costs(restart=100.0)), 1, at=11.0)) == [0]


@pytest.mark.parametrize("seed", range(20))
def test_no_other_set_on_the_node_would_lose_less(seed: int) -> None:
    draw = Random(seed)
    sizes = [draw.choice((1, 1, 2, 3)) for _ in range(6)]
    need = draw.randrange(1, 6)
    decider = box(f"1x{sum(sizes)}", *sizes)
    loss = {n: (100.0 - 10.0 * n) * size for n, size in enumerate(sizes)}
    best = min(
        sum(loss[n] for n in chosen)
        for count in range(1, 7)
        for chosen in combinations(range(6), count)
        if sum(sizes[n] for n in chosen) >= need
    )
    assert sum(loss[n] for n in stopped(urgent(decider, need))) == best


@pytest.mark.parametrize("priority", [0.0, -1.0])
def test_equals_and_betters_are_never_displaced(priority: float) -> None:
    assert urgent(box("1x2", 1, 1), 1, priority=priority).actions == ()


def test_a_job_that_cannot_resume_is_never_displaced() -> None:
    decider = scheduler("1x2", "fifo:displace=lower")
    decider.step(0.0, [Submitted(spec(0, 2, length=1000, resumable=False))])
    assert urgent(decider, 1).actions == ()
    assert decider.explain(99).cause == "devices"


def test_nobody_is_stopped_for_a_job_that_would_not_start() -> None:
    decider = scheduler("1x4", "fifo:displace=lower")
    decider.step(0.0, [Submitted(spec(0, 2, length=1000, resumable=False))])
    decider.step(1.0, [Submitted(spec(1, 2, 1.0, length=1000))])
    assert urgent(decider, 3).actions == ()
    assert decider.jobs[1].allocation is not None


def test_higher_priorities_come_first_in_any_order() -> None:
    decider = scheduler("1x1", "sjf:displace=lower")
    jobs = [spec(0, length=1), spec(1, length=9, priority=1.0), spec(2, length=5, priority=1.0)]
    assert started(decider.step(0.0, [Submitted(job) for job in jobs])) == [2]


def test_a_displaced_job_that_fits_elsewhere_moves() -> None:
    decider = scheduler("2x4", "fifo:displace=lower", "consolidated")
    for number, gpus in enumerate((3, 3, 1)):
        at = float(number)
        decider.step(at, [Submitted(spec(number, gpus, at, length=1000))])
    # 3 + 1 on one node, 3 on the other: three GPUs on one node are made free.
    plan = urgent(decider, 4)
    assert started(plan) == [99]
    assert sum(isinstance(action, Change) for action in plan.actions) + len(stopped(plan)) == 1


def test_in_acknowledged_pools_the_start_waits_for_the_stop() -> None:
    decider = scheduler("1x2", "fifo:displace=lower", acknowledged=True)
    job = spec(0, 2, length=1000)
    plan = decider.step(0.0, [Submitted(job)])
    assert isinstance(plan.actions[0], Start)
    decider.step(1.0, [Started(0, plan.actions[0].allocation)])
    plan = urgent(decider, 1)
    assert [start.awaits for start in plan.actions if isinstance(start, Start)] == [(0,)]
    assert started(decider.step(101.0, [Stopped(0)])) == [99]


def test_whoever_lost_patience_is_not_displaced_any_more() -> None:
    decider = scheduler("1x1", "fifo:displace=lower,patience=50")
    decider.step(0.0, [Submitted(spec(0, length=200)), Submitted(spec(1, length=1000))])
    decider.step(50.0, [])
    assert started(decider.step(200.0, [Finished(0)])) == [1]
    assert urgent(decider, 1, at=201.0).actions == ()


# ---- minimum runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize(
    "policy", ["fifo:displace=lower,min_run=60", "priority:preempt=true,min-run=60"]
)
def test_a_job_keeps_its_devices_for_a_while(policy: str, placement: str) -> None:
    decider = scheduler("1x2", policy, placement)
    decider.step(10.0, [Submitted(spec(0, 2, 10.0, length=1000))])
    plan = urgent(decider, 1, at=20.0)
    assert (plan.actions, plan.wake_at) == ((), 70.0)
    reason = decider.explain(99)
    assert reason.cause == "min-run"
    assert reason.text.endswith("j0 may keep its devices for 50 s more")
    assert reason.blockers == (0,)
    plan = decider.step(70.0, [])
    assert (stopped(plan), started(plan)) == ([0], [99])


def test_each_run_is_protected_from_its_confirmed_start_on() -> None:
    decider = scheduler("1x1", "priority:preempt=true,min_run=60", acknowledged=True)
    plan = decider.step(0.0, [Submitted(spec(0, length=1000))])
    assert isinstance(plan.actions[0], Start)
    decider.step(7.0, [Started(0, plan.actions[0].allocation)])
    assert urgent(decider, 1, at=20.0).wake_at == 67.0
    assert stopped(decider.step(67.0, [])) == [0]


def test_protections_of_jobs_that_left_are_forgotten() -> None:
    decider = scheduler("1x4", "srtf:min_run=1e6")
    for number in range(500):
        now = float(number)
        decider.step(now, [Submitted(spec(number, 1, now, length=0.5))])
        decider.step(now + 0.5, [Finished(number)])
    assert len(decider.planners[0]._ends_of) < 100  # type: ignore[attr-defined]


def test_two_equal_jobs_no_longer_swap_all_the_time() -> None:
    def swaps(policy: str) -> int:
        jobs = [spec(number, length=4000) for number in range(2)]
        world = World(scheduler("1x1", policy, acknowledged=True), jobs, stop_delay=0.001)
        instants = (each for _, each in zip(range(3000), world.instants(), strict=False))
        return sum(len(each.stopped) for each in instants if each.now < 1200)

    assert swaps("las:round=1") > 500
    assert swaps("las:round=1,min_run=60") <= 20


def test_a_long_trace_with_quick_stops_is_soon_replayed() -> None:
    """Without a minimum run, gittins swaps equal jobs millions of times here."""
    settings = Replay(
        "generate:tiresias480", "15x4", "gittins:min_run=60", restart_cost=0.0, stop_cost=0.001
    )
    run = replay(settings)
    assert summarise(run)["jobs"]["finished"] == 480
    assert run.preemptions < 5000


@pytest.mark.parametrize(
    "text",
    [
        "fifo:min_run=5",
        "srtf:min_run=-1",
        "srtf:displace=lower",
        "fifo:displace=higher",
        "fifo:displace=lower,backfill=conservative",
        "fair-share:skip=false,displace=lower",
        "fair-share:by=group",
    ],
)
def test_parameters_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        policy_of(text)
