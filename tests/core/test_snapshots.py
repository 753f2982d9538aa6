"""A scheduler stored in mid-run and restored elsewhere continues identically."""

from __future__ import annotations

import json
from typing import Any

import pytest
from workbench import World, scheduler, spec
from workloads import fixed_jobs

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import Finished, Held, NodeDown, NodeDraining, NodeUp, Started, Submitted
from dovetail.orderings import BUILTIN

VARIANTS = {
    "fifo": ("fifo:skip=true", "fifo:preempt=true", "fifo:backfill=easy"),
    "smallest-first": ("smallest-first:skip=true,patience=9", "smallest-first:patience=9"),
    "srtf": ("srtf:patience=9",),
    "las": ("las:round=7", "las:thresholds=6/20", "las:thresholds=6/20,promote=2"),
    "gittins": ("gittins:round=5,thresholds=6/20",),
    "finish-time-fairness": ("finish-time-fairness:round=7",),
    "fair-share": ("fair-share:half_life=20",),
    "deadline": ("deadline:admission=reject",),
}
POLICIES = [*BUILTIN, *(each for several in VARIANTS.values() for each in several)]
COSTS = Costs(restart=3.0, checkpoint_every=5.0)
OUTAGES = [(20.0, NodeDown(0)), (31.0, NodeUp(0))]
DRAINS = [(20.0, NodeDraining(0)), (41.0, NodeUp(0))]


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def comparable(decider: Scheduler) -> Any:
    """The state of a scheduler, without the order in which its planners list things."""
    state = through_json(decider.snapshot())
    for planner in state["planners"]:
        planner["turns"].sort()
    return state


def follow(make: Any, world: World, every: int, *, wakes: bool = True) -> None:
    """Fork every few instants; each fork must plan as the original does until the end."""
    original: Scheduler = world.scheduler
    forks: list[Scheduler] = []
    for number, (now, batch, plan) in enumerate(world.instants()):
        for fork in forks:
            same = fork.step(now, batch)
            assert same.actions == plan.actions
            assert same.wake_at == plan.wake_at or not wakes
        if number % every == 0:
            fork = make()
            fork.restore(through_json(original.snapshot()))
            fork.validate()
            assert comparable(fork) == comparable(original)
            forks.append(fork)
    assert forks
    for fork in forks:
        fork.validate()
        assert not fork.jobs
        assert fork.served == original.served


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_fork_in_mid_run_continues_identically(policy: str, placement: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, placement, costs=COSTS)

    follow(make, World(make(), fixed_jobs(40, seed=1), OUTAGES), every=17, wakes=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_fork_with_partitions_continues_identically(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("4x4", policy, costs=COSTS, partitions={"red": 3, "blue": 1})

    follow(make, World(make(), fixed_jobs(40, seed=2), OUTAGES), every=17, wakes=False)


@pytest.mark.parametrize(
    "policy",
    [
        "fifo",
        "srtf",
        "las:round=7",
        "finish-time-fairness:round=7",
        "las:thresholds=6/20",
        "fifo:skip=true,patience=9",
        "srtf:patience=9",
    ],
)
def test_a_fork_also_wakes_when_the_original_does(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, costs=COSTS)

    follow(make, World(make(), fixed_jobs(40, seed=1), OUTAGES), every=17)


@pytest.mark.parametrize("policy", ["fifo", "sjf:skip=true", "fifo:backfill=easy", "fair-share"])
def test_a_fork_during_a_drain_continues_identically(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, costs=COSTS)

    follow(make, World(make(), fixed_jobs(40, seed=1), DRAINS), every=5)


def test_a_fork_learns_what_the_original_had_learned() -> None:
    from dovetail.predictors.history import History

    def make() -> Scheduler:
        made = scheduler("2x4", "sjf", costs=COSTS)
        made.predictor = History()
        return made

    follow(make, World(make(), fixed_jobs(40, seed=3)), every=10)


def test_holdings_and_closed_nodes_survive() -> None:
    original = scheduler("2x4")
    original.step(0.0, [Held("slurm", allocation_of((Part(0, 0b0110),))), NodeDraining(1)])
    fork = scheduler("2x4")
    fork.restore(through_json(original.snapshot()))
    assert list(fork.cluster.masks) == [0b1001, 0b1111]
    assert fork.cluster.closed == {1: "draining"}
    assert list(fork.cluster.free) == [2, 0]


def test_a_job_on_a_draining_node_survives() -> None:
    original = scheduler("1x4")
    original.step(0.0, [Submitted(spec(0, 3))])
    original.step(1.0, [NodeDraining(0)])
    fork = scheduler("1x4")
    fork.restore(through_json(original.snapshot()))
    fork.step(5.0, [Finished(0)])
    assert list(fork.cluster.masks) == [0b1111]


def test_shares_survive() -> None:
    from dovetail.model.request import gang

    original = scheduler("1x2,gpumem=8")
    request = gang(1, share=300, gpu_memory=1024)
    original.step(0.0, [Submitted(spec(number, request=request)) for number in range(4)])
    fork = scheduler("1x2,gpumem=8")
    fork.restore(through_json(original.snapshot()))
    assert fork.cluster.shared == original.cluster.shared
    fork.step(1.0, [Finished(number) for number in range(4)])
    assert not fork.cluster.shared


def test_a_snapshot_is_plain_values_and_does_not_change() -> None:
    original = scheduler("2x4", "las:thresholds=6/20")
    world = World(original, fixed_jobs(20, seed=4))
    for number, _ in enumerate(world.instants()):
        if number == 15:
            break
    state = original.snapshot()
    stored = through_json(state)
    assert state == original.snapshot()
    for _ in world.instants():
        pass
    assert through_json(state) == stored


# ---- with executors that acknowledge -----------------------------------------------------------


def test_a_job_that_is_starting_survives() -> None:
    original = scheduler("1x4", "srtf", acknowledged=True)
    original.step(0.0, [Submitted(spec(0, 4, length=100))])
    fork = scheduler("1x4", "srtf", acknowledged=True)
    fork.restore(through_json(original.snapshot()))
    for each in (original, fork):
        each.step(1.0, [Started(0, allocation_of((Part(0, 0b1111),)))])
    assert through_json(fork.snapshot()) == through_json(original.snapshot())


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_a_job_that_is_stopping_survives(policy: str) -> None:
    original = scheduler("1x4", policy, acknowledged=True)
    original.step(0.0, [Submitted(spec(0, 4, length=100))])
    original.step(1.0, [Started(0, allocation_of((Part(0, 0b1111),)))])
    original.step(2.0, [Submitted(spec(1, 4, 2.0, length=1))])
    assert original.releasing
    fork = scheduler("1x4", policy, acknowledged=True)
    fork.restore(through_json(original.snapshot()))
    assert set(fork.planners[0].view.running) == set(original.planners[0].view.running)


@pytest.mark.parametrize("policy", ["srtf", "las:round=7", "priority:preempt=true"])
def test_a_fork_with_executors_that_acknowledge_continues_identically(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, costs=COSTS, acknowledged=True)

    world = World(make(), fixed_jobs(40, seed=5), start_delay=1.0, stop_delay=2.0)
    follow(make, world, every=7)


def test_counters_survive() -> None:
    original = scheduler("1x4", "srtf")
    original.step(0.0, [Submitted(spec(0, 4, length=100))])
    original.step(2.0, [Submitted(spec(1, 4, 2.0, length=1))])
    fork = scheduler("1x4", "srtf")
    fork.restore(through_json(original.snapshot()))
    assert original.preemptions == 1
    assert fork.preemptions == original.preemptions
