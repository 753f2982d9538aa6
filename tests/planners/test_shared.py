"""The advice for a shared box: fair shares by user, priorities, quotas and Synergy together."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from sensitive_world import MODELS, SensitiveWorld, job, tuned

from dovetail.core.scheduler import Scheduler
from dovetail.metrics.summary import summarise
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.errors import UserError
from dovetail.model.event import Finished, Freed, Held, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Start, Stop
from dovetail.model.request import gang
from dovetail.recipes import RECIPES, policy
from dovetail.simulator.experiment import Replay, replay

ONE = "1x8,cpus=24,mem=500"


def people(seed: int, count: int = 40) -> list[JobSpec]:
    """Jobs of three people, some urgent, some that cannot resume, some of odd shapes."""
    draw = Random(seed)
    shapes = [gang(gpus) for gpus in (1, 1, 1, 2, 4)] + [gang(1, share=500), gang(0, cpu=2000)]
    times = sorted(draw.randrange(60) for _ in range(count))
    return [
        job(
            number,
            at=at,
            model=draw.choice([*MODELS, ""]),
            length=draw.randrange(1, 60),
            request=draw.choice(shapes),
            user=draw.choice(["ann", "bob", "eve"]),
            tenant=draw.choice(["lab/a", "lab/b", ""]),
            priority=float(draw.choice([0, 0, 0, 1, 2])),
            resumable=draw.random() < 0.8,
        )
        for number, at in enumerate(times)
    ]


def foreign(number: int, cores: int, memory: int, devices: int, nodes: int) -> Held:
    part = Part(number % nodes, devices, 1000 * cores, memory)
    return Held(f"other-{number}", allocation_of((part,)))


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("quotas", [None, "ann=4,*=5,group:lab=6"])
@pytest.mark.parametrize("delay", [None, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_everybody_is_served_whatever_others_use(
    seed: int, delay: float | None, quotas: str | None, nodes: int
) -> None:
    draw = Random(seed)
    happenings = []
    for number in range(6):
        at = float(draw.randrange(80))
        amounts = (draw.randrange(30), draw.randrange(300_000), draw.randrange(256))
        use = foreign(number, *amounts, nodes)
        happenings += [(at, use), (at + draw.randrange(5, 40), Freed(use.owner))]
    decider = tuned(
        f"{nodes}x8,cpus=24,mem=500",
        "shared:min-run=5,patience=200",
        acknowledged=delay is not None,
        quotas=quotas,
    )
    delays = {"start_delay": delay, "stop_delay": delay} if delay else {}
    jobs = people(seed)
    world = Blind(decider, jobs, happenings, **delays)
    for instant in world.instants():
        decider.validate()
        assert_nobody_important_yielded(decider, instant)
        if quotas:
            assert_within(decider)
    assert world.ended == {each.id: "done" for each in jobs}


class Blind(SensitiveWorld):
    """Machines that let others in beside our jobs, so that their own books cannot be strict."""

    def _land(self, action: object, fresh: bool) -> None:
        life = self.lives[action.job]  # type: ignore[attr-defined]
        life.held = action.allocation  # type: ignore[attr-defined]
        self._go(life, fresh)

    def _let_go(self, life: object) -> None:
        life.held = None  # type: ignore[attr-defined]


def assert_nobody_important_yielded(decider: Scheduler, instant: object) -> None:
    actions = instant.plan.actions  # type: ignore[attr-defined]
    started = [decider.jobs[each.job] for each in actions if isinstance(each, Start)]
    reserved_anew = {winner.spec.id for winner in started}
    for action in actions:
        if isinstance(action, Stop) and action.job not in reserved_anew:
            if decider.jobs[action.job].first_start is None:
                continue  # its start was reserved and never made
            victim = decider.jobs[action.job].spec
            assert victim.resumable
            assert any(winner.spec.priority > victim.priority for winner in started)


def assert_within(decider: Scheduler) -> None:
    held: Counter[str] = Counter()
    for each in decider.jobs.values():
        if each.allocation is not None:
            held[each.spec.user] += each.allocation.milli_gpus
            held["lab"] += each.allocation.milli_gpus * each.spec.tenant.startswith("lab/")
    assert held["ann"] <= 4000
    assert max(held["bob"], held["eve"]) <= 5000
    assert held["lab"] <= 6000


def beside(memory: int) -> Scheduler:
    """A box on which somebody else uses so many MiB of 512,000."""
    decider = tuned(ONE, "shared")
    decider.step(0.0, [Held("others", allocation_of((Part(0, 0, 0, memory),)))])
    return decider


def memory_of(decider: Scheduler, number: int) -> int | None:
    held = decider.jobs[number].allocation
    return held.memory if held is not None else None


def test_a_job_for_the_whole_box_takes_the_memory_that_others_leave() -> None:
    decider = beside(112_000)
    decider.step(1.0, [Submitted(job(0, 8, model="", length=50))])
    assert memory_of(decider, 0) == 400_000
    decider.validate()


def test_jobs_that_come_later_share_what_is_left_and_nobody_is_squeezed_for_them() -> None:
    decider = tuned(ONE, "shared")
    decider.step(0.0, [Submitted(job(0, 4, model="", length=50))])
    assert memory_of(decider, 0) == 256_000
    decider.step(1.0, [Held("others", allocation_of((Part(0, 0, 0, 56_000),)))])
    decider.step(
        2.0, [Submitted(job(1, 2, model="", length=50)), Submitted(job(2, 2, model="", length=50))]
    )
    assert [memory_of(decider, number) for number in range(3)] == [256_000, 100_000, 100_000]
    decider.validate()
    # Nor does anybody who runs get more when others leave: a limit that moves tells nothing.
    decider.step(3.0, [Freed("others")])
    assert [memory_of(decider, number) for number in range(3)] == [256_000, 100_000, 100_000]


def test_less_than_half_of_its_share_is_not_worth_starting_with() -> None:
    decider = beside(260_000)
    decider.step(1.0, [Submitted(job(0, 8, model="", length=50))])
    assert memory_of(decider, 0) is None
    assert decider.explain(0).cause == "others"
    decider.step(2.0, [Freed("others")])
    assert memory_of(decider, 0) == 512_000


def test_what_a_job_states_it_gets_or_waits_for() -> None:
    decider = beside(112_000)
    decider.step(1.0, [Submitted(job(0, request=gang(8, memory=64_000 * 8), model="", length=50))])
    assert memory_of(decider, 0) is None
    decider.step(2.0, [Freed("others")])
    assert memory_of(decider, 0) == 512_000


def test_who_used_less_goes_first_and_urgent_jobs_before_that() -> None:
    decider = tuned(ONE, "shared")
    decider.step(0.0, [Submitted(job(0, 8, length=5000, user="ann", resumable=False))])
    later = [("ann", 0.0), ("bob", 0.0), ("ann", 1.0), ("bob", 0.0)]
    for number, (user, priority) in enumerate(later, 1):
        one = job(number, 8, float(number), length=50, user=user, priority=priority)
        decider.step(float(number), [Submitted(one)])
    world_order = []
    now = 5000.0
    plan = decider.step(now, [Finished(0)])
    while plan.actions:
        number = next(each.job for each in plan.actions if isinstance(each, Start))
        world_order.append(number)
        now += 50
        plan = decider.step(now, [Finished(number)])
    assert world_order == [3, 2, 4, 1]


def test_quotas_of_cores_do_not_go_with_an_allocator_that_shares_them() -> None:
    with pytest.raises(UserError, match="limit GPUs alone"):
        tuned(ONE, "shared", quotas="ann=1/4/-")


def test_the_recipe_says_what_it_does() -> None:
    made = policy("shared").ordering()
    assert made.displace == "lower"
    assert made.skip
    assert made.min_run == 600
    assert made.patience == 86400
    assert RECIPES["shared"].allocator == "tune"


def test_a_replay_with_quotas_ends_with_everybody_done() -> None:
    trace = "generate:synergy,rate=40,jobs=60,seed=4,sizes=mix,split=50/30/20"
    settings = Replay(trace, "4x8,cpus=24,mem=500", "shared", quotas="*=24")
    found = summarise(replay(settings))
    assert found["jobs"]["finished"] == 60
