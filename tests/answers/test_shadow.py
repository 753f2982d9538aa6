"""A policy in the shadow: it can never act, it costs little, and what it says is so."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from socket import socket
from subprocess import run
from typing import Any

import pytest
from hosting import Hosted, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sealing import SEAL, Watched
from sqlalchemy import select
from virtual import Site

from dovetail.controller import schema
from dovetail.controller.opening import Opening, local, opened
from dovetail.controller.parts import Parts
from dovetail.controller.shadowing import Pace, Shadow
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
WRITTEN = (schema.jobs, schema.attempts, schema.batches, schema.plans)
Told = list[tuple[float, list[Event], Plan]]
Rows = list[list[Any]]


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


def lived(
    folder: Path, policy: str, jobs: list[TraceJob], candidate: str | None
) -> tuple[Told, Rows]:
    """All that the controller decides and writes, with a shadow or without one."""
    folder.mkdir()
    site = Site(folder, WITH_CPU, Parts(policy, costs=Costs(restart=3.0)), 1.0, oracle=False)
    controller = site.open(executor=Watched(site.machine))
    store = controller.journal.store
    SEAL.guard(store)
    told: Told = []
    shadow = None
    if candidate is not None:
        shadow = Shadow(controller, Parts(candidate), policy, Pace(float("inf"), 0.0))

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        told.append((now, list(events), plan))
        if shadow is not None:
            with SEAL.sealed():
                shadow(now, events, plan)
                shadow.consider()
            assert SEAL.tried == []
            assert not controller._asked

    controller.watch = watch  # type: ignore[assignment]
    site.drive(controller, jobs)
    if shadow is not None:
        report = shadow.report()
        assert report.failures == 0, report.failure
        assert report.asked >= report.decisions // 2 - 1 > 0
    controller.scheduler.validate()
    written = [store.rows(select(table)) for table in WRITTEN]
    site.close()
    return told, written


def test_a_seal_notices_every_way_out(tmp_path: Path) -> None:
    """Or the tests below would show nothing."""
    site = Site(tmp_path, oracle=False)
    controller = site.open(executor=Watched(site.machine))
    SEAL.guard(controller.journal.store)
    with SEAL.sealed():
        controller.executor.reports()
        controller.journal.store.noted("parts")
        (tmp_path / "file").write_text("x")
        with suppress(OSError), socket() as made:
            made.connect(("127.0.0.1", 1))
        run(["true"], check=True)
    tried, SEAL.tried = SEAL.tried, []
    site.close()
    said = " ".join(tried)
    for way in ("engine.reports", "SELECT", "open", "socket.connect", "subprocess.Popen"):
        assert way in said


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


def test_it_looks_on_beside_a_real_controller(tmp_path: Path) -> None:
    with Hosted(tmp_path / "data", shadow="sjf") as host, host.box() as box:

        def asked() -> int:
            # It looks at decisions, so there must be some when it may look.
            box.submit(["true"], gpus=4)
            return box.shadow().asked

        until(asked, "a look")
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
