"""What must hold for every policy where people share machines: quotas, priorities, minimum runs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Instant, World, scheduler
from workloads import CLUSTERS, VARIANTS, any_jobs, effort, fixed_jobs, troubles

from dovetail.core.ordering import Ordering
from dovetail.core.scheduler import Scheduler
from dovetail.model.costs import Costs
from dovetail.model.job import JobSpec
from dovetail.model.plan import Change, Start, Stop
from dovetail.model.quota import read_quotas
from dovetail.orderings import BUILTIN as ORDERINGS

QUOTAS = "ann=3,group:red=4/6/3,*=2"
LIMITS = read_quotas(QUOTAS)
LOSSY = Costs(restart=1.0, checkpoint_every=2.0)


def assert_within_quotas(decider: Scheduler) -> None:
    held: dict[str, Counter[str]] = {}
    assert LIMITS is not None
    for job in decider.jobs.values():
        if job.allocation is None:
            continue
        for name, _ in LIMITS.accounts(job.spec):
            amounts = held.setdefault(name, Counter())
            amounts["gpus"] += job.allocation.milli_gpus
            amounts["cpu"] += job.allocation.cpu
            amounts["memory"] += job.allocation.memory
    assert held.get("ann", Counter())["gpus"] <= 3000
    assert held.get("bob", Counter())["gpus"] <= 2000
    red = held.get("group:red", Counter())
    assert red["gpus"] <= 4000
    assert red["cpu"] <= 6000
    assert red["memory"] <= 3 * 1024


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(8)
@given(
    cluster=st.sampled_from(CLUSTERS),
    jobs=any_jobs(flexible=True),
    happenings=st.one_of(st.just([]), troubles()),
    slow=st.booleans(),
)
def test_no_quota_is_ever_exceeded_and_everybody_ends(
    policy: str,
    placement: str,
    cluster: str,
    jobs: list[JobSpec],
    happenings: list[tuple[float, Any]],
    slow: bool,
) -> None:
    policy = policy.replace("round=2", "round=20")
    decider = scheduler(cluster, policy, placement, acknowledged=slow, quotas=QUOTAS)
    willing = [job._replace(retries=9) for job in jobs]
    delay = 2.0 if slow else 0.0
    world = World(decider, willing, happenings, start_delay=delay, stop_delay=delay)
    for _ in world.instants():
        decider.validate()
        assert_within_quotas(decider)
    assert set(world.ended.values()) <= {"done", "rejected"}
    assert sorted(world.ended) == [job.id for job in jobs]


@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(6)
@given(
    cluster=st.sampled_from(CLUSTERS),
    jobs=any_jobs(most=9, shares=False),
    placement=st.sampled_from(["best-fit", "consolidated"]),
)
def test_with_quotas_planning_is_repeatable_and_settles(
    policy: str, cluster: str, jobs: list[JobSpec], placement: str
) -> None:
    decider = scheduler(cluster, policy, placement, quotas=QUOTAS)
    for instant in World(decider, jobs).instants():
        for planner in decider.planners:
            planner.capacity_changed()
            before = decider.snapshot()
            assert planner.plan(instant.now) == []
            assert decider.snapshot() == before


@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(6)
@given(
    cluster=st.sampled_from(CLUSTERS),
    jobs=any_jobs(flexible=True),
    placement=st.sampled_from(["best-fit", "consolidated"]),
)
def test_a_quota_that_nobody_reaches_changes_nothing(
    policy: str, cluster: str, jobs: list[JobSpec], placement: str
) -> None:
    def decided(quotas: str | None) -> list[Instant]:
        return World(scheduler(cluster, policy, placement, quotas=quotas), jobs).run()

    assert decided("*=99,group:red=99") == decided(None)


@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(6)
@given(jobs=any_jobs(flexible=True), at=st.integers(0, 25), slow=st.booleans())
def test_with_quotas_a_fork_continues_identically_and_so_does_an_heir(
    policy: str, jobs: list[JobSpec], at: int, slow: bool
) -> None:
    def make() -> Scheduler:
        given_ = {"costs": LOSSY, "acknowledged": slow, "quotas": QUOTAS}
        return scheduler("2x4,cpus=8,mem=8", policy, **given_)

    original, heir, fork = make(), make(), None
    delay = 2.0 if slow else 0.0
    world = World(original, jobs, start_delay=delay, stop_delay=delay)
    for number, (now, batch, plan) in enumerate(world.instants(most=400)):
        if fork is not None:
            assert fork.step(now, batch) == plan
            assert heir.step(now, batch) == plan
        else:
            heir.apply(now, batch, plan)
        if number == at:
            fork = make()
            fork.restore(json.loads(json.dumps(original.snapshot())))


# ---- who is displaced ---------------------------------------------------------------------------

DISPLACING = [each for each in VARIANTS if "displace" in each]
YOUNG = [each for each in VARIANTS if "min_run" in each]


class Watch:
    """Looks at whom each plan takes devices from, before they are taken."""

    def __init__(self, decider: Scheduler) -> None:
        self.decider = decider
        self.ordering: Ordering = decider.planners[0].ordering
        self.displaced = 0
        self.began: dict[int, float] = {}

    def look(self, instant: Instant) -> None:
        jobs = self.decider.jobs
        started = [each for each in instant.plan.actions if isinstance(each, Start)]
        for action in instant.plan.actions:
            if isinstance(action, Stop | Change):
                self.displaced += 1
                victim = jobs[action.job]
                assert victim.spec.resumable
                if self.ordering.displace == "lower":
                    winners = [jobs[start.job].spec.priority for start in started]
                    assert winners, "somebody was stopped and nobody started"
                    assert max(winners) > victim.spec.priority
                began = self.began.get(action.job)
                if began is not None:
                    assert instant.now - began >= self.ordering.min_run
        running = {n: j.began for n, j in jobs.items() if str(j.status) == "running"}
        self.began = running


@pytest.mark.parametrize("placement", ["best-fit", "consolidated", "topology"])
@pytest.mark.parametrize("policy", [*dict.fromkeys([*DISPLACING, *YOUNG])])
@effort(40)
@given(cluster=st.sampled_from(CLUSTERS), jobs=any_jobs(most=14, flexible=True), slow=st.booleans())
def test_only_who_may_be_displaced_is_and_only_for_somebody_who_starts(
    policy: str, placement: str, cluster: str, jobs: list[JobSpec], slow: bool
) -> None:
    if slow:
        policy = policy.replace("round=2", "round=20")
    decider = scheduler(cluster, policy, placement, acknowledged=slow)
    watch = Watch(decider)
    delay = 1.0 if slow else 0.0
    for instant in World(decider, jobs, start_delay=delay, stop_delay=delay).instants():
        watch.look(instant)


@pytest.mark.parametrize("policy", [*dict.fromkeys([*DISPLACING, *YOUNG])])
def test_these_policies_do_displace(policy: str) -> None:
    """What is asserted about displaced jobs above is asserted about some."""
    displaced = 0
    for seed in range(10):
        decider = scheduler("2x4", policy)
        watch = Watch(decider)
        for instant in World(decider, fixed_jobs(25, seed)).instants():
            watch.look(instant)
        displaced += watch.displaced
    assert displaced
