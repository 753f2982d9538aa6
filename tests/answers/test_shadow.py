"""A policy in the shadow: it can never act, it costs little, and what it says is so."""

from __future__ import annotations

from pathlib import Path
from random import Random
from time import perf_counter

import pytest
from hosting import Hosted, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from virtual import Site

from dovetail.controller.opening import Opening, local, opened
from dovetail.controller.parts import Parts
from dovetail.controller.shadowing import Pace, Shadow
from dovetail.executors.fake import FakeExecutor
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.event import Event
from dovetail.model.job import JobSpec
from dovetail.model.plan import Plan
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.orderings import ORDERINGS
from dovetail.recipes import RECIPES

EVERY = (*ORDERINGS.names(), *RECIPES, "fifo:displace=lower,min-run=5", "fifo:backfill=easy")
WITH_CPU = "2x4,cpus=24,mem=500"
Told = list[tuple[float, list[Event], Plan]]


class Counting(FakeExecutor):
    """An engine that knows how often it was asked to do something."""

    calls: list[str]

    def __getattribute__(self, name: str) -> object:
        if name in ("start", "stop", "suspend", "resume", "resize", "adopt", "forget"):
            object.__getattribute__(self, "calls").append(name)
        return super().__getattribute__(name)


def trace(seed: int, count: int = 14) -> list[TraceJob]:
    draw, jobs, at = Random(seed), list[TraceJob](), 0.0
    for number in range(1, count + 1):
        at += draw.choice((0.0, 2.0, 9.0))
        length = draw.uniform(2, 60)
        spec = JobSpec(
            number,
            f"j{number}",
            at,
            gang(draw.choice((1, 2, 4, 8))),
            user=draw.choice(("ann", "bob")),
            model=draw.choice(("resnet18", "")),
            priority=float(draw.randrange(3)),
            deadline=at + 500.0,
            estimate=length,
            resumable=draw.random() < 0.8,
        )
        jobs.append(TraceJob(spec, length))
    return jobs


def lived(folder: Path, policy: str, jobs: list[TraceJob], candidate: str | None) -> Told:
    """All that the controller decides and asks of its engine, with a shadow or without one."""
    folder.mkdir()
    site = Site(folder, WITH_CPU, Parts(policy, costs=Costs(restart=3.0)), 1.0, oracle=False)
    engine = Counting(site.machine)
    engine.calls = []
    controller = site.open(executor=engine)
    told: Told = []
    shadow = None
    if candidate is not None:
        shadow = Shadow(controller, Parts(candidate), policy, Pace(float("inf"), 0.0))

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        told.append((now, list(events), plan))
        if shadow is not None:
            shadow(now, events, plan)
            before = list(engine.calls)
            shadow.consider()
            assert engine.calls == before

    controller.watch = watch  # type: ignore[assignment]
    site.drive(controller, jobs)
    if shadow is not None:
        report = shadow.report()
        assert report.failures == 0, report.failure
        assert report.asked >= report.decisions // 2 - 1 > 0
    controller.scheduler.validate()
    site.close()
    return told


@pytest.mark.parametrize("candidate", EVERY)
def test_no_policy_in_the_shadow_changes_what_is_decided(candidate: str, tmp_path: Path) -> None:
    jobs = trace(len(candidate))
    alone = lived(tmp_path / "alone", "fifo:skip=true", jobs, None)
    assert lived(tmp_path / "watched", "fifo:skip=true", jobs, candidate) == alone


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000), pair=st.tuples(*[st.sampled_from(EVERY)] * 2))
def test_whatever_decides_and_whoever_looks_on_the_plans_are_the_same(
    seed: int, pair: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, jobs = tmp_path_factory.mktemp("pair"), trace(seed)
    alone = lived(folder / "alone", pair[0], jobs, None)
    assert lived(folder / "watched", pair[0], jobs, pair[1]) == alone


def watched(folder: Path, policy: str, candidate: str, jobs: list[TraceJob]) -> Shadow:
    site = Site(folder, "1x4", Parts(policy), oracle=False)
    controller = site.open()
    shadow = Shadow(controller, Parts(candidate), policy, Pace(float("inf"), 0.0))

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        shadow(now, events, plan)
        shadow.consider()

    controller.watch = watch  # type: ignore[assignment]
    site.drive(controller, jobs)
    site.close()
    return shadow


def job(number: int, at: float, gpus: int, length: float, user: str = "ann") -> TraceJob:
    spec = JobSpec(number, f"j{number}", at, gang(gpus), user=user, estimate=length)
    return TraceJob(spec, length)


QUEUE = [
    job(1, 0.0, 4, 100.0),
    job(2, 1.0, 4, 10_000.0),
    job(3, 2.0, 4, 10.0, "bob"),
    job(4, 3.0, 4, 10.0, "bob"),
]


def test_it_says_who_would_have_started_instead_and_what_that_is_worth(tmp_path: Path) -> None:
    report = watched(tmp_path, "fifo", "sjf", QUEUE).report()
    (users,) = [{each.user: each for each in report.users}]
    assert report.otherwise >= 1
    assert any(3 in each.instead and 2 in each.passed for each in report.differences)
    assert (users["bob"].instead, users["ann"].passed) == (1, 1)
    assert users["bob"].present - users["bob"].candidate > 1000
    assert users["ann"].candidate > users["ann"].present
    assert report.wait_candidate < report.wait_present


def test_the_same_policy_would_have_decided_the_same(tmp_path: Path) -> None:
    report = watched(tmp_path, "sjf", "sjf", QUEUE).report()
    assert (report.otherwise, report.differences) == (0, ())
    assert report.acted == 3
    assert report.wait_candidate == pytest.approx(report.wait_present)


def test_it_takes_less_than_a_tenth_of_the_time_of_decisions(tmp_path: Path) -> None:
    site = Site(tmp_path, "4x8", Parts("fifo:skip=true"), oracle=False)
    controller = site.open()
    shadow = Shadow(controller, Parts("srtf"), "fifo", Pace())
    took = 0.0

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        nonlocal took
        begun = perf_counter()
        shadow(now, events, plan)
        shadow.consider()
        took += perf_counter() - begun

    controller.watch = watch  # type: ignore[assignment]
    begun, first = perf_counter(), 1
    # It saves time up before it looks: how many decisions that takes depends on the machine.
    while shadow.tally.asked < 2 and first < 20_000:
        some = range(first, first := first + 300)
        at = site.clock.now
        later = [(n, at + 0.5 * (n - some[0])) for n in some]
        site.drive(controller, [job(n, when, 1 + n % 4, 40.0 + n % 7) for n, when in later])
    total = perf_counter() - begun
    site.close()
    assert shadow.tally.asked >= 2
    assert took / (total - took) < 0.1


def test_it_looks_on_beside_a_real_controller(tmp_path: Path) -> None:
    with Hosted(tmp_path / "data", shadow="sjf") as host, host.box() as box:
        for _ in range(6):
            box.submit(["sleep", "0.3"], gpus=4)
        until(lambda: box.shadow().asked, "a look")
        report = box.shadow()
    assert (report.policy, report.present, report.failures) == ("sjf", "fifo:skip=true", 0)
    assert report.decisions >= report.asked


def test_without_one_that_is_said(tmp_path: Path) -> None:
    asked = pytest.raises(UserError, match="dovetail up --shadow")
    with Hosted(tmp_path / "data") as host, host.box() as box, asked:
        box.shadow()


def test_an_unknown_candidate_is_refused_at_the_start(tmp_path: Path) -> None:
    opening = Opening(tmp_path / "data", Parts(), shadow="sjff")
    with pytest.raises(UserError, match="unknown policy 'sjff'"), opened(opening, local(2)):
        pass
